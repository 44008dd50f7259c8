"""Writes duckdb.txt: DuckDB's answers to the conditions in it.    usage: python answers.py (DuckDB 2.0.0 from PyPI)"""
import os, duckdb
name = os.path.join(os.path.dirname(os.path.abspath(__file__)), "duckdb.txt")
db = duckdb.connect()
for s in ("ieee_floating_point_ops=false", "error_on_division_by_zero=false"):
    db.execute("set " + s)
out = []
for line in open(name, encoding="utf-8"):
    c = line.rstrip("\n").split(" => ")[0]
    v = db.execute("select " + c).fetchone()[0]
    out.append("%s => %s\n" % (c, {True: "true", False: "false", None: "null"}[v]))
open(name, "w", encoding="utf-8").writelines(out)
