"""What is written comes back, from all that has rows; changes of CarbonData tables."""

import datetime
import os
import shutil
import warnings

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
import stoa
from hypothesis import HealthCheck, given, settings, strategies as st

from conftest import rows

EXAMPLES = int(os.environ.get("STOA_EXAMPLES", "25"))

values = {
    pa.int32(): st.integers(-(2**31), 2**31 - 1), pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(width=64), pa.string(): st.text(max_size=20).filter(lambda s: "\0" not in s),
    pa.binary(): st.binary(max_size=20), pa.bool_(): st.booleans(),
}


@st.composite
def tables(draw):
    n = draw(st.integers(0, 40))
    names = draw(st.lists(st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True), min_size=1, max_size=5, unique=True))
    columns = {}
    for name in names:
        t = draw(st.sampled_from(list(values)))
        columns[name] = pa.array(draw(st.lists(st.none() | values[t], min_size=n, max_size=n)), t)
    return pa.table(columns)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(tables(), st.sampled_from(["x.trv", "x.parquet", "x.red", "x.arrow", "dir/"]))
def test_round_trips(data, name):
    options = {"format": "cfile"} if name == "dir/" else {}
    if os.path.exists(name.rstrip("/")):
        shutil.rmtree(name) if name.endswith("/") else os.remove(name)
    summary = stoa.write(data, name, **options)
    assert summary["rows"] == data.num_rows and summary["checked"]
    back = stoa.open(name).to_table()
    assert back.column_names == data.column_names
    assert rows(back.cast(data.schema)) == rows(data)


def test_what_has_rows_can_be_written():
    want = {"a": [1, 2, None], "b": ["x", "y", None]}
    three = pa.table(want)
    for data in [three, three.to_reader(), want, pl.DataFrame(want), three.to_pandas(types_mapper=pd.ArrowDtype),
                 duckdb.sql("select * from three")]:
        stoa.write(data, "x.parquet")
        assert stoa.open("x.parquet").to_table().to_pydict() == want
        os.remove("x.parquet")
    stoa.write(stoa.open("try/flat.red").filter("i > 0"), "y.parquet")
    assert len(stoa.open("y.parquet")) == len(stoa.open("try/flat.red").filter("i > 0"))
    batch = pa.record_batch(want)
    for data in [batch, batch.to_struct_array()]:  # the latter has __arrow_c_array__ alone
        stoa.write(data, "x.trv")
        assert stoa.open("x.trv").to_table().to_pydict() == want
        os.remove("x.trv")
    for wrong in [7, [want], pa.chunked_array([[1]]), pa.array([1])]:
        with pytest.raises(stoa.Invalid, match="data: expected"):
            stoa.write(wrong, "x.parquet")
    assert not os.path.exists("x.parquet")


def test_options_are_lists_and_booleans():
    import pyarrow.parquet as pq

    data = pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    stoa.write(data, "x.parquet", sorting_columns=["a", "b"], dictionary=False, row_group_rows=2, compression=None)
    options = {"sorting_columns": ["a", "b"], "dictionary": False, "row-group-rows": 2}
    stoa.convert("x.parquet", "y.parquet", options=options)
    for name in ("x.parquet", "y.parquet"):
        m = pq.ParquetFile(name).metadata
        assert m.num_row_groups == 2 and [s.column_index for s in m.row_group(0).sorting_columns] == [0, 1]
        assert not any("DICTIONARY" in e for e in m.row_group(0).column(1).encodings)


def test_errors_of_the_source_leave_nothing():
    def batches():
        yield pa.record_batch({"a": [1]})
        raise RuntimeError("the source broke")

    r = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), batches())
    with pytest.raises(stoa.StoaError, match="the source broke"):
        stoa.write(r, "x.parquet")
    assert not os.path.exists("x.parquet") and not [n for n in os.listdir() if n.startswith(".stoa")]


