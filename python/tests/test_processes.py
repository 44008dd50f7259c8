"""Splits in other processes, the order in which things end, and the end of the interpreter."""

import concurrent.futures
import gc
import itertools
import multiprocessing
import pickle
import subprocess
import sys
import textwrap
import threading
import weakref

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
import stoa

from conftest import rows

pytestmark = pytest.mark.filterwarnings("ignore::stoa.StoaWarning")


def _scan(pickled):
    return pickle.loads(pickled).scan().read_all()


def test_many_splits_by_spawn():
    t = stoa.open("try/flat.red")
    full, e = t.to_table(), (ds.field("i") > 0) & (ds.field("i").cast("float64") * 2 < 2e9)
    splits = t.plan(target=1000)
    assert len(splits) > 20 and sum(s.rows for s in splits) == 500
    chosen = t.plan(["d", "i"], where=e, target=1000)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        got = pa.concat_tables(pool.map(_scan, map(pickle.dumps, splits)))
        some = pa.concat_tables(pool.map(_scan, map(pickle.dumps, chosen)))
    assert rows(got) == rows(full)
    want = full.filter(e).select(["d", "i"])
    assert rows(some) == rows(want) and 0 < want.num_rows < 500


def test_damage_in_a_split_has_its_place_in_the_other_process():
    t = stoa.open("try/damaged/key.cfile")
    splits = t.plan(target=1)
    bad = 0
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        for f in [pool.submit(_scan, pickle.dumps(s)) for s in splits[100:140]]:
            try:
                assert f.result().num_rows == 1
            except stoa.Corrupt as e:  # it came back through a pickle
                assert (e.object, e.offset, e.length) == ("try/damaged/key.cfile", 539, 525)
                bad += 1
    assert bad == 12  # rows 128 to 139
    kept = stoa.open("try/damaged/key.cfile", damaged="skip-rows").plan(target=1)
    assert sum(s.scan().read_all().num_rows for s in kept) == 272


def test_whatever_goes_first():
    """A table, its scan, its stream and a batch, released in every order: the batch is as it was as long as it is."""
    want = stoa.open("try/flat.red").head(10).to_pylist()
    for order in itertools.permutations(["table", "scanner", "stream", "batch"]):
        t = stoa.open("try/flat.red")
        s = t.scanner()
        r = s.to_reader()
        have = {"table": t, "scanner": s, "stream": r, "batch": r.read_next_batch()}
        gone = weakref.ref(t)
        del t, s, r
        for name in order:
            if "batch" in have:
                assert have["batch"].slice(0, 10).to_pylist() == want, order
            del have[name]
            gc.collect()
        assert gone() is None, order
    assert stoa.memory()["handles"] == 0


def test_a_table_in_a_cycle_ends():
    handles = stoa.memory()["handles"]
    for _ in range(50):
        t = stoa.open("try/flat.red")
        t.itself = t
        t.reader = t.scan()
        t.reader.read_next_batch()
        del t
    gc.collect()
    assert stoa.memory()["handles"] == handles


def test_streams_in_threads_that_end_elsewhere():
    """A stream that one thread begins and another one ends."""
    streams = [stoa.open("try/flat.red").scan(batch=7) for _ in range(16)]
    got = []

    def work(r):
        got.append(r.read_next_batch().num_rows + sum(b.num_rows for b in r))

    threads = [threading.Thread(target=work, args=(r,)) for r in streams]
    del streams
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert got == [500] * 16


