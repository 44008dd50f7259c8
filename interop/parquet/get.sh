#!/usr/bin/env bash
# needs: python3
# Fetch (once) the judges: pyarrow, DuckDB, polars and fastparquet from PyPI into a venv, and parquet-go through Go's modules (pqgo/go.sum pins it).
# Prints the folder that holds venv/ and pqgo.
# env: STOA_JUDGES (default ${XDG_CACHE_HOME:-~/.cache}/stoa-judges): all that is fetched lies in its folder parquet/
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${STOA_JUDGES:-${XDG_CACHE_HOME:-$HOME/.cache}/stoa-judges}/parquet
pins="pyarrow==26.0.1 duckdb==2.0.0 polars==2.1.0 fastparquet==2026.9.0"
mkdir -p "$cache"
exec 9>"$cache/.lock"; flock 9
want=$(cat "$here/get.sh" "$here"/pqgo/* | sha256sum | cut -d' ' -f1)
if [ "$(cat "$cache/.ready" 2>/dev/null)" != "$want" ]; then
  [ -x "$cache/venv/bin/python" ] || python3 -m venv "$cache/venv"
  "$cache/venv/bin/pip" -q install --disable-pip-version-check $pins >"$cache/pip.log" 2>&1 || { cat "$cache/pip.log" >&2; exit 1; }
  (cd "$here/pqgo" && go build -o "$cache/pqgo" .)
  echo "$want" >"$cache/.ready"
fi
echo "$cache"
