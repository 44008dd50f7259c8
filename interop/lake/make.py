#!/usr/bin/env python3
"""Writes the golden tables of format/iceberg/testdata and format/delta/testdata with pyiceberg and deltalake, and what
these read of them, as Arrow files. The tables name the directory that they were written to: DIR, by default /srv/lake.

    python make.py [DIR]      needs pyiceberg[sql-sqlite,pyarrow] 0.12, pyiceberg-core, deltalake 1.6
"""
import datetime
import decimal
import os
import shutil
import sys

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import LessThan
from pyiceberg.transforms import BucketTransform, IdentityTransform, MonthTransform, TruncateTransform
from pyiceberg.types import IntegerType, LongType, StringType

HERE = os.path.dirname(os.path.abspath(__file__))
DIR = sys.argv[1] if len(sys.argv) > 1 else "/srv/lake"
START = datetime.datetime(2023, 1, 1)


def rows(n):
    return pa.table({
        "id": pa.array(range(n), pa.int32()),
        "s": [None if i % 7 == 0 else f"s{i % 3}" for i in range(n)],
        "ts": pa.array([START + datetime.timedelta(hours=70 * i, microseconds=i) for i in range(n)], pa.timestamp("us")),
        "tz": pa.array([START + datetime.timedelta(hours=i % 2) for i in range(n)], pa.timestamp("us", "UTC")),
        "d": pa.array([decimal.Decimal(i % 3) / 4 for i in range(n)], pa.decimal128(10, 2)),
        "f": [float("nan") if i == 3 else i / 3 for i in range(n)],
        "day": [datetime.date(2020, 1, 1) + datetime.timedelta(days=i % 3) for i in range(n)],
        "st": [None if i == 5 else {"a": i, "b": f"x{i}"} for i in range(n)],
        "l": [[i, None] if i % 2 else [] for i in range(n)],
        "m": pa.array([[("k", i)] for i in range(n)], pa.map_(pa.string(), pa.int32())),
    })


def expect(name, table):
    with pa.OSFile(f"{DIR}/{name}.arrow", "wb") as f, pa.ipc.new_file(f, table.schema) as w:
        w.write_table(table)
    print(name, table.num_rows)


def iceberg():
    cat = SqlCatalog("make", uri=f"sqlite:///{DIR}/catalog.db", warehouse=f"file://{DIR}")
    cat.create_namespace("iceberg")
    t = rows(20)
    a = cat.create_table("iceberg.evolved", t.schema)
    a.append(t)
    expect("iceberg/evolved-1", a.scan().to_arrow())
    with a.manage_snapshots() as m:
        m.create_tag(a.current_snapshot().snapshot_id, "first")
    with a.update_schema() as u:
        u.rename_column("s", "s2")
        u.update_column("id", LongType())
        u.add_column("new", StringType())
        u.add_column(("st", "c"), IntegerType())
        u.delete_column("f")
        u.rename_column("st.b", "bb")
    a.delete(LessThan("id", 4))
    one = rows(1).to_pylist()[0]
    one.update(id=1000, s2="z", new="n", st={"a": 1, "bb": "q", "c": 3})
    a.append(pa.Table.from_pylist([one], schema=a.schema().as_arrow()))
    expect("iceberg/evolved", a.scan().to_arrow())
    b = cat.create_table("iceberg.parted", t.schema)
    with b.update_spec() as u:
        u.add_field("day", IdentityTransform(), "day")
        u.add_field("ts", MonthTransform(), "ts_m")
        u.add_field("id", BucketTransform(2), "b")
        u.add_field("s", TruncateTransform(1), "tr")
    b.append(t.slice(0, 8))
    with b.update_spec() as u:
        u.remove_field("b")
    b.append(t.slice(8, 2))
    expect("iceberg/parted", b.scan().to_arrow())


def delta():
    os.makedirs(f"{DIR}/delta")
    t = rows(20)
    p = f"{DIR}/delta/parted"
    write_deltalake(p, t.slice(0, 10), partition_by=["day", "s", "tz", "d"])
    DeltaTable(p).delete("id < 7 and id > 3")
    write_deltalake(p, t.slice(0, 2), mode="append")
    DeltaTable(p).create_checkpoint()
    write_deltalake(p, t.slice(12, 2), mode="append")
    expect("delta/parted", DeltaTable(p).to_pyarrow_table())
    p = f"{DIR}/delta/evolved"
    write_deltalake(p, t)
    expect("delta/evolved-0", DeltaTable(p).to_pyarrow_table())
    DeltaTable(p).update(predicate="id=3", updates={"s": "'changed'"})
    write_deltalake(p, t.slice(0, 1).append_column("new", [["x"]]), mode="append", schema_mode="merge")
    expect("delta/evolved", DeltaTable(p).to_pyarrow_table())


def hive():
    """Directories with partitions, as pyarrow writes them; no Arrow file, for the test has the rows."""
    t = pa.table({"id": range(12), "y": [2023 + i % 2 for i in range(12)], "region": ["a/b", "eu", None] * 4,
                  "v": [i / 2 for i in range(12)]})
    by = ds.partitioning(pa.schema([("y", pa.int64()), ("region", pa.string())]), flavor="hive")
    for kind in ("parquet", "csv", "ipc"):
        ds.write_dataset(t, f"{DIR}/hive/{kind}", format=kind, partitioning=by)


shutil.rmtree(DIR, ignore_errors=True)
os.makedirs(f"{DIR}/iceberg")
iceberg()
delta()
hive()
for kind in ("iceberg", "delta", "hive"):
    to = f"{HERE}/../../format/{kind}/testdata"
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(f"{DIR}/{kind}", to)
