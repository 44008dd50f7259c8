# Print the rows of Parquet files as pyarrow or DuckDB reads them.    usage: judge.py pyarrow|duckdb FILE...
# Per file a line "FILE name", then one JSON object a row: numbers of nanoseconds for times and instants, of days for dates,
# texts for decimals, hex for binary; a map is a list of pairs.
import json, sys
import pyarrow as pa, pyarrow.parquet as pq

NANOS = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}


def values(a):
    t = a.type
    if isinstance(a, pa.ChunkedArray):
        return [v for c in a.chunks for v in values(c)]
    if pa.types.is_dictionary(t):
        return values(a.dictionary_decode())
    if pa.types.is_timestamp(t) or pa.types.is_time(t):
        n = NANOS[t.unit]
        raw = pa.int64() if t.bit_width == 64 else pa.int32()
        return [None if v is None else v * n for v in a.view(raw).to_pylist()]
    if pa.types.is_date32(t):
        return a.view(pa.int32()).to_pylist()
    if pa.types.is_decimal(t):
        return [None if v is None else str(v) for v in a.to_pylist()]
    if pa.types.is_binary(t) or pa.types.is_fixed_size_binary(t) or pa.types.is_large_binary(t):
        return [None if v is None else v.hex() for v in a.to_pylist()]
    if pa.types.is_map(t):
        return [None if not s.is_valid else [[e["key"], e["value"]] for e in values(s.values)] for s in a]
    if pa.types.is_list(t) or pa.types.is_large_list(t) or pa.types.is_fixed_size_list(t):
        return [None if not s.is_valid else values(s.values) for s in a]
    if pa.types.is_struct(t):
        kids = [values(k) for k in a.flatten()]
        names = [f.name for f in t]
        return [dict(zip(names, row)) if ok else None for ok, row in zip(a.is_valid().to_pylist(), zip(*kids))]
    return a.to_pylist()


def read(judge, name):
    if judge == "pyarrow":
        return pq.read_table(name, page_checksum_verification=True)
    import duckdb

    return duckdb.connect().execute("select * from read_parquet(?)", [name]).to_arrow_table()


for name in sys.argv[2:]:
    t = read(sys.argv[1], name)
    print("FILE", name)
    for row in zip(*[values(c) for c in t.columns]):
        print(json.dumps(dict(zip(t.column_names, row)), ensure_ascii=False))
