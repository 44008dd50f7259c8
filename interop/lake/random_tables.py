#!/usr/bin/env python3
"""Random tables, made by pyarrow, become tables of Iceberg and Delta; foreign readers must find the same rows in them.

    python random_tables.py STOA [FIRST [LAST]]      STOA is the command; FIRST to LAST are the seeds, by default 1 to 40

needs what judge.py needs. Names with a space need Delta's column mapping, which deltalake 1.6 does not read: they are
in tables of Iceberg only. Each seed is a schema (nested up to two deep), rows, and options of the writer. pyiceberg,
deltalake, DuckDB and stoa read all rows; each reader also answers filters on each flat column. Exit status 1: some
answer differs from the rows as they were made.
"""
import collections
import datetime
import decimal
import glob
import os
import random
import shutil
import subprocess
import sys
import tempfile

import duckdb
import duckdb_ext
import pyarrow as pa
import pyarrow.parquet as pq

STOA = os.path.abspath(sys.argv[1])
FIRST = int(sys.argv[2]) if len(sys.argv) > 2 else 1
LAST = int(sys.argv[3]) if len(sys.argv) > 3 else FIRST if len(sys.argv) > 2 else 40
EPOCH = datetime.datetime(1970, 1, 1)


def connect():
    con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    con.execute("set timezone='UTC'")
    for ext in ("avro", "iceberg", "delta", "icu"):
        for root in duckdb_ext.__path__:
            for path in glob.glob(f"{root}/extensions/*/*/{ext}.duckdb_extension"):
                con.execute(f"load '{path}'")
    return con


con = connect()
INTS = {pa.int8(): (-128, 127), pa.int16(): (-2**15, 2**15 - 1), pa.int32(): (-2**31, 2**31 - 1),
        pa.int64(): (-2**63, 2**63 - 1), pa.uint8(): (0, 255), pa.uint16(): (0, 2**16 - 1),
        pa.uint32(): (0, 2**32 - 1), pa.uint64(): (0, 2**64 - 1)}
TEXT = ["", "a", "ä", "zz", "\U0001f600", "a/b", "x=y", "%20", " ", "null", "'", '"', "\\", "a" * 40, "ÿ" * 20]


def flat(r, kind):
    """A flat type, and a function that makes a value of it."""
    k = r.randrange(14)
    if k < 4:
        t = r.choice(list(INTS))
        lo, hi = INTS[t]
        pool = [lo, hi, 0, 1] + [r.randint(lo, hi) for _ in range(6)]
        return t, lambda: r.choice(pool) if r.random() < .5 else min(hi, r.randrange(100))
    if k == 4:
        return pa.bool_(), lambda: r.random() < .5
    if k == 5:
        t = r.choice([pa.float32(), pa.float64(), pa.float16()])
        pool = [0.0, -0.0, 1.5, -2.25, float("inf"), float("-inf"), 1024.0] + [float("nan")] * r.randrange(2)
        return t, lambda: r.choice(pool)
    if k == 6:
        return r.choice([pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]), \
            lambda: r.choice(TEXT)
    if k == 7:
        if r.random() < .3:
            n = r.randint(1, 20)
            return pa.binary(n), lambda: r.randbytes(n)
        return pa.binary(), lambda: r.choice([b"", b"\xff\xfe", b"a", r.randbytes(20)])
    if k == 8:
        return r.choice([pa.date32(), pa.date64()]), \
            lambda: datetime.date(1970, 1, 1) + datetime.timedelta(days=r.randint(-300000, 300000))
    if k in (9, 10):
        unit = r.choice(["s", "ms", "us", "us"] + (["ns"] if kind == "iceberg" and r.random() < .3 else []))
        per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
        zone = r.choice([None, "UTC"])
        return pa.timestamp(unit, zone), lambda: r.randint(-5 * 10**9, 5 * 10**9) * per + r.randrange(per)
    if k == 11 and kind == "iceberg":
        unit = r.choice(["us", "ns"])
        return pa.time64(unit), lambda: r.randrange(86400 * 10**6) * {"us": 1, "ns": 1000}[unit]
    p = r.choice([1, 5, 9, 10, 18, 19, 25, 38])
    s = r.randint(0, p)
    with decimal.localcontext(prec=80):
        pool = [decimal.Decimal(v).scaleb(-s) for v in (0, 10**p - 1, 1 - 10**p, 7, -3)]
    return pa.decimal128(p, s), lambda: r.choice(pool)


