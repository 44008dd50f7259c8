"""Every table of the corpus, read by stoa.open().to_table(), has the rows that the real programs, or the generators'
formulas, say. STOA_CORPUS is the folder with kudu/ in it."""

import base64
import collections
import decimal
import gzip
import json
import math
import os
import pathlib
import re
import struct

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
import pytest
import stoa

ROOT = pathlib.Path(os.environ["STOA_CORPUS"])
pytestmark = pytest.mark.filterwarnings("ignore::stoa.StoaWarning")


def lines(path):
    opened = gzip.open(path, "rt", encoding="utf-8") if str(path).endswith(".gz") else open(path, encoding="utf-8")
    with opened as f:
        return [json.loads(l) for l in f if l.strip()]


def differ(got, want, ordered):
    """The first difference; None if there is none."""
    if len(got) != len(want):
        return f"{len(got)} rows, expected {len(want)}"
    if not ordered:
        more = collections.Counter(map(repr, got))
        more.subtract(collections.Counter(map(repr, want)))
        off = [(k, n) for k, n in more.items() if n]
        return f"{off[:4]}" if off else None
    for i, (g, w) in enumerate(zip(got, want)):
        if repr(g) != repr(w):
            return f"row {i}: found {g!r}, expected {w!r}"
    return None


# Kudu: floats as the hex of their bits, decimals unscaled, binary as hex, dates in days, times in microseconds.

def kudu_cells(column):
    t = column.type
    column = column.combine_chunks()
    if pt.is_dictionary(t):
        column = column.dictionary_decode()
        t = column.type
    if pt.is_float64(t):
        return [None if v is None else struct.pack(">d", v).hex() for v in column.to_pylist()]
    if pt.is_float32(t):
        return [None if v is None else struct.pack(">f", v).hex() for v in column.to_pylist()]
    if pt.is_decimal(t):
        return [None if v is None else str(unscaled(v)) for v in column.to_pylist()]
    if pt.is_binary(t):
        return [None if v is None else v.hex() for v in column.to_pylist()]
    if pt.is_date32(t):
        return column.cast(pa.int32()).to_pylist()
    if pt.is_timestamp(t):
        return column.cast(pa.timestamp("us", t.tz)).cast(pa.int64()).to_pylist()
    return column.to_pylist()


def unscaled(v):
    sign, digits, _ = v.as_tuple()
    return int("".join(map(str, digits))) * (-1 if sign else 1)


def kudu_tables():
    for run in ("fs_log", "fs_file"):
        for e in stoa.ls(str(ROOT / "kudu" / run)):
            name = e.name.rpartition("#")[2]
            # of d_wal the last rows are in the log alone, which these directories do not have
            phase = "p4" if name == "d_wal" else "final"
            expected = ROOT / "kudu" / "expected" / f"{name}.{phase}.jsonl.gz"
            if expected.exists():
                yield pytest.param(e.name, expected, id=f"{run}-{name}")


@pytest.mark.parametrize("name, expected", list(kudu_tables()))
def test_kudu(name, expected):
    t = stoa.open(name).to_table()
    got = [list(r) for r in zip(*(kudu_cells(c) for c in t.columns))]
    assert differ(got, lines(expected), False) is None


# Trevni and RedFile: binary as base64, a float as the double that it equals, NaN and infinities as texts.

def plain(v):
    if isinstance(v, bytes):
        return base64.b64encode(v).decode()
    if isinstance(v, float):
        if math.isnan(v):
            return "NaN"
        if math.isinf(v):
            return "Infinity" if v > 0 else "-Infinity"
        return v
    if isinstance(v, list):
        return [plain(x) for x in v]
    if isinstance(v, dict):
        return {k: plain(x) for k, x in v.items()}
    return v


def numbers(want, got):
    """The expected value with whole floats as the column has them: JSON does not tell 1.0 from 1."""
    if isinstance(want, list) and isinstance(got, list):
        return [numbers(w, g) for w, g in zip(want, got)] + want[len(got):]
    if isinstance(want, dict) and isinstance(got, dict):
        return {k: numbers(w, got.get(k)) for k, w in want.items()}
    return float(want) if isinstance(want, int) and not isinstance(want, bool) and isinstance(got, float) else want


def manifest(system):
    m = json.loads((ROOT / system / "MANIFEST.json").read_text())
    for f in m["files"]:
        if f.get("expect"):
            yield pytest.param(system, f["file"], f["expect"], id=f["file"])


def without_dollar(v):
    """A group's own value is $ there, and null where a column has none: such a group has no field of that name here."""
    if isinstance(v, list):
        return [without_dollar(x) for x in v]
    if isinstance(v, dict):
        return {k: without_dollar(x) for k, x in v.items() if k != "$" or x is not None}
    return v


@pytest.mark.parametrize("system, file, expect", list(manifest("trevni")))
def test_trevni(system, file, expect):
    t = stoa.open(str(ROOT / system / file)).to_table()
    got = [[plain(v) for v in r.values()] for r in t.to_pylist()]
    want = [without_dollar(x["v"]) for x in lines(ROOT / system / expect)]
    want = [numbers(w, g) for w, g in zip(want, got)] + want[len(got):]
    assert differ(got, want, True) is None


def as_groups(v):
    """A row as the writer's records have it: every field is a list of its occurrences, and missing if it has none."""
    out = {}
    for k, x in v.items():
        xs = [] if x is None else x if isinstance(x, list) else [x]
        xs = [as_groups(y) if isinstance(y, dict) else plain(y.decode() if isinstance(y, bytes) else y) for y in xs]
        if xs:
            out[k] = xs
    return out


def text(v):
    return v.decode() if isinstance(v, bytes) else plain(v)


