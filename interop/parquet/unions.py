"""Judge how stoa writes unions to Parquet.    unions.py gen DIR SEED N | unions.py check DIR N

gen writes N Arrow files, DIR/0.arrow and so on, of random tables with dense and sparse unions, at the top level and in structs and lists.
check compares them with DIR/0.parquet and so on, as pyarrow, DuckDB and polars read these: in each row, the union's value is in the field of its
member, and all others are null. It prints how many values it compared."""
import random
import sys

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

MEMBERS = {
    "null": (pa.null(), lambda R: None),
    "int": (pa.int64(), lambda R: R.randrange(-1000, 1000)),
    "text": (pa.string(), lambda R: f"t{R.randrange(30)}"),
    "real": (pa.float64(), lambda R: R.randrange(100) / 4),
    "pair": (pa.struct([("x", pa.int32()), ("y", pa.string())]), lambda R: {"x": R.randrange(9), "y": R.choice([None, "y"])}),
    "list": (pa.list_(pa.int16()), lambda R: [R.choice([None, 1, 2]) for _ in range(R.randrange(4))]),
}


def union(R, n):
    names = R.sample(list(MEMBERS), R.randrange(1, len(MEMBERS) + 1))
    which = [R.randrange(len(names)) for _ in range(n)]
    values = [MEMBERS[names[k]][1](R) for k in which]
    types = pa.array(which, pa.int8())
    if R.random() < 0.5:
        cells = [pa.array([v if k == i else None for k, v in zip(which, values)], MEMBERS[m][0]) for i, m in enumerate(names)]
        return pa.UnionArray.from_sparse(types, cells, names)
    seen, offsets = [0] * len(names), []
    for k in which:
        offsets.append(seen[k])
        seen[k] += 1
    cells = [pa.array([v for k, v in zip(which, values) if k == i], MEMBERS[m][0]) for i, m in enumerate(names)]
    return pa.UnionArray.from_dense(types, pa.array(offsets, pa.int32()), cells, names)


def table(R):
    n = R.choice([0, 1, 50, 3000])
    u = union(R, n)
    s = pa.StructArray.from_arrays([union(R, n), pa.array(range(n))], ["in", "x"])
    sizes = [R.randrange(4) for _ in range(n)]
    ends = [0]
    for k in sizes:
        ends.append(ends[-1] + k)
    return pa.table({"id": range(n), "u": u, "s": s, "l": pa.ListArray.from_arrays(ends, union(R, ends[-1]))})


def members(v, t):
    """What a value of type t is without unions: (member, value) for a union."""
    if v is None:
        return None
    if pa.types.is_union(t):
        # pyarrow's scalar knows the member
        return (t[v.type_code].name, members(v.value, t[v.type_code].type)) if v.value is not None and v.value.is_valid else None
    if pa.types.is_struct(t):
        return {f.name: members(v[f.name], f.type) for f in t}
    if pa.types.is_list(t):
        return [members(x, t.value_type) for x in v]
    return v.as_py()


def same(want, got, t):
    if pa.types.is_union(t):
        there = {k: v for k, v in got.items() if v is not None}
        if want is None:
            return not there
        name, v = want
        member = next(f for f in t if f.name == name)
        return set(there) == {name} and same(v, there[name], member.type)
    if want is None or got is None:
        return want is None and got is None
    if pa.types.is_struct(t):
        return set(got) == set(want) and all(same(want[f.name], got[f.name], f.type) for f in t)
    if pa.types.is_list(t):
        return len(want) == len(got) and all(same(w, g, t.value_type) for w, g in zip(want, got))
    return want == got


if sys.argv[1] == "gen":
    for i in range(int(sys.argv[4])):
        t = table(random.Random(int(sys.argv[3]) + i))
        with pa.ipc.new_file(f"{sys.argv[2]}/{i}.arrow", t.schema) as w:
            w.write_table(t, max_chunksize=700)
else:
    compared = 0
    for i in range(int(sys.argv[3])):
        source = pa.ipc.open_file(f"{sys.argv[2]}/{i}.arrow").read_all()
        file = f"{sys.argv[2]}/{i}.parquet"
        readers = {"pyarrow": pq.read_table(file).to_pydict(), "polars": pl.read_parquet(file).to_dict(as_series=False)}
        rows = duckdb.sql(f"select {', '.join(source.column_names)} from '{file}'").fetchall()
        readers["DuckDB"] = {c: [r[k] for r in rows] for k, c in enumerate(source.column_names)}
        for c in source.column_names:
            t = source.schema.field(c).type
            want = [members(v if pa.types.is_union(t) or v.is_valid else None, t) for v in source.column(c)]
            for reader, got in readers.items():
                if len(got[c]) != len(want):
                    sys.exit(f"{file}: {reader} reads {len(got[c])} rows of {len(want)}")
                for k, (w, g) in enumerate(zip(want, got[c])):
                    compared += 1
                    if not same(w, g, t):
                        sys.exit(f"{file}: column {c}, row {k}: {reader} reads {g}, the union was {w}")
    print(compared)
