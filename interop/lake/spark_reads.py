#!/usr/bin/env python3
"""Spark reads random tables of Iceberg and Delta that stoa wrote: all rows, and how many pass filters on each flat column;
then again after stoa has caught up with a source that lost rows and got others, twice, and its first snapshot.

    python spark_reads.py STOA FIRST LAST        the seeds

needs pyspark 3.5.3, and iceberg-spark-runtime-3.5_2.12 1.10.0, delta-spark_2.12 and delta-storage 3.3.2 in LAKE_JARS (with
commas between). The types are those that Iceberg, Delta and Spark all have. Exit status 1: an answer differs from the rows
as they were made."""
import datetime
import decimal
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import random_tables as tables

spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.jars", os.environ["LAKE_JARS"])
    .config("spark.ui.enabled", "false").config("spark.executor.heartbeatInterval", "600s")
    .config("spark.network.timeout", "1200s")
    .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.memory", "2g").config("spark.sql.shuffle.partitions", "1")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.execution.arrow.pyspark.enabled", "true")
    # files that Spark did not write do not say which calendar they use: stoa's is the one that Parquet prescribes
    .config("spark.sql.parquet.datetimeRebaseModeInRead", "CORRECTED")
    .config("spark.sql.catalog.default_iceberg", "org.apache.iceberg.spark.SparkCatalog")
    .config("spark.sql.catalog.default_iceberg.type", "hadoop")
    .config("spark.sql.catalog.default_iceberg.warehouse", tempfile.gettempdir())
    .config("spark.sql.catalog.default_iceberg.cache-enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")


def literal(v, t):
    if isinstance(v, bytes):
        return f"X'{v.hex()}'"
    if isinstance(v, datetime.datetime):
        return f"{'TIMESTAMP_LTZ' if v.tzinfo else 'TIMESTAMP_NTZ'}'{v.strftime('%Y-%m-%d %H:%M:%S.%f')}'"
    if isinstance(v, datetime.date):
        return f"DATE'{v}'"
    if isinstance(v, float):
        return f"{'double' if t == pa.float64() else 'float'}('{v}')"
    if isinstance(v, str):
        return f"decode(X'{v.encode().hex()}', 'UTF-8')"
    return f"{decimal.Decimal(v):f}BD" if isinstance(v, decimal.Decimal) or t == pa.uint64() else f"{v}L" if abs(v) < 2**63 else f"{v}BD"


def load(kind, place, at=None):
    reader = spark.read.format(kind)
    if at is not None:
        reader = reader.option("snapshot-id" if kind == "iceberg" else "versionAsOf", at)
    return reader.load(str(place))


def compare(j, kind, df, table, r, filtered=True):
    """All rows, and the answers to filters, whose number it returns."""
    batches = df._collect_as_arrow()
    got = pa.Table.from_batches(batches) if batches else table.slice(0, 0)
    j.rows(f"Spark {kind}", got, table, table.column_names)
    df.createOrReplaceTempView("t")
    asked = 0
    for name, op, v, n in tables.filters(r, table) if filtered else ():
        where = f"`{name}`" + (" IS NULL" if op == "null" else f" {op} {literal(v, table.schema.field(name).type)}")
        asked += 1
        j.count(f"Spark {kind} {where}", lambda: spark.sql(f"SELECT count(*) FROM t WHERE {where}").collect()[0][0], n)
    return asked


def run(seed, dir):
    r = random.Random(seed)
    j = tables.Judge(seed)
    kind = r.choice(["iceberg", "delta", "iceberg,delta"])
    n = r.choice([0, 1, 7, 60, 300])
    cols, fields = [], []
    for i in range(r.randint(1, 6)):
        t, v = tables.kind_of(r, "delta", 2)
        cols.append(pa.array([tables.null(r, v, r.choice([0, .2])) for _ in range(n)], t))
        fields.append(pa.field(r.choice(["c", "Ä", "x-y", "_", "a b"]) + str(i), t))
    table = pa.table(cols, schema=pa.schema(fields))
    src, out = dir / "t.parquet", dir / f"t{seed}"
    pq.write_table(table, src, row_group_size=r.choice([3, 50, 1000]))
    cmd = [tables.STOA, "convert", str(src), "--to", kind, "-o", str(out)]
    by = tables.partition(r, table, kind)
    if by:
        cmd += ["--opt", "partition-by=" + ", ".join(by)]
    if r.random() < .4:
        cmd += ["--opt", f"file-size={r.choice([1, 3000])}"]
    if "iceberg" in kind and r.random() < .5:
        cmd += ["--opt", "format-version=3"]
    done = subprocess.run(cmd, capture_output=True, text=True)
    if done.returncode:
        if done.returncode == 1 and any(w in done.stderr for w in ("exactly", "cannot", "would become less", "not a partition column")):
            return 0, 0
        j.say(f"{' '.join(cmd[3:])}: {done.returncode} {done.stderr.strip()[:300]}")
        return j.bad, 0
    asked = 0
    try:
        for one in kind.split(","):
            asked += compare(j, one, load(one, out), table, r)
        first = 0
        if "iceberg" in kind:
            first = json.loads((out / "metadata/v1.metadata.json").read_text())["snapshots"][0]["snapshot-id"]
        before = table
        for _ in range(2):  # a deletion vector of the first step is replaced in the second
            keep = [i for i in range(before.num_rows) if r.random() < .7] + [r.randrange(before.num_rows) for _ in range(before.num_rows // 5)]
            before = before.take(pa.array(keep, pa.int64()))
            pq.write_table(before, src)
            subprocess.run([tables.STOA, "convert", "--catch-up", str(src), "-o", str(out), "-q"], check=True, capture_output=True)
            for one in kind.split(","):
                asked += compare(j, one, load(one, out), before, r)
                asked += compare(j, one, load(one, out, first if one == "iceberg" else 0), table, r, False)
    except Exception as e:
        j.say(f"{kind} by {by} {type(e).__name__}: {str(e)[:600]}")
        print(" ", table.schema.to_string().replace("\n", "; ")[:600], flush=True)
    return j.bad, asked


def main():
    bad = asked = 0
    with tempfile.TemporaryDirectory() as dir:
        for seed in range(tables.FIRST, tables.LAST + 1):
            b, a = run(seed, pathlib.Path(dir))
            bad, asked = bad + b, asked + a
    print(f"seeds {tables.FIRST} to {tables.LAST}, {asked} filters: " + (f"{bad} differences" if bad else "Spark agrees"))
    sys.exit(bad > 0 or asked == 0)


main()
