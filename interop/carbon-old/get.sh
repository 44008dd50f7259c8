#!/usr/bin/env bash
# Fetch (once) CarbonData's SDK 1.6.1 through Maven and compile the judge. Prints the folder.
# env: STOA_JUDGES (default ${XDG_CACHE_HOME:-~/.cache}/stoa-judges): all that is fetched lies in its folder carbon-1.6.1/
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${STOA_JUDGES:-${XDG_CACHE_HOME:-$HOME/.cache}/stoa-judges}/carbon-1.6.1
shared=(java/stoa/carbon/UnsafeAgent.java resources/log4j.properties) # of ../carbon
mkdir -p "$cache"
exec 9>"$cache/.lock"; flock 9
want=$( (cd "$here" && find pom.xml src get.sh -type f | LC_ALL=C sort | xargs cat; cd "$here/../carbon/src/main" && cat "${shared[@]}") | sha256sum | cut -d' ' -f1)
if [ "$(cat "$cache/.ready" 2>/dev/null)" != "$want" ]; then
  rm -rf "$cache/src" "$cache/target"
  cp -r "$here/pom.xml" "$here/src" "$cache/"
  mkdir -p "$cache/src/main/resources"
  for f in "${shared[@]}"; do cp "$here/../carbon/src/main/$f" "$cache/src/main/$f"; done
  (cd "$cache" && mvn -q -B -ntp package >"$cache/mvn.log" 2>&1) || { cat "$cache/mvn.log" >&2; exit 1; }
  echo "$want" >"$cache/.ready"
fi
echo "$cache"
