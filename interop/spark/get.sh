#!/usr/bin/env bash
# needs: java javac mvn
# Fetch (once) a Spark through Maven, 140 to 170 jars, and compile the judge beside it. Prints the folder, which serves as SPARK_HOME.
# usage: get.sh VERSION, 3.x (Scala 2.12) or 4.x (Scala 2.13)
# env: STOA_JUDGES (default ${XDG_CACHE_HOME:-~/.cache}/stoa-judges): all that is fetched lies in its folder spark-VERSION/
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
version=$1 scala=2.13
case $version in 3.*) scala=2.12 ;; esac
home=${STOA_JUDGES:-${XDG_CACHE_HOME:-$HOME/.cache}/stoa-judges}/spark-$version
mkdir -p "$home"
exec 9>"$home/.lock"; flock 9
want=$(cat "$here/get.sh" "$here/pom.xml" "$here/Judge.java" "$here/log4j2.properties" | sha256sum | cut -d' ' -f1)
if [ "$(cat "$home/.ready" 2>/dev/null)" != "$want" ]; then
  mvn -q -B -ntp -f "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$home/jars" -Dspark.version="$version" \
    -Dspark.scala="$scala" >"$home/mvn.log" 2>&1 || { cat "$home/mvn.log" >&2; exit 1; }
  rm -rf "$home/judge"; mkdir -p "$home/judge"
  javac -nowarn -cp "$home/jars/*" -d "$home/judge" "$here/Judge.java" 2>&1 | grep -v '^warning\|^[0-9]* warning' >&2 || true
  [ -f "$home/judge/Judge.class" ] || exit 1
  cp "$here/log4j2.properties" "$home/judge/"
  echo "$want" >"$home/.ready"
fi
echo "$home"
