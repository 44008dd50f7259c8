"""Tables: reading, its consumers, errors, interrupts, processes, threads, memory."""

import concurrent.futures
import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
import stoa

from conftest import rows

pytestmark = pytest.mark.filterwarnings("ignore::stoa.StoaWarning")


def kudu():
    return stoa.open("try/kudu#d_major")


def test_is_a_dataset():
    t = kudu()
    assert isinstance(t, ds.Dataset)
    full = t.to_table()
    assert full.num_rows == len(t) == t.count_rows() == 1619
    assert full.schema.equals(t.schema)
    assert rows(pa.table(t)) == rows(full)  # __arrow_c_stream__
    assert t.scan(["id"], limit=3).read_all().num_rows == 3
    assert t.head(2, columns=["b"]).column_names == ["b"]
    assert rows(t.scan(rows=(10, 20)).read_all()) == rows(full.slice(10, 10))
    assert t.scan(rows=(10, 10)).read_all().num_rows == 0
    assert rows(t.take([5, 1, 1600, 5])) == rows(full.take([5, 1, 1600, 5]))
    assert bool(t.filter("id < 0")) and len(t.filter("id < 0")) == 0
    assert "id: int64" in repr(t) and "<table>" in t._repr_html_()
    with pytest.raises(IndexError):
        t.take([1619])
    assert t.scan(limit=0).read_all().num_rows == 0 and t.head(0).num_rows == 0
    assert t.head(2, where="id > 100")["id"].to_pylist() == t.filter("id > 100").head(2)["id"].to_pylist()
    assert rows(t.scan(rows=range(10, 20)).read_all()) == rows(t.scan(rows=slice(10, 20)).read_all()) == \
        rows(full.slice(10, 10))
    assert t.files == ["try/kudu#d_major"]
    for wrong in [dict(rows=5), dict(rows=(5, 1)), dict(limit=-1), dict(columns="id"), dict(nonsense=1)]:
        with pytest.raises(stoa.Invalid):
            t.scan(**wrong).read_all()
    with pytest.raises(stoa.Invalid):
        stoa.open("try/key.cfile", damaged="skip")


def test_for_arrows_own_code():
    """Where pyarrow's C++ takes a dataset, it does not ask methods: it gets the same rows, and does not crash."""
    from pyarrow import acero

    t, full = kudu(), kudu().to_table()
    assert rows(ds.Scanner.from_dataset(t, filter=ds.field("id") > 1000).to_table()) == \
        rows(full.filter(ds.field("id") > 1000))
    assert rows(ds.dataset([t, t.filter("id < 0")]).to_table()) == rows(full)
    plan = acero.Declaration.from_sequence([
        acero.Declaration("scan", acero.ScanNodeOptions(t, columns={"id": ds.field("id")})),
        acero.Declaration("aggregate", acero.AggregateNodeOptions([("id", "sum", None, "s")]))])
    assert plan.to_table()["s"].to_pylist() == [sum(full["id"].to_pylist())]
    ds.write_dataset(t.filter("id > 1000"), "out", format="parquet")
    assert rows(ds.dataset("out").to_table()) == rows(full.filter(ds.field("id") > 1000))
    assert rows(t.sort_by("id").to_table()) == rows(full.sort_by("id"))
    d = stoa.open("try/damaged/key.cfile")
    with pytest.raises((stoa.Corrupt, pa.ArrowException), match="expected 0x0eea0a49"):
        ds.Scanner.from_dataset(d).to_table()
    alive = pa.total_allocated_bytes()
    for _ in range(20):
        ds.Scanner.from_dataset(kudu()).to_table()
    gc.collect()
    assert pa.total_allocated_bytes() - alive < 1 << 20


def test_take_of_what_is_lost():
    whole = stoa.open("try/key.cfile").to_table()
    t = stoa.open("try/damaged/key.cfile", damaged="skip-rows")
    assert rows(t.take([300, 0, 127, 256, 399])) == rows(whole.take([300, 0, 127, 256, 399]))
    for lost in (128, 200, 255, 400):
        with pytest.raises(IndexError, match=f"position {lost}"):
            t.take([5, lost])
    assert len(t) == t.to_table().num_rows == 272


