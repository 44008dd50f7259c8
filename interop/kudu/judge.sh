#!/usr/bin/env bash
# Have Kudu's own command read FILE as a CFile and print it. Exit 0 = Kudu read every row.
# usage: judge.sh FILE [dump flags...]    (a BloomFile: --noprint_rows)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd); f=$1; shift
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
F="--block_manager=file --fs_wal_dir=$d/w --fs_data_dirs=$d/d"
"$here/kudu.sh" fs format $F >/dev/null 2>&1
# block 1 is the file data/00/00/00/0000000000000001: three directory bytes = bits 47..24 of the id
mkdir -p "$d/d/data/00/00/00"; cp "$f" "$d/d/data/00/00/00/0000000000000001"
"$here/kudu.sh" fs dump cfile 1 $F "$@" 2>"$d/err" || { rc=$?; tail -3 "$d/err" >&2; exit $rc; }
