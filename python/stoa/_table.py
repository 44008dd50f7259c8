"""Tables and splits."""

from __future__ import annotations

import bisect
import html
import json
import os
import re
from typing import Any, Iterator, Optional, Sequence

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.fs as pafs

from . import _core
from ._core import Invalid, NotFound, StoaError, Unsupported, encode, options_of
from ._places import Paths, fetched, texts
from ._scan import Scanner, _Open, _Where


def open(path: Paths, table: str | None = None, format: str | None = None, at: Any = None, recover: bool = False,
         damaged: str = "fail", storage_options: dict[str, Any] | None = None, verify: bool = True,
         limits: dict | None = None, mmap: bool = False, **options: Any) -> "Table":
    """Opens a file, a directory, a glob, an address, or a list of them as one table.

    table names one where a place holds several, as does ``PATH#TABLE``. format forces one instead of detecting it. at
    is a moment of the past (Kudu, CarbonData, Iceberg, Delta). recover searches for what a damaged footer or index no
    longer says. damaged says what happens to what cannot be read: "fail", "skip-rows" or "null-cells". storage_options are credentials and the like,
    for s3:// in the words of fsspec or object_store, for other protocols those of their fsspec file system, from which
    everything is copied first. verify=False does not compare checksums. limits: page, metadata, opening (bytes), fields,
    depth. mmap=True maps local files, which must not change, instead of reading them. options are the format's
    (``stoa.formats()``), with _ for -.

    Raises StoaError: Corrupt, Unsupported, NotFound, … What is noticed, and ends nothing, is a StoaWarning.

    >>> import stoa
    >>> stoa.open("try/flat.red").count_rows()
    500
    """
    if damaged not in ("fail", "skip-rows", "null-cells"):
        raise Invalid(f"damaged: expected fail, skip-rows or null-cells, found {damaged!r}")
    opts = options_of(options)
    if at is not None:
        opts["at"] = at.isoformat() if hasattr(at, "isoformat") else str(at)
    request = {"format": format or "", "options": opts, "recover": recover, "no_verify": not verify,
               "mmap": mmap, "limits": _limits(limits)}
    places = [p + (f"#{table}" if table else "") for p in texts(path)]
    opened = _opened(places, storage_options, request)
    t = Table._of(opened, damaged)
    opened.warn(opened.info()["findings"])
    return t


def _limits(limits: dict | None) -> dict[str, int]:
    known = ("page", "metadata", "opening", "fields", "depth")
    if not isinstance(limits or {}, dict) or set(limits or {}) - set(known):
        raise Invalid(f"limits: expected a dict with {', '.join(known)}, found {limits!r}")
    return {k: _core.whole(f"limits: {k}", v, 0) for k, v in (limits or {}).items()}


def _opened(places: list[str], storage_options: dict[str, Any] | None, request: dict) -> _Open:
    """Opens places; what fsspec has to copy is copied now."""
    paths, keep = [], []
    for p in places:
        local, holder = fetched(p, storage_options)
        paths.append(local)
        keep.append(holder)
    remote = any(re.match(r"(s3|https?)://", p) for p in paths)
    opened = _Open({**request, "paths": paths,
                    "environment": _core.surroundings(storage_options if remote else None)}, keep)
    opened.made_of = (places, storage_options, request)
    return opened


Columns = Optional[Sequence[str]]


