#!/usr/bin/env bash
# needs: java javac mvn python3
# Fetch (once) the judge: versitygw through Go's modules. Prints the folder that holds it.
# env: STOA_JUDGES (default ${XDG_CACHE_HOME:-~/.cache}/stoa-judges): it lies in its folder s3/
set -euo pipefail
cache=${STOA_JUDGES:-${XDG_CACHE_HOME:-$HOME/.cache}/stoa-judges}/s3
mkdir -p "$cache"
exec 9>"$cache/.lock"; flock 9
[ -x "$cache/versitygw" ] || GOBIN=$cache go install github.com/versity/versitygw/cmd/versitygw@v1.8.0
echo "$cache"
