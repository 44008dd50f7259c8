"""What Spark writes by us is read by the systems of the formats: Kudu's dump, Avro's reader, CarbonData's SDK."""

import glob
import json
import pathlib
import subprocess
from datetime import date, datetime, timedelta
from decimal import Decimal

import conftest

INTEROP = pathlib.Path(__file__).parent.parent
ROWS = 3000
SQL = ("select id n, if(id % 3 = 0, null, concat('é ', id)) s, id / 8.0d x, id % 2 = 1 b, "
       f"cast(id * 7919 - 99 as int) i from range({ROWS})")


def want(n):
    """The row of SQL with that number."""
    return [n, None if n % 3 == 0 else f"é {n}", n / 8, n % 2 == 1, n * 7919 - 99]


WANT = [want(n) for n in range(ROWS)]


def run(*args):
    return subprocess.run(list(map(str, args)), check=True, stdout=subprocess.PIPE, text=True).stdout


def written(at, fmt):
    """Two jobs of three tasks; the parts of what they wrote."""
    place = f"{at}/{fmt}"
    for mode in "overwrite", "append":
        conftest.spark().ask(sql=SQL, write=place, mode=mode, tasks=3, how={"to": fmt})
    parts = sorted(glob.glob(place + "/part-*"))
    assert len(parts) == 6, parts
    return parts


def test_kudu_reads_cfiles(tmp_path):
    cell = {"s": lambda v: "NULL" if v == "NULL" else json.loads(v), "b": lambda v: v in ("1", "true")}
    rows = []
    for part in written(tmp_path, "cfile"):
        columns = []
        for name in "nsxbi":
            lines = run(INTEROP / "kudu/judge.sh", f"{part}/{name}.cfile").split("\n\n", 2)[2].splitlines()
            values = [cell.get(name, float)(v) for v in lines]
            columns.append([None if v == "NULL" else v for v in values])
        assert len(set(map(len, columns))) == 1, [len(c) for c in columns]
        rows += map(list, zip(*columns))
    assert sorted(rows, key=lambda r: r[0]) == [r for r in WANT for _ in range(2)]
    print(f"\nCOUNT cfile: {len(rows)} rows read by Kudu's dump")


def test_avro_reads_trevni(tmp_path):
    home = run(INTEROP / "trevni/get.sh").strip() + "/1.12.2/target/"
    rows = []
    for line in run("java", "-cp", f"{home}classes:{home}lib/*", "peer.Judge", "--rows",
                    *written(tmp_path, "trevni-avro")).splitlines():
        row = json.loads(line)
        assert row.get("ok", True), row
        if "row" in row:  # a nullable column is an array of one value or none
            rows.append([(v or [None])[0] if isinstance(v, list) else v for v in row["v"]])
    assert sorted(rows, key=lambda r: r[0]) == [r for r in WANT for _ in range(2)]
    print(f"\nCOUNT trevni: {len(rows)} rows read by Avro's reader")


TYPED = ("select id n, if(id % 5 = 0, null, cast(id * 1.125 - 99 as decimal(12,3))) dec, date_add(date'1969-12-01', "
         "cast(id as int)) da, timestamp_millis(id * 7919000 - 5) ts, cast(id % 251 - 125 as smallint) sm, "
         "cast(id / 4 as float) f, if(id % 4 = 0, null, array(cast(id as int), null)) li, "
         f"named_struct('a', id, 'b', concat('é ', id)) st from range({ROWS})")


def typed(n):
    """The row of TYPED with that number, as CarbonData's SDK has it."""
    dec = None if n % 5 == 0 else str((Decimal(n) * Decimal("1.125") - 99).quantize(Decimal("0.001")))
    at = datetime(1970, 1, 1) + timedelta(milliseconds=n * 7919000 - 5)
    return {"n": n, "dec": dec, "da": str(date(1969, 12, 1) + timedelta(days=n)),
            "ts": at.isoformat(" ", "milliseconds"), "sm": n % 251 - 125, "f": n / 4,
            "li": None if n % 4 == 0 else [n, None], "st": [n, f"é {n}"]}


def test_carbondata_reads_types(tmp_path):
    """Columns that the SDK has words of its own for: decimals, days, times, short numbers, lists, structs."""
    s, place = conftest.spark(), f"{tmp_path}/store#d.t"
    s.ask(sql=TYPED, write=f"{tmp_path}/schema", how={"to": "parquet"})
    run("stoa", "create", "-q", place, "--schema", f"{tmp_path}/schema")
    s.ask(sql=TYPED, write=place, tasks=3)
    (tmp_path / "list").write_text(f"{tmp_path}/store/d/t/Fact/Part0/Segment_0\t{tmp_path}/rows.jsonl\n")
    run(INTEROP / "carbon/read.sh", tmp_path / "list")
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert sorted(rows, key=lambda r: r["n"]) == [typed(n) for n in range(ROWS)]


def test_carbondata_reads_segments(tmp_path):
    s, place = conftest.spark(), f"{tmp_path}/store#d.t"
    s.ask(sql=SQL, write=f"{tmp_path}/schema", how={"to": "parquet"})
    run("stoa", "create", "-q", place, "--schema", f"{tmp_path}/schema")
    rows = []
    for n in range(2):
        s.ask(sql=SQL, write=place, tasks=3)
        out = tmp_path / f"{n}.jsonl"
        (tmp_path / "list").write_text(f"{tmp_path}/store/d/t/Fact/Part0/Segment_{n}\t{out}\n")
        run(INTEROP / "carbon/read.sh", tmp_path / "list")
        rows += [[json.loads(line)[c] for c in "nsxbi"] for line in out.read_text().splitlines()]
    assert sorted(rows, key=lambda r: r[0]) == [r for r in WANT for _ in range(2)]
    print(f"\nCOUNT carbon: {len(rows)} rows read by CarbonData's SDK")
