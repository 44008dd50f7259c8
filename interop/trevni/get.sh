#!/usr/bin/env bash
# needs: java javac mvn
# Fetch (once) Avro's Trevni readers 1.12.2 and 1.7.4 through Maven and compile the judges. Prints the folder.
# env: STOA_JUDGES (default ${XDG_CACHE_HOME:-~/.cache}/stoa-judges): all that is fetched lies in its folder trevni/
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${STOA_JUDGES:-${XDG_CACHE_HOME:-$HOME/.cache}/stoa-judges}/trevni
mkdir -p "$cache"
exec 9>"$cache/.lock"; flock 9
want=$(cat "$here/get.sh" "$here/pom.xml" "$here"/*.java | sha256sum | cut -d' ' -f1)
if [ "$(cat "$cache/.ready" 2>/dev/null)" != "$want" ]; then
  for v in 1.12.2 1.7.4; do
    dir=$cache/$v
    rm -rf "$dir"; mkdir -p "$dir/src/main/java/peer"
    cp "$here/pom.xml" "$dir/"; cp "$here"/*.java "$dir/src/main/java/peer/"
    (cd "$dir" && mvn -q -B -ntp -Davro.version=$v package >"$cache/mvn.log" 2>&1) || { cat "$cache/mvn.log" >&2; exit 1; }
  done
  echo "$want" >"$cache/.ready"
fi
echo "$cache"
