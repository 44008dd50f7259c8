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
        self.above, self.kind, self.after, self.killed = above, kind, after, 0

    def run(self):
        time.sleep(self.after)
        end = time.monotonic() + 20
        while not self.killed and time.monotonic() < end:
            for p in children(self.above):
                if self.kind in cmdline(p) and b"java" in cmdline(p).split(b"\0")[0] == (self.kind != b"--split"):
                    try:
                        os.kill(p, signal.SIGKILL)
                        self.killed = p
                        return
                    except ProcessLookupError:
                        pass
            time.sleep(0.002)


def test_kills(place):
    conf = {"spark__jars": session.JAR, "spark__task__maxFailures": "4", "spark__executor__memory": "1g",
            "spark__speculation": "true"}
    s = session.Session("local-cluster[2,1,1024]", **conf)
    try:
        s.ask(load=place, options={"target-size": "200kB"}, view="t")
        sql = "select count(id) n, sum(id) i, sum(cast(s as bigint)) s, " \
            "sum(crc32(sha2(repeat(s, 40), 512))) x from t where id >= 0"
        right = s.rows(sql)
        sums = json.loads(right[0])
        assert sums["n"] == ROWS and sums["i"] == sums["s"] == ROWS * (ROWS - 1) // 2
        lasts = s.ask(sql=sql)["seconds"]
        r = random.Random(int(os.environ.get("STOA_SEED", "1")))
        count = {"executor": [0, 0, 0], "scan": [0, 0, 0]}
        for i in range(KILLS):
            kind = ("executor", "scan")[i % 2]
            what = b"CoarseGrainedExecutorBackend" if kind == "executor" else b"--split"
            k = Killer(s.process.pid, what, r.random() * lasts)
            s.send(sql=sql)
            k.start()
            a = s.answer()
            k.join()
            assert "error" in a or a["rows"] == right, (i, kind, a)
            for n, yes in enumerate((k.killed, "error" not in a, "error" in a)):
                count[kind][n] += bool(yes)
        print("\nCOUNT killed, right, failed:", count)
        assert count["executor"][0] > KILLS // 4 and count["scan"][0] > KILLS // 4
        time.sleep(3)
        assert not [p for p in children(s.process.pid) if b"--split" in cmdline(p)]
    finally:
        s.close()
