"""Tables, scans and splits."""

from __future__ import annotations

import ctypes
import json
import os
import re
import tempfile
from typing import Any, Iterable, Iterator

import pyarrow as pa
import pyarrow.dataset as pads

from . import _core, _expr
from ._core import Handle, Invalid, NotFound, StoaError, Unsupported, encode

_STREAM = 40  # sizeof(struct ArrowArrayStream)
_SCHEMA = 72  # sizeof(struct ArrowSchema)


def open(path, table: str | None = None, format: str | None = None, at: str | None = None, recover: bool = False,
         damaged: str = "fail", storage_options: dict | None = None, verify: bool = True,
         limits: dict | None = None, **options: Any) -> "Table":
    """Opens a file, a directory, a glob, an address, or a list of them as one table.

    table names one where a place holds several, as does ``PATH#TABLE``. format forces one instead of detecting it. at
    is a moment of the past (Kudu). recover searches for what a damaged footer or index no longer says. damaged says what
    happens to what cannot be read: "fail", "skip-rows" or "null-cells". storage_options are credentials and the like,
    for s3:// in the words of fsspec or object_store, for other protocols those of their fsspec file system, from which
    everything is copied first. verify=False does not compare checksums. limits: page, metadata, opening (bytes), fields,
    depth. options are the format's (``stoa.formats()``), with _ for -.

    Raises StoaError: Corrupt, Unsupported, NotFound, … What is noticed, and ends nothing, is a StoaWarning.

    >>> import stoa
    >>> stoa.open("try/flat.red").count_rows()
    500
    """
    given = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    paths, keep = [], []
    for p in given:
        p = os.fspath(p)
        local, holder = _fetched(p, storage_options)
        paths.append(local + (f"#{table}" if table else ""))
        keep.append(holder)
    opts = {k.replace("_", "-"): _option(v) for k, v in options.items()}
    if at is not None:
        opts["at"] = str(at)
    remote = any(re.match(r"(s3|https?)://", p) for p in paths)
    request = {"paths": paths, "format": format or "", "options": opts, "recover": recover, "no_verify": not verify,
               "limits": limits or {}, "environment": _core.surroundings(storage_options if remote else None)}
    opened = _Open(request, keep)
    t = Table._of(opened, damaged)
    opened.warn(opened.info()["findings"], 2)
    return t


def _option(v: Any) -> str:
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, (list, tuple)):
        return ",".join(map(str, v))
    return str(v)


def _fetched(path: str, storage_options: dict | None) -> tuple[str, Any]:
    """A path, and what must live as long as it is read: what fsspec has of protocols that stoa does not speak."""
    m = re.match(r"([a-z][a-z0-9+.-]*)://", path)
    if not m or m[1] in ("s3", "http", "https"):
        return path, None
    if m[1] in ("file", "local"):
        return path[m.end():], None
    try:
        import fsspec
    except ImportError:
        raise Invalid(f"{m[1]}://: fsspec is needed for this protocol: pip install fsspec") from None
    place, mark, name = path.partition("#")
    fs, inside = fsspec.core.url_to_fs(place, **(storage_options or {}))
    if not fs.exists(inside):
        raise NotFound(f"{place}: it does not exist", object=place)
    holder = tempfile.TemporaryDirectory(prefix="stoa-")
    to = os.path.join(holder.name, os.path.basename(inside.rstrip("/")) or "place")
    fs.get(inside.rstrip("/") + ("/" if fs.isdir(inside) else ""), to + ("/" if fs.isdir(inside) else ""),
           recursive=True)
    return to + mark + name, holder