def kind_of(r, kind, depth):
    """Any type, and a function that makes a value of it, or None."""
    k = r.random()
    if depth == 0 or k < .65:
        return flat(r, kind)
    if k < .78:
        t, v = kind_of(r, kind, depth - 1)
        return r.choice([pa.list_, pa.large_list])(t), lambda: [null(r, v, .2) for _ in range(r.randrange(4))]
    if k < .9:
        some = [(f"f{i}", *kind_of(r, kind, depth - 1)) for i in range(r.randint(1, 3))]
        return pa.struct([(n, t) for n, t, _ in some]), lambda: {n: null(r, v, .2) for n, _, v in some}
    t, v = kind_of(r, kind, depth - 1)
    return pa.map_(pa.string(), t), lambda: [(f"k{i}", null(r, v, .2)) for i in range(r.randrange(3))]


def null(r, make, p):
    return None if r.random() < p else make()


def canon(a):
    """The values of an array in one form, whatever its type: instants and times in nanoseconds, numbers as they are."""
    if isinstance(a, pa.ChunkedArray):
        return [v for c in a.chunks for v in canon(c)]
    t = a.type
    if isinstance(a, pa.ExtensionArray):
        return canon(a.storage)
    if pa.types.is_dictionary(t):
        return canon(a.dictionary_decode())
    if pa.types.is_timestamp(t) or pa.types.is_time(t):
        per = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[t.unit]
        whole = a.cast(pa.int64() if t.bit_width == 64 else pa.int32())
        return [None if v is None else v * per for v in whole.to_pylist()]
    if pa.types.is_struct(t):
        cols = [canon(c) for c in a.flatten()]
        return [tuple(sorted((t[i].name, cols[i][k]) for i in range(len(cols)))) if a[k].is_valid else None
                for k in range(len(a))]
    if pa.types.is_map(t):
        return [None if not a[k].is_valid else tuple(zip(canon(a[k].values.field(0)), canon(a[k].values.field(1))))
                for k in range(len(a))]
    if pa.types.is_nested(t):
        return [None if not a[k].is_valid else tuple(canon(a[k].values)) for k in range(len(a))]
    out = a.to_pylist()
    if pa.types.is_floating(t):
        return [v if v is None else "NaN" if v != v else float(v) for v in out]
    if pa.types.is_decimal(t):
        return [v if v is None else v.normalize(decimal.Context(prec=80)) for v in out]
    return [bytes(v) if isinstance(v, (bytes, bytearray)) else v for v in out]


def bag(table, names):
    cols = [canon(table.column(n)) for n in names]
    return collections.Counter(zip(*cols)) if table.num_rows else collections.Counter()


def emptied(v):
    """pyiceberg reads a null list of structs as an empty one: both are the same to this comparison."""
    if isinstance(v, tuple):
        return tuple(emptied(x) for x in v)
    return () if v is None else v


class Judge:
    def __init__(self, seed):
        self.seed, self.bad = seed, 0

    def say(self, what):
        self.bad += 1
        print(f"seed {self.seed}: {what}", flush=True)

    def rows(self, who, got, want, names, loose=False):
        if set(got.column_names) != set(names):
            return self.say(f"{who}: columns {got.column_names}")
        a, b = bag(got, names), bag(want, names)
        if loose:
            a, b = (collections.Counter(emptied(x) for x in c.elements()) for c in (a, b))
        if a != b:
            self.say(f"{who}: rows differ: {list((b - a).items())[:1]} became {list((a - b).items())[:1]}")

    def count(self, who, ask, want):
        try:
            got = ask()
        except Exception as e:
            if "duckdb" in who:  # an internal error ends the connection
                globals()["con"] = connect()
                if isinstance(e, duckdb.InternalException):
                    return print(f"seed {self.seed}: {who}: an assertion of DuckDB failed, which is no answer")
            return self.say(f"{who}: {type(e).__name__}: {str(e)[:200]}")
        if got != want:
            self.say(f"{who}: expected {want} rows, found {got}")


