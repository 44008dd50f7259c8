"""Joins and groups of tables in equal buckets, without a shuffle: the rows are those of the same query with one."""

import os
import pathlib
import subprocess

import conftest
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_errors import fails

CORPUS = pathlib.Path(os.environ["STOA_CORPUS"])
ROWS = 1000


@pytest.fixture(scope="module")
def at(tmp_path_factory):
    """Tables of one key in Kudu directories, with as many buckets and with others, and in CarbonData's tables."""
    at = tmp_path_factory.mktemp("buckets")
    (at / "kudu").mkdir()
    text = lambda i: "é" * (i % 20) + f"key {i}"
    types = {"i": pa.int32(), "l": pa.int64(), "s": pa.string(), "d": pa.date32(), "t": pa.timestamp("us", "UTC")}
    for kind, t in types.items():
        ids = [text(i) for i in range(ROWS)] if kind == "s" else [i * 7919 % ROWS - 99 for i in range(ROWS)]
        for k, n in enumerate((4, 4, 3)):
            keys = ids if k == 0 else ids[::k + 1]
            pq.write_table(pa.table({"id": pa.array(keys, t), "v": pa.array(range(len(keys)), pa.int64())}),
                           at / f"{kind}{k}.parquet")
            subprocess.run(["stoa", "convert", "-q", f"{at}/{kind}{k}.parquet", "--to", "kudu-fs", "-o",
                            f"{at}/kudu/{kind}{k}", "--opt", "key=id", "--opt", f"buckets={n}", "--opt",
                            f"table={kind}{k}"], check=True)
    return at


def catalog(root, name, **options):
    conf = {f"spark.sql.catalog.{name}": "stoa.Catalog", f"spark.sql.catalog.{name}.root": str(root)}
    conf.update({f"spark.sql.catalog.{name}.{k}": v for k, v in options.items()})
    conf[f"spark.sql.catalog.{name}.target-size"] = "100" if CORPUS in root.parents else "1kB"  # one split is not shuffled
    conf.update({"spark.sql.sources.v2.bucketing.enabled": "true", "spark.sql.autoBroadcastJoinThreshold": "-1"})
    conftest.spark().ask(conf=conf)


def shuffles(sql):
    """How often the plan shuffles by a hash."""
    return "".join(conftest.spark().rows("explain " + sql)).count("Exchange hashpartitioning")


def same(bucketed, plain, sql, spared):
    """The answer is that of the catalog without buckets, which shuffles so many times more."""
    s = conftest.spark()
    one, two = sql.replace("$", bucketed), sql.replace("$", plain)
    assert s.rows(one) == s.rows(two), sql
    assert shuffles(two) - shuffles(one) == spared, "".join(s.rows("explain " + one) + s.rows("explain " + two))


JOIN = "select count(*) c, sum(a.v) x, sum(b.v) y from {0} a join {1} b on a.id = b.id"
GROUP = "select count(*) c, sum(n) s from (select id, count(*) n from {0} group by id)"


@pytest.mark.parametrize("kind", "ilsdt")
def test_kudu(at, kind):
    """Two tables of four buckets, and one of three, which is shuffled with them."""
    for i in range(3):
        catalog(at / f"kudu/{kind}{i}", f"b{kind}{i}", bucketed="true")
        catalog(at / f"kudu/{kind}{i}", f"p{kind}{i}")
    table = lambda i: f"${kind}{i}.{kind}{i}"
    same("b", "p", JOIN.format(table(0), table(1)), 2)
    same("b", "p", GROUP.format(table(0)), 1)
    same("b", "p", JOIN.format(table(0), table(1)) + " where a.v = 3", 2)  # most buckets are empty
    s, sql = conftest.spark(), JOIN.format(table(0), table(2))
    assert s.rows(sql.replace("$", "b")) == s.rows(sql.replace("$", "p")) and shuffles(sql.replace("$", "b")) > 0


def test_real_kudu():
    catalog(CORPUS / "kudu/fs_log", "bk", bucketed="true")
    catalog(CORPUS / "kudu/fs_log", "pk")
    same("bk", "pk", "select count(*) c, sum(hash(a.id, b.v)) h from $.part a join $.part b on a.id = b.id", 2)
    same("bk", "pk", "select count(*) c, sum(n) s from (select id, count(*) n from $.part group by id)", 1)


def test_real_carbon():
    catalog(CORPUS / "carbon/managed", "bc", bucketed="true")
    catalog(CORPUS / "carbon/managed", "pc")
    same("bc", "pc", "select count(*) c, sum(hash(a.id, b.id)) h from $.managed_bucket a join $.managed_bucket b "
         "on a.name = b.name", 2)
    same("bc", "pc", "select count(*) c, sum(n) s from (select name, count(*) n from $.managed_bucket group by name)", 1)


def test_without_a_catalog():
    """There Spark does not know the function, and shuffles."""
    s, place = conftest.spark(), f"{CORPUS}/carbon/managed#managed_bucket"
    s.ask(load=place, options={"bucketed": "true", "target-size": "100"}, view="loaded")
    sql = "select count(*) c, sum(n) s from (select name, count(*) n from {} group by name)"
    assert s.rows(sql.format("loaded")) == s.rows(sql.format(f"stoa.`{place}`"))


def test_a_bucket_with_rows_of_another_fails(at):
    """A plan that says of each split that it is of the other bucket."""
    stoa = subprocess.run(["which", "stoa"], check=True, capture_output=True, text=True).stdout.strip()
    wrong = at / "wrong"
    wrong.write_text(f"""#!/bin/bash
case $1 in
plan) {stoa} "$@" | sed 's/"bucket":0/"bucket":9/; s/"bucket":1/"bucket":0/; s/"bucket":9/"bucket":1/' ;;
*) exec {stoa} "$@" ;;
esac
""")
    wrong.chmod(0o755)
    for root, table, key in (CORPUS / "kudu/fs_log", "part", "id"), (CORPUS / "carbon/managed", "managed_bucket", "name"):
        catalog(root, "w" + key, bucketed="true", command=str(wrong))
        error = fails(sql=f"select sum(n) from (select {key}, count(*) n from w{key}.{table} group by {key})")["error"]
        assert "belongs to bucket" in error, error
