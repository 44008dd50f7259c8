# Print the rows of Parquet files as a reader reads them.    usage: judge.py pyarrow|pyarrow-keys|pyarrow-filter|pyarrow-refuses|duckdb|polars|fastparquet FILE...
# fastparquet gives times of day as the numbers in the file. Per file a line "FILE name", then one JSON object a row: numbers of nanoseconds for times and instants, of days for dates,
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
        children = [values(c) for c in a.flatten()]
        names = [f.name for f in t]
        return [dict(zip(names, row)) if ok else None for ok, row in zip(a.is_valid().to_pylist(), zip(*children))]
    return a.to_pylist()


DATE, DAY = 6, 86_400 * 10**9  # a converted type, and nanoseconds
# What it cannot read, whoever wrote it: it returns None for lists of lists and of structs, for structs only their leaves, and it fails on lists
# without dictionary in pages of version 2.
NOT_FAST = {"st", "lls", "lst"}
LISTS = {"l", "fl"}


def fast(name):
    """The columns as fastparquet reads them, one by one."""
    import fastparquet, pandas

    f = fastparquet.ParquetFile(name)
    v2 = "-v2" in name
    out = {}
    for c in f.columns:
        if c.split(".")[0] in NOT_FAST or v2 and c in LISTS:
            continue
        s, kind = f.to_pandas(columns=[c])[c], f.schema.schema_element(c).converted_type
        if s.dtype.kind == "M":
            s = [None if pandas.isna(v) else v.value if v.unit == "ns" else v.as_unit("ns").value for v in s]
            if kind == DATE:
                s = [None if v is None else v // DAY for v in s]
        out[c] = [fast_cell(v) for v in s]
    return out


def fast_cell(v):
    if isinstance(v, list):
        return [fast_cell(x) for x in v]
    if isinstance(v, dict):
        return [[k, fast_cell(x)] for k, x in v.items()]
    if v is None or str(v) in ("<NA>", "nan"):
        return None
    if isinstance(v, bytes):
        return v.hex()
    return v.item() if hasattr(v, "item") else v


def keys(name):
    """The keys of an encrypted file: NAME.json has the footer's key, the AAD prefix, if any, and keys by name if columns have their own."""
    import pyarrow.parquet.encryption as pe

    k = json.load(open(name + ".json"))
    if not k["named"]:
        return pe.create_decryption_properties(bytes.fromhex(k["footer"]), aad_prefix=k["prefix"].encode() or None)

    class Service(pe.KmsClient):
        def __init__(self, _):
            pe.KmsClient.__init__(self)

        def wrap_key(self, key, name):
            raise NotImplementedError

        def unwrap_key(self, wrapped, name):
            return bytes.fromhex(k["named"][name])

    return pe.CryptoFactory(Service).file_decryption_properties(pe.KmsConnectionConfig())


def read(judge, name):
    if judge == "pyarrow-keys":
        return pq.read_table(name, page_checksum_verification=True, decryption_properties=keys(name))
    if judge == "pyarrow-filter":  # id is the first column of the grid
        return pq.read_table(name, decryption_properties=keys(name), filters=[("id", "=", -500 + 3 * 123)], use_threads=False)
    if judge == "pyarrow":
        return pq.read_table(name, page_checksum_verification=True)
    if judge == "polars":
        import polars

        return polars.read_parquet(name).to_arrow()
    import duckdb

    return duckdb.connect().execute("select * from read_parquet(?)", [name]).to_arrow_table()


def refuses(name):
    try:
        return not read("pyarrow-keys", name)
    except Exception:  # pyarrow has no exception class for it
        return True


for name in sys.argv[2:]:
    if sys.argv[1] == "pyarrow-refuses":
        print("FILE", name)
        print(json.dumps({"refused": refuses(name)}))
        continue
    if sys.argv[1] == "fastparquet":
        columns = fast(name)
    else:
        t = read(sys.argv[1], name)
        columns = dict(zip(t.column_names, [values(c) for c in t.columns]))
    print("FILE", name)
    for row in zip(*columns.values()):
        print(json.dumps(dict(zip(columns, row)), ensure_ascii=False))
