#!/usr/bin/env bash
# needs: python3
# Fetch (once) what the decoders of documents/ need: cramjam (Snappy) and pyarrow from PyPI into a venv. Prints the folder that
# holds venv/.
# env: STOA_JUDGES (default ${XDG_CACHE_HOME:-~/.cache}/stoa-judges): all that is fetched lies in its folder documents/
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${STOA_JUDGES:-${XDG_CACHE_HOME:-$HOME/.cache}/stoa-judges}/documents
pins="cramjam==2.11.0 pyarrow==26.0.1"
mkdir -p "$cache"
exec 9>"$cache/.lock"; flock 9
want=$(sha256sum <"$here/get.sh" | cut -d' ' -f1)
if [ "$(cat "$cache/.ready" 2>/dev/null)" != "$want" ]; then
  [ -x "$cache/venv/bin/python" ] || python3 -m venv "$cache/venv"
  "$cache/venv/bin/pip" -q install --disable-pip-version-check $pins >"$cache/pip.log" 2>&1 || { cat "$cache/pip.log" >&2; exit 1; }
  echo "$want" >"$cache/.ready"
fi
echo "$cache"
