"""Has Spark write tables of Delta Lake, by seed, with the rows that Spark itself reads of each version.

usage: spark_delta.py OUT [FIRST LAST]     without seeds: the tables that are named here
needs: pyspark 3.5.3, and delta-spark_2.12 and delta-storage 3.3.2 in LAKE_JARS (with commas between)

Every table NAME has a file NAME.json beside it: {"now": [rows], "VERSION": [rows], ...}.
"""
import datetime
import json
import os
import random
import sys

from pyspark.sql import SparkSession

out = os.path.abspath(sys.argv[1])
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.jars", os.environ["LAKE_JARS"])
    .config("spark.ui.enabled", "false").config("spark.executor.heartbeatInterval", "600s")
    .config("spark.network.timeout", "1200s")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.memory", "2g")
    .config("spark.sql.shuffle.partitions", "1")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.databricks.delta.snapshotPartitions", "1")
    .config("spark.databricks.delta.properties.defaults.checkpointInterval", "3")
    .config("spark.databricks.delta.typeWidening.allowTypeChangeStreamingDeltaSource", "always")
    .config("spark.sql.warehouse.dir", os.path.join(out, "spark"))
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")


def plain(v):
    if isinstance(v, datetime.date):
        return str(v)
    if hasattr(v, "asDict"):
        return {k: plain(w) for k, w in v.asDict().items()}
    if isinstance(v, list):
        return [plain(w) for w in v]
    return v


def rows(query):
    got = [plain(r) for r in spark.sql(query).collect()]
    return sorted(got, key=lambda r: json.dumps(r, sort_keys=True))


def keep(name):
    t = f"delta.`{os.path.join(out, name)}`"
    views = {"now": rows(f"SELECT * FROM {t}")}
    for r in spark.sql(f"DESCRIBE HISTORY {t}").collect():
        views[str(r.version)] = rows(f"SELECT * FROM {t} VERSION AS OF {r.version}")
    with open(os.path.join(out, name + ".json"), "w") as f:
        json.dump(views, f, sort_keys=True, indent=0)
        f.write("\n")
    print(name, {k: len(v) for k, v in views.items()}, flush=True)


COLUMNS = "id BIGINT, s STRING, k INT, d DATE, p STRING, n STRUCT<a: INT, b: STRUCT<c: STRING>>, l ARRAY<STRUCT<x: INT>>"


def values(lo, hi):
    return ("SELECT /*+ COALESCE(1) */ id, IF(id % 7 = 0, NULL, concat('s', id)) s, CAST(id % 9 AS INT) k, "
            "date_add(DATE'2024-01-30', CAST(id % 5 AS INT)) d, IF(id % 3 = 2, NULL, concat('p ', id % 3)) p, "
            "IF(id % 11 = 0, NULL, named_struct('a', CAST(id * 10 AS INT), 'b', named_struct('c', concat('c', id)))) n, "
            "IF(id % 4 = 0, NULL, transform(sequence(1, CAST(id % 4 AS INT)), v -> named_struct('x', v))) l "
            f"FROM range({lo}, {hi}, 1, 1)")


def fill(lo, hi):
    return f"INSERT INTO {{t}} {values(lo, hi)}"


def make(name, partition, properties, steps, columns=COLUMNS):
    t = f"delta.`{os.path.join(out, name)}`"
    props = ", ".join(f"'{k}'='{v}'" for k, v in properties.items())
    spark.sql(f"CREATE TABLE {t} ({columns}) USING delta {partition} TBLPROPERTIES ({props})")
    for s in steps:
        if callable(s):
            s(os.path.join(out, name))
        elif s.startswith("SET "):
            spark.sql(s)
        else:
            spark.sql(s.format(t=t))
    keep(name)


