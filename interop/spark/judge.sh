#!/usr/bin/env bash
# Spark with our jar, asked line by line through standard input: see Judge.java.    usage: judge.sh VERSION JAR WORK MASTER [KEY=VALUE…]
# env: JUDGE_JAVA_OPTS, such as -Djudge.log=WARN
set -euo pipefail
home=$("$(dirname "$0")/get.sh" "$1" </dev/null)
jar=$2 work=$3 master=$4; shift 4
opens=()
for p in java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.util java.util.concurrent \
    java.util.concurrent.atomic jdk.internal.ref sun.nio.ch sun.nio.cs sun.security.action sun.util.calendar; do
  opens+=("--add-opens=java.base/$p=ALL-UNNAMED")
done
export SPARK_HOME=$home SPARK_LOCAL_IP=127.0.0.1
case $home in *-3.*) export SPARK_SCALA_VERSION=2.12 ;; *) export SPARK_SCALA_VERSION=2.13 ;; esac
exec java -Xmx${JUDGE_MEMORY:-2g} -XX:+UseSerialGC -Duser.timezone=UTC -Dfile.encoding=UTF-8 "${opens[@]}" ${JUDGE_JAVA_OPTS:-} \
  -cp "$home/judge:$jar:$home/jars/*" Judge "$work" "$master" "$@"
