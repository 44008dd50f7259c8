"""Random tables, files of them with bits turned over, and everything that the package reads from these, in processes of
their own: none ends by a signal, every error is a StoaError with a place, and no row comes out that was not written.
STOA_ATTACK says how many files, STOA_SEED where the random numbers begin.

What may differ: in Arrow and CarbonData files, which have no checksums, values (there only crashes and errors are looked
at); in all, names of columns, of which some formats have no checksum either."""

import collections
import decimal
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import warnings

import pyarrow as pa
import pyarrow.parquet as pq
import stoa

HOW_MANY, SEED = int(os.environ.get("STOA_ATTACK", "500")), int(os.environ.get("STOA_SEED", "1"))
AT_ONCE = 25


def column(r, n):
    kind = r.choice(["i32", "i64", "f64", "s", "low", "b", "t", "ts", "d", "day"])
    nulls = r.choice([0, 0, 0.1, 0.9])
    maybe = lambda v: None if r.random() < nulls else v
    make = {
        "i32": (pa.int32(), lambda: r.randrange(-(2**31), 2**31)), "i64": (pa.int64(), lambda: r.randrange(100)),
        "f64": (pa.float64(), lambda: r.choice([0.0, -0.0, math.inf, r.random(), 1e300])),
        "s": (pa.string(), lambda: "".join(r.choice("abcü☃'") for _ in range(r.randrange(12)))),
        "low": (pa.string(), lambda: r.choice(["red", "green", "blue", ""])),
        "b": (pa.binary(), lambda: r.randbytes(r.randrange(9))), "t": (pa.bool_(), lambda: r.random() < 0.5),
        "ts": (pa.timestamp("us"), lambda: r.randrange(-(10**15), 10**16)),
        "d": (pa.decimal128(12, 3), lambda: decimal.Decimal(r.randrange(-(10**9), 10**9)).scaleb(-3)),
        "day": (pa.date32(), lambda: r.randrange(-9000, 40000)),
    }[kind]
    return pa.array([maybe(make[1]()) for _ in range(n)], make[0])


def table(r):
    n = r.choice([1, 7, 300, 2000, 9000])
    return pa.table({f"c{i}": column(r, n) for i in range(r.randrange(1, 6))})


def write(r, data, d):
    """Writes a table; the file, and whether every value in it is under a checksum."""
    form = r.choice(["trv", "red", "parquet", "cfile", "pyarrow", "arrow", "carbon"])
    if form == "cfile":
        stoa.write(data, os.path.join(d, "x/"), format="cfile")
        return form, os.path.join(d, "x"), True
    if form == "carbon":
        for i, f in enumerate(data.schema):  # times to a millisecond is what it has
            if pa.types.is_timestamp(f.type):
                data = data.set_column(i, f.name, data[i].cast(pa.timestamp("ms"), safe=False).cast(f.type))
        stoa.create(os.path.join(d, "store#db.t"), data.schema)
        stoa.load(os.path.join(d, "store#db.t"), data)
        return form, os.path.join(d, "store#db.t"), False
    path = os.path.join(d, "x." + ("parquet" if form == "pyarrow" else form))
    if form == "pyarrow":
        pq.write_table(data, path, write_page_checksum=True, row_group_size=r.choice([100, 5000]),
                       compression=r.choice(["none", "snappy", "zstd"]), use_dictionary=r.random() < 0.5)
    else:
        stoa.write(data, path)
    return form, path, form != "arrow"


def files_of(path):
    place = path.partition("#")[0]
    if os.path.isfile(place):
        return [place]
    found = [os.path.join(d, f) for d, _, fs in os.walk(place) for f in fs]
    return sorted(f for f in found if os.path.getsize(f))


def cells(t):
    """Rows as texts, in which all NaN are equal."""
    return [repr(x) for x in zip(*(c.to_pylist() for c in t.columns))] if t.num_columns else [()] * t.num_rows


def cast(t, want):
    """What came out, with the columns' own types and names, which a flip may have changed."""
    if t.num_columns != want.num_columns:
        raise AssertionError(f"{t.num_columns} columns, expected {want.num_columns}")
    return pa.table([c.cast(f.type) for c, f in zip(t.columns, want.schema)], names=want.column_names)


def among(got, want):
    """Whether got are some of want, in that order."""
    rest = iter(want)
    return all(any(w == g for w in rest) for g in got)