def test_changes():
    schema = pa.schema([("id", pa.int32()), ("status", pa.string()), ("day", pa.date32())])
    stoa.create("store#shop.orders", schema, sort_columns=["id"])
    day = datetime.date(2024, 2, 29)
    for k in range(3):
        r = stoa.load("store#shop.orders", pa.table(
            {"id": [3 * k, 3 * k + 1, 3 * k + 2], "status": ["paid", "void", None], "day": [day] * 3}, schema))
        assert r["rows"] == 3 and r["checked"]
    t = "store#shop.orders"
    assert stoa.delete(t, "status = 'void'", dry_run=True) == 3 and len(stoa.open(t)) == 9
    assert stoa.delete(t, "status = 'void'") == 3
    assert stoa.update(t, {"status": "sent", "day": None}, "id = 0") == 1
    stoa.compact(t, "major")
    stoa.add_column(t, pa.field("note", pa.string()), default="none")
    stoa.clean(t)
    got = sorted(stoa.open(t).to_table().to_pylist(), key=lambda r: r["id"])
    assert got[0] == {"id": 0, "status": "sent", "day": None, "note": "none"}
    assert [r["id"] for r in got] == [0, 2, 3, 5, 6, 8] and got[2]["day"] == day
    with pytest.raises(stoa.Invalid):
        stoa.delete(t, "nothing = 1")
    stoa.drop_column(t, "note")
    stoa.drop(t)
    with pytest.raises(stoa.StoaError):
        stoa.open(t)


def test_more_changes():
    t = "store#shop.stock"
    schema = pa.schema([("item", pa.string()), ("left", pa.int32()), ("at", pa.string())])
    stoa.create(t, schema, partition=["at"])
    stoa.load(t, pa.table({"item": ["bolt", "nut"], "left": [7, 9], "at": ["north", "south"]}, schema))
    r = stoa.merge(t, pa.table({"item": ["nut", "nail"], "left": [8, 100], "at": ["south", "north"]}, schema), ["item"])
    assert (r["rows"], r["replaced"], r["added"]) == (2, 1, 1)
    everything = lambda: sorted(map(tuple, (x.values() for x in stoa.open(t).to_table().to_pylist())))
    assert everything() == [("bolt", 7, "north"), ("nail", 100, "north"), ("nut", 8, "south")]
    stoa.load(t, pa.table({"item": ["cork"], "left": pa.array([1], pa.int32())}), overwrite=True,
              partition={"at": "north"})
    assert everything() == [("cork", 1, "north"), ("nut", 8, "south")]
    stoa.drop_partition(t, {"at": "south"})
    stoa.alter_column(t, "left", name="count")
    stoa.alter_column(t, "count", type=pa.int64())
    stoa.set_properties(t, {"comment": "what is left"})
    stoa.set_properties(t, {"comment": None})
    with pytest.raises(stoa.Invalid):
        stoa.set_properties(t, {"nothing": None})
    stoa.rename(t, "store#shop.rest", dry_run=True)
    stoa.rename(t, "store#shop.rest")
    with pytest.raises(stoa.StoaError):
        stoa.open(t)
    t = "store#shop.rest"
    assert everything() == [("cork", 1, "north")]
    assert stoa.open(t).schema.field("count").type == pa.int64()
    assert len(stoa.truncate(t)) > 0 and len(stoa.open(t)) == 0
    for wrong in [lambda: stoa.merge(t, {"item": ["x"]}, "nothing"), lambda: stoa.rename(t, t),
                  lambda: stoa.alter_column(t, "count", type=pa.int32()), lambda: stoa.drop_partition(t, {"item": "x"})]:
        with pytest.raises(stoa.StoaError):
            wrong()


def test_recover_writes_what_is_whole():
    with pytest.warns(stoa.StoaWarning):
        r = stoa.recover("try/damaged/key.cfile", "saved.parquet")
    whole = stoa.open("try/key.cfile").to_table()
    want = pa.concat_tables([whole.slice(0, 128), whole.slice(256)])
    assert rows(stoa.open("saved.parquet").to_table()) == rows(want) and r["rows"] == 272


def test_a_minor_compaction():
    """It is the preset, and merges as soon as there are as many loads as the store's levels say (4 of them)."""
    stoa.create("c#d.t", pa.schema([("n", pa.int64())]))
    assert stoa.compact("c#d.t") == []
    for n in range(4):
        stoa.load("c#d.t", {"n": [n]})
    assert len(stoa.compact("c#d.t", dry_run=True)) == 1
    assert len(stoa.compact("c#d.t")) == 1
    assert sorted(stoa.open("c#d.t").to_table()["n"].to_pylist()) == [0, 1, 2, 3]
    assert stoa.compact("c#d.t") == []


