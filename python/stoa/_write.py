"""Writing tables, and changing those of CarbonData in place."""

from __future__ import annotations

import ctypes
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads

from . import _core
from ._core import Invalid, encode
from ._places import Path, text, written
from ._types import is_text, plain_rows, retyped, warn_retyped
from ._verbs import _text


def _stream(data) -> pa.RecordBatchReader:
    """Anything that has rows, as a stream."""
    if isinstance(data, pa.RecordBatchReader):
        return data
    if hasattr(data, "__arrow_c_stream__"):
        try:
            return pa.RecordBatchReader.from_stream(data)
        except pa.ArrowInvalid as e:  # a stream of something else than rows
            raise Invalid(f"data: expected rows, found {type(data).__name__}: {e}") from None
    if hasattr(data, "__arrow_c_array__"):
        try:
            return pa.table(pa.record_batch(data)).to_reader()
        except (pa.ArrowInvalid, TypeError, ValueError) as e:
            raise Invalid(f"data: expected rows, found {type(data).__name__}: {e}") from None
    if isinstance(data, pads.Dataset):
        return data.scanner().to_reader()
    if isinstance(data, pads.Scanner):
        return data.to_reader()
    if isinstance(data, dict):
        return pa.table(data).to_reader()
    if type(data).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(data, preserve_index=False).to_reader()
    raise Invalid(f"data: expected something with __arrow_c_stream__ (a table, a data frame, a reader) or a dict of "
                  f"columns, found {type(data).__name__}")


def _send(name: str, request: bytes | None, rows: pa.RecordBatchReader | None) -> Any:
    """Calls a function of the library that takes rows, and gives its document. The rows are exported in the thread that
    calls it: an interrupt between the two would leave a stream that nobody releases."""
    def do(token: int) -> Any:
        if rows is None:
            return _core.text_of(name, request, None, token)
        room = ctypes.create_string_buffer(_core.STREAM)
        rows._export_to_c(ctypes.addressof(room))
        return _core.text_of(name, request, ctypes.addressof(room), token)

    return _core.interruptible(do, host=rows is not None)


def write(data: Any, path: Path, format: str | None = None, check: bool = True, storage_options: dict[str,
          Any] | None = None,
          **options: Any) -> dict[str, Any]:
    """Writes rows as a new table. data is anything with ``__arrow_c_stream__``: of pyarrow, pandas, polars, DuckDB, or a
    table of stoa. The extension of path says the format, or format. The output appears when it is whole and was read back
    (check). options are the format's, with _ for -.

    Returns rows, bytes, files, and what is not as it went in. retyped are columns that come back as another type, as the
    output does not keep which it was; they are a StoaWarning, too.

    >>> import pyarrow as pa, stoa
    >>> stoa.write(pa.table({"a": [1, None], "b": ["x", "y"]}), "two.trv")["rows"]
    2
    >>> stoa.open("two.trv").to_table()["a"].to_pylist()
    [1, None]
    """
    opts = _core.options_of(options)
    to = written(path)
    request = encode({"path": to, "format": format or "", "options": opts, "no_check": not check,
                      "environment": _core.surroundings(storage_options if to.startswith("s3://") else None)})
    rows = plain_rows(_stream(data), to, format)
    schema = rows.schema
    summary = _send("stoa_write", request, rows)
    if is_text(to, format):
        summary["retyped"] = retyped(schema, to, format, storage_options)
    warn_retyped(to, summary)
    return summary


def _change(name: str, table: Path, with_: dict, rows=None, options: dict | None = None,
            disable_dependents=False) -> Any:
    request = encode({"change": name, "table": text(table), "options": options or {},
                      "disable_dependents": disable_dependents,
                      "with": {k: v for k, v in with_.items() if v is not None and v is not False}})
    return _send("stoa_change", request, None if rows is None else _stream(rows))


def create(table: Path, schema: pa.Schema, dry_run: bool = False, **spec: Any) -> None:
    """Makes an empty CarbonData table, STORE#DATABASE.TABLE. spec: sort_columns, inverted, long_strings, partition,
    bucket_by (lists of names), buckets, properties.

    >>> import pyarrow as pa, stoa
    >>> stoa.create("store#shop.orders", pa.schema([("id", pa.int64()), ("status", pa.string())]))
    >>> stoa.load("store#shop.orders", {"id": [1, 2, 3], "status": ["paid", "void", "paid"]})["rows"]
    3
    >>> stoa.delete("store#shop.orders", "status = 'void'")
    1
    >>> stoa.update("store#shop.orders", {"status": "sent"}, "id = 1")
    1
    >>> stoa.open("store#shop.orders").to_table()["status"].to_pylist()
    ['paid', 'sent']
    """
    if not isinstance(schema, pa.Schema):
        raise Invalid(f"schema: expected a pyarrow.Schema, found {type(schema).__name__}")
    if spec.get("buckets") is not None:
        spec["buckets"] = _core.whole("buckets", spec["buckets"], 0)
    _change("create", table, {"dry_run": dry_run, **spec}, pa.Table.from_batches([], schema))


