"""Has Spark write the tables of Iceberg, with the rows that Spark itself reads.

usage: spark.py OUT
needs: pyspark 3.5.3, and the jars that README.md names, in the variable LAKE_JARS (with commas between)

Every table NAME has a file NAME.json beside it: {"now": [rows], "VERSION OR SNAPSHOT": [rows], ...}.
"""
import datetime
import decimal
import json
import os
import sys

from pyspark.sql import SparkSession

out = os.path.abspath(sys.argv[1])
ice = os.path.join(out, "iceberg")
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.jars", os.environ["LAKE_JARS"])
    .config("spark.ui.enabled", "false")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "1")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.extensions",
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
    .config("spark.sql.catalog.ice", "org.apache.iceberg.spark.SparkCatalog")
    .config("spark.sql.catalog.ice.type", "hadoop")
    .config("spark.sql.catalog.ice.warehouse", ice)
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")


def plain(v):
    if isinstance(v, (datetime.date, datetime.datetime, decimal.Decimal)):
        return str(v)
    if hasattr(v, "asDict"):
        return {k: plain(w) for k, w in v.asDict().items()}
    if isinstance(v, list):
        return [plain(w) for w in v]
    return v


def rows(query):
    got = [plain(r) for r in spark.sql(query).collect()]
    return sorted(got, key=lambda r: json.dumps(r, sort_keys=True))


def keep(kind, name, views):
    folder = os.path.join(out, kind)
    with open(os.path.join(folder, name + ".json"), "w") as f:
        json.dump(views, f, sort_keys=True, indent=0)
        f.write("\n")


def iceberg(name, version, partition, steps):
    t = f"ice.db.{name}"
    mode = "merge-on-read" if version > 1 else "copy-on-write"
    spark.sql(
        f"CREATE TABLE {t} (id BIGINT, s STRING, d DATE, p STRING, n STRUCT<a: INT>) USING iceberg {partition} "
        f"TBLPROPERTIES ('format-version'='{version}', 'write.delete.mode'='{mode}', 'write.update.mode'='{mode}', "
        "'write.parquet.compression-codec'='zstd', 'write.distribution-mode'='none')")
    for s in steps:
        spark.sql(s.format(t=t))
    views = {"now": rows(f"SELECT * FROM {t}")}
    for r in spark.sql(f"SELECT snapshot_id FROM {t}.snapshots ORDER BY committed_at").collect():
        views[str(r[0])] = rows(f"SELECT * FROM {t} VERSION AS OF {r[0]}")
    files = spark.sql(f"SELECT content, file_format, record_count FROM {t}.all_files").collect()
    print(name, [tuple(f) for f in files], {k: len(v) for k, v in views.items()}, flush=True)
    keep("iceberg", name, views)


def fill(lo, hi, parts=2):
    return ("INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, IF(id % 7 = 0, NULL, concat('s', id)) s, "
            "date_add(DATE'2024-01-30', CAST(id % 5 AS INT)) d, "
            f"IF(id % {parts + 1} = {parts}, NULL, concat('p', id % {parts + 1})) p, "
            f"named_struct('a', CAST(id * 10 AS INT)) n FROM range({lo}, {hi}, 1, 1) ORDER BY p, d")


DELETES = [
    fill(0, 30), fill(30, 60),
    "DELETE FROM {t} WHERE id % 4 = 1",
    "UPDATE {t} SET s = concat('new', id) WHERE id % 10 = 3",
    fill(60, 70),
    "DELETE FROM {t} WHERE id IN (0, 33, 43, 66)",
]

iceberg("v1", 1, "PARTITIONED BY (p)", [fill(0, 20), fill(20, 30), "DELETE FROM {t} WHERE p = 'p1'",
                                         "ALTER TABLE {t} RENAME COLUMN s TO text",
                                         "ALTER TABLE {t} ADD COLUMN extra INT",
                                         "INSERT INTO {t} VALUES (100, 'z', DATE'2020-01-01', 'p0', NULL, 7)"])
iceberg("v1day", 1, "PARTITIONED BY (months(d), truncate(1, s))", [fill(0, 12), "DELETE FROM {t} WHERE id = 3"])
iceberg("v2pos", 2, "PARTITIONED BY (p)", DELETES)
iceberg("v2flat", 2, "", DELETES)
iceberg("v2spec", 2, "PARTITIONED BY (bucket(2, id))", DELETES[:3] + [
    "ALTER TABLE {t} ADD PARTITION FIELD p", fill(60, 70), "DELETE FROM {t} WHERE id IN (0, 33, 61)"])
iceberg("v2file", 2, "PARTITIONED BY (p)", ["ALTER TABLE {t} SET TBLPROPERTIES ('write.delete.granularity'='partition')"]
        + DELETES)
iceberg("v3dv", 3, "PARTITIONED BY (p)", DELETES)
iceberg("v3flat", 3, "", DELETES)
iceberg("v23", 2, "PARTITIONED BY (p)", DELETES[:3] + ["ALTER TABLE {t} SET TBLPROPERTIES ('format-version'='3')"]
        + DELETES[3:])
# More than 2^16 rows: a vector with several containers, arrays, bitmaps and runs.
iceberg("v3big", 3, "", [
    "ALTER TABLE {t} SET TBLPROPERTIES ('write.parquet.compression-codec'='zstd')",
    "INSERT INTO {t} SELECT id, NULL, NULL, NULL, NULL FROM range(0, 200000, 1, 1)",
    "DELETE FROM {t} WHERE id % 3 = 1 AND id < 70000 OR id BETWEEN 100000 AND 140000 OR id = 199999"])
