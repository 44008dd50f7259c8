#!/usr/bin/env bash
# Read data files of formats 1, 2 and 3, and global dictionaries, with CarbonData 1.6.1.   usage: read.sh LIST
# LIST has lines of FILE, V1, V2 or V3, the table's directory or -, rows of a blocklet, OUT, separated by tabs: the rows go to OUT as JSON
# lines, or the reason to OUT.err
set -euo pipefail
home=$("$(dirname "$0")/get.sh")
opens=()
for p in java.lang java.lang.invoke java.nio java.util java.util.concurrent java.io java.net java.text sun.nio.ch sun.security.action jdk.internal.ref; do
  opens+=("--add-opens=java.base/$p=ALL-UNNAMED")
done
exec java -Xmx2g -XX:+UseSerialGC -Duser.timezone=UTC -Dfile.encoding=UTF-8 "${opens[@]}" \
  -javaagent:"$home/target/carbon-old-judge.jar" -cp "$home/target/carbon-old-judge.jar:$home/target/lib/*" stoa.carbon.Old "$@"
