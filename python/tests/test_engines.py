"""The data sources for Spark and for Ray, without their engines: interop/spark and interop/python have those."""

import json
import pathlib
import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import stoa

pytestmark = pytest.mark.filterwarnings("ignore::stoa.StoaWarning", "ignore::FutureWarning")
NS = 1_577_836_800_123_456_789


def wide():
    """Every kind of type for which Spark has another one, with nulls, in slices whose offsets are not 0."""
    s = pa.struct([pa.field("a", pa.uint8(), False), pa.field("b", pa.large_string())])
    return pa.table({
        "n": pa.array(range(1000), pa.int64()),
        "u8": pa.array([i % 256 for i in range(1000)], pa.uint8()),
        "u64": pa.array([2**64 - 1 - i for i in range(1000)], pa.uint64()),
        "big": pa.array([None if i % 3 else i * 10**40 for i in range(1000)], pa.decimal256(50, 2)),
        "time": pa.array([i for i in range(1000)], pa.time64("us")),
        "past": pa.array([i - 500 for i in range(1000)], pa.timestamp("ms")),
        "at": pa.array([i - 500 for i in range(1000)], pa.timestamp("s", "Europe/Berlin")),
        "l": pa.array([None if i % 5 == 0 else [i] * (i % 4) for i in range(1000)], pa.list_(pa.uint16())),
        "st": pa.array([None if i % 7 == 0 else {"a": i % 9, "b": str(i)} for i in range(1000)], s),
        "m": pa.array([None if i % 6 == 0 else [(str(i), i)] * (i % 2) for i in range(1000)],
                      pa.map_(pa.string(), pa.uint32())),
        "d": pa.array([f"d{i % 3}" for i in range(1000)]).dictionary_encode(),
    })


@pytest.fixture
def spark(place):
    pytest.importorskip("pyspark.sql.datasource", reason="Spark's API for data sources in Python needs pyspark 4")
    import stoa.spark

    stoa.write(wide(), "wide.parquet")
    return stoa.spark


def read(spark, path, **options):
    """What Spark reads: each step in the state in which it gets to another process."""
    source = pickle.loads(pickle.dumps(spark.StoaDataSource({"path": path, **options})))
    schema = source.schema()
    reader = pickle.loads(pickle.dumps(source.reader(schema)))
    parts = [pickle.loads(pickle.dumps(p)) for p in reader.partitions()]
    return schema, [b for p in parts for b in reader.read(p)], len(parts)


def test_spark_gets_the_types_that_it_says(spark):
    from pyspark.sql.pandas.types import to_arrow_schema

    schema, batches, parts = read(spark, "wide.parquet", **{"target-size": "2000"})
    assert parts > 3 and sum(b.num_rows for b in batches) == 1000
    want = to_arrow_schema(schema, timezone="UTC")  # to which Spark compares the batches
    assert all(b.schema.equals(want) for b in batches)
    assert schema.simpleString() == (
        "struct<n:bigint,u8:smallint,u64:decimal(20,0),big:string,time:bigint,past:timestamp_ntz,at:timestamp,"
        "l:array<int>,st:struct<a:smallint,b:string>,m:map<string,bigint>,d:string>")


def test_spark_gets_the_values(spark):
    _, batches, _ = read(spark, "wide.parquet", **{"target-size": "2000"})
    got, full = pa.Table.from_batches(batches), wide()
    for name in ("n", "u8", "past", "l", "st", "m", "d"):
        assert got[name].to_pylist() == full[name].to_pylist(), name
    assert [int(v) for v in got["u64"].to_pylist()] == full["u64"].to_pylist()
    assert got["time"].to_pylist() == list(range(1000))
    assert got["at"].cast(pa.timestamp("s")).to_pylist() == full["at"].cast(pa.timestamp("s")).to_pylist()
    assert got["big"].to_pylist() == [None if i % 3 else f"{i * 10**40}.00" for i in range(1000)]


def test_spark_gets_dictionaries_of_views(spark):
    views = pa.DictionaryArray.from_arrays(pa.array([1, None, 0]), pa.array(["a", "b"], pa.string_view()))
    assert spark._cast(views, pa.string(), True).to_pylist() == ["b", None, "a"]


def test_spark_columns_and_rows_are_named_by_options(spark):
    schema, batches, _ = read(spark, "wide.parquet", columns="st,n", where="n >= 10 and n < 13")
    assert schema.names == ["st", "n"]
    assert pa.Table.from_batches(batches)["n"].to_pylist() == [10, 11, 12]
    schema, batches, parts = read(spark, "wide.parquet", where="n > 5000")
    assert (batches, parts) == ([], 1) and len(schema) == 11


