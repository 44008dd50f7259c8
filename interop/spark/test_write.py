"""What Spark writes by us: the values that Spark had, each once, also if processes are killed; or the job fails, and the
table is as before."""

import datetime
import decimal
import json
import os
import random
import signal
import subprocess
import threading
import time

import conftest
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import pytest
import session
from test_errors import children, cmdline, fails

KILLS = int(os.environ.get("STOA_KILLS", "20"))
UTC = datetime.timezone.utc
D = decimal.Decimal
ROWS = 40_000  # more than two batches
word = lambda r: r.choice(["", "a", "twelve bytes", "日本語 and more than twelve", "x" * 400])
whole = lambda r: r.randint(-2**63, 2**63 - 1)
FLAT = {
    "b": (pa.bool_(), lambda r: r.random() < 0.5),
    "i8": (pa.int8(), lambda r: r.randint(-128, 127)),
    "i16": (pa.int16(), lambda r: r.randint(-32768, 32767)),
    "i32": (pa.int32(), lambda r: r.randint(-2**31, 2**31 - 1)),
    "i64": (pa.int64(), whole),
    "f32": (pa.float32(), lambda r: r.choice([0.0, -1.5, 2.0**100, float("-inf")])),
    "f64": (pa.float64(), lambda r: r.gauss(0, 1e9)),
    "s": (pa.string(), word),
    "y": (pa.binary(), lambda r: word(r).encode()),
    "day": (pa.date32(), lambda r: datetime.date(2000, 1, 1) + datetime.timedelta(days=r.randint(-9**5, 9**5))),
    "at": (pa.timestamp("us", "UTC"), lambda r: datetime.datetime(2000, 1, 1, tzinfo=UTC)
           + datetime.timedelta(microseconds=r.randint(-2**50, 2**50))),
    "d9": (pa.decimal128(9, 2), lambda r: D(r.randint(-10**9 + 1, 10**9 - 1)).scaleb(-2)),
    "d38": (pa.decimal128(38, 10), lambda r: D(r.randint(-10**37, 10**37)).scaleb(-10)),
}
NESTED = {
    "l": (pa.list_(pa.int64()), lambda r: [r.choice([None, whole(r)]) for _ in range(r.randrange(4))]),
    "m": (pa.map_(pa.string(), pa.float64()), lambda r: [(f"k{i}", r.choice([None, 1.5])) for i in range(r.randrange(3))]),
    "st": (pa.struct([("x", pa.int32()), ("l", pa.list_(pa.string()))]),
           lambda r: {"x": r.choice([None, 7]), "l": r.choice([None, [word(r)], []])}),
    "ls": (pa.list_(pa.struct([("x", pa.int32()), ("m", pa.map_(pa.int32(), pa.string()))])),
           lambda r: [{"x": i, "m": r.choice([None, [(i, word(r))]])} for i in range(r.randrange(3))]),
}


def table(types, rows, seed):
    r = random.Random(seed)
    cols = {"n": pa.array(range(rows), pa.int64())}
    for name, (t, value) in types.items():
        cols[name] = pa.array([None if r.random() < 0.2 else value(r) for _ in range(rows)], t)
    return pa.table(cols)


def lines(t):
    """The rows by their number, as texts that tell all values apart."""
    return sorted((r["n"], repr(r)) for r in t.to_pylist())


def read(place, fmt):
    """The rows of what was written: Parquet by pyarrow, file by file; other formats by stoa."""
    if fmt == "parquet":
        names = [n for n in sorted(os.listdir(place)) if n.endswith(".parquet")]
        return pa.concat_tables(pq.read_table(os.path.join(place, n)) for n in names)
    out = subprocess.run(["stoa", "cat", "-q", "-f", "arrow", place], stdout=subprocess.PIPE, check=True).stdout
    return pa.ipc.open_stream(out).read_all()


@pytest.fixture(scope="module")
def dirs(tmp_path_factory):
    at = tmp_path_factory.mktemp("write")
    flat, nested = table(FLAT, ROWS, 1), table(FLAT | NESTED, ROWS, 2)
    for name, t in ("flat", flat), ("nested", nested):
        pq.write_table(t, at / f"{name}.parquet", store_schema=False)
    return at, {"flat": flat, "nested": nested}


