#!/usr/bin/env bash
# Write tables with the real SDK.   usage: gen.sh OUTDIR [SEED [TABLE...]]
# Another seed gives other data, row counts, page and blocklet sizes, and some tables of random shape.
# OUTDIR/TABLE: table/, reader.jsonl (what the SDK's row reader reads, in the order of the file), schema.json.
set -euo pipefail
home=$("$(dirname "$0")/get.sh")
opens=()
for p in java.lang java.lang.invoke java.nio java.util java.util.concurrent java.io java.net java.text sun.nio.ch sun.security.action jdk.internal.ref; do
  opens+=("--add-opens=java.base/$p=ALL-UNNAMED")
done
# On Java 9 and later the SDK calls methods of Unsafe that no longer exist; the jar rewrites these calls when classes are loaded.
exec java -Xmx2g -XX:+UseSerialGC -Duser.timezone=UTC -Dfile.encoding=UTF-8 "${opens[@]}" \
  -javaagent:"$home/target/carbon-judge.jar" -cp "$home/target/carbon-judge.jar:$home/target/lib/*" stoa.carbon.Gen "$@"
