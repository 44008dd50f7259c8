"""Five queries by Spark, over Parquet by Spark's own vectorised reader and over the same rows in formats of stoa.

usage: bench.py [ROWS]. The session is one and warm: each query runs twice before it is measured, then the places take
turns, and the best of five is taken. Answers are compared before anything is measured. Prints seconds of the wall, or,
if STOA_BENCH_CPU is 1, of processors, which a busy machine changes less; and how many times as fast as Parquet each
place is; the last line has the geometric means.
"""

import math
import os
import shutil
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import session

ROUNDS = int(os.environ.get("STOA_BENCH_ROUNDS", "5"))
CPU = os.environ.get("STOA_BENCH_CPU") == "1"
WHAT = "seconds of processors" if CPU else "seconds"
QUERIES = {
    "two sums, count": "select count(*) c, sum(n) n, sum(nullable) m from {}",
    "group by 200 strings": "select low, count(*) c, sum(price) p, sum(nullable) m from {} group by low order by low",
    "0.1 % by key": "select count(*) c, sum(n) n, max(high) h from {} where key between {lo} and {hi}",
    "strings that begin so": "select count(*) c, max(high) h from {} where high like 'id-77%'",
    "all columns": "select sum(hash(key, n, x, low, high, ts, flag, nullable, price, day)) h from {}",
}


def clock(pid):
    """The wall's; or the processor time of a process, and of those of its children that have ended."""
    if not CPU:
        return time.monotonic()
    with open(f"/proc/{pid}/stat") as f:
        return sum(map(int, f.read().rpartition(")")[2].split()[11:15])) / os.sysconf("SC_CLK_TCK")


def took(pid, ask):
    begin = clock(pid)
    ask()
    return clock(pid) - begin


def rows(n):
    r = np.random.default_rng(7)
    words = [f"word{i:04}" for i in range(200)]
    cents = pa.array(r.integers(0, 10**9, n)).cast(pa.decimal128(19, 0))
    return pa.table({
        "key": pa.array(np.arange(n, dtype="int64") * 3),
        "n": pa.array(r.integers(-(2**31), 2**31, n, dtype="int32")),
        "x": pa.array(r.normal(size=n)),
        "low": pa.DictionaryArray.from_arrays(r.integers(0, 200, n, dtype="int32"), words).cast(pa.string()),
        "high": pc.binary_join_element_wise("id", pa.array(r.integers(0, 2**40, n)).cast(pa.string()), "-"),
        "ts": pa.array(1_700_000_000_000_000 + np.arange(n) * 1000, pa.timestamp("us", "UTC")),
        "flag": pa.array(r.integers(0, 2, n, dtype="int8") == 1),
        "nullable": pa.array(r.integers(0, 1000, n, dtype="int32"), mask=r.random(n) < 0.2),
        "price": pa.Array.from_buffers(pa.decimal128(18, 2), n, cents.buffers()),
        "day": pa.array(r.integers(10_000, 20_000, n, dtype="int32")).cast(pa.date32()),
    })


def prepare(n, at):
    """The places by name; they are made once."""
    places = {"Parquet": f"{at}/rows.parquet", "CFile": f"{at}/cfile", "Carbon": f"{at}/carbon",
              "Kudu directory": f"{at}/kudu#rows"}
    if not os.path.exists(f"{at}/ready"):
        shutil.rmtree(at, ignore_errors=True)
        os.makedirs(at)
        pq.write_table(rows(n), places["Parquet"], compression="snappy")
        convert = ["stoa", "convert", "-q", "--no-check", places["Parquet"], "--to"]
        subprocess.run(convert + ["cfile", "-o", f"{at}/cfile/"], check=True)
        subprocess.run(convert + ["carbon", "-o", f"{at}/carbon/", "--opt", "sort-columns=key"], check=True)
        subprocess.run(convert + ["kudu-fs", "-o", f"{at}/kudu/", *KUDU], check=True)
        open(f"{at}/ready", "w").close()
    return places


KUDU = ["--opt", "key=key", "--opt", "table=rows"]


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    places = prepare(n, os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", str(n)))
    s = session.Session("local[2]")
    print(f"Spark {s.version}, {n:,} rows, local[2], warm, best of {ROUNDS}, {WHAT}")
    for name, place in places.items():
        s.ask(load=place, format="parquet" if name == "Parquet" else "stoa", view=name.split()[0])
    others = [p for p in places if p != "Parquet"]
    print("| query | Parquet | " + " | ".join(others) + " |\n|" + "---|" * (len(places) + 1))
    means = {p: 0.0 for p in others}
    for query, sql in QUERIES.items():
        texts = {p: sql.format(p.split()[0], lo=n, hi=n + 3 * n // 1000) for p in places}
        answers = {p: s.rows(t) for p, t in texts.items()}
        for p in others:
            assert answers[p] == answers["Parquet"], f"{p}: {query}: {answers[p][:3]}, {answers['Parquet'][:3]}"
        best = {p: math.inf for p in places}
        for i in range(ROUNDS + 1):
            for p, t in texts.items():
                seconds = took(s.process.pid, lambda: s.ask(sql=t))
                best[p] = min(best[p], seconds) if i else math.inf
        for p in others:
            means[p] += math.log(best["Parquet"] / best[p]) / len(QUERIES)
        print(f"| {query} | {best['Parquet']:.2f} | "
              + " | ".join(f"{best[p]:.2f} ({best['Parquet'] / best[p]:.2f}×)" for p in others) + " |", flush=True)
    print("| geometric mean | | " + " | ".join(f"{math.exp(means[p]):.2f}×" for p in others) + " |")
    s.close()


if __name__ == "__main__":
    main()