def test_spark_and_what_it_cannot_have(spark):
    pq.write_table(pa.table({"t": pa.array([NS, -1], pa.timestamp("ns"))}), "ns.parquet")
    with pytest.raises(stoa.Invalid, match="column t: .*lose data"):
        read(spark, "ns.parquet")
    _, batches, _ = read(spark, "ns.parquet", nanoseconds="truncate")
    assert batches[0]["t"].cast(pa.int64()).to_pylist() == [NS // 1000, -1]
    with pytest.raises(stoa.Invalid, match="nanoseconds"):
        read(spark, "ns.parquet", nanoseconds="round")
    with pytest.raises(stoa.StoaError, match="no_such"):
        read(spark, "wide.parquet", columns="no_such")
    with pytest.raises(stoa.Invalid, match="path"):
        spark.StoaDataSource({}).schema()
    with pytest.raises(stoa.Corrupt):
        read(spark, "try/damaged/key.cfile")
    assert sum(b.num_rows for b in read(spark, "try/damaged/key.cfile", damaged="skip-rows")[1]) == 272


def test_spark_streams_loads(spark):
    """Each load comes once, whatever is loaded, deleted and compacted between two looks."""
    n = pa.schema([pa.field("n", pa.int64())])
    stoa.create("store#db.t", n)
    loads = lambda *numbers: stoa.load("store#db.t", pa.table({"n": list(numbers)}, n))
    source = spark.StoaDataSource({"path": "store#db.t"})
    stream = pickle.loads(pickle.dumps(source.streamReader(source.schema())))
    look = lambda start, end: sorted(v for p in stream.partitions(start, end) for b in stream.read(p)
                                     for v in b["n"].to_pylist())
    at = stream.initialOffset()
    assert look(at, stream.latestOffset()) == []
    loads(1, 2), loads(3)
    one = stream.latestOffset()
    assert look(at, one) == [1, 2, 3] == look(at, one)
    loads(4), loads(5)
    stoa.compact("store#db.t", "major")  # of all of them: a new segment with rows that came before
    two = stream.latestOffset(one, None)
    assert (look(one, two), look(at, two)) == ([4, 5], [1, 2, 3, 4, 5])
    assert look(two, stream.latestOffset()) == []
    loads(6), loads(7)
    three = stream.latestOffset()
    stoa.delete_segments("store#db.t", ["5"])
    assert look(two, three) == [6]
    loads(8), loads(9)
    status, = pathlib.Path("store").glob("db/t/Metadata/tablestatus*")
    states = json.loads(status.read_text())
    index = next(i for i, x in enumerate(states) if x["loadName"] == "6")
    states[index]["loadStatus"] = "Insert In Progress"  # the load of 8 has not ended, that of 9 has
    status.write_text(json.dumps(states))
    assert look(three, stream.latestOffset()) == []
    states[index]["loadStatus"] = "Success"
    status.write_text(json.dumps(states))
    assert look(three, stream.latestOffset()) == [8, 9]
    with pytest.raises(stoa.Invalid, match="segment"):
        spark.StoaDataSource({"path": "store#db.t", "segments": "1"}).streamReader(source.schema())
    with pytest.raises(stoa.Invalid, match="another table"):
        look(three, {"segment": 99})


def test_ray_reads_a_task_a_split(place):
    pytest.importorskip("ray.data", reason="ray is not there")
    import stoa.ray

    stoa.write(wide(), "wide.parquet")
    t = stoa.open("wide.parquet")
    tasks = stoa.ray.StoaDatasource(t, ["n", "st"], target=500).get_read_tasks(2)
    assert len(tasks) == 2 and sum(k.metadata.num_rows for k in tasks) == 1000
    assert pa.concat_tables(b for k in tasks for b in k()).equals(wide().select(["n", "st"]))
    some = stoa.ray.StoaDatasource(t, ["n"], "n % 2 = 0").get_read_tasks(2)
    assert [k.metadata.num_rows for k in some] == [None]  # not known: Ray counts by it
    assert pa.concat_tables(b for k in some for b in k())["n"].to_pylist() == list(range(0, 1000, 2))
    two, = stoa.ray.StoaDatasource(t, ["n"]).get_read_tasks(1, per_task_row_limit=2)
    assert sum(b.num_rows for b in two()) == 2
