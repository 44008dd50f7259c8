"""Executors, the commands that read splits, and drivers are killed at random moments, in clusters of two and of four
executors: each time the rows are right, or the job fails. STOA_KILLS says how often."""

import json
import os
import random
import signal
import subprocess
import threading
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import session
from test_errors import children, cmdline

KILLS = int(os.environ.get("STOA_KILLS", "20"))
ROWS = 400_000


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    at = tmp_path_factory.mktemp("kills")
    t = pa.table({"id": pa.array(range(ROWS), pa.int64()), "s": [f"{i * 7919 % ROWS}" for i in range(ROWS)]})
    pq.write_table(t, at / "rows.parquet", row_group_size=10_000)
    subprocess.run(["stoa", "convert", "-q", f"{at}/rows.parquet", "--to", "cfile", "-o", f"{at}/set/"], check=True)
    return f"{at}/set"


class Killer(threading.Thread):
    """Kills one process of a kind under a process, at a moment."""

    def __init__(self, above, kind, after):
        super().__init__()
        self.above, self.kind, self.after, self.killed, self.done = above, kind, after, 0, False

    def run(self):
        time.sleep(self.after)
        end = time.monotonic() + 20
        while not self.killed and not self.done and time.monotonic() < end:
            if self.kind == b"driver":
                os.kill(self.above, signal.SIGKILL)
                self.killed = self.above
            for p in {} if self.killed else children(self.above):
                if self.kind in cmdline(p) and (b"java" in cmdline(p).split(b"\0")[0]) == (self.kind != b"--split"):
                    try:
                        os.kill(p, signal.SIGKILL)
                        self.killed = p
                        return
                    except ProcessLookupError:
                        pass
            time.sleep(0.002)


def killed(place, master, kinds):
    """Kills one process of a kind a query, and counts: killed, right, failed."""
    conf = {"spark__jars": session.JAR, "spark__task__maxFailures": "4", "spark__executor__memory": "1g",
            "spark__speculation": "true"}
    sql = "select count(id) n, sum(id) i, sum(cast(s as bigint)) s, " \
        "sum(crc32(sha2(repeat(s, 40), 512))) x from t where id >= 0"
    r = random.Random(int(os.environ.get("STOA_SEED", "1")))
    count = {k: [0, 0, 0] for k in kinds}
    right = s = None
    try:
        for i in range(KILLS):
            if s is None:
                s = session.Session(master, **conf)
                s.ask(load=place, options={"target-size": "200kB"}, view="t")
                right, lasts = s.rows(sql), s.ask(sql=sql)["seconds"]
                sums = json.loads(right[0])
                assert sums["n"] == ROWS and sums["i"] == sums["s"] == ROWS * (ROWS - 1) // 2
            kind = list(kinds)[i % len(kinds)]
            k = Killer(s.process.pid, kinds[kind], r.random() * lasts)
            s.send(sql=sql)
            k.start()
            try:
                a = s.answer()
            except RuntimeError:
                a = {"error": "the driver is gone"}
            k.done = True
            k.join()
            assert "error" in a or a["rows"] == right, (i, kind, a)
            for n, yes in enumerate((k.killed, "error" not in a, "error" in a)):
                count[kind][n] += bool(yes)
            if "driver is gone" in a.get("error", ""):
                assert kind == "driver", (i, kind, a)
                s = None
                left(place)
        print(f"\nCOUNT {master}: killed, right, failed: {count}")
        assert all(n[0] > KILLS // len(kinds) // 3 for n in count.values())
        left(place)
    finally:
        if s is not None:
            s.close()


def left(place):
    """No command is left that reads a split, though its executor or its driver is gone."""
    end = time.monotonic() + 60
    commands = lambda: [p for p in os.listdir("/proc") if p.isdigit() and b"--split" in cmdline(p) and b"stoa" in
                        cmdline(p).split(b"\0")[0] and reads(p, place)]
    while commands() and time.monotonic() < end:
        time.sleep(0.2)
    assert not commands()


def reads(pid, place):
    """Whether a process has files of a place open."""
    try:
        return any(os.readlink(f"/proc/{pid}/fd/{n}").startswith(place) for n in os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return False


def test_commands(place):
    """Commands that read splits, in a session that tries a task four times."""
    killed(place, "local[2,4]", {"command": b"--split"})


@pytest.mark.parametrize("executors", [2, 4])
def test_executors(place, executors):
    killed(place, f"local-cluster[{executors},1,1024]", {"executor": b"CoarseGrainedExecutorBackend",
                                                         "command": b"--split", "driver": b"driver"})
