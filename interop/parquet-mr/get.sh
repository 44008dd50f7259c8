#!/usr/bin/env bash
# needs: java javac mvn
# Fetch (once) parquet-mr (parquet-hadoop) through Maven and compile the judge. Prints the folder.
# env: STOA_JUDGES (default ${XDG_CACHE_HOME:-~/.cache}/stoa-judges): all that is fetched lies in its folder parquet-mr/
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${STOA_JUDGES:-${XDG_CACHE_HOME:-$HOME/.cache}/stoa-judges}/parquet-mr
mkdir -p "$cache"
exec 9>"$cache/.lock"; flock 9
want=$(cat "$here/get.sh" "$here/pom.xml" "$here"/*.java | sha256sum | cut -d' ' -f1)
if [ "$(cat "$cache/.ready" 2>/dev/null)" != "$want" ]; then
  rm -rf "$cache/src" "$cache/target"; mkdir -p "$cache/src/main/java/peer"
  cp "$here/pom.xml" "$cache/"; cp "$here"/*.java "$cache/src/main/java/peer/"
  (cd "$cache" && mvn -q -B -ntp package >"$cache/mvn.log" 2>&1) || { cat "$cache/mvn.log" >&2; exit 1; }
  echo "$want" >"$cache/.ready"
fi
echo "$cache"
