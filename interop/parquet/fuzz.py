# Compare tables with what pyarrow, polars and DuckDB read.    usage: fuzz.py LIST
# LIST has a line "KIND FILE FILE.json ALTERED" for each, KIND parquet, file or stream (Arrow IPC); the JSON is a list of columns, each a list
# of cells in the form of formattest.Plain, or null for a column that the file does not have. Prints "WRONG file reader column …" for each difference, and at the end for each kind and reader
# "READ kind reader tables cells others": others are columns that polars or DuckDB read differently, and likewise where
# pyarrow wrote them (types that they lack). ALTERED is a reader of which one cell is changed on purpose, or "-". What pyarrow reads must always be right.
import json, os, re, sys
import duckdb, polars as pl
import pyarrow as pa, pyarrow.ipc as ipc, pyarrow.parquet as pq
from nested import plain


def by_pyarrow(kind, name, columns):
    if kind == "parquet":
        return pq.read_table(name, columns=columns, page_checksum_verification=True)
    with pa.memory_map(name) as f:
        return (ipc.open_file(f) if kind == "file" else ipc.open_stream(f)).read_all().select(columns)


def by_polars(kind, name, columns):
    read = {"parquet": pl.read_parquet, "file": pl.read_ipc, "stream": pl.read_ipc_stream}[kind]
    return read(name, columns=columns).to_arrow()


def by_duckdb(kind, name, columns):
    return duckdb.sql(f"select {','.join(columns)} from read_parquet('{name}')").to_arrow_table()


READERS = {"pyarrow": by_pyarrow, "polars": by_polars, "duckdb": by_duckdb}


def holds(t, has):
    """Whether has is true of a type, or of one nested in it."""
    return has(t) or any(holds(t.field(i).type, has) for i in range(t.num_fields))


def asked(reader, kind, t):
    """polars rebuilds maps: it drops duplicate keys, reorders entries, and panics on some types of keys."""
    return not (reader == "polars" and holds(t, pa.types.is_map)) and (kind == "parquet" or reader != "duckdb")


def validate(t):
    """pyarrow itself uses index 0 of an empty dictionary for a non-nullable dictionary below nulls only."""
    try:
        t.validate(full=True)
    except pa.ArrowInvalid as e:
        if not re.search(r"Dictionary indices invalid: Invalid: Value at position \d+ out of bounds: 0 \(should be in \[0, -1\]\)$", str(e)):
            raise


def cells(reader, kind, name, columns):
    """The cells of each column as a reader reads them, or its error. If reading all columns fails, they are read one by one."""
    try:
        t = READERS[reader](kind, name, columns)
        if reader == "pyarrow":
            validate(t)
        if t.column_names != columns:
            raise ValueError(f"columns {t.column_names}")
        return {c: plain(t.column(c)) for c in columns}
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as e:  # polars panics
        if len(columns) == 1:
            return {columns[0]: f"{type(e).__name__}: {e}"[:300].replace("\n", " ")}
    return {c: v for k in columns for c, v in cells(reader, kind, name, [k]).items()}


def as_ours(name, c):
    """Options for pyarrow to write a column in the encodings and row groups of stoa's file, in pages as small as possible."""
    m = pq.ParquetFile(name).metadata
    known = {"DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT"}
    coded = {}
    for g in range(m.num_row_groups):
        for k in range(m.num_columns):
            chunk = m.row_group(g).column(k)
            if chunk.path_in_schema.split(".")[0] == c:
                coded.update({chunk.path_in_schema: e for e in chunk.encodings if e in known})
    rows = m.row_group(0).num_rows if m.num_row_groups else None  # a table without rows has no row group
    return dict(use_dictionary=False, column_encoding=coded, row_group_size=rows, data_page_size=30, write_batch_size=1)


def by_pyarrow_written(kind, name, t, options):
    if kind == "parquet":
        pq.write_table(t, name, **options)
        return
    with pa.OSFile(name, "wb") as f, (ipc.new_file if kind == "file" else ipc.new_stream)(f, t.schema) as w:
        w.write_table(t)


def same_of_pyarrows(reader, kind, name, columns, c, got):
    """Whether a reader reads a column likewise where pyarrow wrote it: then the file is not to blame."""
    other = name + ".other"
    ways = [{}]
    if kind == "parquet" and not isinstance(got, list):  # polars panics on some pages of integers below nullable structs in lists
        ways.append(as_ours(name, c))
    for options in ways:
        try:
            by_pyarrow_written(kind, other, by_pyarrow(kind, name, [c] if options else columns), options)
        except pa.ArrowNotImplementedError:  # lists of views: no comparison is possible
            return True
        except pa.ArrowIndexError:  # index 0 of an empty dictionary, which pyarrow made itself: see validate
            try:
                by_pyarrow_written(kind, other, by_pyarrow(kind, name, [c]), options)
            except pa.ArrowIndexError:
                return True
        again = cells(reader, kind, other, [c])[c]
        if again == got if isinstance(got, list) else isinstance(again, str) and again.split(":")[0] == got.split(":")[0]:
            return True
    return False


def differ(got, want):
    if not isinstance(got, list):
        return got
    if len(got) != len(want):
        return f"got {len(got)} rows, want {len(want)}"
    for k, (x, y) in enumerate(zip(got, want)):
        if x != y:
            return f"row {k}: got {json.dumps(x)[:300]}, want {json.dumps(y)[:300]}"


def main():
    count = {}
    for line in open(sys.argv[1]):
        kind, name, expected, altered = line.split()
        with open(expected) as f:
            want = json.load(f)
        columns, right = [f"c{i}" for i, w in enumerate(want) if w is not None], []
        for reader in READERS:
            mine = columns if reader == "pyarrow" else [c for c, t in right if asked(reader, kind, t)]
            if not mine:
                continue
            got = cells(reader, kind, name, mine)
            if reader == altered:
                got[mine[0]][0] = "changed on purpose"
            n = count.setdefault((kind, reader), [0, 0, 0])
            n[0] += 1
            for c in mine:
                w = want[int(c[1:])]
                difference = differ(got[c], w)
                if difference is None:
                    n[1] += len(w)
                    if reader == "pyarrow":
                        right.append((c, by_pyarrow(kind, name, [c]).schema.field(c).type))
                elif reader != "pyarrow" and same_of_pyarrows(reader, kind, name, columns, c, got[c]):
                    n[2] += 1
                else:
                    print("WRONG", name, reader, c, difference)
    for (kind, reader), n in count.items():
        print("READ", kind, reader, *n)


main()
