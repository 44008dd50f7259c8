"""The loads of a CarbonData table as a stream: each row once, whatever is restarted, compacted or killed."""

import json
import os
import random
import shutil
import subprocess
import threading
import time

import conftest
import pytest
import session
from test_errors import fails

KILLS = int(os.environ.get("STOA_KILLS", "4"))
SEED = int(os.environ.get("STOA_SEED", "1"))


def stoa(*args):
    subprocess.run(["stoa", *map(str, args)], check=True, stdout=subprocess.DEVNULL)


class Table:
    """A table of numbers; each load adds the next ten."""

    def __init__(self, at):
        self.at, self.place, self.loads = at, f"{at}/store#d.t", 0
        self.rows = at / "rows.jsonl"
        self.rows.write_text('{"n":0,"s":"0"}\n')
        stoa("create", "-q", self.place, "--schema", self.rows)

    def load(self, *flags):
        numbers = range(10 * self.loads, 10 * self.loads + 10)
        self.rows.write_text("".join(f'{{"n":{n},"s":"{n}"}}\n' for n in numbers))
        stoa("load", "-q", self.place, self.rows, *flags)
        self.loads += 1

    def question(self, **more):
        return {"stream": self.place, "to": f"{self.at}/out", "checkpoint": f"{self.at}/check", **more}

    def stream(self, **options):
        """Reads to the end; all that the stream has given out so far."""
        conftest.spark().ask(**self.question(options=options))
        return self.seen()

    def seen(self):
        conftest.spark().ask(load=f"{self.at}/out", format="parquet", view="seen")
        return sorted(json.loads(r)["n"] for r in conftest.spark().rows("select n from seen"))

    def refused(self, **options):
        return fails(**self.question(options=options))["error"]


def numbers(loads):
    return list(range(10 * loads))


def test_each_load_once(tmp_path):
    t = Table(tmp_path)
    t.load()
    t.load()
    assert t.stream() == numbers(2)
    assert t.stream() == numbers(2)  # nothing is new
    t.load()
    assert t.stream() == numbers(3)
    stoa("compact", "-q", t.place, "--segments", "0,1,2")
    assert t.stream() == numbers(3)  # what compaction wrote does not come again
    t.load()
    t.load()
    stoa("compact", "-q", t.place, "--segments", "3,4")
    assert t.stream() == numbers(5)  # compacted before the stream came to them: their own files
    stoa("clean", "-q", t.place)
    t.load()
    assert t.stream() == numbers(6)
    print(f"\nCOUNT stream: {len(numbers(6))} rows of {t.loads} loads, each once")


def test_since(tmp_path):
    t = Table(tmp_path)
    for _ in range(3):
        t.load()
    assert t.stream(since="0") == numbers(3)[10:]


def test_segments_of_carbondatas_streams(tmp_path):
    """One that is written to holds back the stream; what it is handed over to, under a number of its own, holds its rows."""
    t = Table(tmp_path)
    for _ in range(4):
        t.load()
    status = next((tmp_path / "store/d/t/Metadata").glob("tablestatus*"))
    all = json.loads(status.read_text())
    all[1]["loadStatus"] = "Streaming"
    status.write_text(json.dumps(all))
    assert t.stream() == numbers(1)
    all[1].update(loadStatus="Compacted", mergedLoadName="2")
    status.write_text(json.dumps(all))
    assert t.stream() == numbers(2) + numbers(4)[30:]


def test_changes_are_refused(tmp_path):
    """Deleted rows, updated rows, deleted segments; rows that were deleted before the stream began are none of these."""
    t = Table(tmp_path)
    t.load()
    stoa("delete", "-q", t.place, "--where", "n = 3")
    want = [n for n in numbers(1) if n != 3]
    assert t.stream() == want
    for change in (("delete", "--where", "n = 4"), ("update", "--set", "s = 'x'", "--where", "n = 5")):
        stoa(change[0], "-q", t.place, *change[1:])
        assert "deleted or updated after the stream had come to segment" in t.refused()
        assert t.seen() == want  # nothing was given out
        t.load()
        assert "deleted or updated" in t.refused()
        got = t.stream(changes="ignore")  # an update adds the rows anew
        want = sorted(want + [5] * (change[0] == "update") + numbers(t.loads)[-10:])
        assert got == want
        t.load()
        want += numbers(t.loads)[-10:]
        assert t.stream() == want  # the option was needed once
    stoa("delete", "-q", t.place, "--segment", "0")
    assert "segments [0]" in t.refused()
    t.load("--overwrite")
    assert "segments [0, 1" in t.refused()
    assert t.stream(changes="ignore") == want + numbers(t.loads)[-10:]


def test_what_cannot_be_found_is_refused(tmp_path):
    """Loads that were compacted and cleaned away before the stream came to them."""
    t = Table(tmp_path)
    for _ in range(4):
        t.load()
    stoa("compact", "-q", t.place, "--segments", "0,1,2")
    stoa("clean", "-q", t.place)
    assert "[1, 2]" in t.refused()
    assert "segment 0 (Compacted)" in t.refused(changes="ignore")
    (tmp_path / "again").mkdir()
    again = Table(tmp_path / "again")
    again.load()
    assert again.stream() == numbers(1)
    shutil.rmtree(again.at / "store")
    stoa("create", "-q", again.place, "--schema", again.rows)
    again.load()
    assert "another table" in again.refused()


def test_what_is_no_stream(tmp_path):
    t = Table(tmp_path)
    t.load()
    assert "chooses the segments itself" in t.refused(segment="0")
    assert "number of a segment" in t.refused(since="yesterday")
    assert "for streams" in fails(load=t.place, options={"since": "0"})["error"]
    (tmp_path / "a.jsonl").write_text('{"n":0}\n')
    q = t.question(stream=f"{tmp_path}/a.jsonl")
    assert "only a CarbonData table" in fails(**q)["error"]


@pytest.mark.skipif(not KILLS, reason="STOA_KILLS is 0")
def test_killed_at_random(tmp_path):
    """The driver is killed while loads, a compaction and cleaning go on. A row of a batch that began is not lost."""
    rnd, t, stop = random.Random(SEED), Table(tmp_path), threading.Event()
    t.load()

    def work():
        while not stop.is_set():
            t.load()
            if t.loads % 5 == 0:
                stoa("compact", "-q", t.place, "--segments", f"{t.loads - 3},{t.loads - 2}")
            time.sleep(0.2)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        for _ in range(KILLS):
            s = session.Session()
            s.send(**t.question(every=100))
            time.sleep(rnd.uniform(3, 12))
            s.process.kill()
            s.process.wait()
            s.errors.close()
            s.work.cleanup()
    finally:
        stop.set()
        worker.join()
    assert t.stream() == numbers(t.loads)
    print(f"\nCOUNT stream: {KILLS} drivers killed during {t.loads} loads, each row once")
