"""Random predicates: Spark over tables of stoa, which take them, and Spark over Parquet files of the same rows, with
its own push-down switched off, choose the same rows. STOA_PREDICATES says how many, STOA_SEED where they begin."""

import collections
import datetime
import decimal
import os
import random
import subprocess

import conftest
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt
import pytest
import session

COUNT = int(os.environ.get("STOA_PREDICATES", "60"))
SEED = int(os.environ.get("STOA_SEED", "1"))
ROOT = os.environ["STOA_CORPUS"]
ROWS = 3000
# Predicates are interpreted: to compile each of them takes longer than all else. The corpus is read with compiled code.
CONF = {"spark.sql.parquet.filterPushdown": "false", "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
ODD = ["", "a", "ab", "abc", "a%b", "a_b", "it's", "back\\slash", "ä", "日本", "zz", "NULL", "100", "-- x", '"q"',
       "\u007f"]


def drawn(r, rows):
    """A table of the types that all of these formats have."""
    def column(value, nulls):
        return [None if r.random() < nulls else value() for _ in range(rows)]

    floats = [0.0, -0.0, 1.5, -2.25, 0.1, float("nan"), float("inf"), float("-inf"), 1e30, 16777217.0]
    utc = datetime.timezone.utc
    epoch = datetime.datetime(1970, 1, 1, tzinfo=utc)
    moment = lambda: epoch + datetime.timedelta(microseconds=r.randint(-10**15, 10**15))
    fields = {
        "b": (pa.bool_(), lambda: r.random() < 0.5),
        "i8": (pa.int8(), lambda: r.randint(-128, 127)),
        "i16": (pa.int16(), lambda: r.choice([-32768, 32767, r.randint(-9, 9)])),
        "i32": (pa.int32(), lambda: r.choice([-2**31, 2**31 - 1, r.randint(-99, 99)])),
        "i64": (pa.int64(), lambda: r.choice([-2**63, 2**63 - 1, r.randint(-99, 99), 2**53 + 1])),
        "f": (pa.float32(), lambda: r.choice(floats)),
        "d": (pa.float64(), lambda: r.choice(floats + [r.gauss(0, 9)])),
        "s": (pa.string(), lambda: r.choice(ODD)),
        "y": (pa.binary(), lambda: r.choice([b"", b"\x00", b"\xff\xfe", b"ab", b"a"])),
        "day": (pa.date32(), lambda: epoch.date() + datetime.timedelta(days=r.randint(-40000, 40000))),
        "t": (pa.timestamp("us", "UTC"), moment),
        "n9": (pa.decimal128(9, 2), lambda: decimal.Decimal(r.randint(-999, 999)).scaleb(-2)),
        "n38": (pa.decimal128(38, 10), lambda: decimal.Decimal(r.randint(-10**30, 10**30)).scaleb(-10)),
    }
    cols = {"id": pa.array(range(rows), pa.int64())}
    for k, (t, value) in fields.items():
        cols[k] = pa.array(column(value, 0.15), t)
        if k in ("i32", "s"):
            cols[k + "_full"] = pa.array(column(value, 0), t)
    return pa.table(cols)


def quoted(s):
    return "'" + s.replace("\\", "\\\\").replace("'", "\\'") + "'"


def literal(r, t, v):
    """A value of type t in Spark's SQL."""
    if v is None:
        return "null"
    if pt.is_boolean(t):
        return str(v).lower()
    if pt.is_integer(t):
        v = r.choice([v, v, v + 1, v - 1, 300, 70000])
        if not -2**63 < v < 2**63:
            return f"{v}BD"
        return f"{v}L" if r.random() < 0.3 else f"({v})"
    if pt.is_floating(t):
        if v - v != 0 or "e" in repr(v):  # not a number, or infinite
            return f"cast('{v}' as {'float' if pt.is_float32(t) else 'double'})"
        return f"{v!r}{'F' if pt.is_float32(t) else 'D'}"
    if pt.is_decimal(t):
        return f"{r.choice([v, v + 1, v / 10]):f}BD"[:40].removesuffix("BD") + "BD"
    if pt.is_date(t):
        return f"DATE'{v.year:04}-{v.month:02}-{v.day:02}'"
    if pt.is_timestamp(t):
        return f"{'TIMESTAMP' if t.tz else 'TIMESTAMP_NTZ'}'{v.replace(tzinfo=None).isoformat(sep=' ')}'"
    if pt.is_string(t) or pt.is_large_string(t):
        return quoted(v)
    return f"X'{v.hex()}'"


class Drawer:
    """Predicates over a table, with values from it."""

    def __init__(self, r, table):
        self.r = r
        self.columns = [(f"`{f.name}`", f.type, table.column(i)) for i, f in enumerate(table.schema)
                        if not pt.is_nested(f.type) and not pt.is_null(f.type)]
        for i, f in enumerate(table.schema):
            if pt.is_struct(f.type):
                for j in range(f.type.num_fields):
                    g = f.type.field(j)
                    if not pt.is_nested(g.type) and not pt.is_null(g.type):
                        values = pa.array([v and v[g.name] for v in table.column(i).to_pylist()], g.type)
                        self.columns.append((f"`{f.name}`.`{g.name}`", g.type, values))

    def value(self, t, c):
        return literal(self.r, t, c[self.r.randrange(len(c))].as_py() if len(c) else None)

    def term(self):
        r = self.r
        name, t, c = r.choice(self.columns)
        kind = r.randrange(8)
        if kind == 0:
            return f"{name} is {r.choice(['', 'not '])}null"
        if kind == 1:
            return f"{name} {r.choice(['', 'not '])}in ({', '.join(self.value(t, c) for _ in range(r.randint(1, 14)))})"
        if kind == 2 and (pt.is_string(t) or pt.is_large_string(t)):
            s = next((x for x in (c[r.randrange(len(c))].as_py() for _ in range(5)) if x), "a")
            part = s[:r.randint(0, 3)]
            shape = r.choice(["startswith({}, {})", "endswith({}, {})", "contains({}, {})", "{} like {}"])
            return shape.format(name, quoted(part + "%") if "like" in shape else quoted(part))
        if kind == 3:
            return f"{name} <=> {r.choice([self.value(t, c), 'null'])}"
        if kind == 4:
            return f"{name} between {self.value(t, c)} and {self.value(t, c)}"
        if kind == 5 and pt.is_boolean(t):
            return name
        op = r.choice(["=", "<>", "<", "<=", ">", ">="])
        return f"{name} {op} {self.value(t, c)}" if r.random() < 0.8 else f"{self.value(t, c)} {op} {name}"

    def draw(self, depth=0):
        r = self.r
        if depth == 3 or r.random() < 0.3:
            return self.term()
        if r.random() < 0.25:
            return f"not ({self.draw(depth + 1)})"
        return r.choice([" and ", " or "]).join(f"({self.draw(depth + 1)})" for _ in range(r.randint(2, 3)))


@pytest.fixture(scope="module")
def drawn_places(tmp_path_factory):
    """The same rows as Parquet, by pyarrow, and in the formats of stoa, by the command."""
    at = tmp_path_factory.mktemp("predicates")
    table = drawn(random.Random(SEED), ROWS)
    pq.write_table(table, at / "rows.parquet", row_group_size=700)
    places = {}
    for name, out in {"cfile": "set/", "redfile": "rows.red", "trevni": "rows.trv", "parquet": "ours.parquet"}.items():
        subprocess.run(["stoa", "convert", "-q", f"{at}/rows.parquet", "--to", name, "-o", f"{at}/{out}"], check=True)
        places[name] = str(at / out)
    return table, str(at / "rows.parquet"), places


def asked(where, columns):
    return f"select id, {columns} from {{}} where {where}"


def same(table, parquet, places, seed, key):
    s = conftest.spark()
    s.ask(load=parquet, format="parquet", view="peer", conf=CONF)
    for name, place in places.items():
        s.ask(load=place, view=f"v_{name}", options={"target-size": "20kB"})
    r = random.Random(seed)
    draw = Drawer(r, table)
    names = [n for n, _, _ in draw.columns]
    pushed = chosen = 0
    for i in range(COUNT):
        where = draw.draw()
        cells = r.sample(names, min(3, len(names)))
        what = f"{key}, " + ", ".join(f"cast({c} as string) c{k}" for k, c in enumerate(cells))
        peer = f"select 'peer' place, {what} from peer where {where}"
        ours = [f"select '{name}' place, {what} from v_{name} where {where}" for name in places]
        found = collections.defaultdict(collections.Counter)
        for row in s.rows(" union all ".join([peer] + ours)):
            place, _, rest = row.partition(",")
            found[place.split(":")[1].strip('"')][rest] += 1
        chosen += sum(found["peer"].values())
        for name in places:
            more, fewer = (list((found[x] - found[y]).items())[:3] for x, y in ((name, "peer"), ("peer", name)))
            assert found[name] == found["peer"], \
                f"seed {seed}, predicate {i}, {name}: {where}\nmore: {more}\nfewer: {fewer}"
        if i % 10 == 0:
            for sql in ours:
                plan = s.ask(sql=sql, explain=True)["plan"].partition("== Physical Plan ==")[2]
                pushed += plan.count(", where ")
    assert chosen > 0 and pushed > 0
    print(f"\nCOUNT {COUNT} predicates × {len(places)} tables, {chosen} rows chosen")


def test_drawn(drawn_places):
    same(*drawn_places, SEED, "id")


@pytest.mark.parametrize("place, key", [("kudu/fs_log#d_major", "id"), ("kudu/fs_file#d_rowset", "id"),
                                        ("carbon/managed/managed_complex", "id"), ("carbon/managed/managed_del", "id")])
def test_corpus(place, key):
    if not os.path.exists(f"{ROOT}/{place.partition('#')[0]}"):
        pytest.skip(f"no {place}")
    s = conftest.spark()
    at = s.directory()
    s.ask(load=f"{ROOT}/{place}", save=at)
    same(pq.read_table(at), at, {"real": f"{ROOT}/{place}"}, SEED, f"`{key}`")
