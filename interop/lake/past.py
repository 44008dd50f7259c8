#!/usr/bin/env python3
"""Tables whose sources live on: pyiceberg, deltalake and DuckDB read every snapshot of what stoa caught up with.

    python past.py STOA FIRST LAST [KUDU#TABLE]

For each seed a CarbonData table is loaded, changed and compacted by stoa, and the lake's table (Iceberg, Delta, or both
kinds) is caught up with it after each change, killed at random times in between. After each step the foreign reader's
rows must be those that stoa reads of the source, a killed run must leave the old rows or the new ones, and at the end
each snapshot must still have the rows of its time. `convert --every segment` must give the same as --at of the source.
KUDU#TABLE is a table of a Kudu directory with history: the snapshots of --every must be the rows of --at.

needs pyiceberg[pyarrow] 0.12, deltalake 1.6, duckdb 1.4.4 with duckdb-ext-avro, -iceberg and -icu. Exit status 1: a
difference.
"""
import collections
import datetime
import decimal
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import duckdb
import duckdb_ext
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

STOA, FIRST, LAST = os.path.abspath(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
KUDU = [os.path.abspath(p) for p in sys.argv[4:]]
bad = 0
asked = collections.Counter()

con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
for ext in ("avro", "iceberg", "icu"):
    for root in duckdb_ext.__path__:
        for path in glob.glob(f"{root}/extensions/*/*/{ext}.duckdb_extension"):
            con.execute(f"load '{path}'")
con.execute("set timezone='UTC'")


def stoa(*args, check=True):
    r = subprocess.run([STOA, *args, "-q"], capture_output=True, text=True)
    if check and r.returncode != 0:
        sys.exit(f"stoa {' '.join(args)}: status {r.returncode}\n{r.stderr}")
    return r


def plain(v):
    if isinstance(v, datetime.datetime):
        return v.replace(tzinfo=None).isoformat()
    if isinstance(v, decimal.Decimal):
        return str(v.normalize() + 0)
    if isinstance(v, dict):
        return {k: plain(x) for k, x in v.items()}
    if isinstance(v, (list, tuple)):
        return [plain(x) for x in v]
    if type(v).__name__ == "Timestamp":  # of pandas
        return plain(v.to_pydatetime())
    return v


def bag(table):
    """The rows as a multiset."""
    cols = [[repr(plain(v)) for v in table.column(n).to_pylist()] for n in sorted(table.column_names)]
    return collections.Counter(zip(*cols)) if cols else collections.Counter()


def of_stoa(source, *args):
    with tempfile.TemporaryDirectory() as tmp:
        stoa("convert", source, "-o", f"{tmp}/x.arrow", *args)
        with pa.OSFile(f"{tmp}/x.arrow") as f:
            return bag(pa.ipc.open_file(f).read_all())


def newest(dir):
    names = os.listdir(f"{dir}/metadata")
    return max((int(n[1:].split(".")[0]), n) for n in names if n.startswith("v") and n.endswith(".metadata.json"))[1]


def iceberg(dir, snapshot=None):
    from pyiceberg.table import StaticTable

    t = StaticTable.from_metadata(f"{dir}/metadata/{newest(dir)}")
    asked["pyiceberg"] += 1
    return bag(t.scan(snapshot_id=snapshot).to_arrow())


def delta(dir, version=None):
    from deltalake import DeltaTable

    asked["deltalake"] += 1
    return bag(DeltaTable(dir, version=version).to_pyarrow_table())


def duck(dir, snapshot):
    asked["duckdb"] += 1
    at = f", snapshot_from_id={snapshot}" if snapshot else ""
    return bag(con.execute(f"select * from iceberg_scan('{dir}'{at})").fetch_arrow_table())


def snapshots(dir):
    with open(f"{dir}/metadata/{newest(dir)}") as f:
        return json.load(f)["snapshots"]


def same(what, got, want):
    global bad
    if got != want:
        bad += 1
        print(f"{what}: {sum(got.values())} rows, expected {sum(want.values())}; only there "
              f"{str(list((got - want).items()))[:200]}, only expected {str(list((want - got).items()))[:200]}")
    return got == want


def draw(r, first, n):
    day = datetime.date(2024, 1, 1)
    return pa.table({
        "id": pa.array(range(first, first + n), pa.int64()),
        "region": [r.choice(["eu", "us", "asia", None]) for _ in range(n)],
        "y": pa.array([r.choice([2023, 2024]) for _ in range(n)], pa.int32()),
        "name": [r.choice([None, "", "x" * r.randrange(9), f"n{r.randrange(5)}"]) for _ in range(n)],
        "v": [r.choice([None, r.random(), -0.0, 1e300]) for _ in range(n)],
        "d": pa.array([r.choice([None, decimal.Decimal(r.randrange(-10**6, 10**6)) / 1000]) for _ in range(n)],
                      pa.decimal128(12, 3)),
        "day": [day + datetime.timedelta(days=r.randrange(400)) for _ in range(n)],
        "ts": pa.array([datetime.datetime(2024, 1, 1) + datetime.timedelta(milliseconds=r.randrange(10**9))
                        for _ in range(n)], pa.timestamp("us")),
        "l": [r.choice([None, [], [r.randrange(5)]]) for _ in range(n)],
    }, schema=pa.schema([("id", pa.int64()), ("region", pa.string()), ("y", pa.int32()), ("name", pa.string()),
                         ("v", pa.float64()), ("d", pa.decimal128(12, 3)), ("day", pa.date32()),
                         ("ts", pa.timestamp("us")), ("l", pa.list_(pa.int64()))]))


class Life:
    """A CarbonData table that changes."""

    def __init__(self, dir, seed):
        self.r, self.dir, self.next = random.Random(seed), dir, 0
        self.place = f"{dir}/store#db.t"
        os.makedirs(f"{dir}/store")
        schema = f"{dir}/schema.parquet"
        pq.write_table(draw(self.r, 0, 1), schema)
        extra = self.r.choice([[], [], ["--partition", "y"], ["--sort-columns", "region,day"], ["--bucket", "2:id"]])
        stoa("create", self.place, "--schema", schema, *extra)
        self.load()

    def load(self):
        n = self.r.choice([1, 7, 60, 400])
        pq.write_table(draw(self.r, self.next, n), f"{self.dir}/rows.parquet")
        # rows that are there already may come again: rows need no key
        self.next += n if self.r.random() < 0.8 else 0
        stoa("load", self.place, f"{self.dir}/rows.parquet")

    def change(self):
        r = self.r
        a = r.randrange(self.next + 1)
        where = r.choice([f"id >= {a} and id < {a + r.randrange(40)}", f"region = 'eu' and id < {a}",
                          f"y = 2023 and id > {a}"])
        what = r.choice(["load", "load", "delete", "delete", "update", "compact", "nothing"])
        if what == "load":
            self.load()
        elif what == "delete":
            stoa("delete", self.place, "--where", where)
        elif what == "update":
            stoa("update", self.place, "--set", "name='changed'", "--where", where)
        elif what == "compact":
            stoa("compact", self.place, check=False)
        return what


def life(seed, kind):
    r = random.Random(seed * 7 + len(kind))
    with tempfile.TemporaryDirectory() as dir:
        t = Life(dir, seed)
        out = f"{dir}/lake"
        by = r.choice([[], [], ["--partition-by", "region"] if kind != "iceberg" else
                       ["--partition-by", "bucket(4, id), year(day)"]])
        stoa("convert", t.place, "--to", kind, "-o", out, *by)
        read = iceberg if kind == "iceberg" else delta
        then = []
        for step in range(7):
            what = t.change()
            at = datetime.datetime.now(datetime.timezone.utc)
            want, before = of_stoa(t.place), read(out)
            for k in range(r.choice([0, 0, 1, 3])):
                p = subprocess.Popen([STOA, "convert", "--catch-up", t.place, "-o", out, "-q"],
                                     stderr=subprocess.DEVNULL)
                time.sleep(r.random() * 0.12)
                p.send_signal(signal.SIGKILL)
                asked["killed" if p.wait() < 0 else "not killed"] += 1
                got = read(out)
                if got not in (before, want):
                    same(f"seed {seed}, {kind}, step {step}, killed", got, want)
            stoa("convert", "--catch-up", t.place, "-o", out)
            tag = f"seed {seed}, {kind}, step {step} ({what})"
            same(f"{tag}, {kind}", read(out), want)
            for one in kind.split(","):
                same(f"{tag}, stoa", of_stoa(out, "--from", one), want)
            if kind == "iceberg":
                same(f"{tag}, duckdb", duck(out, None), want)
                then.append((snapshots(out)[-1]["snapshot-id"], want))
            else:
                from deltalake import DeltaTable

                then.append((DeltaTable(out).version(), want))
                if kind != "delta":  # both catalogues over the same files
                    same(f"{tag}, pyiceberg", iceberg(out), want)
            if r.random() < 0.5:
                same(f"{tag}, source --at", of_stoa(t.place, "--at", at.isoformat().replace("+00:00", "Z")), want)
        for snapshot, want in then:
            same(f"seed {seed}, {kind}, snapshot {snapshot}", read(out, snapshot), want)
            same(f"seed {seed}, {kind}, stoa at {snapshot}",
                 of_stoa(out, "--at", str(snapshot), "--from", kind.split(",")[-1]), want)
            if kind == "iceberg":
                same(f"seed {seed}, duckdb, snapshot {snapshot}", duck(out, snapshot), want)
        if kind == "iceberg":
            history(f"seed {seed}", t.place, f"{dir}/past", "segment")


def history(tag, source, out, every):
    """Each snapshot has the rows of the source at its time."""
    stoa("convert", source, "--every", every, "-o", out)
    list = snapshots(out)
    for s in list:
        at = datetime.datetime.fromtimestamp(s["timestamp-ms"] / 1000, datetime.timezone.utc)
        text = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        want = of_stoa(source) if s is list[-1] else of_stoa(source, "--at", text)
        same(f"{tag}, --every {every}, pyiceberg at {text}", iceberg(out, s["snapshot-id"]), want)
        same(f"{tag}, --every {every}, duckdb at {text}", duck(out, s["snapshot-id"]), want)
        same(f"{tag}, --every {every}, stoa at {text}", of_stoa(out, "--at", text), want)
    asked["snapshots of histories"] += len(list)


for source in KUDU:
    for every in ("1s", "3s", "20s"):
        with tempfile.TemporaryDirectory() as dir:
            history(source, source, f"{dir}/t", every)
kinds = os.environ.get("KINDS", "iceberg delta iceberg,delta").split()
for seed in range(FIRST, LAST + 1):
    for kind in kinds:
        life(seed, kind)
print(", ".join(f"{n} {k}" for k, n in sorted(asked.items())))
print("no differences" if bad == 0 else f"{bad} differences")
sys.exit(bad > 0)