@pytest.mark.parametrize("fmt, what", [("parquet", "nested"), ("redfile", "nested"), ("cfile", "flat"), ("trevni", "flat")])
def test_formats(dirs, fmt, what):
    """Two jobs of three tasks add up; a third one replaces what they wrote."""
    at, tables = dirs
    place, want = f"{at}/{fmt}", lines(tables[what])
    s = conftest.spark()
    kinds = {"cfile": ["d38"]}.get(fmt, [])
    for mode, times in ("append", 1), ("append", 2), ("overwrite", 1):
        s.ask(load=f"{at}/{what}.parquet", format="parquet", write=place, mode=mode, tasks=3, how={"to": fmt})
        got = read(place, fmt)
        if fmt in ("parquet", "redfile"):
            assert lines(got) == sorted(want * times), (fmt, mode)
        else:  # their own types: Spark's words for the values are compared
            s.ask(load=place, view="w")
            s.ask(load=f"{at}/{what}.parquet", format="parquet", view="r")
            columns = [c for c in tables[what].column_names if c not in kinds]
            sql = "select " + ", ".join(f"cast({c} as string) {c}" for c in columns) + " from {} order by n"
            assert s.rows(sql.format("w")) == [x for x in s.rows(sql.format("r")) for _ in range(times)], (fmt, mode)
        assert not [n for n in os.listdir(at) if "stoa-stage" in n], os.listdir(at)
    print(f"\nCOUNT {fmt}: 3 jobs, {4 * ROWS} rows compared")


def test_intervals_and_nothing(dirs):
    at, _ = dirs
    s = conftest.spark()
    s.ask(sql="select id n, interval '1 02:03:04.5' day to second i, interval '3-2' year to month m, null v from range(3)",
          write=f"{at}/odd", tasks=2, how={"to": "arrow"})
    got = read(f"{at}/odd", "arrow")
    assert sorted(got["n"].to_pylist()) == [0, 1, 2] and got["v"].null_count == 3
    assert got["i"].to_pylist() == 3 * [datetime.timedelta(days=1, hours=2, minutes=3, seconds=4.5)]
    assert [json.loads(x)["m"] for x in s.rows(f"select cast(m as string) m from stoa.`{at}/odd`")] \
        == 3 * ["INTERVAL '3-2' YEAR TO MONTH"]
    s.ask(sql="select * from range(0)", write=f"{at}/none", how={"to": "parquet"})
    assert s.ask(load=f"{at}/none")["rows"] == []