def test_pyarrow_alone_is_needed():
    code = """if True:
        import sys
        for name in ("numpy", "pandas", "polars", "fsspec", "matplotlib"):
            sys.modules[name] = None  # as if it were not installed
        import pyarrow as pa, pyarrow.dataset as ds, stoa
        t = stoa.open("try/flat.red")
        assert t.take([7, 3, 7]).equals(t.to_table().take(pa.array([7, 3, 7])))
        assert t.take(pa.array([1])).num_rows == 1 and t.take([]).num_rows == 0
        assert t.count_rows(ds.field("i") > 0) == len(t.filter("i > 0"))
        assert t.get(t.head(1)[t.keys[0]][0]) and "<table>" in t._repr_html_()
        stoa.write(t, "x.parquet")
        assert stoa.diff("try/flat.red", "x.parquet")["equal"] and stoa.verify("x.parquet") == []
        for what in ("open('memory://x')", "plot.anatomy('try/key.cfile')"):
            try:
                eval("stoa." + what)
                raise SystemExit(what)
            except stoa.Invalid as e:
                assert "pip install" in str(e), e
    """
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


def test_views_of_what_python_cannot_say():
    days = pa.table({"day": pa.array([0, 10_000_000, None], pa.int32()).cast(pa.date32()),
                     "ns": pa.array([1, 2**62, None], pa.timestamp("ns"))})
    stoa.write(days, "days.arrow")
    t = stoa.open("days.arrow")
    assert "29349" in t._repr_html_() and "<td>None</td>" in t._repr_html_()


def test_texts_are_predicates_of_their_own():
    t = kudu()
    for wrong in ["id >", "id > 0) or (id < 0", "nothing(id)"]:
        with pytest.raises(stoa.Invalid):
            t.filter(wrong)
        with pytest.raises(stoa.Invalid):
            t.filter("id > 5").scan(where=wrong)
    assert len(t.filter("id < 50 or id > 1000").filter("b is null or b is not null")) == t.count_rows("id < 50 or id > 1000")


def test_filter_of_a_filter():
    t = kudu().filter("id > 1000").filter(ds.field("b") == "upd1-3").filter(pl.col("id") < 3000)
    full = kudu().to_table()
    want = full.filter((ds.field("id") > 1000) & (ds.field("b") == "upd1-3") & (ds.field("id") < 3000))
    assert rows(t.to_table()) == rows(want) and len(t) == want.num_rows > 0
    assert rows(t.to_table(columns=["a"])) == rows(want.select(["a"]))


def test_what_is_not_pushed_is_filtered_afterwards():
    t, full = kudu(), kudu().to_table()
    e = (ds.field("id").cast("float64") * 2 > 5000) & (ds.field("a") > 0)
    want = full.filter(e)
    assert 0 < want.num_rows < 1619
    assert rows(t.to_table(filter=e)) == rows(want)
    assert t.count_rows(filter=e) == want.num_rows
    assert rows(t.scan(["b"], where=e, limit=5).read_all()) == rows(want.select(["b"]).slice(0, 5))
    got = t.scanner(columns={"x": ds.field("id") + 1}, filter=e).to_table()
    assert got["x"].to_pylist() == [x + 1 for x in want["id"].to_pylist()]
    splits = t.plan(columns=["id"], where=e)
    assert sum(s.scan().read_all().num_rows for s in splits) == want.num_rows


def test_get():
    t = kudu()
    first = t.head(1)
    assert repr(t.get(first["id"][0].as_py())) == rows(first)[0]
    with pytest.raises(KeyError):
        t.get(-5)
    with pytest.raises(stoa.NotFound):
        t.get(-5)


def test_duckdb_pushes_down():
    t = kudu()
    read = t.to_table()
    assert duckdb.sql("select count(*), sum(id) from t where b like 'upd%' and id > 1000").fetchall() == \
        duckdb.sql("select count(*), sum(id) from read where b like 'upd%' and id > 1000").fetchall()
    d = stoa.open("try/damaged/key.cfile")
    with pytest.raises(Exception, match="expected 0x0eea0a49"):
        duckdb.sql("select sum(value) from d").fetchall()