def placed(e):
    """An error about a file has its name; damage has an offset, too."""
    assert not isinstance(e, KeyboardInterrupt)
    if isinstance(e, stoa.Corrupt):
        assert e.object and (e.offset is not None or e.path or "[" not in str(e)), repr(e)
    assert "panic" not in str(e) and "goroutine" not in str(e), str(e)


def recovered(t):
    """The rows; what lost a column, or its type, says so in findings, and is not compared."""
    return t.to_table(), t.findings


def reads(path):
    """What one can ask of a file, by name."""
    import polars as pl

    opened = lambda **kw: stoa.open(path, **kw)
    return {
        "to_table": lambda: opened().to_table(),
        "scan": lambda: opened().scan(batch=100).read_all(),
        "polars": lambda: pl.from_arrow(opened().to_table()).to_arrow(),
        "splits": lambda: pa.concat_tables([s.scan().read_all() for s in opened().plan(target=1000)]),
        "skip-rows": lambda: opened(damaged="skip-rows").to_table(),
        "null-cells": lambda: opened(damaged="null-cells").to_table(),
        "recover": lambda: recovered(opened(recover=True, damaged="skip-rows")),
        "verify": lambda: stoa.verify(path), "stats": lambda: stoa.stats(path), "ls": lambda: stoa.ls(path),
        "describe": lambda: collections.deque(stoa.describe(path), 0),
        "html": lambda: (opened()._repr_html_(), repr(opened())) and None,
        "count": lambda: opened().count_rows(where="true"),
    }


def judge(name, got, want, sure):
    if name == "recover":
        got, findings = got
        if got.schema.types != want.schema.types and sure:
            assert findings, "recover: other columns, and no finding"
            return
    if not isinstance(got, pa.Table):
        return
    if not sure:
        return
    rows = cells(want)
    if name in ("to_table", "scan", "polars", "splits"):
        assert cells(cast(got, want)) == rows, f"{name}: rows that were not written"
    elif name in ("skip-rows", "recover"):
        assert among(cells(cast(got, want)), rows), f"{name}: rows that were not written"
    elif name == "null-cells" and got.num_rows == want.num_rows:
        for g, w in zip(cast(got, want).columns, want.columns):
            for x, y in zip(g.to_pylist(), w.to_pylist()):
                assert x is None or repr(x) == repr(y), f"{name}: {x!r}, expected {y!r}"


def case(seed):
    """One file: what was found wrong."""
    r = random.Random(seed)
    with tempfile.TemporaryDirectory() as d:
        want = table(r)
        form, path, sure = write(r, want, d)
        file = r.choice(files_of(path))
        b = bytearray(open(file, "rb").read())
        for _ in range(r.choice([0, 1, 1, 1, 2, 8])):
            k = r.randrange(len(b) * 8)
            b[k // 8] ^= 1 << k % 8
        if r.random() < 0.1:
            del b[r.randrange(len(b)):]
        open(file, "wb").write(b)
        problems = []
        for name, read in reads(path).items():
            print(json.dumps([seed, form, name]), file=sys.stderr, flush=True)  # the last one, if the process ends here
            try:
                judge(name, read(), want, sure)
            except stoa.StoaError as e:
                try:
                    placed(e)
                except AssertionError as a:
                    problems.append(f"{name}: no place: {a}")
            except Exception as e:  # whatever else comes out is wrong
                problems.append(f"{name}: {type(e).__name__}: {str(e)[:300]}")
        return form, problems


def main(first, n):
    warnings.simplefilter("ignore")
    for seed in range(first, first + n):
        form, problems = case(seed)
        print(json.dumps({"seed": seed, "form": form, "problems": problems}), flush=True)


def test_attack():
    done, problems = collections.Counter(), []
    for first in range(SEED * 100_000, SEED * 100_000 + HOW_MANY, AT_ONCE):
        n = min(AT_ONCE, SEED * 100_000 + HOW_MANY - first)
        p = subprocess.run([sys.executable, __file__, str(first), str(n)], capture_output=True, text=True, timeout=1800)
        for line in p.stdout.splitlines():
            x = json.loads(line)
            done[x["form"]] += 1
            problems += [f"seed {x['seed']}, {x['form']}: {w}" for w in x["problems"]]
        if p.returncode:
            problems.append(f"the process ended with {p.returncode}: {p.stderr[-2000:]}")
    print(dict(done))
    assert not problems, "\n".join(problems[:40])
    assert sum(done.values()) == HOW_MANY and len(done) == min(7, HOW_MANY)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