@pytest.mark.parametrize("system, file, expect", list(manifest("redfile")))
def test_redfile(system, file, expect):
    t = stoa.open(str(ROOT / system / file)).to_table()
    want = lines(ROOT / system / expect)
    records = want and isinstance(next(iter(want[0].values()), []), list)  # else: flat rows, in which null is null
    got = [as_groups(r) if records else {k: text(v) for k, v in r.items()} for r in t.to_pylist()]
    want = [numbers(w, g) for w, g in zip(want, got)] + want[len(got):]
    assert differ(got, want, True) is None


# CarbonData: what its own reader printed, in the order of the file, and what Spark printed of managed tables. Structs are
# lists of their values, maps lists of keys and of values, binary is hex.

def carbon_manifest():
    return json.loads((ROOT / "carbon" / "MANIFEST.json").read_text())["tables"]


def carbon_found(v, t):
    """A value of a column of type t, in the words of carbon_expected."""
    if v is None:
        return None
    if pt.is_struct(t):
        return [carbon_found(v[t.field(i).name], t.field(i).type) for i in range(t.num_fields)]
    if pt.is_map(t):
        return [[carbon_found(k, t.key_type) for k, _ in v], [carbon_found(x, t.item_type) for _, x in v]]
    if pt.is_list(t):
        return [carbon_found(x, t.value_type) for x in v]
    if pt.is_timestamp(t):
        return v.replace(tzinfo=None).isoformat(sep=" ", timespec="milliseconds")
    if pt.is_date(t) or pt.is_decimal(t):
        return str(v)
    if pt.is_floating(t):
        return carbon_float(v, t)
    return v.hex() if isinstance(v, bytes) else v


def carbon_float(v, t):
    v = float(v)
    return struct.pack(">f" if pt.is_float32(t) else ">d", v).hex() if not math.isnan(v) else "NaN"


def carbon_expected(v, t):
    if v is None:
        return None
    if pt.is_struct(t):
        values = [v.get(t.field(i).name) for i in range(t.num_fields)] if isinstance(v, dict) else v
        return [carbon_expected(x, t.field(i).type) for i, x in enumerate(values)]
    if pt.is_map(t) and isinstance(v, dict):
        keys = [int(k) if pt.is_integer(t.key_type) else k for k in v]
        return [keys, [carbon_expected(x, t.item_type) for x in v.values()]]
    if pt.is_map(t):
        return [[carbon_expected(k, t.key_type) for k in v[0]], [carbon_expected(x, t.item_type) for x in v[1]]]
    if pt.is_list(t):
        return [carbon_expected(x, t.value_type) for x in v]
    if pt.is_decimal(t) and not isinstance(v, str):
        return str(decimal.Decimal(str(v)).quantize(decimal.Decimal(1).scaleb(-t.scale)))
    if isinstance(v, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT[0-9:.]+Z", v):  # Spark's JSON
        return v[:10] + " " + v[11:-1]
    return carbon_float(v, t) if pt.is_floating(t) else v


def day_text(days):
    """A day as CarbonData's reader prints it. Where its files count by Java's calendar, stoa gives the day that has the
    same name in Arrow's (docs/formats/carbon.md)."""
    return str(np.datetime64(days, "D"))


def time_text(ms):
    days, rest = divmod(ms, 86_400_000)
    return f"{day_text(days)} {rest // 3_600_000:02}:{rest // 60_000 % 60:02}:{rest // 1000 % 60:02}.{rest % 1000:03}"


def naive(t):
    """The table with days and times as texts: Python's calendar does not have all that a column can hold."""
    for i, f in enumerate(t.schema):
        if pt.is_timestamp(f.type) or pt.is_date32(f.type):
            day = pt.is_date32(f.type)
            numbers = t.column(i).cast(pa.int32() if day else pa.timestamp("ms", f.type.tz)).cast(pa.int64())
            texts = [None if v is None else day_text(v) if day else time_text(v) for v in numbers.to_pylist()]
            t = t.set_column(i, f.name, pa.array(texts, pa.string()))
    return t


@pytest.mark.parametrize("table", [pytest.param(x, id=x["table"]) for x in carbon_manifest()
                                   if x.get("expected_by_carbon_row_reader_in_file_order")])
def test_carbon(table):
    t = naive(stoa.open(str(ROOT / "carbon" / table["path"])).to_table())
    want = lines(ROOT / "carbon" / table["expected_by_carbon_row_reader_in_file_order"])
    if "c_bin" in table["comparison"]["columns_that_differ"]:  # the reader says null of empty ones; no nulls were written
        want = [{**w, "c_bin": w["c_bin"] or ""} for w in want]
    compare_carbon(t, want, True)


def compare_carbon(t, want, ordered):
    got = [{f.name: carbon_found(v, f.type) for f, v in zip(t.schema, r)}
           for r in zip(*(c.to_pylist() for c in t.columns))]
    want = [{f.name: carbon_expected(w.get(f.name), f.type) for f in t.schema} for w in want]
    assert differ(got, want, ordered) is None


@pytest.mark.parametrize("name", sorted(p.name.partition(".")[0] for p in (ROOT / "carbon" / "managed").glob("*.jsonl")))
def test_carbon_managed(name):
    t = naive(stoa.open(str(ROOT / "carbon" / "managed" / name)).to_table())
    compare_carbon(t, lines(ROOT / "carbon" / "managed" / f"{name}.expected.jsonl"), False)


def test_there_were_tables():
    assert len(list(kudu_tables())) > 20 and len(list(manifest("trevni"))) > 20
    assert len(list(manifest("redfile"))) > 10 and len(carbon_manifest()) > 20