def test_polars():
    lf, full = stoa.scan_polars("try/kudu", table="d_major"), pl.from_arrow(kudu().to_table())
    for p in [pl.col("id") > 4000, pl.col("b").is_null(), pl.col("id").is_in([21, 63]), pl.col("b").str.starts_with("upd"),
              pl.col("id").is_between(100, 200), ~(pl.col("c") > 0.5), pl.col("b").str.len_chars() > 5,
              (pl.col("h") + 1 > 3) | (pl.col("id") < 50)]:
        got, want = lf.filter(p).select("id", "b").collect(), full.filter(p).select("id", "b")
        assert got.equals(want), p
    assert lf.head(3).collect().equals(full.head(3))
    assert lf.filter(pl.col("id") > 100).head(3).collect().equals(full.filter(pl.col("id") > 100).head(3))
    assert lf.select(pl.len()).collect().item() == 1619


def test_pandas():
    df = kudu().to_pandas(columns=["id", "b"], where="id < 100")
    assert isinstance(df, pd.DataFrame) and len(df) > 0 and df["id"].max() < 100


def test_pandas_integers(tmp_path):
    """No 64-bit integer becomes another one, with nulls beside it or not, nested or not."""
    big = [2**63 - 1, None, -2**53 - 1, 7]
    wide = pa.table({
        "id": pa.array([1, 2, 3, 2**62 + 1], pa.int64()),
        "n": pa.array(big, pa.int64()),
        "u": pa.array([2**64 - 1, None, 0, 2**53 + 1], pa.uint64()),
        "small": pa.array([1, None, 2, 3], pa.int32()),
        "list": pa.array([big, None, [], [2**60 + 1]], pa.list_(pa.int64())),
        "struct": pa.array([{"x": v} for v in big], pa.struct([("x", pa.int64())])),
    })
    stoa.write(wide, str(tmp_path / "wide.parquet"))
    df = stoa.open(str(tmp_path / "wide.parquet")).to_pandas()
    def plain(v):
        if isinstance(v, dict):
            return {k: plain(x) for k, x in v.items()}
        if hasattr(v, "__len__") and not isinstance(v, str):
            return [plain(x) for x in v]
        return None if v is None or v is pd.NA or v != v else v
    for name in wide.column_names:
        assert [plain(v) for v in df[name]] == wide[name].to_pylist(), name
    assert df["id"].dtype == "int64" and df["n"].dtype == "Int64" and df["u"].dtype == "UInt64"
    asked = stoa.open(str(tmp_path / "wide.parquet")).to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
    assert asked["id"].dtype == "Int64"


def test_errors_have_places():
    t = stoa.open("try/damaged/key.cfile")
    for read in [t.to_table, lambda: t.scan().read_all(), lambda: list(t.to_batches()),
                 lambda: pickle.loads(pickle.dumps(t)).to_table()]:
        with pytest.raises(stoa.Corrupt) as e:
            read()
        assert (e.value.object, e.value.offset, e.value.length) == ("try/damaged/key.cfile", 539, 525)
        assert e.value.path.endswith("checksum") and "expected 0x0eea0a49, computed 0x0f01d90f" in str(e.value)
    assert pickle.loads(pickle.dumps(e.value)).offset == 539
    with pytest.raises(pa.ArrowException, match="expected 0x0eea0a49"):  # C has no classes of exceptions, only texts
        pa.table(t)
    with pytest.raises(FileNotFoundError):
        stoa.open("nothing")
    with pytest.raises(ValueError):
        stoa.open("try/key.cfile").scan(["nothing"])
    with pytest.raises(stoa.Invalid):
        stoa.open("try/key.cfile").scan(where="value >")
    with pytest.raises(stoa.Invalid):
        stoa.open("try/key.cfile").scan(where=7)
    with pytest.raises(stoa.Invalid):
        stoa.open("try/key.cfile", nonsense="1")
    with pytest.raises(stoa.Limit):
        stoa.open("try/flat.red", limits={"fields": 2})
    with pytest.raises(stoa.StoaError):
        stoa.convert("try/flat.red", "nowhere/x.parquet")


def test_changed():
    t = stoa.open("try/key.cfile")
    splits = t.plan()
    os.utime("try/key.cfile", (1, 1))
    with pytest.raises(stoa.Changed):
        splits[0].scan().read_all()


