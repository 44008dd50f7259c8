"""Makes the tables of TPC-H as Parquet, and queries.json with its 22 queries, by DuckDB and its own generator.
usage: tpch.py SCALE DIR"""

import glob
import json
import os
import sys

import duckdb
import duckdb_ext

scale, where = sys.argv[1:]
os.makedirs(where, exist_ok=True)
found = glob.glob(os.path.join(list(duckdb_ext.__path__)[0], "extensions", "v" + duckdb.__version__, "*",
                               "tpch.duckdb_extension"))
c = duckdb.connect(config={"allow_unsigned_extensions": "true"})
c.execute(f"LOAD '{found[0]}'")
c.execute(f"CALL dbgen(sf = {scale})")
for (table,) in c.execute("SELECT table_name FROM information_schema.tables").fetchall():
    c.execute(f"COPY {table} TO '{where}/{table}.parquet' (FORMAT parquet, COMPRESSION snappy)")
queries = [q.strip().rstrip(";") for (q,) in c.execute("SELECT query FROM tpch_queries() ORDER BY query_nr").fetchall()]
with open(os.path.join(where, "queries.json"), "w") as f:
    json.dump(queries, f)