def test_carbon(dirs):
    """A job is one load of a CarbonData table."""
    at, tables = dirs
    subprocess.run(["stoa", "create", "-q", f"{at}/store#d.t", "--schema", f"{at}/flat.parquet"], check=True)
    s = conftest.spark()
    place = f"{at}/store#d.t"
    for n in 1, 2:
        s.ask(load=f"{at}/flat.parquet", format="parquet", write=place, tasks=3, how={"opt": "timestamps=truncate"})
        segments = json.loads(subprocess.run(["stoa", "ls", "--segments", "-f", "json", place], check=True,
                                             stdout=subprocess.PIPE).stdout)
        assert len(segments) == n and s.rows(f"select count(*) c, sum(n) s from stoa.`{place}`") \
            == [json.dumps({"c": n * ROWS, "s": n * ROWS * (ROWS - 1) // 2}, separators=(",", ":"))]
    s.ask(load=f"{at}/flat.parquet", format="parquet", write=place, mode="overwrite", tasks=2,
          how={"opt": "timestamps=truncate"})
    assert s.rows(f"select count(*) c from stoa.`{place}`") == [f'{{"c":{ROWS}}}']


def test_refused(dirs):
    """What cannot be written fails the job, says why, and leaves nothing."""
    at, _ = dirs
    more = {"load": f"{at}/flat.parquet", "format": "parquet"}
    for question, words in [
            ({"write": f"{at}/no", "how": {"to": "nothing"}}, "nothing"),
            ({"write": f"{at}/no"}, "no"),
            ({"write": f"{at}/no", "how": {"to": "parquet"}, "mode": "errorifexists"}, "rror"),
            ({"write": f"{at}/no", "how": {"to": "parquet", "row-group": "1"}}, "no option"),
            ({"write": f"{at}/no", "how": {"to": "parquet", "opt": "nonsense=1"}}, "nonsense")]:
        assert words in fails(**more, **question)["error"], question
        assert not os.path.exists(f"{at}/no") or not os.listdir(f"{at}/no")
    assert not [n for n in os.listdir(at) if "stoa-stage" in n]


@pytest.fixture
def disk(tmp_path):
    """A disk of 6 MB."""
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", tmp_path], capture_output=True).returncode:
        pytest.skip("no disk can be mounted here")
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True)


@pytest.mark.parametrize("how", [{"to": "parquet"}, {"to": "cfile"}, {"to": "redfile"}, {}], ids=lambda h: h.get("to"))
def test_a_full_disk(disk, how):
    """A job for which the disk is too small fails and says so; the table stays, and the next job finds room."""
    s, place = conftest.spark(), f"{disk}/set" if how else f"{disk}/store#d.t"
    rows = lambda n: f"select id n, sha2(cast(id as string), 512) t from range({n})"
    what = lambda: json.loads(s.rows(f"select count(*) c, sum(n) s from stoa.`{place}`")[0])
    if not how:
        s.ask(sql=rows(1), save=f"{disk}/one")
        subprocess.run(["stoa", "create", "-q", place, "--schema", f"{disk}/one"], check=True)
    s.ask(sql=rows(2000), write=place, tasks=2, how=how)
    for n in 200_000, 120_000:
        error = fails(sql=rows(n), write=place, tasks=3, how=how)["error"]
        assert "no space left" in error, error
        assert what() == {"c": 2000, "s": 2000 * 1999 // 2}
        assert not [n for n in os.listdir(disk) if "stoa-stage" in n], os.listdir(disk)
    s.ask(sql=rows(1000), write=place, tasks=2, how=how)
    assert what() == {"c": 3000, "s": 2000 * 1999 // 2 + 1000 * 999 // 2}


class Killer(threading.Thread):
    """Kills a process below another one at a moment: a command that stages or commits, an executor; or the driver."""

    def __init__(self, above, kind, after):
        super().__init__()
        self.above, self.kind, self.after, self.killed, self.done = above, kind, after, 0, False

    def run(self):
        time.sleep(self.after)
        end = time.monotonic() + 20
        while not self.killed and not self.done and time.monotonic() < end:
            for p in [self.above] if self.kind == b"driver" else children(self.above):
                if self.kind == b"driver" or self.kind in cmdline(p) and b"bash" not in cmdline(p).split(b"\0")[0]:
                    try:
                        os.kill(p, signal.SIGKILL)
                        self.killed = p
                        return
                    except ProcessLookupError:
                        pass
            time.sleep(0.002)


def jobs_of(place, fmt):
    """The jobs whose rows are in a place: all rows of each, once."""
    if not os.path.exists(place.partition("#")[0]):
        return {}
    t, got = read(place, fmt), {}
    for job in set(t["job"].to_pylist()):
        got[job] = sorted(t.filter(pa.compute.equal(t["job"], job))["n"].to_pylist()) == list(range(KILLED_ROWS))
    return got


KILLED_ROWS = 60_000
KINDS = {"staging": b"--stage", "commit": b"--commit", "executor": b"CoarseGrainedExecutorBackend", "driver": b"driver"}


def test_kills(dirs):
    """Each job adds the rows of its number once, or fails and adds none; one whose driver is killed, either."""
    at, _ = dirs
    places = {"parquet": f"{at}/killed", "carbon": f"{at}/killed-store#d.t"}
    schema = pa.schema([("n", pa.int64()), ("job", pa.int32()), ("t", pa.string())])
    pq.write_table(schema.empty_table(), f"{at}/killed.schema")
    subprocess.run(["stoa", "create", "-q", places["carbon"], "--schema", f"{at}/killed.schema"], check=True)
    conf = {"spark__jars": session.JAR, "spark__task__maxFailures": "4", "spark__executor__memory": "1g",
            "spark__speculation": "true"}
    r = random.Random(int(os.environ.get("STOA_SEED", "1")))
    count = {f: {k: [0, 0, 0] for k in KINDS} for f in places}
    written, lasts, s = {f: {} for f in places}, {}, None
    try:
        for i in range(KILLS + len(places)):
            if s is None:
                s = session.Session("local-cluster[2,1,1024]", **conf)
                s.ask(sql="select sum(id) from range(100)")
            fmt = list(places)[i % len(places)]
            kind = list(KINDS)[i // len(places) % len(KINDS)] if fmt in lasts else "none"
            k = Killer(s.process.pid, KINDS.get(kind, b"none"), r.random() * lasts.get(fmt, 0))
            s.send(sql=f"select id n, {i} job, concat('text ', id) t from range({KILLED_ROWS})", write=places[fmt],
                   tasks=6, how={"to": fmt} if fmt == "parquet" else {})
            if fmt in lasts:
                k.start()
            try:
                a = s.answer()
            except RuntimeError:
                a = {"error": "the driver is gone"}
            k.done = True
            if fmt in lasts:
                k.join()
            else:
                assert "error" not in a, a
                lasts[fmt] = a["seconds"]
            got, want = jobs_of(places[fmt], fmt), dict(written[fmt])
            if "error" not in a or kind == "driver" and i in got:
                want[i] = True
            assert got == want, (i, fmt, kind, a, got, want)
            written[fmt] = want
            if kind in KINDS:
                for n, yes in enumerate((k.killed, "error" not in a, "error" in a)):
                    count[fmt][kind][n] += bool(yes)
            if "driver is gone" in a.get("error", ""):
                s = None
                time.sleep(2)
        print(f"\nCOUNT kills while {KILLS} jobs wrote: killed, written, failed: {count}")
    finally:
        if s is not None:
            s.close()
    orphans(at, places, written)


def orphans(at, places, written):
    """What jobs of dead drivers staged is removed by its age, and nothing else."""
    staged = lambda: [d for d, _, _ in os.walk(at) if d.endswith(".stoa-stage")]
    print(f"COUNT directories with orphans, all removed: {len(staged())}")
    time.sleep(1.5)
    for fmt, place in places.items():
        subprocess.run(["stoa", "load", "-q", place, "--abort-older", "1s"], check=True)
        assert jobs_of(place, fmt) == written[fmt]
    assert not staged()