def test_warnings():
    with pytest.warns(stoa.StoaWarning, match="rows 128:256"):
        t = stoa.open("try/damaged/key.cfile", damaged="skip-rows")
        assert t.to_table().num_rows == 272
    with pytest.warns(stoa.StoaWarning, match="kudu.wal.missing"):
        kudu().to_table()


def test_what_is_lost_is_said_whoever_reads():
    here = os.path.abspath(__file__)
    for read in [lambda t: t.to_table(), len, lambda t: t.count_rows(where="value is not null"),
                 lambda t: t.to_pandas(), lambda t: t.head(200), lambda t: list(t.to_batches()), lambda t: t.scan().read_all(), pa.table,
                 lambda t: stoa.scan_polars(t).collect(), lambda t: [s.scan().read_all() for s in t.plan()],
                 lambda t: t.filter("value > 0").count_rows(),
                 lambda t: duckdb.sql("select sum(value) from t").fetchall()]:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            t = stoa.open("try/damaged/key.cfile", damaged="skip-rows")
            read(t)
        lost = [w for w in said if "lost: rows 128:256" in str(w.message)]
        assert len(lost) == 1 and issubclass(lost[0].category, stoa.StoaWarning)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        kudu().to_table()
    assert [os.path.abspath(w.filename) for w in said] == [here]  # the caller's line, and none of the package


def test_streams_outlive_tables():
    r = stoa.open("try/flat.red").scan(batch=10)
    gc.collect()
    b = r.read_next_batch()
    del r
    gc.collect()
    b.validate(full=True)
    assert b.num_rows == 10


def test_eight_threads():
    t, want = kudu(), rows(kudu().to_table())

    def work(i):
        mine = kudu() if i % 2 else t
        return all(rows(mine.to_table()) == want for _ in range(5))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_memory_is_flat():
    for i in range(200):
        if i == 60:
            gc.collect()
            begin = resident()
        t = kudu()
        t.to_table()
        next(t.to_batches(batch=10))  # and one that is left in the middle
        del t
    gc.collect()
    assert resident() - begin < 24 << 20
    for _ in range(600):
        if stoa.memory()["used"] == 0:
            break
        time.sleep(0.1)
    assert stoa.memory()["used"] == 0 and stoa.memory()["handles"] == 0


def big(path, n=3_000_000):
    i = pa.array(range(n), pa.int64())
    stoa.write(pa.table({"a": i, "b": i, "c": i}), path, check=False)


def interrupted(work, before="t = None", after="pass"):
    """How long it takes until an interrupt has ended some work."""
    code = f"""if True:
        import stoa
        {before}
        print("ready", flush=True)
        try:
            {work}
            print("it ended by itself", flush=True)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        {after}
        print("usable", flush=True)
    """
    p = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "ready\n"
    time.sleep(0.7)
    begin = time.monotonic()
    p.send_signal(signal.SIGINT)
    assert p.stdout.readline() == "interrupted\n"
    took = time.monotonic() - begin
    assert p.stdout.readline() == "usable\n" and p.wait(300) == 0
    return took


def test_interrupt():
    big("big.trv")
    one, many = 't = stoa.open("big.trv")', 't = stoa.open(["big.trv"] * 200)'  # far more rows than a second is for
    limit = 30  # seconds, of a machine that is busy with other things: to the end of the rows it would be minutes
    assert interrupted("while True: t.to_table()", one, "assert t.count_rows() == 3000000") < limit
    assert interrupted("while True: t.count_rows(where='a = 5 or b != 6 or c = 7')", many) < limit
    assert interrupted("for _ in t.scan(): pass", many, "assert t.count_rows() == 200 * 3000000") < limit
    assert interrupted("stoa.write(t, 'copy.trv')", many, "import os; assert not os.path.exists('copy.trv')") < limit
    assert not [n for n in os.listdir() if n.startswith(".stoa")]


def test_nothing_runs_on_after_an_interrupt():
    """Rows of a host that gives its next batch late: the call ends with that batch, not before: a thread that is still in
    the host's stream when the interpreter ends takes the process with it."""
    before = """if True:
        import pyarrow as pa, sys, time
        def slow():
            while True:
                yield pa.record_batch({"a": [1]})
                time.sleep(1.5)
        rows = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), slow())
    """
    before = f"exec({before!r}, globals())"
    after = ("any(len(sys._current_frames()) == 1 or time.sleep(0.1) for _ in range(100)); "  # for it to end by itself
             "assert len(sys._current_frames()) == 1")
    for _ in range(3):
        assert interrupted("stoa.write(rows, 'slow.trv')", before, after) < 30
    assert not [n for n in os.listdir() if "slow" in n]


