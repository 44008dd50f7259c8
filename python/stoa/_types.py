"""Types of columns: those that only say how values lie in memory, and those that an output does not keep."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from . import _core
from ._core import StoaError
from ._places import Paths, texts


def is_text(path: str, format: str | None) -> bool:
    """Whether an output is a text, whose types are found out by reading it, so that writing it does not tell them."""
    return bool(re.search(r"(^|\.)(csv|tsv|jsonl|ndjson)(\.gz)?$", (format or path).lower()))


def _plain(t: pa.DataType) -> pa.DataType:
    """A type without what says only how values lie in memory."""
    if pt.is_large_string(t) or t == pa.string_view():
        return pa.string()
    if pt.is_large_binary(t) or t == pa.binary_view():
        return pa.binary()
    if pt.is_list(t) or pt.is_large_list(t) or pt.is_list_view(t) or pt.is_large_list_view(t):
        return pa.list_(_plain_field(t.value_field))
    if pt.is_struct(t):
        return pa.struct([_plain_field(t.field(i)) for i in range(t.num_fields)])
    if pt.is_dictionary(t):
        return pa.dictionary(t.index_type, _plain(t.value_type), t.ordered)
    return t


def _plain_field(f: pa.Field) -> pa.Field:
    return f.with_type(_plain(f.type))


def plain_rows(rows: pa.RecordBatchReader, path: str, format: str | None) -> pa.RecordBatchReader:
    """The rows as RedFile and CFiles have a type for: polars gives its texts and lists as views and as large ones."""
    name = (format or path.rstrip("/").rpartition(".")[2]).lower()
    plain = pa.schema([_plain_field(f) for f in rows.schema], rows.schema.metadata)
    if name not in ("red", "redfile", "cfile") or plain.equals(rows.schema):
        return rows
    try:
        return rows.cast(plain)
    except pa.ArrowException:  # an old pyarrow
        return rows


def retyped(schema: pa.Schema, path: str, format: str | None, storage_options: dict[str, Any] | None) -> list[str] | None:
    """The columns that an output has as another type, with both; None: there are none."""
    from ._table import open

    try:
        back = open(path, format=format, storage_options=storage_options).schema
    except StoaError:  # a text without rows or names may not be readable as a table
        return [f"{f.name} ({f.type})" for f in schema] or None
    found = {f.name: f.type for f in back}
    return [f"{f.name} ({f.type} as {found.get(f.name, 'nothing')})" for f in schema
            if f.name not in found or _plain(found[f.name]) != _plain(f.type)] or None


def add_retyped(doc: dict[str, Any], said: str, source: Paths, columns: Any, output: str, format: str | None,
                storage_options: dict[str, Any] | None, request: dict[str, Any]) -> None:
    """Adds to the summary of a command which columns come back as another type. said is what it printed for people: that
    there are some. request is how the source is opened."""
    from ._table import Table, _opened

    told = re.search(r"(?m)^(?:stoa: )?(.*: [\d,]+ columns? will be read as another type, as .*)$", said)
    doc["retyped"] = None
    if told or is_text(output, format):
        try:
            t = Table._of(_opened(texts(source), storage_options, request))
            schema = t._opened.schema_of(t._scanner(columns)._spec)
        except StoaError as e:  # the command has more options for it than open
            _core.warn(f"{output}: which columns will be read as another type is not known: {e}")
        else:
            doc["retyped"] = retyped(schema, output, format, storage_options) or ([told[1]] if told else None)
    warn_retyped(output, doc)


def warn_retyped(output: str, summary: dict[str, Any]) -> None:
    """Warns of the columns that come back as another type, if there are any."""
    if not summary["retyped"]:
        return
    n, names = len(summary["retyped"]), ", ".join(summary["retyped"][:5])
    _core.warn(f"{output}: {n} {'column' if n == 1 else 'columns'} will be read as another type, as the output does not "
               f"keep which it was: {names}{', …' if n > 5 else ''}")
