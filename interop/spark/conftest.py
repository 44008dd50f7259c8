"""What the tests of the Python package ask of stoa, answered by Spark: its name is taken before they are read."""

import json
import shutil
import sys
import types

import pyarrow.parquet as pq
import session

_made = []


def spark():
    if not _made:
        _made.append(session.Session())
    return _made[0]


class Opened:
    """A place; its rows are what Spark reads from it and writes as Parquet."""

    def __init__(self, place):
        self.place = place

    def to_table(self):
        at = spark().directory()
        if not json.loads(spark().ask(load=self.place, view="t")["schema"])["fields"]:
            return NoColumns(spark().rows("select * from t"))
        spark().ask(load=self.place, save=at)
        try:
            return pq.read_table(at)
        finally:
            shutil.rmtree(at)


class NoColumns:
    """Rows without columns, which Spark's Parquet cannot hold."""

    def __init__(self, rows):
        self.rows = rows

    def to_pylist(self):
        return [json.loads(r) for r in self.rows]


def listed(place):
    """The tables of a place, as a catalog of Spark has them."""
    s = spark()
    s.names += 1
    k = f"k{s.names}"
    conf = {f"spark.sql.catalog.{k}": "stoa.Catalog", f"spark.sql.catalog.{k}.root": place}
    s.ask(conf=conf)
    names = [json.loads(r)["tableName"] for r in s.rows(f"show tables in {k}")]
    return [types.SimpleNamespace(name=f"{place}#{n}") for n in names]


stoa = types.ModuleType("stoa")
stoa.StoaWarning = UserWarning
stoa.open = Opened
stoa.ls = listed
sys.modules["stoa"] = stoa


def pytest_sessionfinish():
    for s in _made:
        s.close()
