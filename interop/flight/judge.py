"""ADBC from Python, as a BI tool uses it. usage: judge.py URI TOKEN ROWS SUM [FILE of the certificate's authority]"""
import sys
import threading
import time

import adbc_driver_flightsql as driver
import adbc_driver_flightsql.dbapi as dbapi
import adbc_driver_manager
import pyarrow

uri, token, rows, total = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
options = driver.DatabaseOptions
tls = {options.TLS_ROOT_CERTS.value: open(sys.argv[5]).read()} if len(sys.argv) > 5 else {}
checks = 0


def expect(what, got, want):
    global checks
    checks += 1
    assert got == want, f"{what}: expected {want!r}, found {got!r}"


def fails(what, word, work):
    global checks
    checks += 1
    try:
        work()
    except adbc_driver_manager.Error as e:
        assert word in str(e), f"{what}: expected {word!r} in {e}"
        return
    raise AssertionError(f"{what}: no error")


def wrong(**kw):
    with dbapi.connect(uri, db_kwargs={**tls, **kw}, autocommit=True) as c, c.cursor() as s:
        s.execute("select count(*) from d_major")
        s.fetchall()


fails("no token", "auth", lambda: wrong())
fails("a wrong token", "", lambda: wrong(**{options.AUTHORIZATION_HEADER.value: "Bearer 0123456789"}))
fails("a wrong password", "password", lambda: wrong(username="anybody", password="wrong"))
for how in ({options.AUTHORIZATION_HEADER.value: "Bearer " + token}, {"username": "anybody", "password": token}):
    with dbapi.connect(uri, db_kwargs={**tls, **how}, autocommit=True) as c:
        info = c.adbc_get_info()
        expect("vendor", info["vendor_name"], "stoa")
        expect("types", c.adbc_get_table_types(), ["TABLE"])
        objects = c.adbc_get_objects(depth="all", table_name_filter="d_major").read_all().to_pylist()
        expect("catalogues", [o["catalog_name"] for o in objects], ["stoa"])
        tables = [t for s in objects[0]["catalog_db_schemas"] for t in s["db_schema_tables"]]
        expect("columns", [x["column_name"] for x in tables[0]["table_columns"]], "id a b c d e f g h v dt ts".split())
        expect("schema", c.adbc_get_table_schema("d_major", db_schema_filter="data").names[:2], ["id", "a"])
        with c.cursor() as s:
            s.execute("select * from data.d_major")
            t = s.fetch_arrow_table()
            expect("rows", t.num_rows, rows)
            expect("sum", sum(t["id"].to_pylist()), total)
            s.execute("select count(*) from d_major where id >= 0")
            expect("count", s.fetchall(), [(rows,)])
            s.adbc_prepare("select id from d_major where id < 50")
            s.execute("select id from d_major where id < 50")
            few = s.fetch_arrow_table()
            expect("filter", few["id"].to_pylist(), [x for x in t["id"].to_pylist() if x < 50])
            parts, schema = s.adbc_execute_partitions('select * from "big.parquet"')
            read = []
            for p in parts:
                s.adbc_read_partition(p)
                read.append(s.fetch_arrow_table())
            assert len(parts) > 3, f"only {len(parts)} partitions"
            expect("partitions in order", pyarrow.concat_tables(read)["n"].to_pylist(), list(range(2_000_000)))
            fails("a column that is not there", "no column nope", lambda: s.execute("select nope from d_major"))
            s.execute("select count(*) as n, sum(x.id) as s from data.d_major x join stoa.data.d_major y using (id)")
            expect("a join", [(int(a), int(b)) for a, b in s.fetchall()], [(rows, total)])
            few = sorted(x for x in t["id"].to_pylist())[:3]
            s.execute("select id from d_major order by id limit 3")
            expect("an order", [x for x, in s.fetchall()], few)
            for statement in ("select id from d_major where id <= ? and id >= ?",
                              "select id from d_major where id <= ? and id >= ? order by id"):
                s.execute(statement, parameters=(few[2], few[1]))
                expect("parameters of " + statement, sorted(x for x, in s.fetchall()), few[1:])
            fails("a table that is not there", "other", lambda: s.execute("select * from d_major, other"))
            fails("a file elsewhere", "", lambda: s.execute("select * from read_csv('/etc/passwd') order by 1"))

            def damage():
                s.execute('select * from "damaged/key.cfile"')
                s.fetch_arrow_table()
            fails("damage", "checksum", damage)
            s.execute('select * from "big.parquet"')
            reader = s.fetch_record_batch()
            reader.read_next_batch()
            threading.Timer(0, s.adbc_cancel).start()  # what the driver has fetched already is not cancelled

            def rest():
                for b in reader:
                    time.sleep(0.01)
            try:
                rest()
            except Exception as e:  # pyarrow has its own type for an error in a stream
                expect("cancelled", "ancel" in str(e), True)
            else:
                raise AssertionError("a statement that was cancelled went on to its end")
print(f"ADBC: {checks} checks")