def test_values_that_are_set():
    """Every word for null is null, and what has no text that would be the value is refused: nothing changes."""
    stoa.create("c#d.t", pa.schema([("n", pa.int64()), ("s", pa.string())]))
    stoa.load("c#d.t", {"n": [1], "s": ["was"]})
    now = lambda: stoa.open("c#d.t").to_table()["s"].to_pylist()
    for v in (b"x", ["x"], ("x",), {"x": 1}, "\ud800"):
        with pytest.raises(stoa.Invalid, match="expected a"):
            stoa.update("c#d.t", {"s": v}, "n = 1")
    assert now() == ["was"]
    for v, want in [(pa.scalar("x"), "x"), (None, None), ("y", "y"), (pa.scalar(None, pa.string()), None), ("", ""),
                    (pd.NA, None), ("None", "None"), (pd.NaT, None)]:
        assert stoa.update("c#d.t", {"s": v}, "n = 1") == 1
        assert now() == [want]
    for do in (lambda w: stoa.delete("c#d.t", w), lambda w: stoa.update("c#d.t", {"s": "z"}, w)):
        with pytest.raises(stoa.Invalid, match="expected a text"):
            do(ds.field("n") == 1)


def test_a_name_is_not_a_list_of_letters():
    stoa.write(pa.table({"a": [1], "b": [2], "ab": [3]}), "ab.parquet")
    for do in (lambda: stoa.convert("ab.parquet", "o.parquet", columns="ab"),
               lambda: stoa.explain("ab.parquet", columns="ab"), lambda: stoa.diff("ab.parquet", "ab.parquet", on="ab")):
        with pytest.raises(stoa.Invalid, match="a list of names"):
            do()
    assert not os.path.exists("o.parquet")


def test_types_that_a_text_does_not_keep():
    data = pa.table({"i": pa.array([1, 2], pa.int8()), "n": [3, 4], "s": ["a", "b"], "b": [b"x", b"y"]})
    for name in ("x.csv", "x.tsv", "x.jsonl"):
        with pytest.warns(stoa.StoaWarning, match=name + ": 2 columns will be read as another type"):
            r = stoa.write(data, name)
        assert r["retyped"] == ["i (int8 as int64)", "b (binary as string)"]
        assert [str(f.type) for f in stoa.open(name).schema] == ["int64", "int64", "string", "string"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("y.csv", "x.parquet"):
            assert not stoa.write(data.select(["n", "s"]) if name == "y.csv" else data, name)["retyped"]


def test_whoever_writes_says_which_types_are_not_kept():
    """What write says of a text, convert and recover say, too; where values lie in memory is no type."""
    data = pa.table({"i": pa.array([1, 2], pa.int8()), "n": [3, 4], "s": pa.array(["a", "b"], pa.large_string())})
    stoa.write(data, "x.parquet")
    for name in ("x.csv", "x.tsv.gz", "x.jsonl", "x.ndjson"):
        for do in (lambda to: stoa.write(data, to), lambda to: stoa.convert("x.parquet", to),
                   lambda to: stoa.recover("x.parquet", to)):
            with pytest.warns(stoa.StoaWarning, match="1 column will be read as another type"):
                assert do(name)["retyped"] == ["i (int8 as int64)"], name
            os.remove(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert stoa.convert("x.parquet", "y.csv", columns=["n", "s"])["retyped"] is None
        assert stoa.convert("x.parquet", "y.trv")["retyped"] is stoa.write(data, "z.trv")["retyped"] is None
    whole = pa.table({"value": pa.array(range(9), pa.date32())})  # a CFile without its table has no name for this type
    stoa.write(whole, "w.parquet")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        r, w = stoa.convert("w.parquet", "w.cfile"), stoa.write(whole, "v.cfile")
    assert bool(r["retyped"]) == bool(w["retyped"]) and len(said) == 2 * bool(w["retyped"])


def test_texts_and_lists_as_polars_has_them():
    """Views and large types say how values lie in memory: each format takes them as it takes the plain ones."""
    columns = {"s": pl.Series(["a", None, "longer than what a view holds itself"]), "b": pl.Series([b"x", None, b"y" * 30]),
               "l": pl.Series([["a", None], [], None]), "st": pl.Series([{"x": ["a"]}, {"x": []}, None]),
               "c": pl.Series(["a", None, "a"], dtype=pl.Categorical)}
    for name, values in columns.items():
        frame = pl.DataFrame({name: values})
        for to in ("x.red", "x.trv", "x.parquet", "x.arrow", "x.cfile"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore" if name == "c" else "error")  # a CFile keeps no dictionary
                stoa.write(frame, to)
            assert stoa.open(to).to_table()[name].to_pylist() == values.to_list(), (name, to)
            shutil.rmtree(to) if os.path.isdir(to) else os.remove(to)
    stoa.write(ds.dataset(pa.table({"a": [1, 2]})).scanner(), "x.trv")
    assert stoa.open("x.trv").to_table()["a"].to_pylist() == [1, 2]
