"""Open tables as the library has them, conditions, and scans."""

from __future__ import annotations

import ctypes
import functools
import os
from typing import TYPE_CHECKING, Any, Generator, Iterator

import pyarrow as pa
import pyarrow.dataset as pads

from . import _core, _expr
from ._core import Handle, Invalid, StoaError, encode

if TYPE_CHECKING:
    from ._table import Table

_SCHEMA = 72  # sizeof(struct ArrowSchema)


class _Open:
    """An open table, which all views of it share. keep is what must live as long, such as copies; split, the document of
    one, is opened instead of a request."""

    def __init__(self, request: dict, keep: Any = None, split: str | None = None):
        self.request, self.keep, self.split = request, keep, split
        if split is not None:
            self.handle = Handle.made("stoa_open_split", split.encode())
        else:
            self.handle = _core.interruptible(
                lambda token: Handle.made("stoa_open", encode({**request, "cancel": token})))
        self.schema = self.schema_of(None)
        self.warned: set[str] = set()
        self._rows: int | None = None  # before any filter; -1: only reading shows, None: not asked yet
        self.made_of: tuple = ()  # what opens it again, in another process

    def warn(self, findings: list[dict]) -> None:
        """Warns of findings, of each once."""
        for f in findings:
            text = f"{f['code']}: {f.get('part') or f['object']}: {f['message']}"
            if f["severity"] != "note" and text not in self.warned:
                self.warned.add(text)
                _core.warn(text)

    def schema_of(self, spec: dict | None) -> pa.Schema:
        room = ctypes.create_string_buffer(_SCHEMA)
        _core.call("stoa_schema", self.handle.number, encode(spec), ctypes.addressof(room))
        return pa.Schema._import_from_c(ctypes.addressof(room))

    def info(self) -> dict:
        return _core.text_of("stoa_info", self.handle.number)

    def rows(self) -> int:
        """About how many rows the table has: -1 if only reading shows."""
        if self._rows is None:
            rows = self.info()["rows"] if self.split is None else None
            self._rows = -1 if rows is None else rows
        return self._rows

    def count(self, spec: dict) -> int:
        """How many rows a scan has. Where metadata do not say it, this reads, and can be interrupted."""
        if self.rows() >= 0 and "where" not in spec and spec["damaged"] == "fail":
            return self._count(spec)
        return _core.interruptible(lambda token: self._count({**spec, "cancel": token}))

    def _count(self, spec: dict) -> int:
        n = ctypes.c_int64()
        _core.call("stoa_count", self.handle.number, encode(spec), ctypes.byref(n))
        return n.value

    def read(self, spec: dict) -> tuple[pa.Schema, Generator[pa.RecordBatch, None, None]]:
        """The batches of a scan. Waiting for one can be interrupted, and errors have their classes."""
        room = ctypes.create_string_buffer(_core.STREAM)
        place, scan, error = ctypes.addressof(room), Handle(), ctypes.c_void_p()
        _core.enter()
        try:  # the stream has an owner before an interrupt can come
            _, reader = _core.calls_of_c(
                functools.partial(_core.lib.stoa_scan, self.handle.number, encode(spec), place, ctypes.byref(scan.cell),
                                  ctypes.byref(error)),
                functools.partial(pa.RecordBatchReader._import_from_c, place))
        except pa.ArrowException:
            if not error.value:
                raise
            raise _core.failure(error) from None
        return reader.schema, self._batches(reader, scan)

    def _batches(self, reader, scan: Handle) -> Generator[pa.RecordBatch, None, None]:
        keep = self  # the table outlives its scans
        try:
            while True:
                _core.enter()
                while not _core.lib.stoa_wait(scan.number, 100):
                    _core.enter()  # signals are handled here
                try:
                    yield reader.read_next_batch()
                except StopIteration:
                    break
                except OSError as e:
                    report = _core.text_of("stoa_scan_report", scan.number)
                    if not report["error"]:  # the batch could not be handed over
                        raise StoaError(str(e)) from None
                    raise _core.error_of(report["error"]) from None
            report = _core.text_of("stoa_scan_report", scan.number)
            self.warn(report["findings"])
            for l in report["losses"]:
                why = l.get("error") or {}
                _core.warn(f"lost: rows {l['from']}:{l['to']} of {l.get('column') or 'all columns'} in {l['part']}: "
                           f"{why.get('message', 'damaged')}")
        finally:
            if not _core._forked:
                reader.close()
                scan.close()
            del keep


