"""Executors, and the commands that read splits, are killed at random moments, in a cluster of two executors: each time
the rows are right, or the job fails. STOA_KILLS says how often."""

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
            for p in children(self.above):
                if self.kind in cmdline(p) and b"java" in cmdline(p).split(b"\0")[0] == (self.kind != b"--split"):
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
    s = session.Session(master, **conf)
    try:
        s.ask(load=place, options={"target-size": "200kB"}, view="t")
        sql = "select count(id) n, sum(id) i, sum(cast(s as bigint)) s, " \
            "sum(crc32(sha2(repeat(s, 40), 512))) x from t where id >= 0"
        right = s.rows(sql)
        sums = json.loads(right[0])
        assert sums["n"] == ROWS and sums["i"] == sums["s"] == ROWS * (ROWS - 1) // 2
        lasts = s.ask(sql=sql)["seconds"]
        r = random.Random(int(os.environ.get("STOA_SEED", "1")))
        count = {k: [0, 0, 0] for k in kinds}
        for i in range(KILLS):
            kind = list(kinds)[i % len(kinds)]
            k = Killer(s.process.pid, kinds[kind], r.random() * lasts)
            s.send(sql=sql)
            k.start()
            a = s.answer()
            k.done = True
            k.join()
            assert "error" in a or a["rows"] == right, (i, kind, a)
            for n, yes in enumerate((k.killed, "error" not in a, "error" in a)):
                count[kind][n] += bool(yes)
        print(f"\nCOUNT {master}: killed, right, failed: {count}")
        assert all(n[0] > KILLS // len(kinds) // 3 for n in count.values())
        time.sleep(3)
        assert not [p for p in children(s.process.pid) if b"--split" in cmdline(p)]
    finally:
        s.close()


def test_commands(place):
    """Commands that read splits, in a session that tries a task four times."""
    killed(place, "local[2,4]", {"command": b"--split"})


def test_executors(place):
    killed(place, "local-cluster[2,1,1024]", {"executor": b"CoarseGrainedExecutorBackend", "command": b"--split"})
