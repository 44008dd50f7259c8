"""The order of a Kudu table's rows, of which Spark is told: no sort in the plan, and the rows of the query with one."""

import json
import os
import pathlib
import subprocess

import conftest
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import session
from test_buckets import catalog, shuffles
from test_errors import fails

CORPUS = pathlib.Path(os.environ["STOA_CORPUS"])
TOLD = not session.VERSION.startswith("3.3")  # Spark 3.3 cannot be told of an order
ROWS = 1000
TEXT = [chr(i % 7 * 0x4000 + 0x41 + i % 26) + f"é{i}" for i in range(ROWS)]  # beyond the BMP, UTF-16 has another order
TYPES = {
    "i8": (pa.int8(), [i % 251 - 125 for i in range(ROWS)]),
    "i32": (pa.int32(), [i * 7919 % ROWS - 99 for i in range(ROWS)]),
    "i64": (pa.int64(), [(i * 7919 % ROWS - 500) << 50 for i in range(ROWS)]),
    "s": (pa.string(), TEXT[:-1] + ["𐀀 beyond"]),
    "b": (pa.binary(), [bytes([i * 37 % 256, i % 251]) for i in range(ROWS)]),
    "d": (pa.date32(), [i * 7919 % ROWS - 500 for i in range(ROWS)]),
    "t": (pa.timestamp("us", "UTC"), [(i * 7919 % ROWS - 500) * 999_983 for i in range(ROWS)]),
    "dec": (pa.decimal128(18, 3), [str(i * 7919 % ROWS - 500) + ".125" for i in range(ROWS)]),
}


@pytest.fixture(scope="module")
def at(tmp_path_factory):
    """For each type of key a Kudu table in one tablet, and two in four tablets by the hash of the key."""
    at = tmp_path_factory.mktemp("order")
    (at / "1").mkdir()
    (at / "4").mkdir()
    for kind, (t, values) in TYPES.items():
        if kind == "dec":
            ids = pa.array(values).cast(t)
        else:
            ids = pa.array(values, pa.int32() if kind == "d" else pa.int64() if kind == "t" else t).cast(t)
        for k in (1, 2):  # all rows, and half of them
            part = ids.take(pa.array(range(0, ROWS, k)))
            n = pa.array(range(len(part)), pa.int32())
            name = f"{kind}{k}"
            pq.write_table(pa.table({"id": part, "n": n, "v": n.cast(pa.int64())}), at / f"{name}.parquet")
            # the keys of one tablet have two columns, those of buckets one, by which the buckets are known
            for tablets, key in (1, "id,n"), (4, "id"):
                # keys of i8 are not unique; no buckets of decimals are reported
                if tablets < k or tablets == 4 and kind in ("i8", "dec"):
                    continue
                buckets = ["--opt", f"buckets={tablets}"] if tablets > 1 else []
                subprocess.run(["stoa", "convert", "-q", f"{at}/{name}.parquet", "--to", "kudu-fs", "-o",
                                f"{at}/{tablets}/{name}", "--opt", f"key={key}", "--opt", f"table={name}", *buckets],
                               check=True)
    return at


def catalogs(at, name):
    """The tables of a directory with the order and without, both by buckets."""
    for c, told in ("o", "true"), ("u", "false"):
        catalog(at, c + name, bucketed="true", ordered=told)
        conftest.spark().ask(conf={f"spark.sql.catalog.{c}{name}.target-size": "1GB"})


def sorts(sql):
    return "".join(conftest.spark().rows("explain " + sql)).count("Sort [")


def same(sql, spared):
    """The rows are those without the option, which sorts so many times more if Spark can be told."""
    s = conftest.spark()
    one, two = sql.replace("$", "o"), sql.replace("$", "u")
    assert s.rows(one) == s.rows(two), sql
    explained = "".join(s.rows("explain " + one) + s.rows("explain " + two))
    assert sorts(two) - sorts(one) == (spared if TOLD else 0), explained
    assert not TOLD or spared == 0 or sorts(one) == 0, explained
    assert shuffles(one) == shuffles(two), explained


JOIN = "select /*+ merge(a, b) */ count(*) c, sum(hash(a.id, a.v, b.v)) h from {0} a join {1} b on a.id = b.id"


@pytest.mark.parametrize("kind", TYPES)
def test_one_tablet(at, kind):
    """Keys of two columns. Spark 4.2 does not take one split for one partition, and shuffles it."""
    catalogs(at / f"1/{kind}1", f"1{kind}1")
    same(f"select count(*) c, sum(hash(id, n, v)) h from $1{kind}1.{kind}1", 0)


@pytest.mark.parametrize("kind", [k for k in TYPES if k not in ("i8", "dec")])
def test_buckets(at, kind):
    for k in (1, 2):
        catalogs(at / f"4/{kind}{k}", f"4{kind}{k}")
    one, two = (f"$4{kind}{k}.{kind}{k}" for k in (1, 2))
    same(JOIN.format(one, two), 2)
    same(JOIN.format(one, two) + " where a.v = 3", 2)  # most buckets are empty
    same(f"select count(*) c, sum(hash(id, n, r)) h from (select id, n, sum(v) over (partition by id) r from {one})", 1)


def test_tables_of_kudus_servers():
    """Overlapping rowsets, changes in the log, keys of several columns, several tablets."""
    s = conftest.spark()
    for told in "true", "false":
        c = "o" if told == "true" else "u"
        conf = {f"spark.sql.catalog.{c}r": "stoa.Catalog", f"spark.sql.catalog.{c}r.root": f"{CORPUS}/kudu/fs_log",
                f"spark.sql.catalog.{c}r.ordered": told, f"spark.sql.catalog.{c}r.partial": "true"}
        s.ask(conf=conf)
    tables = [json.loads(r)["tableName"] for r in s.rows("show tables in ur")]
    assert len(tables) > 10
    for t in tables:
        sql = f"select count(*) c, sum(hash(*)) h from $r.`{t}`"
        assert s.rows(sql.replace("$", "o")) == s.rows(sql.replace("$", "u")), t  # in order, or it would fail


def test_a_row_out_of_order_fails(at):
    """A command that reads what was planned in order without merging: Spark must not join by that."""
    if not TOLD:
        return
    stoa = subprocess.run(["which", "stoa"], check=True, capture_output=True, text=True).stdout.strip()
    wrong = at / "wrong"
    wrong.write_text(f"""#!/bin/bash
case $1 in
plan) {stoa} "$@" | sed 's/"stoa.key":"1"/"stoa.key":"9"/; s/"stoa.key":"2"/"stoa.key":"1"/' ;;
*) exec {stoa} "$@" ;;
esac
""")
    wrong.chmod(0o755)
    catalog(at / "1/i321", "w", ordered="true", command=str(wrong))
    sql = "select max(v) from (select n, v, id from w.i321 where id > -1000 order by n)"
    assert "not in the order" in fails(sql=sql)["error"]