class _Readable:
    """What tables and splits have in common."""

    def _scanner(self, columns: Any = None, where: Any = (), **scan: Any) -> Scanner:
        raise NotImplementedError

    def to_table(self, columns: Any = None, filter: Any = None, where: Any = None, **scan: Any) -> pa.Table:
        """All rows in memory.

        >>> import stoa
        >>> stoa.open("try/flat.red").to_table(columns=["i"]).num_rows
        500
        """
        return self._scanner(columns, (filter, where), **scan).to_table()

    def to_batches(self, columns: Any = None, filter: Any = None, where: Any = None,
                   **scan: Any) -> Iterator[pa.RecordBatch]:
        """The rows as they are read.

        >>> import stoa
        >>> sum(b.num_rows for b in stoa.open("try/flat.red").to_batches())
        500
        """
        return self._scanner(columns, (filter, where), **scan).to_batches()

    def to_reader(self) -> pa.RecordBatchReader:
        """All rows as a stream.

        >>> import stoa
        >>> sum(b.num_rows for b in stoa.open("try/flat.red").to_reader())
        500
        """
        return self._scanner().to_reader()

    def to_pandas(self, columns: Columns = None, where: Any = None, filter: Any = None, **kw: Any) -> Any:
        """A pandas.DataFrame; other arguments are those of pyarrow.Table.to_pandas.

        64-bit integers with nulls have pandas' type Int64 or UInt64, and not float64, which changes values beyond 2**53;
        nested ones are Python integers. With types_mapper or integer_object_nulls, all is as pyarrow does it.

        >>> import stoa
        >>> stoa.open("try/flat.red").to_pandas(columns=["i"]).shape
        (500, 1)
        """
        return _frame(self.to_table(columns=columns, filter=filter, where=where), kw)

    def to_polars(self, columns: Columns = None, where: Any = None, filter: Any = None) -> Any:
        """A polars.DataFrame.

        >>> import stoa
        >>> stoa.open("try/flat.red").to_polars(columns=["i"]).shape
        (500, 1)
        """
        import polars as pl

        return pl.from_arrow(self.to_table(columns=columns, filter=filter, where=where))

    def __arrow_c_stream__(self, requested_schema=None):
        return self.to_reader().__arrow_c_stream__(requested_schema)


_UNUSED = ("batch_readahead", "fragment_readahead", "fragment_scan_options", "use_threads", "cache_metadata",
           "memory_pool")


class _AsFile(pafs.FileSystemHandler):
    """What pyarrow's own C++ sees of a table where it does not ask the methods of Table (unions of datasets, plans of
    Acero, Scanner.from_dataset): a file system with one Arrow file, which is made in memory when it is opened. It keeps
    no reference to the Table that keeps it."""

    def __init__(self, opened: _Open, damaged: str, where: tuple):
        self._parts = opened, damaged, where

    def get_type_name(self):
        return "stoa"

    def normalize_path(self, path):
        return path

    def get_file_info(self, paths):
        return [pafs.FileInfo(p, pafs.FileType.File) for p in paths]

    def get_file_info_selector(self, selector):
        return []

    def open_input_file(self, path):
        opened, damaged, where = self._parts
        scan = Scanner(_Source(opened, damaged), None, where)
        to = pa.BufferOutputStream()
        with pa.ipc.new_file(to, opened.schema, options=pa.ipc.IpcWriteOptions(unify_dictionaries=True)) as w:
            for b in scan.to_batches():
                w.write_batch(b)
        return pa.BufferReader(to.getvalue())

    open_input_stream = open_input_file

    def _refuse(self, *args, **kw):
        raise Unsupported("a table is not written to")

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = move = copy_file = _refuse
    open_output_stream = open_append_stream = _refuse


class _Source:
    """What a Scanner needs of a table."""

    def __init__(self, opened: _Open, damaged: str):
        self._opened, self._damaged, self.schema = opened, damaged, opened.schema


def _frame(table: pa.Table, kw: dict[str, Any]) -> Any:
    """A pandas.DataFrame of a table, in which no integer becomes a float that differs from it."""
    exact: dict[str, Any] = {}
    if "types_mapper" not in kw and "integer_object_nulls" not in kw:
        for f, column in zip(table.schema, table.columns):
            if f.type in (pa.int64(), pa.uint64()) and column.null_count > 0:
                import pandas
                exact[f.name] = column.to_pandas(types_mapper={pa.int64(): pandas.Int64Dtype(),
                                                               pa.uint64(): pandas.UInt64Dtype()}.get)
            elif _holds_wide_integers(f.type):
                exact[f.name] = column.to_pandas(integer_object_nulls=True)
    df = table.to_pandas(**kw)
    for k, name in enumerate(df.columns):
        if name in exact and table.column_names.count(name) == 1:
            exact[name].index = df.index
            df.isetitem(k, exact[name])
    return df


