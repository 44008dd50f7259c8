"""stoa against pyarrow.dataset, polars and DuckDB in one process, on the same rows. usage: bench.py [ROWS [DIRECTORY]]

The rows are those of `bench/run`'s table in kind: a rising int64 key, int32, float64, strings of 200 values and of as many
as rows, timestamp, boolean, an int32 with a fifth of nulls, decimal(18, 2), date. Written once, by pyarrow as Snappy
Parquet and by stoa as CFiles and as Trevni, whose blocks of the key keep their first value. Values are compared before anything is measured. Prints a table: seconds of
the wall (best of five), and of the processor, and the ratio of the processor's, peer / stoa.
"""

import gc
import os
import sys
import time

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import stoa


def rows(n):
    r = np.random.default_rng(7)
    words = [f"word{i:04}" for i in range(200)]
    cents = pa.array(r.integers(0, 10**9, n)).cast(pa.decimal128(19, 0))
    t = pa.table({
        "key": pa.array(np.arange(n, dtype="int64") * 3),
        "n": pa.array(r.integers(-(2**31), 2**31, n, dtype="int32")),
        "x": pa.array(r.normal(size=n)),
        "low": pa.DictionaryArray.from_arrays(r.integers(0, 200, n, dtype="int32"), words).cast(pa.string()),
        "high": pc.binary_join_element_wise("id", pa.array(r.integers(0, 2**40, n)).cast(pa.string()), "-"),
        "ts": pa.array(1_700_000_000_000_000 + np.arange(n) * 1000, pa.timestamp("us")),
        "flag": pa.array(r.integers(0, 2, n, dtype="int8") == 1),
        "nullable": pa.array(r.integers(0, 1000, n, dtype="int32"), mask=r.random(n) < 0.2),
        "price": pa.Array.from_buffers(pa.decimal128(18, 2), n, cents.buffers()),
        "day": pa.array(r.integers(10_000, 20_000, n, dtype="int32")).cast(pa.date32()),
    })
    return t.cast(t.schema.set(0, pa.field("key", pa.int64(), nullable=False)))  # Trevni has first values of no others


def prepare(n, d):
    os.makedirs(d, exist_ok=True)
    parquet, trevni, cfile = (os.path.join(d, f"keyed-{n}{x}") for x in (".parquet", ".trv", ""))
    if not os.path.exists(cfile):
        data = rows(n)
        pq.write_table(data, parquet, compression="snappy")
        stoa.write(data, trevni, check=False, first_values="key")
        stoa.write(data, cfile + "/", format="cfile", check=False)
    return parquet, trevni, cfile


def best(f, times=5):
    wall = cpu = float("inf")
    for _ in range(times):
        gc.collect()
        t, c = time.perf_counter(), time.process_time()
        f()
        wall, cpu = min(wall, time.perf_counter() - t), min(cpu, time.process_time() - c)
    return wall, cpu


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    d = sys.argv[2] if len(sys.argv) > 2 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
    parquet, trevni, cfile = prepare(n, d)
    print(f"{n:,} rows\n\n| what | format | stoa, wall | CPU | peer | wall | CPU | CPU, peer / stoa |")
    print("|---|---|---|---|---|---|---|---|")
    for name, path in (("CFile", cfile), ("Trevni", trevni)):
        measure(n, name, path, parquet)


def measure(n, name, path, parquet):
    t, peer = stoa.open(path), ds.dataset(parquet)
    low, high = 3 * (n // 2), 3 * (n // 2 + n // 1000)
    some = (ds.field("key") >= low) & (ds.field("key") < high)
    group = "select low, count(*) n, sum(price) s from {} group by low order by low"
    two = "select sum(n) a, sum(nullable) b from {}"
    assert set(t.schema.names) == set(peer.schema.names) and t.count_rows() == peer.count_rows() == n
    for c in peer.schema.names:  # column by column, to need little memory
        a, b = t.to_table(columns=[c])[c], peer.to_table(columns=[c])[c]
        assert pc.all(pc.equal(a.cast(b.type), b), min_count=0).as_py() and a.null_count == b.null_count, c
    assert t.count_rows(filter=some) == peer.count_rows(filter=some) == n // 1000
    con = duckdb.connect()
    con.register("ours", t)
    theirs = f"'{parquet}'"
    assert con.sql(two.format("ours")).fetchall() == con.sql(two.format(theirs)).fetchall()
    assert con.sql(group.format("ours")).fetchall() == con.sql(group.format(theirs)).fetchall()
    lazy, scan = stoa.scan_polars(t), pl.scan_parquet(parquet)
    three = ["key", "low", "x"]
    for what, ours, their, who in [
        ("all columns to pyarrow", t.to_table, peer.to_table, "pyarrow.dataset"),
        ("3 columns to pyarrow", lambda: t.to_table(columns=three), lambda: peer.to_table(columns=three),
         "pyarrow.dataset"),
        ("2 columns to pandas", lambda: t.to_pandas(columns=["n", "x"]),
         lambda: peer.to_table(columns=["n", "x"]).to_pandas(), "pyarrow.dataset"),
        ("DuckDB: two sums", lambda: con.sql(two.format("ours")).fetchall(),
         lambda: con.sql(two.format(theirs)).fetchall(), "DuckDB, its own Parquet"),
        ("DuckDB: group by", lambda: con.sql(group.format("ours")).fetchall(),
         lambda: con.sql(group.format(theirs)).fetchall(), "DuckDB, its own Parquet"),
        ("polars: group by", lambda: lazy.group_by("low").agg(pl.col("n").sum()).collect(),
         lambda: scan.group_by("low").agg(pl.col("n").sum()).collect(), "polars, its own Parquet"),
        ("filter of 0.1 %, all columns", lambda: t.to_table(filter=some), lambda: peer.to_table(filter=some),
         "pyarrow.dataset"),
    ]:
        (w, c), (pw, pcpu) = best(ours), best(their)
        print(f"| {what} | {name} | {w:.3f} s | {c:.3f} s | {who} | {pw:.3f} s | {pcpu:.3f} s | {pcpu / c:.2f}× |",
              flush=True)
    if name == "Trevni":
        known = stoa.open(path, sorted="key")
        assert known.to_table(filter=some).equals(t.to_table(filter=some))
        (w, c), (pw, pcpu) = best(lambda: known.to_table(filter=some)), best(lambda: peer.to_table(filter=some))
        print(f"| filter of 0.1 %, opened with sorted=key | {name} | {w:.3f} s | {c:.3f} s | pyarrow.dataset | {pw:.3f} s | "
              f"{pcpu:.3f} s | {pcpu / c:.2f}× |", flush=True)
    k = 2000
    w, c = best(lambda: [t.count_rows() for _ in range(k)])
    print(f"| overhead of a call (count_rows) | {name} | {w / k * 1e6:.0f} µs | {c / k * 1e6:.0f} µs | | | | |")
    w, c = best(lambda: [t.head(1, columns=["key"]) for _ in range(k // 10)])
    print(f"| one row of one column | {name} | {w / k * 1e7:.0f} µs | {c / k * 1e7:.0f} µs | | | | |")


main()
