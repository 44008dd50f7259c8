"""The extension in the DuckDB of this Python: what it gives of each table is what stoa-sql gives, both written as CSV by
DuckDB; functions, options and errors. usage: extension.py EXTENSION"""

import json
import os
import re
import subprocess
import sys
import tempfile

import duckdb

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CORPUS = os.environ.get("STOA_CORPUS") or os.path.join(ROOT, "corpus")


def stoa_sql(statement):
    p = subprocess.run([os.path.join(ROOT, "stoa-sql"), "-q", statement], capture_output=True, text=True)
    return p.returncode, p.stderr


def tables():
    out = subprocess.run([os.path.join(ROOT, "stoa"), "ls", CORPUS, "-f", "jsonl"], capture_output=True, text=True).stdout
    names = [json.loads(l) for l in out.splitlines()]
    names = [d["name"] for d in names if d.get("format") and d.get("columns") and not d.get("problem")]
    return names[:: max(1, len(names) // 150)]


def alike(name, kind):
    """An expression that every version writes alike: bytes as digits; of nested values only whether they are null."""
    name = '"' + name.replace('"', '""') + '"'
    if kind in ("FLOAT", "DOUBLE"):
        return f"printf('%.17g', {name}::DOUBLE) AS {name}"
    if kind == "BLOB":
        return f"hex({name}) AS {name}"
    if re.search(r"[\[(]", kind) and not kind.startswith("DECIMAL"):
        return f"{name} IS NULL AS {name}"
    return name


def main():
    c = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    c.execute(f"LOAD '{os.path.abspath(sys.argv[1])}'")
    c.execute("SET threads = 2")
    equal = failed = 0
    with tempfile.TemporaryDirectory() as d:
        for name in tables():
            ours, theirs = os.path.join(d, "a.csv"), os.path.join(d, "b.csv")
            for f in (ours, theirs):
                if os.path.exists(f):
                    os.remove(f)
            quoted = name.replace("'", "''")
            try:
                columns = c.execute(f"DESCRIBE FROM stoa('{quoted}')").fetchall()
            except duckdb.Error:
                columns = []
            wanted = ", ".join(alike(*k[:2]) for k in columns) or "*"
            query = f"COPY (SELECT {wanted} FROM stoa('{quoted}')) TO '@' (FORMAT csv, HEADER false, FORCE_QUOTE *)"
            status, message = stoa_sql("SET threads = 2; " + query.replace("'@'", f"'{theirs}'"))
            try:
                c.execute(query.replace("'@'", f"'{ours}'"))
            except duckdb.Error as e:
                assert status != 0, f"{name}: {e}, where stoa-sql has no error"
                failed += 1
                continue
            assert status == 0 or os.path.exists(theirs), f"{name}: stoa-sql: {message}"
            a, b = open(ours, "rb").read(), open(theirs, "rb").read()
            assert a == b, f"{name}: {a[:200]!r} is not {b[:200]!r}"
            equal += 1
        subprocess.run([os.path.join(ROOT, "stoa"), "demo", os.path.join(d, "try"), "--damage"], check=True,
                       capture_output=True)
        t = os.path.join(d, "try")
        one = lambda q: c.execute(q).fetchall()
        assert one(f"SELECT count(*), sum(value) FROM '{t}/key.cfile'") == [(400, -365317066)]
        assert one(f"SELECT count(*) FROM stoa('{t}/kudu#d_major', filter := 'id < 100')") == \
            one(f"SELECT count(*) FROM '{t}/kudu#d_major' WHERE id < 100")
        assert one(f"SELECT code FROM stoa_verify('{t}/damaged/key.cfile')") == [("cfile.block.checksum",)]
        assert one(f"SELECT count(*) FROM stoa('{t}/damaged/key.cfile', damaged := 'skip-rows')") == [(272,)]
        for f in ("ls", "stats", "describe", "explain", "history"):
            place = {"ls": t, "history": f"{t}/kudu"}.get(f, f"{t}/key.cfile")
            assert one(f"SELECT count(*) FROM stoa_{f}('{place}')")[0][0] > 0, f
        assert one(f"SELECT count(*) FROM stoa_diff('{t}/key.cfile', '{t}/key.cfile')") == [(0,)]
        for query, words in ((f"SELECT * FROM '{t}/damaged/key.cfile'", "[539+525]: corrupt"),
                             ("SELECT * FROM nonsens", "does not exist"),
                             (f"SELECT * FROM stoa('{t}/key.cfile', filter := 'nobody = 3')", "nobody"),
                             (f"SELECT * FROM stoa('{t}/absent')", "no such file")):
            try:
                one(query)
                raise AssertionError(f"{query}: no error")
            except duckdb.Error as e:
                assert words in str(e), f"{query}: {e}"
    assert equal > 20, equal
    print(f"COUNT DuckDB {duckdb.__version__}: {equal} tables equal, {failed} with an error in both; functions, options, errors")


main()