class _Open:
    """An open table, which all views of it share."""

    def __init__(self, request: dict, keep: Any = None, split: str | None = None):
        self.request, self.keep, self.split = request, keep, split
        if split is not None:
            self.handle = Handle.made("stoa_open_split", split.encode())
        else:
            self.handle = Handle.made("stoa_open", encode(request))
        self.schema = self.schema_of(None)
        self.warned: set = set()

    def warn(self, findings: list[dict], level: int) -> None:
        """Warns of findings, of each once."""
        for f in findings:
            text = f"{f['code']}: {f.get('part') or f['object']}: {f['message']}"
            if f["severity"] != "note" and text not in self.warned:
                self.warned.add(text)
                _core.warn(text, level + 1)

    def schema_of(self, spec: dict | None) -> pa.Schema:
        room = ctypes.create_string_buffer(_SCHEMA)
        _core.call("stoa_schema", self.handle.number, encode(spec), ctypes.addressof(room))
        return pa.Schema._import_from_c(ctypes.addressof(room))

    def info(self) -> dict:
        return _core.text_of("stoa_info", self.handle.number)

    def count(self, spec: dict) -> int:
        n = ctypes.c_int64()
        _core.call("stoa_count", self.handle.number, encode(spec), ctypes.byref(n))
        return n.value

    def read(self, spec: dict, seen: set | None = None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """The batches of a scan. Waiting for one can be interrupted, and errors have their classes."""
        room = ctypes.create_string_buffer(_STREAM)
        number = ctypes.c_uint64()
        _core.call("stoa_scan", self.handle.number, encode(spec), ctypes.addressof(room), ctypes.byref(number))
        scan = Handle(number.value)
        reader = pa.RecordBatchReader._import_from_c(ctypes.addressof(room))
        return reader.schema, self._batches(reader, scan)

    def _batches(self, reader, scan: Handle) -> Iterator[pa.RecordBatch]:
        keep = self  # the table outlives its scans
        try:
            while True:
                while not _core.lib.stoa_wait(scan.number, 100):
                    pass  # signals are handled here
                try:
                    yield reader.read_next_batch()
                except StopIteration:
                    break
                except OSError:
                    report = _core.text_of("stoa_scan_report", scan.number)
                    raise _core.error_of(report["error"]) from None
            report = _core.text_of("stoa_scan_report", scan.number)
            self.warn(report["findings"], 4)
            for l in report["losses"]:
                why = l.get("error") or {}
                _core.warn(f"lost: rows {l['from']}:{l['to']} of {l.get('column') or 'all columns'} in {l['part']}: "
                           f"{why.get('message', 'damaged')}", 4)
        finally:
            if not _core._forked:
                reader.close()
                scan.close()
            del keep


class _Where:
    """A condition: what the library is asked, and what is left to be filtered afterwards (all pyarrow expressions)."""

    def __init__(self, schema: pa.Schema, *conditions: Any):
        self.texts: list[str] = []
        self.rest: list = []
        self.needs: set | None = set()  # columns that the rest reads; None: not known
        for c in conditions:
            self._add(schema, c)

    def _add(self, schema: pa.Schema, c: Any) -> None:
        if c is None:
            return
        if isinstance(c, str):
            self.texts.append(f"({c})")
            return
        if isinstance(c, pads.Expression):
            tree = _expr.tree_of_arrow(c)
            t = _expr.Translator(schema).translate(tree)
            if t.text is not None:
                self.texts.append(t.text)
            if t.grade == _expr.UPPER:
                self.rest.append(c)
                some = _expr.columns_of(tree)
                self.needs = None if some is None or self.needs is None else self.needs | some
            return
        if type(c).__module__.partition(".")[0] == "polars":
            tree = _expr.tree_of_polars(c)
            t = _expr.Translator(schema, total=True).translate(tree) if tree is not None else _expr.NOTHING
            if t.text is not None:
                self.texts.append(t.text)
            self.rest.append(c)
            names = set(c.meta.root_names())
            self.needs = None if self.needs is None or not names else self.needs | names
            return
        raise Invalid(f"where: expected a text, or an expression of pyarrow or polars, found {type(c).__name__}")

    @property
    def text(self) -> str:
        return " and ".join(self.texts)

    def exact(self) -> bool:
        return not self.rest

    def apply(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        t = pa.Table.from_batches([batch])
        for c in self.rest:
            if isinstance(c, pads.Expression):
                t = t.filter(c)
            else:
                import polars as pl

                mask = pl.from_arrow(t).select(c).to_series().to_arrow()
                t = t.filter(mask)
        yield from t.to_batches()


class Scanner:
    """What a scan is to read: the part of pyarrow's Scanner that its users call."""

    def __init__(self, table: "Table", columns=None, where=(), limit: int = 0, rows=None, batch_size: int | None = None,
                 **spec: Any):
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
        self._limit = limit
        self._spec = {"damaged": table._damaged, **spec}
        if batch_size:
            self._spec["batch"] = int(batch_size)
        if rows is not None:
            self._spec["rows"] = [int(rows[0]), int(rows[1])]
        if self._where.texts:
            self._spec["where"] = self._where.text
        self._wanted = columns
        self._read_columns()
        if not self._where.rest and limit:
            self._spec["limit"] = int(limit)

    def _read_columns(self) -> None:
        """Which columns are read: those that are wanted, and those that a filter afterwards needs."""
        names = self._wanted
        if self._exprs is not None:
            trees = [_expr.columns_of(_expr.tree_of_arrow(e)) for e in self._exprs.values()]
            names = None if any(t is None for t in trees) else sorted(set().union(*trees))
        if names is not None and self._where.rest:
            needs = self._where.needs
            top = set(self._table.schema.names)
            if needs is None or any(n not in top for n in names):
                # paths into structs name columns of their own: all is read, and what is wanted is taken out afterwards
                needs = top
                if any(n not in top for n in names):
                    raise Invalid("columns: paths into structs cannot be combined with a filter that stoa's text does "
                                  "not have; name whole columns")
            names = list(names) + [n for n in self._table.schema.names if n in needs and n not in names]
        if names is not None:
            self._spec["columns"] = [self._path(n) for n in names]

    def _path(self, name: str) -> str:
        return _expr.name_text((name,)) if name in self._table.schema.names else name

    @property
    def projected_schema(self) -> pa.Schema:
        schema, batches = self._start()
        batches.close()
        return schema

    def _start(self) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
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
            left = self._limit or None
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
            return self._table._opened.count(spec)
        return sum(b.num_rows for b in self.to_batches())

    def take(self, indices) -> pa.Table:
        return self.to_table().take(indices)

    def __arrow_c_stream__(self, requested_schema=None):
        return self.to_reader().__arrow_c_stream__(requested_schema)


class _Readable:
    """What tables and splits have in common."""

    def to_table(self, columns=None, filter=None, where=None, **scan: Any) -> pa.Table:
        """All rows in memory.

        >>> import stoa
        >>> stoa.open("try/flat.red").to_table(columns=["i"]).num_rows
        500
        """
        return self._scanner(columns, (filter, where), **scan).to_table()

    def to_batches(self, columns=None, filter=None, where=None, **scan: Any) -> Iterator[pa.RecordBatch]:
        """The rows as they are read.

        >>> import stoa
        >>> sum(b.num_rows for b in stoa.open("try/flat.red").to_batches())
        500
        """
        return self._scanner(columns, (filter, where), **scan).to_batches()

    def to_reader(self) -> pa.RecordBatchReader:
        return self._scanner().to_reader()

    def to_pandas(self, columns=None, where=None, **kw: Any):
        """A pandas.DataFrame; other arguments are those of pyarrow.Table.to_pandas.

        >>> import stoa
        >>> stoa.open("try/flat.red").to_pandas(columns=["i"]).shape
        (500, 1)
        """
        return self.to_table(columns=columns, where=where).to_pandas(**kw)

    def to_polars(self, columns=None, where=None):
        """A polars.DataFrame.

        >>> import stoa
        >>> stoa.open("try/flat.red").to_polars(columns=["i"]).shape
        (500, 1)
        """
        import polars as pl

        return pl.from_arrow(self.to_table(columns=columns, where=where))

    def __arrow_c_stream__(self, requested_schema=None):
        return self.to_reader().__arrow_c_stream__(requested_schema)


_UNUSED = ("batch_readahead", "fragment_readahead", "fragment_scan_options", "use_threads", "cache_metadata",
           "memory_pool")


class Table(_Readable, pads.Dataset):
    """An open table: a ``pyarrow.dataset.Dataset``, so that DuckDB, DataFusion and others push columns and filters down
    by themselves. Made by ``open``. It may be scanned by several threads at the same time."""

    def __init__(self, *args: Any, **kw: Any):
        raise TypeError("stoa.open makes tables")

    @classmethod
    def _of(cls, opened: _Open, damaged: str = "fail", where: tuple = ()) -> "Table":
        t = cls.__new__(cls)
        t._opened, t._damaged, t._conditions = opened, damaged, where
        return t

    def __reduce__(self):
        return _reopen, (self._opened.request, self._damaged, self._conditions)

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types.

        >>> import stoa
        >>> stoa.open("try/key.cfile").schema.names
        ['value']
        """
        return self._opened.schema

    @property
    def sources(self) -> list[dict]:
        """The files or places of the table, each with its format and what it says about itself (``meta``).

        >>> import stoa
        >>> [s["format"] for s in stoa.open("try/flat.red").sources]
        ['redfile']
        """
        return self._opened.info()["sources"]

    @property
    def keys(self) -> list[str]:
        """The columns by which ``get`` finds rows: the table's order, or else its first column.

        >>> import stoa
        >>> stoa.open("try/key.cfile").keys
        ['value']
        """
        return self._opened.info()["keys"] or []

    @property
    def findings(self) -> list[dict]:
        """What was noticed so far, and ended nothing.

        >>> import stoa
        >>> stoa.open("try/flat.red").findings
        []
        """
        return self._opened.info()["findings"]

    def _scanner(self, columns=None, where=(), **scan: Any) -> Scanner:
        for k in _UNUSED:
            scan.pop(k, None)
        return Scanner(self, columns, self._conditions + tuple(where), **scan)

    def scanner(self, columns=None, filter=None, batch_size=None, **kw: Any) -> Scanner:
        """A scan to be, as pyarrow has it.

        >>> import pyarrow.dataset as ds, stoa
        >>> stoa.open("try/flat.red").scanner(columns=["i"], filter=ds.field("i") > 0).to_table().num_columns
        1
        """
        return self._scanner(columns, (filter,), batch_size=batch_size, **kw)

    def scan(self, columns=None, where=None, limit: int = 0, rows=None, **spec: Any) -> pa.RecordBatchReader:
        """The rows as a stream: columns by name, or path into structs; those for which where is true (stoa's text, or an
        expression of pyarrow or polars; what cannot be pushed down is filtered afterwards); at most limit; only those at
        the positions rows, (from, to), of the whole table. spec: batch, unordered, parallel, memory, as in stoa.h.

        >>> import stoa
        >>> stoa.open("try/flat.red").scan(["i"], where="i > 2000000000").read_all().num_columns
        1
        """
        if limit < 0:
            raise Invalid(f"limit: expected a number of rows, found {limit}")
        return self._scanner(columns, (where,), limit=limit, rows=rows, **spec).to_reader()

    def head(self, num_rows: int = 5, columns=None, filter=None, **kw: Any) -> pa.Table:
        """The first rows.

        >>> import stoa
        >>> stoa.open("try/flat.red").head(3).num_rows
        3
        """
        if num_rows <= 0:
            return self.to_table(columns=columns, filter=filter).slice(0, 0)
        return self._scanner(columns, (filter,), limit=num_rows, **kw).to_table()

    def count_rows(self, filter=None, where=None, **kw: Any) -> int:
        """How many rows there are, from metadata where they suffice.

        >>> import stoa
        >>> stoa.open("try/flat.red").count_rows(where="i > 2000000000") < 500
        True
        """
        return self._scanner([] if filter is None and where is None else None, (filter, where), **kw).count_rows()

    def take(self, indices, columns=None, filter=None, **kw: Any) -> pa.Table:
        """The rows at positions, in their order.

        >>> import stoa
        >>> stoa.open("try/flat.red").take([7, 3, 7]).num_rows
        3
        """
        import numpy as np

        at = np.asarray(indices if not isinstance(indices, (pa.Array, pa.ChunkedArray)) else indices.to_numpy(),
                        dtype="int64")
        if self._conditions or filter is not None:
            return self.to_table(columns=columns, filter=filter).take(at)
        if not len(at):
            return self.head(0, columns=columns)
        n = self.count_rows()
        if at.min() < 0 or at.max() >= n:
            raise IndexError(f"take: expected positions from 0 to {n - 1}, found {at.min()} to {at.max()}")
        wanted = np.unique(at)
        cuts = np.flatnonzero(np.diff(wanted) > 4096)  # runs that are near are read at once
        firsts, lasts = wanted[np.r_[0, cuts + 1]], wanted[np.r_[cuts, len(wanted) - 1]] + 1
        if len(firsts) > 1000:
            firsts, lasts = wanted[:1], wanted[-1:] + 1
        parts, where_from, base = [], np.empty(len(wanted), "int64"), 0
        for f, l in zip(firsts, lasts):
            parts.append(self._scanner(columns, rows=(f, l)).to_table())
            inside = (wanted >= f) & (wanted < l)
            where_from[inside] = wanted[inside] - f + base
            base += int(l - f)
        return pa.concat_tables(parts).take(where_from[np.searchsorted(wanted, at)])

    def get(self, key, columns=None) -> dict:
        """The row with a key (see keys; a tuple where there are several), by the format's index. Raises NotFound, which
        is a KeyError, and Invalid if there are several.

        >>> import stoa
        >>> t = stoa.open("try/key.cfile")
        >>> t.get(t.head(1)["value"][0].as_py())["value"] == t.head(1)["value"][0].as_py()
        True
        """
        parts = key if isinstance(key, tuple) else (key,)
        rows = self._scanner(columns, key=[_key_text(k) for k in parts], limit=2).to_table().to_pylist()
        if not rows:
            raise NotFound(f"no row has the key {key!r}")
        if len(rows) > 1:
            raise Invalid(f"several rows have the key {key!r}; scan reads them all")
        return rows[0]

    def filter(self, expression) -> "Table":
        """The same table with fewer rows: those for which expression is true, a text, or one of pyarrow or polars.

        >>> import stoa
        >>> t = stoa.open("try/flat.red").filter("i > 0")
        >>> t.count_rows() == t.to_table().num_rows
        True
        """
        _Where(self.schema, expression)
        return Table._of(self._opened, self._damaged, self._conditions + (expression,))

    def plan(self, columns=None, where=None, target: int = 256 << 20) -> list["Split"]:
        """The scan cut into splits of about target stored bytes, for workers in other processes: splits pickle.

        >>> import stoa
        >>> t = stoa.open("try/flat.red")
        >>> sum(s.scan().read_all().num_rows for s in t.plan())
        500
        """
        s = self._scanner(columns, (where,))
        spec = {k: v for k, v in s._spec.items() if k in ("columns", "where")}
        doc = _core.text_of("stoa_plan", self._opened.handle.number, encode(spec), int(target))
        return [Split(json.dumps(x), self._damaged, s._where.rest, s._wanted) for x in doc["splits"]]

    def get_fragments(self, filter=None) -> Iterator["Split"]:
        """The splits, as pyarrow's fragments.

        >>> import stoa
        >>> len(list(stoa.open("try/flat.red").get_fragments()))
        1
        """
        yield from self.plan(where=filter)

    @property
    def partition_expression(self):
        return pads.scalar(True)

    def replace_schema(self, schema):
        raise Unsupported("a table's schema is that of its files: select and cast columns after reading")

    def sort_by(self, sorting, **kw):
        return pads.dataset(self.to_table().sort_by(sorting))

    def join(self, right_dataset, *args, **kw):
        return pads.dataset(self.to_table()).join(_in_memory(right_dataset), *args, **kw)

    def join_asof(self, right_dataset, *args, **kw):
        return pads.dataset(self.to_table()).join_asof(_in_memory(right_dataset), *args, **kw)

    def __len__(self) -> int:
        return self.count_rows()

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        info = self._opened.info()
        rows = "? rows" if info["rows"] is None else f"{info['rows']:,} rows"
        of = ", ".join(sorted({s["format"] for s in info["sources"]}))
        lines = [f"stoa.Table ({of}, {rows})"] + [f"  {f.name}: {f.type}" for f in self.schema]
        if self._conditions:
            lines.append("  where " + " and ".join(map(str, self._conditions)))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        import html

        info = self._opened.info()
        rows = "unknown number of" if info["rows"] is None else f"{info['rows']:,}"
        of = ", ".join(sorted({s["format"] for s in info["sources"]}))
        cell = lambda tag, v: f"<{tag}>{html.escape(str(v))}</{tag}>"
        out = [f"<div class='stoa'><p><b>{html.escape(', '.join(s['name'] for s in info['sources'][:3]))}</b>: "
               f"{html.escape(of)}, {rows} rows</p><table><thead><tr>"]
        out += [cell("th", f"{f.name}: {f.type}") for f in self.schema]
        out.append("</tr></thead><tbody>")
        try:
            for row in zip(*(c.to_pylist() for c in self.head(5).columns)):
                out += ["<tr>", *(cell("td", str(v)[:60]) for v in row), "</tr>"]
        except StoaError as e:
            out.append(f"<tr><td colspan='{len(self.schema)}'>{html.escape(str(e))}</td></tr>")
        out.append("</tbody></table>")
        for f in self.findings:
            out.append(f"<p style='color:{'#b00' if f['severity'] == 'error' else '#850'}'>"
                       f"{html.escape(f['severity'] + ' ' + f['code'] + ': ' + f['message'])}</p>")
        return "".join(out) + "</div>"


def _reopen(request, damaged, where):
    return Table._of(_Open(request), damaged, where)


def _in_memory(d):
    return pads.dataset(d.to_table()) if isinstance(d, Table) else d


def _key_text(k: Any) -> str:
    if isinstance(k, pa.Scalar):
        k = k.as_py()
    if isinstance(k, bool):
        return "true" if k else "false"
    if isinstance(k, bytes):
        return k.decode("utf-8", "surrogateescape") if k.isascii() else "0x" + k.hex()
    if hasattr(k, "isoformat"):
        return k.isoformat()
    return str(k)


class Split(_Readable):
    """A part of a scan that any process can read which sees the same files. It pickles.

    >>> import pickle, stoa
    >>> s, = stoa.open("try/flat.red").plan(columns=["i"])
    >>> pickle.loads(pickle.dumps(s)).scan().read_all().num_rows
    500
    """

    def __init__(self, text: str, damaged: str = "fail", rest: list | None = None, wanted=None):
        self.text, self._damaged, self._rest, self._wanted = text, damaged, list(rest or []), wanted
        self._table = None

    def __reduce__(self):
        return Split, (self.text, self._damaged, self._rest, self._wanted)

    @property
    def rows(self) -> int:
        """Rows before any filter; -1: not known."""
        return json.loads(self.text)["rows"]

    @property
    def bytes(self) -> int:
        """Stored bytes, about."""
        return json.loads(self.text)["bytes"]

    def _open(self) -> Table:
        if self._table is None:
            opened = _Open({}, split=self.text)
            self._table = Table._of(opened, self._damaged)
        return self._table

    @property
    def schema(self) -> pa.Schema:
        s = self._open().schema
        return s if self._wanted is None else pa.schema([s.field(n) for n in self._wanted], s.metadata)

    physical_schema = schema

    @property
    def partition_expression(self):
        return pads.scalar(True)

    def _scanner(self, columns=None, where=(), **scan: Any) -> "_SplitScanner":
        return _SplitScanner(self, columns if columns is not None else self._wanted,
                             self._rest + [w for w in where if w is not None], scan.pop("batch_size", None))

    def scanner(self, schema=None, columns=None, filter=None, batch_size=None, **kw: Any):
        return self._scanner(columns, (filter,), batch_size=batch_size)

    def scan(self) -> pa.RecordBatchReader:
        """The split's rows as a stream."""
        return self._scanner().to_reader()

    def head(self, num_rows: int = 5, columns=None, filter=None, **kw: Any) -> pa.Table:
        return self._scanner(columns, (filter,)).head(num_rows)

    def count_rows(self, filter=None, **kw: Any) -> int:
        return self._scanner(None, (filter,)).count_rows()

    def __repr__(self) -> str:
        d = json.loads(self.text)
        return f"stoa.Split({d['n']} of {', '.join(s['uri'] for s in d['sources'])}, {d['rows']} rows)"


class _SplitScanner(Scanner):
    """A split's scan: its columns and filter are the plan's, so others are applied afterwards, as pyarrow does."""

    def __init__(self, split: Split, columns, where, batch_size):
        t = split._open()
        texts = [w for w in where if isinstance(w, str)]
        if texts:
            raise Invalid("a split's own filter is that of its plan: give the text to plan(where=…)")
        self._table, self._exprs = t, columns if isinstance(columns, dict) else None
        self.dataset_schema = t.schema
        self._where = _Where(pa.schema([]))
        self._where.rest = list(where)
        self._limit = 0
        self._wanted = None if columns is None or self._exprs is not None else list(columns)
        self._spec = {"damaged": split._damaged}
        if batch_size:
            self._spec["batch"] = int(batch_size)

    def _start(self):
        schema, batches = self._table._opened.read(self._spec)
        if not self._where.rest and self._exprs is None and (self._wanted is None or self._wanted == schema.names):
            return schema, batches
        return self._afterwards(schema, batches)
