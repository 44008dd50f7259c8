"""Columns of every kind of Arrow's, read from the middle: what pyarrow, DuckDB and polars get are the same rows.

Of structs and sparse unions that begin in the middle, Arrow's export of Go gave the offset twice.
"""

import gc
import os
import random
import threading
import time

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
import stoa

from conftest import rows

N = 100


def record(i):
    inner = None if i % 5 == 0 else {"v": str(i), "l": [{"q": i}]}
    return None if i % 7 == 0 else {"y": i, "z": [i] * (i % 3), "w": inner}


def every():
    n, parity = N, pa.array([i % 2 for i in range(N)], pa.int8())
    members = [pa.array(range(n)), pa.array([str(i) for i in range(n)])]
    tensors = pa.FixedSizeListArray.from_arrays(pa.array(range(2 * n), pa.int32()), 2)
    some = lambda i, v: v if i % 4 else None
    return {
        "struct": pa.array([record(i) for i in range(n)]),
        "list of structs": pa.array([[record(i)] * (i % 3) for i in range(n)]),
        "sparse union": pa.UnionArray.from_sparse(parity, members),
        "struct of a union": pa.StructArray.from_arrays([pa.UnionArray.from_sparse(parity, members)], ["u"]),
        "dense union": pa.UnionArray.from_dense(parity, pa.array([i // 2 for i in range(n)], pa.int32()), members),
        "tensor": pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.int32(), [2]), tensors),
        "runs": pa.RunEndEncodedArray.from_arrays([30, 60, n], [1, None, 3]),
        "dictionary": pa.array([some(i, f"s{i % 5}") for i in range(n)]).dictionary_encode(),
        "map": pa.array([some(i, [(str(j), j + i) for j in range(i % 3)]) for i in range(n)],
                        pa.map_(pa.string(), pa.int64())),
        "pairs": pa.array([some(i, [i, i + 1]) for i in range(n)], pa.list_(pa.int64(), 2)),
        "list view": pa.array([some(i, [i] * (i % 3)) for i in range(n)], pa.list_view(pa.int64())),
        "string view": pa.array([some(i, f"a rather long string {i}") for i in range(n)], pa.string_view()),
        "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes([i]) * 16 for i in range(n)], pa.binary(16))),
    }


@pytest.mark.parametrize("kind", list(every()))
def test_from_the_middle(kind):
    data = pa.table({"k": range(N), "c": every()[kind]})
    with pa.ipc.new_file("x.arrow", data.schema) as w:
        w.write_table(data)
    t, want = stoa.open("x.arrow"), data.to_pylist()
    for first, last in [(0, N), (0, 1), (8, 16), (13, 40), (50, 50), (N - 1, N)]:
        for batch in (7, N):
            got = t.scan(rows=(first, last), batch=batch).read_all()
            got.validate(full=True)
            assert got.to_pylist() == want[first:last], (first, last, batch)
        got = t.to_table(where=f"k >= {first} and k < {last}")
        got.validate(full=True)
        assert got.to_pylist() == want[first:last]
    splits = t.plan(target=1)
    assert [r for s in splits for r in s.scan().read_all().to_pylist()] == want


@pytest.mark.parametrize("name", ["x.parquet", "x.trv", "x.arrow"])
def test_filters_on_fields_of_structs(name):
    structs = pa.array([{"y": i, "s": str(i)} if i % 5 else None for i in range(N)])
    stoa.write(pa.table({"k": range(N), "x": structs}), name)
    t = stoa.open(name)
    own = t.to_table()
    for where in ["x.y > 42", "x.y > 42 and k < 60", "x.s = '77'", "x.y is null", "x.s like '1%' and x.y > 10"]:
        sql = f"select k, x from {{}} where {where} order by k"
        want = duckdb.sql(sql.format("own")).fetchall()
        assert duckdb.sql(sql.format("t")).fetchall() == want and 0 < len(want) < N, where
        got = t.to_table(where=where)
        got.validate(full=True)
        assert [(r["k"], r["x"]) for r in got.to_pylist()] == want, where
    e = ds.field("x", "y") > 42
    assert rows(t.to_table(filter=e)) == rows(own.filter(e))
    p = pl.col("x").struct.field("y") > 42
    assert stoa.scan_polars(t).filter(p).collect().equals(pl.from_arrow(own).filter(p))


def test_names_that_are_no_names():
    data = pa.table({"x.y": [1, 2, 3], "x": pa.array([{"y": 7}, {"y": 8}, None]), 'q"u': [1, 2, 3], "": [4, 5, 6]})
    stoa.write(data, "x.parquet")
    t = stoa.open("x.parquet")
    assert t.to_table(columns=["x.y"])["x.y"].to_pylist() == [1, 2, 3]
    assert t.to_table(columns=['q"u', ""]).to_pydict() == {'q"u': [1, 2, 3], "": [4, 5, 6]}
    assert t.to_table(filter=ds.field("x", "y") > 7)["x.y"].to_pylist() == [2]
    assert t.to_table(filter=ds.field("x.y") > 2)[""].to_pylist() == [6]
    assert duckdb.sql('select "x.y", x.y, "q""u" from t where "q""u" > 1 and x.y > 7').fetchall() == [(2, 8, 2)]
    frame = stoa.scan_polars(t)
    assert frame.filter(pl.col("x.y") > 1).collect().rows() == [(2, {"y": 8}, 2, 5), (3, None, 3, 6)]
    last = frame.collect_schema().names()[3]  # polars' own name for a column without one
    assert frame.filter(pl.col(last) > 4).select(last, "x.y").head(1).collect().rows() == [(5, 2)]


def test_batches_that_are_held():
    """Many batches of several scans, held while other threads scan and give memory back: each has the rows it had."""
    data = {f"{i}.arrow": pa.table({"k": range(N), "c": c}) for i, c in enumerate(every().values())}
    for name, t in data.items():
        with pa.ipc.new_file(name, t.schema) as w:
            w.write_table(t, max_chunksize=33)
    for name in ("f.parquet", "f.trv"):
        data[name] = pa.table({"k": range(3000), "s": [f"text {i}" for i in range(3000)],
                               "r": [{"y": i, "l": [str(i)] * (i % 3)} for i in range(3000)]})
        stoa.write(data[name], name)
    over, others = threading.Event(), []

    def work():
        while not over.is_set():
            for name in data:
                stoa.open(name).to_table()
            stoa.trim()

    for _ in range(2):
        others.append(threading.Thread(target=work))
        others[-1].start()
    held = []
    try:
        for batch in (7, 20, 64):
            for name in data:
                first = 0
                for b in stoa.open(name).scan(batch=batch):
                    held.append((name, first, b))
                    first += b.num_rows
                assert first == data[name].num_rows
    finally:
        over.set()
        for t in others:
            t.join()
    assert len(held) > 500
    random.Random(1).shuffle(held)
    while held:
        name, first, b = held.pop()
        b.validate(full=True)
        assert b.to_pylist() == data[name].slice(first, b.num_rows).to_pylist(), (name, first)
    del b, t
    gc.collect()
    for _ in range(600):
        if stoa.memory()["used"] == 0:
            break
        time.sleep(0.1)
    assert stoa.memory()["used"] == 0


def test_list_views_are_written_from_the_middle():
    some = lambda i, v: v if i % 4 else None
    for t in (pa.list_view(pa.int64()), pa.large_list_view(pa.int64())):
        views = pa.array([some(i, [i] * (i % 3)) for i in range(N)], t)
        for x in (views, views.slice(3, 4), views.slice(90), views.slice(2, 0),
                  pa.chunked_array([views.slice(1, 3), views.slice(50)]),
                  pa.StructArray.from_arrays([views], ["v"]).slice(7, 20),
                  pa.ListArray.from_arrays([0, 3, 3, 50, 100], views).slice(2)):
            data = pa.table({"c": x})
            stoa.write(data, "v.arrow")
            assert pa.ipc.open_file("v.arrow").read_all().equals(data)
            assert stoa.open("v.arrow").to_table().to_pylist() == data.to_pylist()
            os.remove("v.arrow")
