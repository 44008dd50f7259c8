"""The verbs: what they return is what the files are, and what the command says."""

import datetime
import importlib.metadata
import json
import os
import re
import warnings

import pyarrow as pa
import pytest
import stoa

from conftest import rows

pytestmark = pytest.mark.filterwarnings("ignore::stoa.StoaWarning")


def test_places_and_anatomy():
    for broken in [stoa.open, stoa.ls, stoa.stats, lambda p: list(stoa.describe(p))]:
        with pytest.raises(stoa.Corrupt):
            broken("try/damaged/cut.cfile")
    problems = {e.name: e.problem for e in stoa.ls("try")}
    assert problems["try/damaged/cut.cfile"].startswith("corrupt") and not problems["try/key.cfile"]
    for path in ("try/key.cfile", "try/flat.red", "try/dremel.trv"):
        at = 0
        for n in sorted((n for n in stoa.describe(path) if n.inner is None), key=lambda n: n.offset):
            assert n.offset <= at and n.length >= 0, n  # every byte has an owner
            at = max(at, n.offset + n.length)
        assert at == os.path.getsize(path)


def test_version():
    """The library and the wheel are of one commit, in the words of each: vX-TIME-COMMIT, and what PEP 440 has."""
    wheel = importlib.metadata.version("stoa")
    m = re.fullmatch(r"v0\.0\.0-(\d{14})-([0-9a-f]{12})(\+dirty)?", stoa.__version__)
    if m:
        assert wheel == f"0.0.0.dev{m[1]}+g{m[2]}" + (".dirty" if m[3] else "")
    else:
        assert stoa.__version__ == "unknown" or wheel.startswith(stoa.__version__[1:].partition("-")[0])
    doc = json.loads(stoa.run("version", "-f", "json"))
    assert doc["version"] == stoa.__version__ and stoa.run("version").startswith(f"stoa {stoa.__version__}, go")
    assert stoa.run("--version") == f"stoa {stoa.__version__}\n"
    if m:
        assert doc["revision"].startswith(m[2]) and re.sub(r"\D", "", doc["time"]) == m[1]
        assert doc["modified"] == bool(m[3])


def test_history_and_moments():
    (h,) = stoa.history("try/kudu#d_major")
    assert h["table"] == "d_major" and h["first"]["time"] < h["last"]["time"]
    assert {e["event"] for t in h["tablets"] for e in t["events"]} >= {"first", "exact", "schema", "last"}
    now = rows(stoa.open("try/kudu#d_major").to_table())
    first, last = (datetime.datetime.fromisoformat(h[k]["time"].replace("Z", "+00:00")) for k in ("first", "last"))
    lengths = [len(stoa.open("try/kudu", table="d_major", at=first + (last - first) * x / 10)) for x in range(1, 11)]
    assert lengths[0] < lengths[-1] and lengths[-1] <= 1619
    # a moment is just before what was done then, as in Kudu: the last operations are not in it
    before = rows(stoa.open("try/kudu#d_major", at=h["last"]["hybrid"]).to_table())
    assert before != now and len(before) == len(now)
    assert rows(stoa.open("try/kudu#d_major", at=last + datetime.timedelta(1), partial=True).to_table()) == now
    for k in ("time", "hybrid"):
        with pytest.raises(stoa.Unsupported, match="there were no rows"):
            stoa.open("try/kudu#d_major", at=h["first"][k])
    with pytest.raises(stoa.Unsupported, match="after all operations"):
        stoa.open("try/kudu#d_major", at="2040-01-01")


