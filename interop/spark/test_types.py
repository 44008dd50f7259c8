"""Every type of Arrow that Spark has a word for, with nulls and in slices: the values that Spark has are pyarrow's."""

import datetime
import decimal
import json
import random

import conftest
import pyarrow as pa
import pytest
import session
from test_errors import fails

ROWS = 70_000  # more than a batch
UTC = pa.scalar(0, pa.timestamp("us", "UTC")).as_py().tzinfo  # as pyarrow has it, which differs by release
D = decimal.Decimal
whole = lambda r: r.randint(-2**40, 2**40)
word = lambda r: r.choice(["", "a", "twelve bytes", "thirteen bytes", "日本語 and more than twelve", "x" * 40])


def moment(zone):
    return lambda r: datetime.datetime(2000, 1, 1, tzinfo=zone) + datetime.timedelta(seconds=r.randint(-2**31, 2**31))


def day(r):
    return datetime.date(2000, 1, 1) + datetime.timedelta(days=r.randint(-9**5, 9**5))


def naive(v):
    """Times without a zone, as this Spark has them: 3.3 takes them for UTC."""
    return v.replace(tzinfo=UTC) if session.VERSION.startswith("3.3") else v


same = lambda v: v
number = lambda unit: lambda v: (v.hour * 3600 + v.minute * 60 + v.second) * unit
TYPES = {
    "null": (pa.null(), lambda r: None, same),
    "bool": (pa.bool_(), lambda r: r.random() < 0.5, same),
    "i8": (pa.int8(), lambda r: r.randint(-128, 127), same),
    "i16": (pa.int16(), lambda r: r.randint(-32768, 32767), same),
    "i32": (pa.int32(), lambda r: r.randint(-2**31, 2**31 - 1), same),
    "i64": (pa.int64(), lambda r: r.randint(-2**63, 2**63 - 1), same),
    "u8": (pa.uint8(), lambda r: r.randint(0, 255), same),
    "u16": (pa.uint16(), lambda r: r.randint(0, 65535), same),
    "u32": (pa.uint32(), lambda r: r.randint(0, 2**32 - 1), same),
    "u64": (pa.uint64(), lambda r: r.randint(0, 2**64 - 1), D),
    "half": (pa.float16(), lambda r: r.choice([0.0, -0.0, 1.5, -65504.0, 6e-8, 6.1e-5, float("inf")]), float),
    "f32": (pa.float32(), lambda r: r.choice([0.0, -1.5, 2.0**100, float("-inf")]), same),
    "f64": (pa.float64(), lambda r: r.gauss(0, 1e9), same),
    "s": (pa.string(), word, same),
    "large_s": (pa.large_string(), word, same),
    "view_s": (pa.string_view(), word, same),
    "y": (pa.binary(), lambda r: word(r).encode(), same),
    "large_y": (pa.large_binary(), lambda r: word(r).encode(), same),
    "view_y": (pa.binary_view(), lambda r: word(r).encode(), same),
    "fixed": (pa.binary(5), lambda r: bytes(r.randrange(256) for _ in range(5)), same),
    "date32": (pa.date32(), day, same),
    "date64": (pa.date64(), day, lambda v: naive(datetime.datetime(v.year, v.month, v.day))),
    "time32": (pa.time32("s"), lambda r: datetime.time(r.randrange(24), r.randrange(60)), number(1)),
    "time64": (pa.time64("us"), lambda r: datetime.time(r.randrange(24), r.randrange(60)), number(10**6)),
    "ts_s": (pa.timestamp("s"), moment(None), naive),
    "ts_ms": (pa.timestamp("ms", "UTC"), moment(UTC), same),
    "ts_us": (pa.timestamp("us"), moment(None), naive),
    "ts_ns": (pa.timestamp("ns", "UTC"), moment(UTC), same),
    "duration": (pa.duration("us"), lambda r: datetime.timedelta(seconds=r.randint(-9**9, 9**9)),
                 lambda v: v // datetime.timedelta(microseconds=1)),
    "d32": (pa.decimal32(7, 3), lambda r: D(r.randint(-10**6, 10**6)).scaleb(-3), same),
    "d64": (pa.decimal64(15, 4), lambda r: D(whole(r)).scaleb(-4), same),
    "d9": (pa.decimal128(9, 2), lambda r: D(r.randint(-10**8, 10**8)).scaleb(-2), same),
    "d38": (pa.decimal128(38, 10), lambda r: D(whole(r) * 10**20).scaleb(-10), same),
    "d256": (pa.decimal256(30, 5), lambda r: D(whole(r)).scaleb(-5), same),
    "d76": (pa.decimal256(76, 6), lambda r: D(whole(r) * 10**50).scaleb(-6), lambda v: f"{v:f}"),
    "list": (pa.list_(pa.int64()), lambda r: [r.choice([None, whole(r)]) for _ in range(r.randrange(4))], same),
    "large_list": (pa.large_list(pa.string()), lambda r: [word(r) for _ in range(r.randrange(3))], same),
    "fixed_list": (pa.list_(pa.int16(), 3), lambda r: [r.randint(0, 9) for _ in range(3)], same),
    "map": (pa.map_(pa.string(), pa.float64()),
            lambda r: [(f"k{i}", r.choice([None, 1.5])) for i in range(r.randrange(3))], same),
    "struct": (pa.struct([("x", pa.int32()), ("y", pa.string())]),
               lambda r: {"x": r.choice([None, 7]), "y": word(r)}, same),
    "structs": (pa.list_(pa.struct([("x", pa.int32()), ("l", pa.list_(pa.string()))])),
                lambda r: [{"x": i, "l": r.choice([None, [word(r)]])} for i in range(r.randrange(3))], same),
}


def column(name, r, rows):
    t, value, _ = TYPES[name]
    return pa.array([None if r.random() < 0.2 else value(r) for _ in range(rows)], t)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    r = random.Random(3)
    cols = {k: column(k, r, ROWS) for k in TYPES}
    cols["dictionary"] = pa.array([word(r) if r.random() > 0.2 else None for _ in range(ROWS)]).dictionary_encode()
    cols["dictionary_of_numbers"] = pa.array([r.randint(0, 200) for _ in range(ROWS)], pa.int64()).dictionary_encode()
    table = pa.table(cols)
    at = tmp_path_factory.mktemp("types")
    with pa.ipc.new_file(at / "all.arrow", table.schema) as out:
        out.write_table(table, max_chunksize=50_001)
    return at, table


def test_types(place):
    at, table = place
    found = conftest.Opened(f"{at}/all.arrow").to_table()
    assert found.column_names == table.column_names
    for name in table.column_names:
        change = TYPES[name][2] if name in TYPES else same
        want = [None if v is None else change(v) for v in table[name].to_pylist()]
        got = found[name].to_pylist()
        assert list(map(repr, got)) == list(map(repr, want)), name
    print(f"\nCOUNT {len(table.column_names)} types × {ROWS} rows")


def test_intervals(place):
    at, _ = place
    t = pa.table({"i": pa.array([(14, 3, 5_000), None, (-1, 0, -1000)], pa.month_day_nano_interval())})
    with pa.ipc.new_file(at / "interval.arrow", t.schema) as out:
        out.write_table(t)
    s = conftest.spark()
    s.ask(load=f"{at}/interval.arrow", view="t")
    assert [json.loads(x)["i"] for x in s.rows("select cast(i as string) i from t")] \
        == ["1 years 2 months 3 days 0.000005 seconds", None, "-1 months -0.000001 seconds"]


def test_nanoseconds(place):
    at, _ = place
    t = pa.table({"t": pa.array([1_000, 1_001, -1], pa.timestamp("ns", "UTC"))})
    with pa.ipc.new_file(at / "nanos.arrow", t.schema) as out:
        out.write_table(t)
    assert "1001 ns" in fails(load=f"{at}/nanos.arrow")["error"]
    s = conftest.spark()
    s.ask(load=f"{at}/nanos.arrow", options={"nanoseconds": "truncate"}, view="t")
    assert [json.loads(x)["m"] for x in s.rows("select unix_micros(t) m from t")] == [1, 1, -1]


def test_unions(place):
    at, _ = place
    u = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])])
    t = pa.table({"u": u, "i": [1, 2]})
    with pa.ipc.new_file(at / "union.arrow", t.schema) as out:
        out.write_table(t)
    assert "column u" in fails(load=f"{at}/union.arrow")["error"]
    rows = conftest.spark().ask(load=f"{at}/union.arrow", options={"columns": "i"})["rows"]
    assert [json.loads(x) for x in rows] == [{"i": 1}, {"i": 2}]


