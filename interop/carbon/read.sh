#!/usr/bin/env bash
# Read many directories of carbondata files with the real SDK.   usage: read.sh LIST
# LIST has lines of DIR, OUT and optionally column=value, separated by tabs: the rows go to OUT as JSON lines, or the reason to OUT.err
set -euo pipefail
home=$("$(dirname "$0")/get.sh")
opens=()
for p in java.lang java.lang.invoke java.nio java.util java.util.concurrent java.io java.net java.text sun.nio.ch sun.security.action jdk.internal.ref; do
  opens+=("--add-opens=java.base/$p=ALL-UNNAMED")
done
# On Java 9 and later the SDK calls methods of Unsafe that no longer exist; the jar rewrites these calls when classes are loaded.
exec java -Xmx2g -XX:+UseSerialGC -Duser.timezone=UTC -Dfile.encoding=UTF-8 "${opens[@]}" \
  -javaagent:"$home/target/carbon-judge.jar" -cp "$home/target/carbon-judge.jar:$home/target/lib/*" stoa.carbon.Many "$@"