VECTORS = {"delta.enableDeletionVectors": "true"}
NAMES = {"delta.columnMapping.mode": "name", "delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}
IDS = {**NAMES, "delta.columnMapping.mode": "id"}
V2 = {"delta.checkpointPolicy": "v2"}
DELETES = [fill(0, 30), fill(30, 60), "DELETE FROM {t} WHERE id % 4 = 1",
           "UPDATE {t} SET s = concat('new', id) WHERE id % 10 = 3", fill(60, 70),
           "DELETE FROM {t} WHERE id IN (0, 33, 43, 66)"]
MERGE = (f"MERGE INTO {{t}} t USING ({values(50, 80)}) s ON t.id = s.id WHEN MATCHED AND s.id % 2 = 0 THEN DELETE "
         "WHEN MATCHED THEN UPDATE SET s = 'merged' WHEN NOT MATCHED THEN INSERT *")
RENAMES = ["ALTER TABLE {t} RENAME COLUMN s TO text", "ALTER TABLE {t} RENAME COLUMN n.b.c TO e",
           "ALTER TABLE {t} RENAME COLUMN l.element.x TO y", "ALTER TABLE {t} RENAME COLUMN p TO part",
           "ALTER TABLE {t} DROP COLUMN d", "ALTER TABLE {t} ADD COLUMN d STRING",
           "INSERT INTO {t} (id, text, d, part) VALUES (900, 'late', 'no date', 'p 9')"]


def clone(source):
    spark.sql(f"CREATE TABLE delta.`{source}-clone` SHALLOW CLONE delta.`{source}`")
    spark.sql(f"DELETE FROM delta.`{source}-clone` WHERE id % 5 = 0")
    keep(os.path.basename(source) + "-clone")


def named():
    make("vectors", "PARTITIONED BY (p)", VECTORS, DELETES + [MERGE, "RESTORE TABLE {t} TO VERSION AS OF 5"])
    make("names", "PARTITIONED BY (p)", NAMES, [fill(0, 20)] + RENAMES + [fill_renamed(20, 30)])
    make("ids", "PARTITIONED BY (p)", {**IDS, **VECTORS}, [fill(0, 20)] + RENAMES + ["DELETE FROM {t} WHERE id < 7"])
    make("v2json", "", {**V2, **VECTORS}, ["SET spark.databricks.delta.checkpointV2.topLevelFileFormat=json"] + DELETES)
    make("v2parquet", "PARTITIONED BY (p)", {**V2, **VECTORS, **NAMES},
         ["SET spark.databricks.delta.checkpointV2.topLevelFileFormat=parquet",
          "SET spark.databricks.delta.checkpoint.partSize=2"] + DELETES + [MERGE])
    make("multipart", "PARTITIONED BY (p)", VECTORS, DELETES + [MERGE])
    spark.sql("RESET spark.databricks.delta.checkpoint.partSize")
    make("big", "", VECTORS, [
        "INSERT INTO {t} SELECT id, NULL, NULL, NULL, NULL, NULL, NULL FROM range(0, 200000, 1, 1)",
        "DELETE FROM {t} WHERE id % 3 = 1 AND id < 70000 OR id BETWEEN 100000 AND 140000 OR id = 199999"])
    make("widened", "PARTITIONED BY (k)", {"delta.enableTypeWidening": "true", **VECTORS},
         [fill(0, 10), "ALTER TABLE {t} ALTER COLUMN k TYPE BIGINT", "ALTER TABLE {t} ALTER COLUMN n.a TYPE BIGINT",
          fill(10, 20), "DELETE FROM {t} WHERE id % 3 = 0"])
    make("cloned", "PARTITIONED BY (p)", VECTORS, DELETES[:3] + [clone])


def fill_renamed(lo, hi):
    return f"INSERT INTO {{t}} SELECT id, s, k, p, n, l, NULL FROM ({values(lo, hi)})"


def seeded(seed):
    r = random.Random(seed)
    mapping = r.choice([{}, NAMES, IDS])
    properties = {**mapping, **(VECTORS if r.random() < .8 else {}), **(V2 if r.random() < .5 else {})}
    if not mapping and not r.randrange(4):
        properties["delta.enableRowTracking"] = "true"
    partition = r.choice(["", "PARTITIONED BY (p)", "PARTITIONED BY (d, p)", "PARTITIONED BY (k)"])
    steps = [f"SET spark.databricks.delta.checkpointV2.topLevelFileFormat={r.choice(['json', 'parquet'])}",
             f"SET spark.databricks.delta.checkpoint.partSize={r.choice([1, 3, 1000])}", fill(0, r.randrange(5, 60))]
    at, version, n, plain_columns = 60, 1, 0, True
    for _ in range(r.randrange(4, 11)):
        kind = r.randrange(9)
        if kind < 3:
            m = r.randrange(2, 8)
            steps.append(f"DELETE FROM {{t}} WHERE id % {m} = {r.randrange(m)} AND id > {r.randrange(40)}")
        elif kind == 3:
            steps.append(f"UPDATE {{t}} SET k = {r.randrange(9)} WHERE id % {r.randrange(2, 9)} = 0")
        elif kind == 4 and plain_columns:
            steps.append(MERGE)
        elif kind == 5 and version > 2:
            steps.append(f"RESTORE TABLE {{t}} TO VERSION AS OF {r.randrange(1, 3)}")
            plain_columns = n == 0
        elif kind == 6 and plain_columns:
            steps.append("OPTIMIZE {t}")
        elif kind == 7 and mapping:
            n += 1
            steps.append(f"ALTER TABLE {{t}} RENAME COLUMN l TO l{n}" if n == 1 else
                         f"ALTER TABLE {{t}} ADD COLUMN x{n} {r.choice(['INT', 'STRING', 'STRUCT<q: DATE>'])}")
            plain_columns = False
        elif plain_columns:
            steps.append(fill(at, at + r.randrange(1, 30)))
            at += 30
        version += 1
    make(f"t{seed}", partition, properties, steps)


if len(sys.argv) > 2:
    for seed in range(int(sys.argv[2]), int(sys.argv[3]) + 1):
        seeded(seed)
else:
    named()