def load(table: Path, data: Any, check: bool = True, dry_run: bool = False, tasks: int | None = None,
         dictionary: str | None = None, overwrite: bool = False, partition: dict[str, Any] | None = None,
         **options: Any) -> dict[str, Any]:
    """Adds rows to a CarbonData table as one load: all, or none. Columns are matched by name. overwrite: they take the
    place of all rows, or of those of partition, values of partition columns, which data need not have then.
    Returns rows, segment, …

    >>> import pyarrow as pa, stoa
    >>> stoa.create("store#shop.visits", pa.schema([("who", pa.string()), ("day", pa.int32())]), partition=["day"])
    >>> stoa.load("store#shop.visits", {"who": ["ann", "bo"], "day": pa.array([1, 2], pa.int32())})["rows"]
    2
    >>> _ = stoa.load("store#shop.visits", {"who": ["cy"]}, overwrite=True, partition={"day": 2})
    >>> sorted(stoa.open("store#shop.visits").to_table()["who"].to_pylist())
    ['ann', 'cy']
    """
    opts = _core.options_of(options)
    return _change("append", table, {"no_check": not check, "dry_run": dry_run, "tasks": _tasks(tasks), "opts": opts or None,
                                     "dictionary": dictionary, "overwrite": overwrite,
                                     "partition": _cells(partition)}, data)


def merge(table: Path, data: Any, key: Any, check: bool = True, dry_run: bool = False, tasks: int | None = None,
          **options: Any) -> dict[str, Any]:
    """Adds rows, each in place of those that have the same values in the key columns, in one change. Returns rows,
    replaced, added, …

    >>> import pyarrow as pa, stoa
    >>> stoa.create("store#shop.stock", pa.schema([("item", pa.string()), ("left", pa.int64())]))
    >>> _ = stoa.load("store#shop.stock", {"item": ["bolt", "nut"], "left": [7, 9]})
    >>> r = stoa.merge("store#shop.stock", {"item": ["nut", "nail"], "left": [8, 100]}, "item")
    >>> r["replaced"], r["added"]
    (1, 1)
    """
    opts = _core.options_of(options)
    return _change("merge", table, {"key": [key] if isinstance(key, str) else list(key), "no_check": not check,
                                    "dry_run": dry_run, "tasks": _tasks(tasks), "opts": opts or None}, data)


def delete(table: Path, where: str, dry_run: bool = False) -> int:
    """Deletes the rows for which where, stoa's text, is true; returns their number.

    >>> import pyarrow as pa, stoa
    >>> stoa.create("store#shop.bills", pa.schema([("n", pa.int64())]))
    >>> _ = stoa.load("store#shop.bills", {"n": [1, 2, 3]})
    >>> stoa.delete("store#shop.bills", "n >= 2", dry_run=True), stoa.delete("store#shop.bills", "n = 2")
    (2, 1)
    >>> stoa.open("store#shop.bills").to_table()["n"].to_pylist()
    [1, 3]
    """
    return _change("delete", table, {"where": _text(where), "dry_run": dry_run})["rows"]


def delete_segments(table: Path, segments: list[str], dry_run: bool = False) -> None:
    """Removes whole segments; ``clean`` removes their files.

    >>> import pyarrow as pa, stoa
    >>> stoa.create("store#shop.weeks", pa.schema([("n", pa.int64())]))
    >>> names = [stoa.load("store#shop.weeks", {"n": [n]})["segment"] for n in (1, 2)]
    >>> stoa.delete_segments("store#shop.weeks", names[:1])
    >>> stoa.open("store#shop.weeks").to_table()["n"].to_pylist()
    [2]
    """
    _change("delete_segments", table, {"segments": [str(s) for s in segments], "dry_run": dry_run})


def update(table: Path, set: dict[str, Any], where: str, check: bool = True, dry_run: bool = False) -> int:
    """Gives columns new values (None: null) where a predicate is true; returns the number of rows.

    >>> import pyarrow as pa, stoa
    >>> stoa.create("store#shop.prices", pa.schema([("item", pa.string()), ("price", pa.int64())]))
    >>> _ = stoa.load("store#shop.prices", {"item": ["bolt", "nut"], "price": [7, 9]})
    >>> stoa.update("store#shop.prices", {"price": 8}, "item = 'nut'")
    1
    >>> sorted(stoa.open("store#shop.prices").to_table()["price"].to_pylist())
    [7, 8]
    """
    with_ = {"set": _cells(set), "where": _text(where), "no_check": not check, "dry_run": dry_run}
    return _change("update", table, with_)["rows"]