def test_fields_of_structs(place):
    """Only the fields that are used are read, if it can be seen without the others whether a struct is null."""
    at, _ = place
    leaf = pa.field("id", pa.int64(), False)
    inner = pa.struct([leaf, pa.field("w", pa.string())])
    there = lambda i: {"a": {"in": {"id": i, "w": f"w{i}"}, "v": i % 3 or None}, "b": {"x": i % 2 or None, "y": "y"}}
    rows = [there(i) if i % 5 else {"a": None, "b": None} for i in range(100)]
    sc = pa.schema([pa.field("a", pa.struct([pa.field("in", inner, False), pa.field("v", pa.int32())])),
                    pa.field("b", pa.struct([pa.field("x", pa.int32()), pa.field("y", pa.string())]))])
    t = pa.Table.from_pylist(rows, sc)
    with pa.ipc.new_file(at / "structs.arrow", sc) as out:
        out.write_table(t)
    s = conftest.spark()
    s.ask(load=f"{at}/structs.arrow", view="t")
    sql = "select a.v v, a is null n, a.in.w w, b.x x, b is null m from t"
    got = [json.loads(x) for x in s.rows(sql)]
    of = lambda v, *path: v if not path or v is None else of(v[path[0]], *path[1:])
    assert got == [{"v": of(r["a"], "v"), "n": r["a"] is None, "w": of(r["a"], "in", "w"), "x": of(r["b"], "x"),
                    "m": r["b"] is None} for r in rows]
    plan = s.ask(sql="select a.v, b.x from t", explain=True)["plan"]
    assert '"a"."v","a"."in"."id","b"' in plan, plan
    assert len(s.rows("select a.v from t where a is null")) == 20
    assert '"a"."in"."w" =' in s.ask(sql="select a.v from t where a.in.w = 'w7'", explain=True)["plan"]
    assert s.rows("select a.v from t where a.in.w = 'w7'") == ['{"v":1}']
