"""Catalogs: tables and namespaces of a place, moments of the past, and the catalog stoa that needs no setting."""

import json
import os
import subprocess

import conftest
import pytest
from test_errors import fails

ROOT = os.environ["STOA_CORPUS"]


@pytest.fixture(scope="module")
def k(tmp_path_factory):
    at = tmp_path_factory.mktemp("catalog")
    subprocess.run(["stoa", "demo", "-q", f"{at}/demo"], check=True, capture_output=True)
    s = conftest.spark()
    s.ask(conf={"spark.sql.catalog.demo": "stoa.Catalog", "spark.sql.catalog.demo.root": f"{at}/demo"})
    return s, f"{at}/demo"


def names(rows, key):
    return sorted(json.loads(r)[key] for r in rows)


def test_listing(k):
    s, _ = k
    tables = names(s.rows("show tables in demo"), "tableName")
    assert tables == ["d_major", "dremel.trv", "flat.red", "key.cfile", "primitives.trv"]
    assert names(s.rows("show namespaces in demo"), "namespace") == ["carbon"]
    assert names(s.rows("show tables in demo.carbon"), "tableName") == ["managed_del"]
    with open(f"{ROOT}/carbon/managed/managed_del.expected.jsonl") as f:
        assert len(s.rows("select * from demo.carbon.managed_del")) == sum(1 for _ in f)
    assert "id" in names(s.rows("describe demo.d_major"), "col_name")
    a = fails(sql="select * from demo.nothing")
    assert "nothing" in a["error"] and "cannot be found" in a["error"] or "not found" in a["error"], a
    assert "reads tables" in fails(sql="drop table demo.d_major")["error"]


def test_places_without_a_setting(k):
    s, at = k
    assert json.loads(s.rows(f"select count(*) n from stoa.`{at}#d_major`")[0])["n"] == 1619
    assert json.loads(s.rows(f"select max(i) n from stoa.`{at}/flat.red` where i < 0")[0])["n"] < 0


def test_moments():
    s = conftest.spark()
    s.ask(conf={"spark.sql.catalog.lives": "stoa.Catalog", "spark.sql.catalog.lives.root": f"{ROOT}/kudu/fs_log"})
    found = set()
    for at in ("2026-11-21T07:40:15Z", "2026-11-21T07:40:22Z", "2026-11-21T07:40:31Z"):
        cat = ["stoa", "cat", "-q", "-f", "jsonl", "--columns", "id,v", "--at", at, f"{ROOT}/kudu/fs_log#d_raw"]
        out = subprocess.run(cat, capture_output=True, text=True, check=True).stdout.splitlines()
        got = s.rows(f"select id, v from lives.d_raw timestamp as of '{at}'")
        assert sorted(map(repr, map(json.loads, got))) == sorted(map(repr, map(json.loads, out)))
        found.add(repr(sorted(out)))
    assert len(found) > 1
    assert len(s.rows("select id from lives.d_raw version as of '7353331018451513344'")) == 1619