def test_interrupt_of_opening():
    import socket

    s = socket.create_server(("127.0.0.1", 0))  # it takes requests, and never answers
    address = f"http://127.0.0.1:{s.getsockname()[1]}/x.trv"
    assert interrupted(f"stoa.open({address!r})") < 30
    assert interrupted(f"stoa.ls({address!r})") < 30
    s.close()


def _in_child(q):
    try:
        stoa.open("try/key.cfile")
        q.put("it opened")
    except stoa.Forked as e:
        q.put("refused: " + str(e))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork_is_refused():
    t = kudu()
    q = multiprocessing.get_context("fork").Queue()
    p = multiprocessing.get_context("fork").Process(target=_in_child, args=(q,))
    p.start()
    said = q.get(timeout=300)
    p.join(300)
    assert said.startswith("refused") and "fork" in said and p.exitcode == 0
    assert len(t) == 1619


def _rows_of(split):
    return split.scan().read_all().num_rows


def test_splits_in_other_processes():
    splits = stoa.open("try/kudu#d_major").plan(columns=["id"], target=1)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert sum(pool.map(_rows_of, splits)) == 1619


def test_a_plan_is_bounded():
    stoa.write({"a": pa.array([i % 7 for i in range(110_000)], pa.int8())}, "many.trv")
    splits = stoa.open("many.trv").plan(target=1)
    assert 10_000 < len(splits) <= 100_000 and sum(s.rows for s in splits) == 110_000


def test_fsspec():
    fsspec = pytest.importorskip("fsspec")
    fs = fsspec.filesystem("memory")
    fs.pipe("/place/key.cfile", open("try/key.cfile", "rb").read())
    assert len(stoa.open("memory://place/key.cfile")) == 400
    with pytest.raises(stoa.NotFound):
        stoa.open("memory://place/other.cfile")
    t = stoa.open("memory://place/key.cfile")
    assert len(pickle.loads(pickle.dumps(t))) == 400
    assert sum(s.scan().read_all().num_rows for s in t.plan()) == 400
    assert stoa.verify("memory://place/key.cfile") == []
    fs.pipe("/place/damaged.cfile", open("try/damaged/key.cfile", "rb").read())
    assert [f.object for f in stoa.verify("memory://place/damaged.cfile")] == ["memory://place/damaged.cfile"]
    with pytest.raises(stoa.Corrupt) as e:
        stoa.open("memory://place/damaged.cfile").to_table()
    assert e.value.object == "memory://place/damaged.cfile" and str(e.value).startswith("memory://place/damaged.cfile[539")
    with pytest.raises(stoa.Invalid):
        stoa.write({"a": [1]}, "memory://place/new.trv")
    with pytest.raises(stoa.Invalid):
        stoa.open("s3://bucket/x", storage_options={"nonsense": 1})


def test_codes_are_the_values():
    """Dictionaries as they are stored have the rows of the strings, as a table, with a filter, and as a schema."""
    coded = 0
    for path in ("try/kudu#d_major", "try/carbon#managed_del", "try/flat.red"):
        t = stoa.open(path)
        for spec in ({}, {"limit": 37}, {"batch": 100}):
            want = t.scan(**spec).read_all()
            got = t.scan(**spec, dictionaries="codes").read_all()
            assert rows(got) == rows(want)
            for f in got.schema:
                if pa.types.is_dictionary(f.type):
                    assert f.type.index_type == pa.int32() and f.type.value_type == want.schema.field(f.name).type
                    coded += 1
    assert coded > 0
    got = stoa.open("try/kudu#d_major").to_table(["id", "b"], where="b like 'upd%'", dictionaries="codes")
    assert pa.types.is_dictionary(got.schema.field("b").type) and got.num_rows == 224
    assert got.to_pandas()["b"].dtype == "category"
    with pytest.raises(stoa.Invalid, match="expected values or codes"):
        stoa.open("try/flat.red").scan(dictionaries="both")