def _tasks(n: int | None) -> int | None:
    return None if n is None else _core.whole("tasks", n, 0)


def _cells(values: dict | None) -> dict | None:
    """Values as texts; None stays None: null."""
    return None if values is None else {k: _cell(v) for k, v in values.items()}


def _cell(v: Any) -> str | None:
    v = v.as_py() if isinstance(v, pa.Scalar) else v
    if v is None or type(v).__name__ in ("NAType", "NaTType"):  # pandas' words for null
        return None
    if isinstance(v, (bytes, bytearray, memoryview, list, tuple, set, dict)):
        raise Invalid(f"expected a number, a text, a moment or None, found {type(v).__name__}")
    if isinstance(v, str) and not v.isprintable():
        try:
            v.encode()
        except UnicodeEncodeError:
            raise Invalid(f"expected a text that UTF-8 has, found {v!r}") from None
    if isinstance(v, bool):
        return "true" if v else "false"
    return v.isoformat(sep=" ") if hasattr(v, "hour") and hasattr(v, "year") else str(v)


def compact(table: Path, mode: str = "minor", segments: list[str] | None = None,
            dry_run: bool = False) -> list[dict[str, Any]]:
    """Writes the rows of several segments as one: "minor", "major", or those that are named.

    >>> import pyarrow as pa, stoa
    >>> for n in (1, 2):
    ...     stoa.create("store#shop.days", pa.schema([("n", pa.int64())])) if n == 1 else None
    ...     _ = stoa.load("store#shop.days", {"n": [n]})
    >>> len(stoa.compact("store#shop.days", "major"))
    1
    """
    if segments is None and mode not in ("minor", "major"):
        raise Invalid(f"compact: expected minor or major, found {mode!r}")
    with_ = {"segments": segments, "major": segments is None and mode == "major"}
    return _change("compact", table, {**with_, "dry_run": dry_run}) or []


def merge_indexes(table: Path, segments: list[str] | None = None, dry_run: bool = False) -> dict[str, Any]:
    """Merges the index files of each segment into one. No row changes.

    >>> import pyarrow as pa, stoa
    >>> stoa.create("store#shop.many", pa.schema([("n", pa.int64())]))
    >>> _ = stoa.load("store#shop.many", {"n": [1, 2]}, tasks=2)
    >>> sorted(stoa.merge_indexes("store#shop.many"))  # how many files became one, and where
    ['files', 'segments']
    """
    return _change("merge_indexes", table, {"segments": segments, "dry_run": dry_run})


def add_column(table: Path, field: pa.Field, default: str | None = None, dry_run: bool = False) -> None:
    """Adds a column; existing rows get the default, a text, or null.

    >>> import pyarrow as pa, stoa
    >>> stoa.create("store#shop.wide", pa.schema([("n", pa.int64())]))
    >>> _ = stoa.load("store#shop.wide", {"n": [1]})
    >>> stoa.add_column("store#shop.wide", pa.field("note", pa.string()), default="none")
    >>> stoa.open("store#shop.wide").to_table().to_pylist()
    [{'n': 1, 'note': 'none'}]
    """
    _change("add_column", table, {"default": default, "dry_run": dry_run}, pa.Table.from_batches([], pa.schema([field])))


def drop_column(table: Path, column: str, dry_run: bool = False) -> None:
    """Takes a column out of a table.

    >>> import pyarrow as pa, stoa
    >>> stoa.create("store#shop.narrow", pa.schema([("n", pa.int64()), ("note", pa.string())]))
    >>> stoa.drop_column("store#shop.narrow", "note")
    >>> stoa.open("store#shop.narrow").schema.names
    ['n']
    """
    _change("drop_column", table, {"column": column, "dry_run": dry_run})


def alter_column(table: Path, column: str, name: str | None = None, type: pa.DataType | None = None,
                 dry_run: bool = False) -> None:
    """Gives a column another name, or a type that holds all values of its present one. No data file is touched.

    >>> import pyarrow as pa, stoa
    >>> stoa.create("store#shop.counts", pa.schema([("left", pa.int32())]))
    >>> stoa.alter_column("store#shop.counts", "left", type=pa.int64())
    >>> stoa.alter_column("store#shop.counts", "left", name="count")
    >>> [(f.name, str(f.type)) for f in stoa.open("store#shop.counts").schema]
    [('count', 'int64')]
    """
    field = [] if type is None else [pa.field(column, type)]
    _change("alter_column", table, {"column": column, "name": name, "dry_run": dry_run},
            pa.Table.from_batches([], pa.schema(field)))