def test_seal(tmp_path):
    stoa.seal("try/flat.red", "flat.seal", parity="20%")
    assert stoa.verify("try/flat.red", seal="flat.seal") == []
    want = open("try/flat.red", "rb").read()
    b = bytearray(want)
    b[1000] ^= 1
    open("try/flat.red", "wb").write(b)
    found = stoa.verify("try/flat.red", seal="flat.seal")
    assert any(f.code.startswith("seal.") and f.offset <= 1000 < f.offset + f.length for f in found), found
    r = stoa.recover("try/flat.red", "mended.red", seal="flat.seal")
    assert r == {"files": 1, "whole": 0, "blocks": 1, "left_out": []} and open("mended.red", "rb").read() == want
    with pytest.raises(stoa.Invalid, match="bytes"):  # else Parquet would be expected, and is not what is written
        stoa.recover("try/flat.red", "mended.parquet", seal="flat.seal", format="parquet")
    stoa.seal("try/key.cfile", "key.seal")  # without parity it only finds
    b = bytearray(open("try/key.cfile", "rb").read())
    b[600] ^= 1
    open("try/key.cfile", "wb").write(b)
    codes = {f.code: f.object for f in stoa.verify("try/key.cfile", seal="key.seal")}
    assert codes["seal.changed"] == "try/key.cfile" and "seal.rows" in codes
    with pytest.raises(stoa.StoaError):
        stoa.recover("try/key.cfile", "again.cfile", seal="key.seal")
    assert not os.path.exists("again.cfile")


def test_stats_meta_explain():
    t = stoa.open("try/key.cfile").to_table()["value"].to_pylist()
    (s,) = stoa.stats("try/key.cfile")
    assert (s["column"], s["nulls"], s["rows"]) == ("value", 0, len(t))
    assert str(s["min"]) == str(min(t)) and str(s["max"]) == str(max(t))
    (m,) = stoa.meta("try/key.cfile")
    assert m["format"] == "cfile"
    e = stoa.explain("try/key.cfile", where="value > 2000000000", analyze=True)
    levels = {(x["level"], x.get("column") or ""): x for x in e["levels"]}
    read = next(x for k, x in levels.items() if k[0] == "rows")
    assert read["considered"] == 400 and sum(v > 2_000_000_000 for v in t) <= read["read"] < 400


def test_diff():
    found = stoa.diff("try/flat.red", "try/key.cfile")
    assert not found["equal"]
    stoa.write(stoa.open("try/key.cfile"), "same.trv")
    assert stoa.diff("try/key.cfile", "same.trv")["equal"]
    t = stoa.open("try/key.cfile").to_table()
    other = t.set_column(0, t.schema.field(0), pa.chunked_array([[7] + t["value"].to_pylist()[1:]], t.schema[0].type))
    stoa.write(other, "other.trv")
    assert not stoa.diff("try/key.cfile", "other.trv")["equal"]


def test_convert_writes_what_is_asked_for(tmp_path):
    r = stoa.convert("try/flat.red", "some.parquet", columns=["i", "d"], where="i > 0",
                     options={"compression": "zstd", "row-group-rows": 100})
    want = stoa.open("try/flat.red").to_table(columns=["i", "d"], filter=pa.compute.field("i") > 0)
    import pyarrow.parquet as pq

    f = pq.ParquetFile("some.parquet")
    assert r["rows"] == want.num_rows and f.metadata.row_group(0).column(0).compression == "ZSTD"
    assert f.metadata.num_row_groups == -(-want.num_rows // 100) and rows(f.read()) == rows(want)


def test_the_view_of_a_filtered_table():
    t = stoa.open("try/key.cfile").filter("value > 5").filter("value < 9")
    assert repr(t).endswith("\n  where value > 5 and value < 9")
    assert "400 rows where value &gt; 5 and value &lt; 9</p>" in t._repr_html_()


def test_the_view_of_a_damaged_table():
    h = stoa.open("try/damaged/primitives.trv")._repr_html_()
    assert "<th>b: bool" in h and re.search("expected [0-9a-f]+, computed [0-9a-f]+</td>", h)


def test_whoever_looks_at_a_place_is_warned_as_a_scan_is():
    """A Kudu tablet without its log may lack rows: whatever reads it says so."""
    place = "try/kudu#d_major"
    for do in (lambda p: stoa.open(p).to_table(), stoa.stats, stoa.explain, stoa.meta, lambda p: stoa.diff(p, p),
               lambda p: stoa.convert(p, "o.parquet"), lambda p: stoa.recover(p, "r.parquet")):
        with pytest.warns(stoa.StoaWarning, match="kudu.wal.missing: .*the tablet has no write-ahead log"):
            do(place)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "kudu.wal.missing" in [f.code for f in stoa.verify(place)]
