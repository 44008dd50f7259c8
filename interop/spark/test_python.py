"""The data source in Python, in a Spark of its own: what it reads and writes is what the jar reads and writes."""

import os
import shutil
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

if os.environ.get("STOA_SPARK_VERSION", "4").startswith("3"):
    pytest.skip("Spark 3 has no data sources in Python", allow_module_level=True)
pytest.importorskip("pyspark.sql.datasource", reason="no pyspark 4: the data source in Python is not judged")

SCRIPT = """
import sys
import stoa.spark
from pyspark.sql import SparkSession

b = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
s = b.config("spark.sql.session.timeZone", "UTC").getOrCreate()
s.sparkContext.setLogLevel("ERROR")
s.dataSource.register(stoa.spark.StoaDataSource)
place, out = sys.argv[1:]
read = lambda p, **o: s.read.format("stoa").options(**{"target-size": "6000", **o}).load(p)
df = read(place)
print("ROWS", df.count(), df.rdd.getNumPartitions() > 1)
print("FEW", df.where("n >= 100 and n < 150 and s is not null").count(), df.select("n").count(), df.groupBy().sum("n")
      .collect()[0][0])
print("NAMED", read(place, columns="st,n", where="n < 7").collect()[6].asDict(True))
df.write.mode("overwrite").parquet(out + "/spark")
for mode in ("append", "append", "overwrite", "append"):
    df.write.format("stoa").option("to", "cfile").mode(mode).save(out + "/set")
    print("WRITTEN", read(out + "/set").count())
try:
    df.selectExpr("n", "assert_true(n < 2999) ok").write.format("stoa").option("to", "cfile").mode("append").save(
        out + "/set")
    print("NO ERROR")
except Exception as e:
    print("FAILED", read(out + "/set").count())
import pyarrow as pa
import stoa

table = out + "/store#db.t"
stoa.create(table, pa.schema([("n", pa.int64())]))
for k in range(3):
    stoa.load(table, {"n": [k, k + 10]})
    q = s.readStream.format("stoa").load(table).writeStream.format("parquet").option("checkpointLocation", out + "/check")
    q.option("path", out + "/stream").trigger(availableNow=True).start().awaitTermination()
    print("STREAM", sorted(r.n for r in s.read.parquet(out + "/stream").collect()))
stoa.load(table, {"n": [99]})
for args in (["compact", "-q", table, "--segments", "0,1,2"], ["clean", "-q", table]):
    stoa.run(*args)
try:
    s.readStream.format("stoa").load(table).writeStream.format("noop").option("checkpointLocation", out + "/late").trigger(
        availableNow=True).start().awaitTermination()
    print("NO ERROR")
except Exception as e:
    print("REMOVED", "[1, 2] were removed before" in str(e))
s.stop()
"""


def test_reads_and_writes(tmp_path):
    n = 3000
    t = pa.table({
        "n": pa.array(range(n), pa.int64()),
        "s": pa.array([None if i % 7 == 0 else f"s{i % 50}" for i in range(n)]),
        "at": pa.array([i * 10**6 - 5 for i in range(n)], pa.timestamp("us", "UTC")),
        "x": pa.array([None if i % 11 == 0 else i for i in range(n)], pa.decimal128(12, 2)),
        "l": pa.array([None if i % 4 == 0 else [i] * (i % 3) for i in range(n)], pa.list_(pa.int32())),
        "st": pa.array([None if i % 6 == 0 else {"a": i, "b": str(i)} for i in range(n)]),
    })
    pq.write_table(t, tmp_path / "t.parquet", row_group_size=500)
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    env.pop("SPARK_HOME", None)
    p = subprocess.run([sys.executable, "-c", SCRIPT, tmp_path / "t.parquet", tmp_path], env=env, text=True,
                       capture_output=True, timeout=1800)
    said = [line for line in p.stdout.splitlines() if line.split(" ")[0].isupper()]
    some = sum(1 for i in range(100, 150) if i % 7)
    assert said == [
        f"ROWS {n} True", f"FEW {some} {n} {n * (n - 1) // 2}",
        "NAMED {'st': None, 'n': 6}", f"WRITTEN {n}", f"WRITTEN {2 * n}", f"WRITTEN {n}", f"WRITTEN {2 * n}",
        f"FAILED {2 * n}", "STREAM [0, 10]", "STREAM [0, 1, 10, 11]", "STREAM [0, 1, 2, 10, 11, 12]", "REMOVED True"], p.stdout + p.stderr[-4000:]
    back = pq.read_table(tmp_path / "spark")
    assert sorted(map(str, back.to_pylist())) == sorted(map(str, t.cast(back.schema).to_pylist()))
    assert not [f for f in os.listdir(tmp_path) if "stage" in f]
    shutil.rmtree(tmp_path / "set")
