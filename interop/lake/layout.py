"""Partitions and sort orders that stoa takes over from its sources.    usage: layout.py STOA FIRST LAST

Tables of Kudu with ranges of times, dates, numbers and texts, one a seed, become tables of Iceberg. pyiceberg says how
these are divided and which files are sorted; pyarrow reads each file: its rows must be of one range, and in order if and
only if the file says so."""
import base64
import datetime
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
from pyiceberg.table import StaticTable

stoa = sys.argv[1]
UTC = datetime.timezone.utc


def drawn(r):
    """the type of the range column, the bounds of ranges as Kudu's texts, and as values"""
    kind = r.choice(["month", "year", "day", "hour", "date", "number", "single", "text", "odd"])
    n = r.randint(2, 5)
    if kind in ("month", "year", "day", "hour"):
        at = datetime.datetime(r.randint(1960, 2030), 1 if kind == "year" else r.randint(1, 12), 1, tzinfo=UTC)
        cuts = [at]
        for _ in range(n):
            last = cuts[-1]
            if kind == "month":
                cuts.append(last.replace(year=last.year + last.month // 12, month=last.month % 12 + 1))
            elif kind == "year":
                cuts.append(last.replace(year=last.year + r.randint(1, 3)))
            else:
                step = datetime.timedelta(days=r.randint(1, 4)) if kind == "day" else datetime.timedelta(hours=r.randint(1, 9))
                cuts.append(last + step)
        return kind, pa.timestamp("us", tz="UTC"), cuts, lambda v: str((v - datetime.datetime(1970, 1, 1, tzinfo=UTC)) // datetime.timedelta(microseconds=1))
    if kind == "date":
        cuts = [datetime.date(2020, 1, 1) + datetime.timedelta(days=r.randint(0, 40) + 50 * i) for i in range(n + 1)]
        return kind, pa.date32(), cuts, lambda v: str((v - datetime.date(1970, 1, 1)).days)
    if kind == "number":
        w = r.choice([10, 64, 100])
        start = r.randint(-3, 3)
        cuts = [w * (start + i * r.choice([1, 1, 1]) ) for i in range(n + 1)]
        return kind, r.choice([pa.int16(), pa.int32(), pa.int64()]), cuts, str
    if kind == "single":
        start = r.randint(-3, 3)
        return kind, r.choice([pa.int8(), pa.int32()]), list(range(start, start + n + 1)), str
    if kind == "text":
        return kind, pa.string(), ["a", "b", "bc", "c", "d"][:n], str
    return kind, pa.int64(), sorted(r.sample(range(-1000, 1000), n + 1)), str


def encoded(typ, v):
    """a value as Kudu encodes it in a partition key: big-endian, with the sign turned"""
    if isinstance(v, str):
        return v.encode()
    if isinstance(v, datetime.datetime):
        v = (v - datetime.datetime(1970, 1, 1, tzinfo=UTC)) // datetime.timedelta(microseconds=1)
    elif isinstance(v, datetime.date):
        v = (v - datetime.date(1970, 1, 1)).days
    bits = typ.bit_width
    return (v + (1 << bits - 1)).to_bytes(bits // 8, "big")


def between(r, kind, lo, hi):
    if kind == "date":
        return lo + datetime.timedelta(days=r.randrange((hi - lo).days))
    if isinstance(lo, datetime.datetime):
        return lo + datetime.timedelta(microseconds=r.randrange((hi - lo) // datetime.timedelta(microseconds=1)))
    return r.randrange(lo, hi)


def judge(seed, work):
    r = random.Random(seed)
    kind, typ, cuts, text = drawn(r)
    if kind == "text":
        ranges = [((c,), (c + "\0",)) for c in cuts]
        values = [r.choice(cuts) for _ in range(300)]
        of = {c: i for i, c in enumerate(cuts)}.get
    else:
        ranges = [((a,), (b,)) for a, b in zip(cuts, cuts[1:])]
        values = [between(r, kind, *r.choice(list(zip(cuts, cuts[1:])))) for _ in range(300)]
        of = lambda v: max(i for i, c in enumerate(cuts) if c <= v)
    rows = sorted({(v, r.randrange(10**6)) for v in values})
    tablets = [{"id": f"{seed:016x}{i:016x}", "start": base64.b64encode(encoded(typ, a[0])).decode(),
                "end": base64.b64encode(encoded(typ, b[0])).decode()} for i, (a, b) in enumerate(ranges)]
    meta = {"tablets": tablets, "name": "t", "range": ["k"], "ranges": [{"lower": [text(a[0])], "upper": [text(b[0])]} for a, b in ranges]}
    sc = pa.schema([pa.field("k", typ, False), pa.field("n", pa.int64(), False), pa.field("s", pa.string())],
                   metadata={"stoa.kudu.table": json.dumps(meta)})
    arrow = work / "rows.arrow"
    with ipc.new_file(arrow, sc) as w:
        w.write(pa.record_batch([pa.array([v for v, _ in rows], typ), pa.array([n for _, n in rows]),
                                 pa.array([str(n) for _, n in rows])], schema=sc))
    for name in ("kudu", "lake"):
        shutil.rmtree(work / name, ignore_errors=True)
    run = lambda *args: subprocess.run([stoa, *map(str, args)], capture_output=True, text=True)
    p = run("convert", arrow, "--to", "kudu-fs", "--opt", "key=k,n", "-o", work / "kudu", "-q")
    if p.returncode:
        return kind, f"kudu-fs: {p.stderr}"
    p = run("convert", work / "kudu", "--to", "iceberg", "--partition-by", "source", "-o", work / "lake", "-q")
    if p.returncode:
        return kind, "" if kind == "odd" and "no partitions by columns" in p.stderr else p.stderr
    table = StaticTable.from_metadata(str(work / "lake/metadata/v1.metadata.json"))
    fields = [str(f.transform) for f in table.spec().fields]
    want = {"number": "truncate", "single": "identity", "text": "identity", "odd": "truncate", "date": ""}.get(kind, kind)
    if len(fields) != 1 or not fields[0].startswith(want) and kind not in ("month", "day", "hour", "odd", "number"):
        return kind, f"{kind}: partitions by {fields}"
    order = [(table.schema().find_column_name(f.source_id), str(f.direction)) for f in table.sort_order().fields]
    if order != [("k", "ASC"), ("n", "ASC")]:
        return kind, f"sort order {order}"
    total = []
    for t in table.scan().plan_files():
        got = pq.read_table(t.file.file_path.removeprefix("file://"))
        keys = list(zip(got["k"].to_pylist(), got["n"].to_pylist()))
        total += keys
        if len({of(k) for k, _ in keys}) != 1:
            return kind, f"{t.file.file_path} has rows of several ranges"
        if (keys == sorted(keys)) != (t.file.sort_order_id == 1):
            return kind, f"{t.file.file_path}: in order {keys == sorted(keys)}, and says {t.file.sort_order_id}"
    if sorted(total) != rows:
        return kind, f"{len(total)} rows, want {len(rows)}"
    return kind, ""


def main():
    seen, bad = {}, 0
    with tempfile.TemporaryDirectory() as d:
        for seed in range(int(sys.argv[2]), int(sys.argv[3]) + 1):
            kind, why = judge(seed, pathlib.Path(d))
            seen[kind] = seen.get(kind, 0) + 1
            if why:
                bad += 1
                print(f"seed {seed}: {why}")
    print(f"{sum(seen.values())} tables {seen}, {bad} wrong")
    sys.exit(bad > 0)


main()