def _holds_wide_integers(t: pa.DataType) -> bool:
    """Whether a nested type has 64-bit integers in it."""
    children = [t.field(i).type for i in range(t.num_fields)] if pa.types.is_nested(t) else []
    return any(c in (pa.int64(), pa.uint64()) or _holds_wide_integers(c) for c in children)


class Table(_Readable, pads.FileSystemDataset):
    """An open table: a ``pyarrow.dataset.Dataset``, so that DuckDB, DataFusion and others push columns and filters down
    by themselves. Made by ``open``. It may be scanned by several threads at the same time.

    >>> import pyarrow.dataset as ds, stoa
    >>> isinstance(stoa.open("try/flat.red"), ds.Dataset)
    True
    """

    _opened: _Open
    _damaged: str
    _conditions: tuple

    def __init__(self, *args: Any, **kw: Any):
        raise TypeError("stoa.open makes tables")

    @classmethod
    def _of(cls, opened: _Open, damaged: str = "fail", where: tuple = ()) -> "Table":
        t = cls.__new__(cls)
        t._opened, t._damaged, t._conditions = opened, damaged, where
        form, fs = pads.IpcFileFormat(), pafs.PyFileSystem(_AsFile(opened, damaged, where))
        pads.FileSystemDataset.__init__(t, [form.make_fragment("table", fs)], opened.schema, form, fs)
        return t

    def __reduce__(self):
        return _reopen, (self._opened.made_of, self._damaged, self._conditions)

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types.

        >>> import stoa
        >>> stoa.open("try/key.cfile").schema.names
        ['value']
        """
        return self._opened.schema

    @property
    def sources(self) -> list[dict[str, Any]]:
        """The files or places of the table, each with its format and what it says about itself (``meta``).

        >>> import stoa
        >>> [s["format"] for s in stoa.open("try/flat.red").sources]
        ['redfile']
        """
        return self._opened.info()["sources"]

    @property
    def files(self) -> list[str]:
        """The names of the sources.

        >>> import stoa
        >>> stoa.open("try/flat.red").files
        ['try/flat.red']
        """
        return [s["name"] for s in self.sources]

    @property
    def keys(self) -> list[str]:
        """The columns by which ``get`` finds rows: the table's order, or else its first column.

        >>> import stoa
        >>> stoa.open("try/key.cfile").keys
        ['value']
        """
        return self._opened.info()["keys"] or []

    @property
    def findings(self) -> list[dict[str, Any]]:
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

    def scanner(self, columns: Any = None, filter: Any = None, batch_size: int | None = None, where: Any = None,
                **kw: Any) -> Any:
        """A scan to be, as pyarrow has it. (For ``pyarrow.dataset.write_dataset``, which asks for nothing but
        use_threads, it is one of pyarrow's own, which can be read once.)

        >>> import pyarrow.dataset as ds, stoa
        >>> stoa.open("try/flat.red").scanner(columns=["i"], filter=ds.field("i") > 0).to_table().num_columns
        1
        """
        if columns is None and filter is None and where is None and batch_size is None and set(kw) == {"use_threads"}:
            reader = self.to_reader()
            return pads.Scanner.from_batches(reader, schema=reader.schema)
        return self._scanner(columns, (filter, where), batch_size=batch_size, **kw)

    def scan(self, columns: Columns = None, where: Any = None, limit: int | None = None, rows: Any = None,
             **spec: Any) -> pa.RecordBatchReader:
        """The rows as a stream: columns by name, or path into structs; those for which where is true (stoa's text, or an
        expression of pyarrow or polars; what cannot be pushed down is filtered afterwards); at most limit; only those at
        the positions rows, (from, to), of the whole table. spec: batch, unordered, parallel, memory, dictionaries, as in
        stoa.h: with ``dictionaries="codes"`` strings that are stored as codes of a dictionary come as DictionaryArrays.

        >>> import stoa
        >>> stoa.open("try/flat.red").scan(["i"], where="i > 2000000000").read_all().num_columns
        1
        """
        return self._scanner(columns, (where,), limit=limit, rows=rows, **spec).to_reader()

    def head(self, num_rows: int = 5, columns: Any = None, filter: Any = None, where: Any = None,
             **kw: Any) -> pa.Table:
        """The first rows.

        >>> import stoa
        >>> stoa.open("try/flat.red").head(3).num_rows
        3
        """
        return self._scanner(columns, (filter, where), limit=num_rows, **kw).to_table()

    def count_rows(self, filter: Any = None, where: Any = None, **kw: Any) -> int:
        """How many rows there are, from metadata where they suffice.

        >>> import stoa
        >>> stoa.open("try/flat.red").count_rows(where="i > 2000000000") < 500
        True
        """
        return self._scanner([], (filter, where), **kw).count_rows()

    def take(self, indices: Any, columns: Columns = None, filter: Any = None, **kw: Any) -> pa.Table:
        """The rows at positions, in their order.

        >>> import stoa
        >>> stoa.open("try/flat.red").take([7, 3, 7]).num_rows
        3
        """
        at = indices if isinstance(indices, (pa.Array, pa.ChunkedArray)) else pa.array(indices)
        if not len(at):
            return self.head(0, columns=columns)
        if not pa.types.is_integer(at.type) or at.null_count:
            raise Invalid(f"take: expected whole numbers, found {at.type}" + (" with nulls" if at.null_count else ""))
        at = at.cast(pa.int64())
        if self._conditions or filter is not None:
            return self.to_table(columns=columns, filter=filter).take(at)
        positions = at.to_pylist()
        wanted = sorted(set(positions))
        n = self.count_rows() if self._damaged != "skip-rows" else 2**63 - 1
        if wanted[0] < 0 or wanted[-1] >= n:
            raise IndexError(f"take: expected positions from 0 to {n - 1}, found {wanted[0]} to {wanted[-1]}")
        runs = [[wanted[0], wanted[0] + 1]]
        for w in wanted[1:]:
            if w - runs[-1][1] < 4096:  # what is near is read at once
                runs[-1][1] = w + 1
            else:
                runs.append([w, w + 1])
        if len(runs) > 1000:
            runs = [[wanted[0], wanted[-1] + 1]]
        parts: list[pa.Table] = []
        found: dict[int, int] = {}  # positions, and where their rows are in parts
        base = 0
        runs.reverse()
        while runs:
            first, last = runs.pop()
            inside = wanted[bisect.bisect_left(wanted, first):bisect.bisect_left(wanted, last)]
            if not inside:
                continue
            part = self._scanner(columns, rows=(first, last)).to_table()
            if part.num_rows == last - first:
                parts.append(part)
                found.update((w, w - first + base) for w in inside)
                base += last - first
            elif last - first > 1:  # some were lost: which positions the others have is not said
                middle = (first + last) // 2
                runs += [[middle, last], [first, middle]]
        for w in wanted:
            if w not in found:
                raise IndexError(f"take: there is no row at position {w}, or it is lost")
        return pa.concat_tables(parts).take(pa.array([found[i] for i in positions], pa.int64()))

    def get(self, key: Any, columns: Columns = None) -> dict[str, Any]:
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

    def filter(self, expression: Any) -> "Table":
        """The same table with fewer rows: those for which expression is true, a text, or one of pyarrow or polars.

        >>> import stoa
        >>> t = stoa.open("try/flat.red").filter("i > 0")
        >>> t.count_rows() == t.to_table().num_rows
        True
        """
        w = _Where(self.schema, expression)
        if w.texts:
            self._opened.schema_of({"where": w.text})
        return Table._of(self._opened, self._damaged, self._conditions + (expression,))

    def plan(self, columns: Columns = None, where: Any = None, target: int = 256 << 20) -> list["Split"]:
        """The scan cut into splits of about target stored bytes (0: the preset), for workers in other processes: splits
        pickle. A target of which there would be more than 100,000 splits is taken larger.

        >>> import stoa
        >>> t = stoa.open("try/flat.red")
        >>> sum(s.scan().read_all().num_rows for s in t.plan())
        500
        """
        target = _core.whole("target", target, 0)
        s = self._scanner(columns, (where,))
        spec = {k: v for k, v in s._spec.items() if k in ("columns", "where")}
        doc = _core.interruptible(lambda token: _core.text_of(
            "stoa_plan", self._opened.handle.number, encode({**spec, "cancel": token}), target, named=False))
        splits = [Split(json.dumps(x), self._damaged, s._where.rest, s._wanted) for x in doc["splits"]]
        for one in splits:
            one._keep = self._opened.keep
        return splits

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
        """The same rows under another schema, as pyarrow does it: columns of the same types in another order, or fewer,
        or more, which are null; in memory, unless it is the same schema.

        >>> import pyarrow as pa, stoa
        >>> t = stoa.open("try/key.cfile")
        >>> t.replace_schema(t.schema.append(pa.field("more", pa.string()))).head(1)["more"].to_pylist()
        [None]
        """
        return self if schema.equals(self.schema) else super().replace_schema(schema)

    def sort_by(self, sorting, **kw):
        """The rows in an order, in memory, as pyarrow has it.

        >>> import stoa
        >>> t = stoa.open("try/key.cfile").sort_by([("value", "descending")])
        >>> t.head(1)["value"][0].as_py() == max(t.to_table()["value"].to_pylist())
        True
        """
        return pads.dataset(self.to_table().sort_by(sorting))

    def join(self, right_dataset, *args, **kw):
        """A join of pyarrow's, in memory, with a dataset.

        >>> import stoa
        >>> t = stoa.open("try/key.cfile")
        >>> t.join(t.filter("value > 2000000000"), "value", join_type="inner").count_rows()
        11
        """
        return pads.dataset(self.to_table()).join(_in_memory(right_dataset), *args, **kw)

    def join_asof(self, right_dataset, *args, **kw):
        """A join of pyarrow's with the nearest row, in memory; both are in order.

        >>> import pyarrow as pa, pyarrow.dataset as ds, stoa
        >>> t = stoa.open("try/key.cfile").filter("value >= 0")
        >>> other = ds.dataset(pa.table({"at": pa.array([0], pa.int32()), "name": ["first"]}))
        >>> j = t.join_asof(other, on="value", by=[], tolerance=-(2**31), right_on="at", right_by=[])
        >>> set(j.to_table()["name"].to_pylist())
        {'first'}
        """
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
            lines.append(" " + self._chosen())
        return "\n".join(lines)

    def _chosen(self) -> str:
        return " where " + " and ".join(map(str, self._conditions)) if self._conditions else ""

    def _repr_html_(self) -> str:
        info = self._opened.info()
        rows = "unknown number of" if info["rows"] is None else f"{info['rows']:,}"
        of = ", ".join(sorted({s["format"] for s in info["sources"]}))
        cell = lambda tag, v: f"<{tag}>{html.escape(str(v))}</{tag}>"
        out = [f"<div class='stoa'><p><b>{html.escape(', '.join(s['name'] for s in info['sources'][:3]))}</b>: "
               f"{html.escape(of)}, {rows} rows{html.escape(self._chosen())}</p><table><thead><tr>"]
        out += [cell("th", f"{f.name}: {f.type}") for f in self.schema]
        out.append("</tr></thead><tbody>")
        try:
            for row in zip(*(_words(c) for c in self.head(5).columns)):
                out += ["<tr>", *(cell("td", v[:60]) for v in row), "</tr>"]
        except StoaError as e:
            out.append(f"<tr><td colspan='{len(self.schema)}'>{html.escape(str(e))}</td></tr>")
        out.append("</tbody></table>")
        for f in self.findings:
            out.append(f"<p style='color:{'#b00' if f['severity'] == 'error' else '#850'}'>"
                       f"{html.escape(f['severity'] + ' ' + f['code'] + ': ' + f['message'])}</p>")
        return "".join(out) + "</div>"


def _reopen(made_of, damaged, where):
    return Table._of(_opened(*made_of), damaged, where)


def _words(column) -> list[str]:
    """The values as texts; Python has no year 10000, and without pandas no nanoseconds."""
    out = []
    for v in column:
        try:
            out.append(str(v.as_py()))
        except (ValueError, OverflowError):
            try:
                out.append(v.cast(pa.string()).as_py())
            except (pa.ArrowException, NotImplementedError):
                out.append(repr(v)[:60])
    return out


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
        self._table: Table | None = None
        self._keep: Any = None  # copies that it reads, if any: a split of one is good as long as the table's process

    def __reduce__(self):
        return Split, (self.text, self._damaged, self._rest, self._wanted)

    @property
    def rows(self) -> int:
        """Rows before any filter; -1: not known.

        >>> import stoa
        >>> [s.rows for s in stoa.open("try/flat.red").plan()]
        [500]
        """
        return json.loads(self.text)["rows"]

    @property
    def bytes(self) -> int:
        """Stored bytes, about.

        >>> import stoa
        >>> [s.bytes > 20_000 for s in stoa.open("try/flat.red").plan()]
        [True]
        """
        return json.loads(self.text)["bytes"]

    def _open(self) -> Table:
        if self._table is None:
            opened = _Open({}, self._keep, self.text)
            self._table = Table._of(opened, self._damaged)
        return self._table

    @property
    def schema(self) -> pa.Schema:
        """The columns of its rows.

        >>> import stoa
        >>> [s.schema.names for s in stoa.open("try/flat.red").plan(columns=["i"])]
        [['i']]
        """
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
        """A scan to be, as pyarrow's fragments have it; columns and filter are applied to the plan's rows.

        >>> import pyarrow.dataset as ds, stoa
        >>> t = stoa.open("try/flat.red")
        >>> sum(s.scanner(filter=ds.field("i") > 0).count_rows() for s in t.plan()) == len(t.filter("i > 0"))
        True
        """
        return self._scanner(columns, (filter,), batch_size=batch_size)

    def scan(self) -> pa.RecordBatchReader:
        """The split's rows as a stream.

        >>> import stoa
        >>> [s.scan().read_all().num_rows for s in stoa.open("try/flat.red").plan()]
        [500]
        """
        return self._scanner().to_reader()

    def head(self, num_rows: int = 5, columns=None, filter=None, **kw: Any) -> pa.Table:
        """The first rows.

        >>> import stoa
        >>> [s.head(3).num_rows for s in stoa.open("try/flat.red").plan()]
        [3]
        """
        return self._scanner(columns, (filter,)).head(num_rows)

    def count_rows(self, filter=None, **kw: Any) -> int:
        """How many rows there are; they are read.

        >>> import stoa
        >>> [s.count_rows() for s in stoa.open("try/flat.red").plan()]
        [500]
        """
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
        self._limit = None
        self._wanted = None if columns is None or self._exprs is not None else list(columns)
        self._spec = {"damaged": split._damaged}
        if batch_size:
            self._spec["batch"] = int(batch_size)

    def _start(self):
        schema, batches = self._table._opened.read(self._spec)
        if not self._where.rest and self._exprs is None and (self._wanted is None or self._wanted == schema.names):
            return schema, batches
        return self._afterwards(schema, batches)
