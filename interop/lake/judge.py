#!/usr/bin/env python3
"""Asks foreign readers about a table that stoa wrote: rows, and for each flat column a filter on a value that it has.

    python judge.py DIR      DIR is of --to iceberg, delta, or iceberg,delta

needs pyiceberg[pyarrow] 0.12, deltalake 1.6, duckdb 1.4.4 with duckdb-ext-avro, -iceberg and -delta. Exit status 1: a
reader differs from the Parquet files as pyarrow reads them.
"""
import glob
import os
import sys

import duckdb
import duckdb_ext
import pyarrow.compute as pc
import pyarrow.dataset as ds

DIR = os.path.abspath(sys.argv[1])
files = glob.glob(f"{DIR}/**/*.parquet", recursive=True)
want = ds.dataset(files).to_table() if files else None
bad = 0


def check(who, name, got, expected):
    global bad
    if got != expected:
        bad += 1
        print(f"{who}: {name}: expected {expected} rows, found {got}")


def values():
    for name in want.column_names:
        column = want.column(name)
        for v in column.slice(0, 1000).to_pylist():
            if v is not None and v == v and not isinstance(v, (list, dict)):
                yield name, v, pc.sum(pc.equal(column, v)).as_py()
                break


con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
for ext in ("avro", "iceberg", "delta"):
    for root in duckdb_ext.__path__:
        for path in glob.glob(f"{root}/extensions/*/*/{ext}.duckdb_extension"):
            con.execute(f"load '{path}'")


def ask(scan, who):
    check(who, "all", con.execute(f"select count(*) from {scan}").fetchone()[0], want.num_rows)
    for name, v, n in values():
        quoted = name.replace('"', '""')
        check(who, name, con.execute(f'select count(*) from {scan} where "{quoted}" = ?', [v]).fetchone()[0], n)


if os.path.isdir(f"{DIR}/metadata"):
    from pyiceberg.expressions import EqualTo
    from pyiceberg.table import StaticTable

    t = StaticTable.from_metadata(f"{DIR}/metadata/v1.metadata.json")
    check("pyiceberg", "all", t.scan().to_arrow().num_rows, want.num_rows)
    for name, v, n in values():
        check("pyiceberg", name, t.scan(row_filter=EqualTo(name, v)).to_arrow().num_rows, n)
    ask(f"iceberg_scan('{DIR}')", "duckdb iceberg")
if os.path.isdir(f"{DIR}/_delta_log"):
    from deltalake import DeltaTable

    check("deltalake", "all", DeltaTable(DIR).to_pyarrow_table().num_rows, want.num_rows)
    ask(f"delta_scan('{DIR}')", "duckdb delta")
print("the readers agree" if bad == 0 else f"{bad} differences")
sys.exit(bad > 0)