AT_THE_END = {
    "nothing": "",
    "a table": "t = stoa.open('try/flat.red')",
    "a stream in the middle": "r = stoa.open('try/flat.red').scan(batch=5); r.read_next_batch()",
    "a generator in the middle": "g = stoa.open('try/flat.red').to_batches(batch=5); next(g)",
    "a batch": "b = stoa.open('try/flat.red').scan(batch=5).read_next_batch()",
    "a table in a cycle": "t = stoa.open('try/flat.red'); t.itself = t; t.r = t.scan(); t.r.read_next_batch()",
    "a describe in the middle": "g = stoa.describe('try/flat.red'); next(g)",
    "a thread that reads": """
        import threading, time
        def work():
            while True:
                stoa.open('try/flat.red').to_table()
        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.3)""",
    "a thread that writes rows of Python's": """
        import pyarrow as pa, threading, time
        def slow():
            while True:
                yield pa.record_batch({"a": [1]})
                time.sleep(0.01)
        def work():
            stoa.write(pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), slow()), "slow.trv")
        threading.Thread(target=work, daemon=True).start()
        time.sleep(0.5)""",
    "threads that convert and list": """
        import os, threading, time
        def work(name):
            while True:
                stoa.convert('try/flat.red', name)
                os.remove(name)
                stoa.ls('try/flat.red')
        for name in ('a.trv', 'b.parquet'):
            threading.Thread(target=work, args=(name,), daemon=True).start()
        time.sleep(0.5)""",
    "a reading at exit": """
        import atexit
        t = stoa.open('try/flat.red')
        atexit.register(lambda: print(len(t.to_table())))""",
    "a polars frame": "import polars as pl; f = stoa.scan_polars('try/flat.red')",
    "a relation of DuckDB": """
        import duckdb
        t = stoa.open('try/flat.red')
        q = duckdb.sql('select * from t')
        q.limit(1).fetchall()""",
}


@pytest.mark.parametrize("what", list(AT_THE_END))
def test_the_end_of_the_interpreter(what):
    code = "import warnings, stoa\nwarnings.simplefilter('ignore')\n" + textwrap.dedent(AT_THE_END[what])
    p = subprocess.run([sys.executable, "-X", "faulthandler", "-c", code], capture_output=True, text=True, timeout=600)
    assert (p.returncode, p.stderr) == (0, ""), p.stderr[-3000:]
    assert p.stdout == ("500\n" if "at exit" in what else "")


STORM = """
import gc, os, random, signal, threading, time, warnings
import pyarrow as pa, stoa

def interrupt(*_):  # one that comes late interrupts nothing
    if raging:
        raise KeyboardInterrupt

warnings.simplefilter("ignore")
stoa.write(pa.table({"a": range(100_000), "s": [str(i % 97) for i in range(100_000)]}), "x.trv")
r, raging, interrupts = random.Random(7), False, 0
signal.signal(signal.SIGINT, interrupt)

def rage():
    while True:
        time.sleep(r.random() * 0.01)
        if raging:
            os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=rage, daemon=True).start()
work = [lambda t: t.to_table(), lambda t: t.count_rows(where="a > 5 and s != '7'"), lambda t: t.plan(target=1000),
        lambda t: [b for b in t.scan(batch=1000)], lambda t: t.to_table(filter=pa.compute.field("a") + 0 > 7),
        lambda t: stoa.write(t, "o.trv"), lambda t: stoa.stats("x.trv")]
end = time.monotonic() + 200
while interrupts < 300 and time.monotonic() < end:
    try:
        try:
            raging = True
            r.choice(work)(stoa.open("x.trv"))
        finally:
            raging = False
    except KeyboardInterrupt:
        interrupts += 1
    except stoa.StoaError:  # a batch that Python was interrupted in giving
        pass
for _ in range(100):
    gc.collect()
    if not stoa.memory()["handles"]:
        break
    time.sleep(0.1)
print(interrupts > 50, stoa.memory()["handles"], len(stoa.open("x.trv").to_table()))
"""


def test_a_storm_of_interrupts():
    """Whatever an interrupt comes between, no handle stays, no thread ends with an error, and nothing waits forever."""
    p = subprocess.run([sys.executable, "-c", STORM], capture_output=True, text=True, timeout=900)
    assert (p.returncode, p.stdout.split()) == (0, ["True", "0", "100000"]), (p.stdout, p.stderr[-3000:])
    assert "Exception in thread" not in p.stderr and "_release" not in p.stderr, p.stderr[-3000:]
