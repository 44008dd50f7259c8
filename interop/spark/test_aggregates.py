"""Counts, minima and maxima that metadata know exactly are not read, and are those of Spark's own Parquet."""

import datetime
import random
import subprocess

import conftest
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROWS = 20_000
QUERIES = [
    ("count(*) c, count(n) n, min(n) a, max(n) z", "", True),
    ("min(s) a, max(s) z, count(s) c", "", True),
    ("min(d) a, max(d) z, min(i) i, max(i) j, count(1) c", "", True),
    ("count(*) c, min(n) a, max(i) z", "where n is not null and n > -100000", True),
    ("count(*) c, min(n) a, max(n) z", "where n < -100000", True),
    ("count(*) c, min(n) a", "where n > 700", False),
    ("count(*) c, min(n) a", "where i > -100000", False),
    ("min(x) a, max(x) z", "", False),
    ("count(distinct i) c, max(n) z", "", False),
    ("sum(n) c, max(n) z", "", False),
]


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    at = tmp_path_factory.mktemp("aggregates")
    r = random.Random(11)
    none = lambda v: None if r.random() < 0.1 else v
    t = pa.table({
        "n": pa.array(range(ROWS), pa.int64()),
        "i": pa.array([none(r.randint(-500, 500)) for _ in range(ROWS)], pa.int32()),
        "s": pa.array([none(f"{r.randint(0, 10**6)}é") for _ in range(ROWS)]),
        "d": pa.array([none(datetime.date(2000, 1, 1) + datetime.timedelta(r.randint(0, 999))) for _ in range(ROWS)]),
        "x": pa.array([r.choice([float("nan"), 1.5, -0.0]) for _ in range(ROWS)]),
    })
    pq.write_table(t, at / "theirs.parquet", row_group_size=3000)
    with pa.ipc.new_file(f"{at}/rows.arrow", t.schema) as w:  # of Parquet the pages would be copied, and their bounds
        w.write_table(t)
    subprocess.run(["stoa", "convert", "-q", f"{at}/rows.arrow", "-o", f"{at}/ours.parquet", "--opt",
                    "row-group-rows=3000"], check=True)
    subprocess.run(["stoa", "convert", "-q", f"{at}/theirs.parquet", "--to", "cfile", "-o", f"{at}/set/", "--opt",
                    "value-index.n=true"], check=True)
    return at


def test_known(places):
    s = conftest.spark()
    s.ask(load=f"{places}/theirs.parquet", format="parquet", view="theirs")
    for place in "ours.parquet", "set", "theirs.parquet":
        s.ask(load=f"{places}/{place}", view="ours")
        known = 0
        for what, where, may in QUERIES:
            got = s.rows(f"select {what} from ours {where}")
            assert got == s.rows(f"select {what} from theirs {where}"), (place, what, where)
            plan = "".join(s.rows(f"explain select {what} from ours {where}"))
            known += "known from metadata" in plan
            assert may or "known from metadata" not in plan, (place, what, where)
            assert not may or place != "ours.parquet" or "known from metadata" in plan, (place, what, where, plan)
        print(f"\nCOUNT aggregates of {place}: {len(QUERIES)} equal, {known} known without reading")
