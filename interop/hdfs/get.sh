#!/usr/bin/env bash
# needs: java javac mvn
# Fetch (once) Hadoop's MiniDFSCluster and MiniKdc through Maven, and compile Cluster.java: 105 MB. Prints the folder.
# env: STOA_JUDGES (default ${XDG_CACHE_HOME:-~/.cache}/stoa-judges): all that is fetched lies in its folder hdfs-3.3.6/
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${STOA_JUDGES:-${XDG_CACHE_HOME:-$HOME/.cache}/stoa-judges}/hdfs-3.3.6
mkdir -p "$cache"
exec 9>"$cache/.lock"; flock 9
want=$(cat "$here/get.sh" "$here/pom.xml" "$here/Cluster.java" "$here/log4j.properties" | sha256sum | cut -d' ' -f1)
if [ "$(cat "$cache/.ready" 2>/dev/null)" != "$want" ]; then
  rm -rf "$cache/classes"; mkdir -p "$cache/classes"
  cp "$here/pom.xml" "$cache/"; cp "$here/log4j.properties" "$cache/classes/"
  (cd "$cache" && mvn -q -B -ntp dependency:copy-dependencies -DoutputDirectory=lib >mvn.log 2>&1) || { cat "$cache/mvn.log" >&2; exit 1; }
  javac -nowarn -cp "$cache/lib/*" -d "$cache/classes" "$here/Cluster.java" >&2
  echo "$want" >"$cache/.ready"
fi
echo "$cache"