def instants(v, t):
    """A value as the readers' interfaces take it; None if they cannot."""
    if pa.types.is_timestamp(t):
        if v % 1000:
            return None
        at = EPOCH + datetime.timedelta(microseconds=v // 1000)
        return at.replace(tzinfo=datetime.timezone.utc) if t.tz else at
    if pa.types.is_time(t):
        return (EPOCH + datetime.timedelta(microseconds=v // 1000)).time()
    return v


def filters(r, table):
    """For each flat column, comparisons with one of its values and the number of rows that pass each."""
    for name in table.column_names:
        t = table.schema.field(name).type
        if pa.types.is_nested(t):
            continue
        values = canon(table.column(name))
        some = [v for v in values if v is not None and v != "NaN"]
        yield name, "null", None, sum(v is None for v in values)
        if not some:
            continue
        v = r.choice(some)
        x = instants(v, t)
        if x is None or pa.types.is_boolean(t):
            continue
        yield name, "=", x, sum(w == v for w in some)
        if "NaN" not in values:
            yield name, "<", x, sum(w < v for w in some)
            yield name, ">", x, sum(w > v for w in some)


def ask_duck(j, scan, table, r, by=()):
    """DuckDB 1.4.4 prunes Iceberg wrongly by decimals, by partitions of the calendar before 1970, and by partitions of
    instants, dates and times (of which it finds only the equal ones), also in tables of pyiceberg: it is not asked about these."""
    for name, op, v, n in filters(r, table):
        t = table.schema.field(name).type
        wide = pa.types.is_decimal(t) or t == pa.uint64() or name in by and pa.types.is_temporal(t)
        if scan.startswith("ice") and (wide or any(t.endswith((f", {name})", f"({name})")) for t in by)):
            continue
        quoted = '"' + name.replace('"', '""') + '"'
        q = f"select count(*) from {scan} where {quoted} " + ("is null" if op == "null" else op + " ?")
        j.count(f"{scan[:5]}duckdb {name} {op} {v!r}",
                lambda: con.execute(q, [] if op == "null" else [v]).fetchone()[0], n)


def ask_iceberg(j, t, table, r):
    from pyiceberg.expressions import EqualTo, GreaterThan, IsNull, LessThan
    for name, op, v, n in filters(r, table):
        if op == "null":
            e = IsNull(name)
        else:
            if isinstance(v, datetime.datetime):
                v = v.isoformat()
            if v in (float("inf"), float("-inf")):  # pyiceberg 0.12 takes them for out of the type's range
                continue
            if isinstance(v, decimal.Decimal):  # its literals have the scale of the column
                v = v.quantize(decimal.Decimal(1).scaleb(-table.schema.field(name).type.scale),
                               context=decimal.Context(prec=80))
            e = {"=": EqualTo, "<": LessThan, ">": GreaterThan}[op](name, v)
        j.count(f"pyiceberg {name} {op} {v!r}", lambda: t.scan(row_filter=e).to_arrow().num_rows, n)


def literal(v):
    if isinstance(v, bytes):
        return "x'" + v.hex() + "'"
    if isinstance(v, datetime.datetime):
        return f"'{v.strftime('%Y-%m-%dT%H:%M:%S.%f')}{'Z' if v.tzinfo else ''}'"
    if isinstance(v, (str, datetime.date, datetime.time)):
        return "'" + str(v).replace("'", "''") + "'"
    return f"{v:f}" if isinstance(v, decimal.Decimal) else str(v)


def ask_stoa(j, place, kind, table, r):
    for name, op, v, n in filters(r, table):
        if isinstance(v, (bytes, float)):
            continue
        w = f'"{name}" ' + ("is null" if op == "null" else f"{op} {literal(v)}")
        got = subprocess.run([STOA, "count", place, "--from", kind, "-w", w], capture_output=True, text=True)
        if got.stdout.strip() != str(n):
            j.say(f"stoa {w}: expected {n}, found {got.stdout.strip()} {got.stderr.strip()[:200]}")


def partition(r, table, kind):
    out = []
    for name in table.column_names:
        t = table.schema.field(name).type
        if pa.types.is_nested(t) or pa.types.is_floating(t) or r.random() < .7 or len(out) == 2:
            continue
        values = [v for v in canon(table.column(name)) if v is not None]
        if kind != "iceberg":
            if pa.types.is_decimal(t) and any(v < 0 for v in values):
                continue  # deltalake 1.6.6 misreads those that it writes itself
            if not (pa.types.is_binary(t) or pa.types.is_fixed_size_binary(t)) and "" not in values:
                out.append(name)
            continue
        terms = [name, f"bucket({r.randint(1, 5)}, {name})"]
        if pa.types.is_boolean(t) or pa.types.is_decimal(t):
            terms = [name]
        if pa.types.is_timestamp(t) or pa.types.is_date(t):
            terms += [f"{x}({name})" for x in ("year", "month", "day")]
        if pa.types.is_string(t) or pa.types.is_integer(t) and t != pa.uint64():
            terms.append(f"truncate({r.randint(1, 9)}, {name})")
        out.append(r.choice(terms))
    return out


def run(seed):
    r = random.Random(seed)
    j = Judge(seed)
    kind = r.choice(["iceberg", "delta", "iceberg,delta"])
    n = r.choice([0, 1, 7, 60, 300])
    cols, fields = [], []
    for i in range(r.randint(1, 6)):
        t, v = kind_of(r, "delta" if "delta" in kind else kind, 2)
        cols.append(pa.array([null(r, v, r.choice([0, .2])) for _ in range(n)], t))
        fields.append(pa.field(r.choice(["c", "Ä", "x-y", "_"] + ["a b"] * (kind == "iceberg")) + str(i), t))
    table = pa.table(cols, schema=pa.schema(fields))
    names = table.column_names
    dir = tempfile.mkdtemp(prefix="stoa-lake-")
    try:
        src, out = f"{dir}/t.parquet", f"{dir}/table"
        pq.write_table(table, src, row_group_size=r.choice([3, 50, 1000]))
        cmd = [STOA, "convert", src, "--to", kind, "-o", out]
        by = partition(r, table, kind)
        if by:
            cmd += ["--opt", "partition-by=" + ", ".join(by)]
        if r.random() < .4:
            cmd += ["--opt", f"file-size={r.choice([1, 3000])}"]
        if "iceberg" in kind and r.random() < .3:
            cmd += ["--opt", "format-version=" + r.choice(["2", "3"])]
        done = subprocess.run(cmd, capture_output=True, text=True)
        if "not a partition column" in done.stderr:  # Delta has at least one other
            return 0
        if done.returncode:
            if done.returncode == 1 and any(w in done.stderr for w in ("nanoseconds", "exactly", "cannot", "would become less")):
                return print(f"seed {seed}: refused: {done.stderr.strip()[:150]}", flush=True) or 0
            j.say(f"{' '.join(cmd[3:])}: {done.returncode} {done.stderr.strip()[:300]}")
            return j.bad
        v3 = b'"format-version": 3' in open(f"{out}/metadata/v1.metadata.json", "rb").read() if "iceberg" in kind else 0
        for one in kind.split(","):
            back = f"{dir}/back.{one}.parquet"
            subprocess.run([STOA, "convert", out, "--from", one, "-o", back], check=True, capture_output=True)
            j.rows(f"stoa {one}", pq.read_table(back), table, names)
            ask_stoa(j, out, one, table, r)
        if "iceberg" in kind:
            from pyiceberg.table import StaticTable
            t = StaticTable.from_metadata(f"{out}/metadata/v1.metadata.json")
            j.rows("pyiceberg", t.scan().to_arrow(), table, names, loose=True)
            ask_iceberg(j, t, table, r)
            if not v3:
                j.rows("iceberg duckdb", con.execute(f"from iceberg_scan('{out}')").fetch_arrow_table(), table, names)
                ask_duck(j, f"iceberg_scan('{out}')", table, r, by)
        if "delta" in kind:
            from deltalake import DeltaTable
            j.rows("deltalake", DeltaTable(out).to_pyarrow_table(), table, names)
            j.rows("delta duckdb", con.execute(f"from delta_scan('{out}')").fetch_arrow_table(), table, names)
            ask_duck(j, f"delta_scan('{out}')", table, r)
        if j.bad:
            print(" ", " ".join(cmd[3:]), table.schema.to_string().replace("\n", "; ")[:600])
    except Exception as e:
        j.say(f"{kind} {names} {type(e).__name__}: {str(e)[:400]}")
        print(" ", table.schema.to_string().replace("\n", "; ")[:600])
    finally:
        shutil.rmtree(dir)
    return j.bad


if __name__ == "__main__":
    bad = sum(run(s) for s in range(FIRST, LAST + 1))
    print(f"seeds {FIRST} to {LAST}: " + (f"{bad} differences" if bad else "the readers agree"))
    sys.exit(bad > 0)