def rename(table: Path, to: Path, dry_run: bool = False, disable_dependents: bool = False) -> None:
    """Gives a table another name, STORE#DATABASE.NAME: its directory moves, and nothing may be there.

    >>> import pyarrow as pa, stoa
    >>> stoa.create("store#shop.old", pa.schema([("n", pa.int64())]))
    >>> stoa.rename("store#shop.old", "store#shop.new")
    >>> stoa.open("store#shop.new").schema.names
    ['n']
    """
    _change("rename", table, {"to": text(to), "dry_run": dry_run}, disable_dependents=disable_dependents)


def truncate(table: Path, dry_run: bool = False, disable_dependents: bool = False) -> list[str]:
    """Removes all rows, by whole segments, whose names it returns; ``clean`` removes their files.

    >>> import pyarrow as pa, stoa
    >>> stoa.create("store#shop.full", pa.schema([("n", pa.int64())]))
    >>> _ = stoa.load("store#shop.full", {"n": [1]})
    >>> len(stoa.truncate("store#shop.full")), len(stoa.open("store#shop.full"))
    (1, 0)
    """
    return _change("truncate", table, {"dry_run": dry_run}, disable_dependents=disable_dependents) or []


def set_properties(table: Path, properties: dict[str, Any], dry_run: bool = False) -> None:
    """Sets properties of a table; None removes one.

    >>> import pyarrow as pa, stoa
    >>> stoa.create("store#shop.told", pa.schema([("n", pa.int64())]))
    >>> stoa.set_properties("store#shop.told", {"comment": "what is left"})
    >>> "what is left" in str(stoa.meta("store#shop.told"))
    True
    >>> stoa.set_properties("store#shop.told", {"comment": None})
    """
    _change("set_properties", table, {"properties": _cells(properties), "dry_run": dry_run})


def add_partition(table: Path, partition: dict[str, Any], location: Path | None = None, dry_run: bool = False) -> str:
    """Adds a partition, empty, or with the data files of a directory; returns the segment that these are, or
    an empty text.

    >>> import pyarrow as pa, stoa
    >>> stoa.create("store#shop.parts", pa.schema([("n", pa.int64()), ("at", pa.string())]), partition=["at"])
    >>> stoa.add_partition("store#shop.parts", {"at": "north"})
    ''
    """
    return _change("add_partition", table, {"partition": _cells(partition), "dry_run": dry_run,
                                            "location": None if location is None else text(location)})


def drop_partition(table: Path, partition: dict[str, Any], dry_run: bool = False) -> dict[str, Any]:
    """Removes the rows of partitions. Returns partitions and segments that had rows in them.

    >>> import pyarrow as pa, stoa
    >>> stoa.create("store#shop.places", pa.schema([("n", pa.int64()), ("at", pa.string())]), partition=["at"])
    >>> _ = stoa.load("store#shop.places", {"n": [1, 2], "at": ["north", "south"]})
    >>> _ = stoa.drop_partition("store#shop.places", {"at": "south"})
    >>> stoa.open("store#shop.places").to_table()["n"].to_pylist()
    [1]
    """
    return _change("drop_partition", table, {"partition": _cells(partition), "dry_run": dry_run})


def add_segment(table: Path, path: Path, format: str | None = None, dry_run: bool = False) -> str:
    """Makes the files of a directory a segment, where they are, and returns its name. What lies outside of the table
    is read with external=True alone. Parquet has to be as Spark 3.1 reads it.

    >>> import os, pyarrow as pa, stoa
    >>> stoa.create("store#shop.mixed", pa.schema([("n", pa.int64())]))
    >>> os.mkdir("files")
    >>> _ = stoa.write({"n": [1, 2]}, "files/part.parquet", encoding="plain")
    >>> stoa.add_segment("store#shop.mixed", os.path.abspath("files"), format="parquet")
    '0'
    >>> stoa.open("store#shop.mixed", external=True).to_table()["n"].to_pylist()
    [1, 2]
    """
    return _change("add_segment", table, {"path": text(path), "format": format, "dry_run": dry_run})


def clean(table: Path, dry_run: bool = False) -> dict[str, Any]:
    """Removes files that are no part of a table any more.

    >>> import pyarrow as pa, stoa
    >>> stoa.create("store#shop.tidy", pa.schema([("n", pa.int64())]))
    >>> _ = stoa.load("store#shop.tidy", {"n": [1]})
    >>> _ = stoa.truncate("store#shop.tidy")
    >>> stoa.clean("store#shop.tidy")["segments"]
    ['0']
    """
    return _change("clean", table, {"dry_run": dry_run})


def drop(table: Path, dry_run: bool = False) -> dict[str, Any]:
    """Removes a table with all its files.

    >>> import pyarrow as pa, stoa
    >>> stoa.create("store#shop.gone", pa.schema([("n", pa.int64())]))
    >>> stoa.drop("store#shop.gone")["dir"]
    'store/shop/gone'
    """
    return _change("drop", table, {"dry_run": dry_run})
