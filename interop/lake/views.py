#!/usr/bin/env python3
"""Each snapshot of tables that Iceberg's own library wrote, read by stoa, has the rows that the library read.

    python views.py STOA TABLE...      TABLE.json has lists of rows by snapshot, as rest/Equality.java writes it
"""
import json
import subprocess
import sys

bad = views = rows = 0
for name in sys.argv[2:]:
    with open(f"{name}.json") as f:
        all = json.load(f)
    for at, want in all.items():
        cmd = [sys.argv[1], "cat", "-f", "jsonl", name] + ([] if at == "now" else ["--at", at])
        done = subprocess.run(cmd, capture_output=True, text=True)
        got = sorted(json.dumps(json.loads(line), sort_keys=True) for line in done.stdout.splitlines())
        views, rows = views + 1, rows + len(want)
        if got != sorted(json.dumps(r, sort_keys=True) for r in want):
            bad += 1
            print(f"{name} at {at}: expected {len(want)} rows, found {len(got)} {done.stderr[:300]}")
print(f"{views} snapshots, {rows} rows: " + (f"{bad} differ" if bad else "no differences"))
sys.exit(bad > 0 or rows == 0)
