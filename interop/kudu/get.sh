#!/usr/bin/env bash
# needs: java javac mvn python3
# Fetch (once) and unpack the Kudu 1.18.1 test binaries and the Java client through Maven, each pinned by sha256,
# and compile the programs that use the Java client. Prints KUDU_HOME.
# env: STOA_JUDGES (default ${XDG_CACHE_HOME:-~/.cache}/stoa-judges): all that is fetched lies in its folder kudu/
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${STOA_JUDGES:-${XDG_CACHE_HOME:-$HOME/.cache}/stoa-judges}/kudu
dl=$cache/dl rt=$cache/rt classes=$cache/classes
home=$rt/kudu-binary-1.18.1-linux-x86_64
pins="
0185716d1ae755f8aae09a049e9271c5f7d24ae432a8d9b7cddfb620c17903ff kudu-binary-1.18.1-linux-x86_64.jar org.apache.kudu:kudu-binary:1.18.1:jar:linux-x86_64
b965a5b14b761683ca9c5312b8a40e48e50dec42c837d828b78ae0a58b2a518e kudu-client-1.18.1.jar org.apache.kudu:kudu-client:1.18.1
118bce251e41b829459eb5a14124bd9edbc42ff554514c048395cc3c6830c73a async-1.4.1.jar com.stumbleupon:async:1.4.1
d3ef575e3e4979678dc01bf1dcce51021493b4d11fb7f1be8ad982877c16a1c0 slf4j-api-1.7.36.jar org.slf4j:slf4j-api:1.7.36
c214958b07816cb4412b30c7bdbd4308ffdc6ba2a83767b8f3a9229cbd9274d6 slf4j-nop-1.7.36.jar org.slf4j:slf4j-nop:1.7.36
"
[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || { echo "Kudu's test binaries are for Linux x86_64 only" >&2; exit 1; }
mkdir -p "$dl" "$rt" "$classes"
exec 9>"$cache/.lock"; flock 9 # two packages of tests may start at once
want=$(cat "$here/get.sh" "$here"/*.java | sha256sum | cut -d' ' -f1)
if [ "$(cat "$cache/.ready" 2>/dev/null)" != "$want" ]; then
  while read -r sum file artifact; do
    [ -n "$sum" ] || continue
    if ! echo "$sum  $dl/$file" | sha256sum -c --status 2>/dev/null; then
      echo "fetching $file" >&2
      mvn -q -B -ntp dependency:copy -Dartifact="$artifact" -DoutputDirectory="$dl" -Dmdep.overWriteReleases=true >"$cache/mvn.log" 2>&1 || { cat "$cache/mvn.log" >&2; exit 1; }
      echo "$sum  $dl/$file" | sha256sum -c --status || { echo "bad checksum: $file" >&2; exit 1; }
    fi
  done <<<"$pins"
  if [ ! -x "$home/bin/kudu" ]; then
    (cd "$rt" && python3 -m zipfile -e "$dl/kudu-binary-1.18.1-linux-x86_64.jar" .)
    chmod +x "$home"/bin/*
  fi
  javac -nowarn -cp "$dl/*" -d "$classes" "$here"/*.java >&2
  echo "$want" >"$cache/.ready"
fi
echo "$home"
