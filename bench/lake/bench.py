#!/usr/bin/env python3
"""A Kudu directory becomes a table of Iceberg, by stoa; pyarrow reads the same rows from Parquet, and pyiceberg writes them.

    python bench.py STOA DIR ROWS      DIR keeps the data: rows.parquet, and kudu, which stoa makes of it
"""
import datetime
import decimal
import os
import resource
import shutil
import subprocess
import sys
import time

STOA, DIR, ROWS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), int(sys.argv[3])
PEER = """
import sys, pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
source, place = sys.argv[1:]
c = SqlCatalog("c", uri=f"sqlite:///{place}/c.db", warehouse=f"file://{place}")
c.create_namespace("d")
t = pq.read_table(source)
c.create_table("d.t", schema=t.schema).append(t)
"""


def make(n):
    import numpy as np
    import pyarrow as pa

    r = np.random.default_rng(25)
    text = np.array([f"name {i}" for i in range(200)])
    when = np.datetime64("2024-01-01", "us") + r.integers(0, 10**13, n)
    cents = [decimal.Decimal(i).scaleb(-2) for i in range(10000)]
    return pa.table({
        "id": pa.array(np.arange(n)), "small": pa.array(r.integers(0, 100, n).astype("int32")),
        "wide": pa.array(r.integers(-2**62, 2**62, n)), "flag": pa.array(r.random(n) < .3), "x": pa.array(r.random(n)),
        "f": pa.array(r.random(n).astype("float32"), mask=r.random(n) < .1),
        "name": pa.array(text[r.integers(0, 200, n)]), "at": pa.array(when, pa.timestamp("us", "UTC")),
        "note": pa.array(np.char.add("n", r.integers(0, n, n).astype(str)), mask=r.random(n) < .05),
        "cents": pa.array([cents[i] for i in r.integers(0, 10000, n)], pa.decimal128(12, 2))})


def run(what, cmd):
    """The seconds, CPU seconds and peak MiB of a command."""
    began, pid = time.monotonic(), os.posix_spawn(cmd[0], cmd, os.environ)
    _, status, use = os.wait4(pid, 0)
    took = time.monotonic() - began
    if status:
        sys.exit(f"{what} failed: {status}")
    print(f"{what:58} {took:8.2f} s {use.ru_utime + use.ru_stime:8.2f} s of CPU {use.ru_maxrss // 1024:7} MiB", flush=True)
    return took, use.ru_utime + use.ru_stime


home = f"{DIR}/{ROWS}"
if sys.argv[4:] == ["make"]:  # in a process of its own: the peak of a child is never below that of its parent
    import pyarrow.parquet as pq

    pq.write_table(make(ROWS), f"{home}/rows.parquet")
    sys.exit()
if not os.path.exists(f"{home}/ready"):
    shutil.rmtree(home, ignore_errors=True)
    os.makedirs(home)
    subprocess.run([sys.executable, __file__, *sys.argv[1:4], "make"], check=True)
    subprocess.run([STOA, "convert", f"{home}/rows.parquet", "--to", "kudu-fs", "--opt", "key=id", "--opt", "table=t", "--no-check", "-q", "-o",
                    f"{home}/kudu/"], check=True)
    open(f"{home}/ready", "w").close()
best = {}
for turn in range(3):
    for what, cmd in (("stoa: Kudu directory to Iceberg, read back", [STOA, "convert", f"{home}/kudu", "--to", "iceberg", "-q", "-o",
                                                                     f"{home}/out"]),
                      ("stoa: the same, --no-check", [STOA, "convert", f"{home}/kudu", "--to", "iceberg", "-q", "--no-check", "-o",
                                                      f"{home}/out"]),
                      ("pyarrow reads Parquet, pyiceberg writes Iceberg", [sys.executable, "-c", PEER, f"{home}/rows.parquet",
                                                                          f"{home}/out"])):
        shutil.rmtree(f"{home}/out", ignore_errors=True)
        if "pyiceberg" in what:
            os.makedirs(f"{home}/out")

        took = run(what, cmd)
        best[what] = min(best.get(what, took), took)
shutil.rmtree(f"{home}/out")
peer = best["pyarrow reads Parquet, pyiceberg writes Iceberg"]
for what, took in best.items():
    if what.startswith("stoa"):
        print(f"{what}: {peer[0] / took[0]:.2f}x in time, {peer[1] / took[1]:.2f}x in CPU, of {ROWS} rows")