class _Where:
    """A condition: what the library is asked, and what is left to be filtered afterwards (all pyarrow expressions)."""

    def __init__(self, schema: pa.Schema, *conditions: Any):
        self.texts: list[str] = []
        self.said: list[str] = []  # the texts among them that are the caller's own
        self.rest: list = []
        self.needs: set | None = set()  # columns that the rest reads; None: not known
        for c in conditions:
            self._add(schema, c)

    def _add(self, schema: pa.Schema, c: Any) -> None:
        if c is None:
            return
        if isinstance(c, str):
            self.texts.append(c)
            self.said.append(c)
            return
        if isinstance(c, pads.Expression):
            tree = _expr.tree_of_arrow(c)
            t = _expr.Translator(schema).translate(tree)
            if t.text is not None:
                self.texts.append(t.text)
            if t.grade == _expr.UPPER:
                self.rest.append(c)
                self._need(_expr.columns_of(tree))
            return
        pushed = isinstance(c, _expr.Pushed)
        c = c.expression if isinstance(c, _expr.Pushed) else c
        if type(c).__module__.partition(".")[0] == "polars":
            tree = _expr.tree_of_polars(c)
            needs = set(c.meta.root_names()) if pushed or _expr.known(tree) else _expr.row_by_row(c, schema)
            if needs is None:
                raise Invalid(f"where: expected an expression that is true or not of each row by itself, found {c}, "
                              "which looks at other rows; scan_polars(…).filter has it over all rows")
            t = _expr.Translator(schema, total=True).translate(tree) if tree is not None else _expr.NOTHING
            if t.text is not None:
                self.texts.append(t.text)
            self.rest.append(c)
            self._need(needs)
            return
        raise Invalid(f"where: expected a text, or an expression of pyarrow or polars, found {type(c).__name__}")

    def _need(self, names: set | None) -> None:
        """Adds the columns of a condition that is tested afterwards; of one without columns, rows must be there at all."""
        self.needs = self.needs | names if names and self.needs is not None else None

    @property
    def text(self) -> str:
        return self.texts[0] if len(self.texts) == 1 else " and ".join(f"({t})" for t in self.texts)

    def exact(self) -> bool:
        return not self.rest

    def apply(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        t = pa.Table.from_batches([batch])
        for c in self.rest:
            if not t.num_rows:
                return
            if isinstance(c, pads.Expression):
                t = t.filter(c)
            else:
                import polars as pl

                mask = pl.DataFrame(t).select(c).to_series()
                if len(mask) == 1:  # a constant
                    t = t if mask[0] else t.slice(0, 0)
                else:
                    t = t.filter(mask.to_arrow())
        yield from t.to_batches()


def _positions(rows) -> list[int]:
    """Positions from and to: a pair of them, a range, or a slice with both."""
    if isinstance(rows, (range, slice)):
        if rows.step not in (None, 1) or rows.start is None or rows.stop is None:
            raise Invalid(f"rows: expected positions from and to, found {rows}")
        rows = rows.start, max(rows.start, rows.stop)
    try:
        first, last = rows
    except (TypeError, ValueError):
        raise Invalid(f"rows: expected two positions, from and to, found {rows!r}") from None
    return [_core.whole("rows: from", first, 0), _core.whole("rows: to", last, 0)]


class Scanner:
    """What a scan is to read: the part of pyarrow's Scanner that its users call. Made by ``Table.scanner``.

    >>> import stoa
    >>> s = stoa.open("try/flat.red").scanner(columns=["i"])
    >>> s.projected_schema.names, s.count_rows(), s.head(3).num_rows
    (['i'], 500, 3)
    """

    def __init__(self, table: "Table", columns=None, where=(), limit: int | None = None, rows=None,
                 batch_size: int | None = None, **spec: Any):
        self._table = table
        self.dataset_schema = table.schema
        self._exprs = None
        if isinstance(columns, dict):
            self._exprs, columns = columns, None
        elif columns is not None and not isinstance(columns, str):
            columns = list(columns)
        elif isinstance(columns, str):
            raise Invalid(f"columns: expected a list of names, found the text {columns!r}")
        self._where = _Where(table.schema, *where)
        self._limit = limit = None if limit is None else _core.whole("limit", limit, 0)
        self._spec: dict[str, Any] = {"damaged": table._damaged, **spec}
        if batch_size:
            self._spec["batch"] = batch_size
        for k in ("batch", "parallel", "memory"):
            if self._spec.get(k) is not None:
                self._spec[k] = _core.whole(k, self._spec[k], 0)
        if rows is not None:
            self._spec["rows"] = _positions(rows)
        if limit == 0:
            self._spec["rows"] = [0, 0]
        if self._where.texts:
            self._spec["where"] = self._where.text
            if len(self._where.texts) > 1:
                for text in self._where.said:  # each must be a predicate of its own, not only all of them together
                    table._opened.schema_of({"where": text})
        self._wanted = columns
        self._read_columns()
        if not self._where.rest and limit:
            self._spec["limit"] = limit

    def _read_columns(self) -> None:
        """Which columns are read: those that are wanted, and those that a filter afterwards needs."""
        names = self._wanted
        if self._exprs is not None:
            some: list = [_expr.columns_of(_expr.tree_of_arrow(e)) for e in self._exprs.values()]
            names = None if any(t is None for t in some) else sorted(set().union(*some))
        if names is not None and self._where.rest:
            needs = self._where.needs
            top = set(self._table.schema.names)
            if needs is None or any(n not in top for n in names):
                # paths into structs name columns of their own: all is read, and what is wanted is taken out afterwards
                needs = top
                if any(n not in top for n in names):
                    raise Invalid("columns: paths into structs cannot be combined with a filter that stoa's text does "
                                  "not have; name whole columns")
            # in the table's order: polars has expressions that name columns by position
            names = [n for n in self._table.schema.names if n in needs or n in names]
        if names is not None:
            self._spec["columns"] = [self._path(n) for n in names]

    def _path(self, name: str) -> str:
        return _expr.name_text((name,)) if name in self._table.schema.names else name

    @property
    def projected_schema(self) -> pa.Schema:
        schema, batches = self._start()
        batches.close()
        return schema

    def _start(self) -> tuple[pa.Schema, Generator[pa.RecordBatch, None, None]]:
        schema, batches = self._table._opened.read(self._spec)
        if not self._where.rest and self._exprs is None:
            return schema, batches
        return self._afterwards(schema, batches)

    def _afterwards(self, schema, batches):
        names = schema.names if self._wanted is None else self._wanted
        if self._exprs is not None:
            out = pads.Scanner.from_batches(iter(()), schema=schema, columns=self._exprs).projected_schema
        else:
            out = pa.schema([schema.field(n) for n in names], schema.metadata)

        def run():
            left = self._limit
            try:
                for raw in batches:
                    for b in self._where.apply(raw) if self._where.rest else [raw]:
                        if self._exprs is not None:
                            source = pads.Scanner.from_batches(iter([b]), schema=b.schema, columns=self._exprs)
                            pieces = source.to_table().to_batches()
                        else:
                            pieces = [b.select(names)] if list(names) != b.schema.names else [b]
                        for p in pieces:
                            if left is not None:
                                p = p.slice(0, left)
                                left -= p.num_rows
                            if p.num_rows:
                                yield p
                            if left == 0:
                                return
            finally:
                batches.close()

        return out, run()

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream."""
        schema, batches = self._start()
        return pa.RecordBatchReader.from_batches(schema, batches)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        return self._start()[1]

    def scan_batches(self):
        for b in self.to_batches():
            yield pads.TaggedRecordBatch(record_batch=b, fragment=None)

    def to_table(self) -> pa.Table:
        if not self._spec.keys() & {"batch", "where", "limit", "rows", "key"} and not self._where.rest:
            # all of it will be in memory: fewer and larger pieces cost less, here and where they are joined, as long as
            # there are several for each processor
            each = self._table._opened.rows() // (8 * (os.cpu_count() or 1))
            self._spec["batch"] = max(1 << 16, min(each, 1 << 18))
        schema, batches = self._start()
        return pa.Table.from_batches(list(batches), schema)

    def head(self, num_rows: int) -> pa.Table:
        schema, batches = self._start()
        out, n = [], 0
        for b in batches:
            out.append(b.slice(0, num_rows - n))
            n += out[-1].num_rows
            if n >= num_rows:
                break
        batches.close()
        return pa.Table.from_batches(out, schema)

    def count_rows(self) -> int:
        if self._where.exact() and self._table._opened.split is None:
            spec = {k: v for k, v in self._spec.items() if k != "columns"}
            if spec["damaged"] == "fail":
                return self._table._opened.count(spec)
            return sum(b.num_rows for b in self._table._opened.read(spec)[1])  # which says what was lost
        return sum(b.num_rows for b in self.to_batches())

    def take(self, indices) -> pa.Table:
        return self.to_table().take(indices)

    def __arrow_c_stream__(self, requested_schema=None):
        return self.to_reader().__arrow_c_stream__(requested_schema)
