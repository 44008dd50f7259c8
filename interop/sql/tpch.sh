#!/usr/bin/env bash
# The tables of TPC-H as Parquet, and their queries, made once by DuckDB's generator.    usage: interop/sql/tpch.sh SCALE DIR
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ -e "$2/queries.json" ] && exit 0
venv=$here/venv/tpch
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/pip" -q install --disable-pip-version-check duckdb==1.4.4 duckdb-ext-tpch==1.4.4.20260205
exec "$venv/bin/python" "$here/tpch.py" "$1" "$2"
