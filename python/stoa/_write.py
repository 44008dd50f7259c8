"""Writing tables, and changing those of CarbonData in place."""

from __future__ import annotations

import ctypes
import json
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads

from . import _core
from ._core import Invalid, encode
from ._places import Path, text, written


def _stream(data) -> pa.RecordBatchReader:
    """Anything that has rows, as a stream."""
    if isinstance(data, pa.RecordBatchReader):
        return data
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    if isinstance(data, pads.Dataset):
        return data.scanner().to_reader()
    if isinstance(data, dict):
        return pa.table(data).to_reader()
    if type(data).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(data, preserve_index=False).to_reader()
    raise Invalid(f"data: expected something with __arrow_c_stream__ (a table, a data frame, a reader) or a dict of "
                  f"columns, found {type(data).__name__}")


def _export(reader: pa.RecordBatchReader):
    room = ctypes.create_string_buffer(40)
    reader._export_to_c(ctypes.addressof(room))
    return room


def write(data: Any, path: Path, format: str | None = None, check: bool = True, storage_options: dict[str,
          Any] | None = None,
          **options: Any) -> dict[str, Any]:
    """Writes rows as a new table. data is anything with ``__arrow_c_stream__``: of pyarrow, pandas, polars, DuckDB, or a
    table of stoa. The extension of path says the format, or format. The output appears when it is whole and was read back
    (check). options are the format's, with _ for -.

    Returns rows, bytes, files, and what is not as it went in.

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
    room = _export(_stream(data))
    return _core.interruptible(
        lambda token: _core.text_of("stoa_write", request, ctypes.addressof(room), token))


def _change(name: str, table: Path, with_: dict, rows=None, options: dict | None = None,
            disable_dependents=False) -> Any:
    request = encode({"change": name, "table": text(table), "options": options or {},
                      "disable_dependents": disable_dependents,
                      "with": {k: v for k, v in with_.items() if v is not None and v is not False}})
    room = None if rows is None else _export(_stream(rows))
    at = None if room is None else ctypes.addressof(room)
    return _core.interruptible(lambda token: _core.text_of("stoa_change", request, at, token))


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
    _change("create", table, {"dry_run": dry_run, **spec}, pa.Table.from_batches([], schema))


def load(table: Path, data: Any, check: bool = True, dry_run: bool = False, tasks: int | None = None,
         dictionary: str | None = None, overwrite: bool = False, partition: dict[str, Any] | None = None,
         **options: Any) -> dict[str, Any]:
    """Adds rows to a CarbonData table as one load: all, or none. Columns are matched by name. overwrite: they take the
    place of all rows, or of those of partition, values of partition columns, which data need not have then. See
    ``create``."""
    opts = _core.options_of(options)
    return _change("append", table, {"no_check": not check, "dry_run": dry_run, "tasks": tasks, "opts": opts or None,
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
                                    "dry_run": dry_run, "tasks": tasks, "opts": opts or None}, data)


def delete(table: Path, where: str, dry_run: bool = False) -> int:
    """Deletes the rows for which where, stoa's text, is true; returns their number. See ``create``."""
    return _change("delete", table, {"where": where, "dry_run": dry_run})["rows"]


def delete_segments(table: Path, segments: list[str], dry_run: bool = False) -> None:
    """Removes whole segments; ``clean`` removes their files."""
    _change("delete_segments", table, {"segments": [str(s) for s in segments], "dry_run": dry_run})


def update(table: Path, set: dict[str, Any], where: str, check: bool = True, dry_run: bool = False) -> int:
    """Gives columns new values (None: null) where a predicate is true; returns the number of rows. See ``create``."""
    with_ = {"set": _cells(set), "where": where, "no_check": not check, "dry_run": dry_run}
    return _change("update", table, with_)["rows"]


def _cells(values: dict | None) -> dict | None:
    """Values as texts; None stays None: null."""
    return None if values is None else {k: None if v is None else _cell(v) for k, v in values.items()}


def _cell(v: Any) -> str:
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
    with_ = {"segments": segments} if segments is not None else {mode: True}
    return _change("compact", table, {**with_, "dry_run": dry_run}) or []


def merge_indexes(table: Path, segments: list[str] | None = None, dry_run: bool = False) -> dict[str, Any]:
    """Merges the index files of each segment into one. No row changes."""
    return _change("merge_indexes", table, {"segments": segments, "dry_run": dry_run})


def add_column(table: Path, field: pa.Field, default: str | None = None, dry_run: bool = False) -> None:
    """Adds a column; existing rows get the default, a text, or null."""
    _change("add_column", table, {"default": default, "dry_run": dry_run}, pa.Table.from_batches([], pa.schema([field])))


def drop_column(table: Path, column: str, dry_run: bool = False) -> None:
    """Takes a column out of a table."""
    _change("drop_column", table, {"column": column, "dry_run": dry_run})


def alter_column(table: Path, column: str, name: str | None = None, type: pa.DataType | None = None,
                 dry_run: bool = False) -> None:
    """Gives a column another name, or a type that holds all values of its present one. No data file is touched."""
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
    """Removes all rows, by whole segments, whose names it returns; ``clean`` removes their files."""
    return _change("truncate", table, {"dry_run": dry_run}, disable_dependents=disable_dependents) or []


def set_properties(table: Path, properties: dict[str, Any], dry_run: bool = False) -> None:
    """Sets properties of a table; None removes one."""
    _change("set_properties", table, {"properties": _cells(properties), "dry_run": dry_run})


def add_partition(table: Path, partition: dict[str, Any], location: Path | None = None, dry_run: bool = False) -> str:
    """Adds a partition, empty, or with the data files of a directory; returns the segment that these are."""
    return _change("add_partition", table, {"partition": _cells(partition), "dry_run": dry_run,
                                            "location": None if location is None else text(location)})


def drop_partition(table: Path, partition: dict[str, Any], dry_run: bool = False) -> dict[str, Any]:
    """Removes the rows of partitions. Returns partitions and segments that had rows in them."""
    return _change("drop_partition", table, {"partition": _cells(partition), "dry_run": dry_run})


def add_segment(table: Path, path: Path, format: str | None = None, dry_run: bool = False) -> str:
    """Makes the files of a directory a segment, where they are, and returns its name."""
    return _change("add_segment", table, {"path": text(path), "format": format, "dry_run": dry_run})


def clean(table: Path, dry_run: bool = False) -> dict[str, Any]:
    """Removes files that are no part of a table any more."""
    return _change("clean", table, {"dry_run": dry_run})


def drop(table: Path, dry_run: bool = False) -> dict[str, Any]:
    """Removes a table with all its files."""
    return _change("drop", table, {"dry_run": dry_run})
