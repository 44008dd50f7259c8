# Makes enc-*, codec-*, fixed-*, order.* and empty.parquet with pyarrow (pip install pyarrow; made with 26.0.1), and enc.jsonl,
# codec.jsonl and fixed.jsonl with the same rows by the formulas here. Run in format/parquet/testdata. (The other files are made by
# ../../ipc/testdata/make.py.)
import base64, datetime as dt, decimal, json
import pyarrow as pa, pyarrow.parquet as pq

N = 150
D = decimal.Decimal
EPOCH = dt.datetime(1970, 1, 1)


def some(f, gap=7):
    return [None if i % gap == 3 else f(i) for i in range(N)]


def wave(i, top):  # up and down, both signs, sometimes the extremes
    return top if i % 31 == 5 else -top - 1 if i % 31 == 6 else (i * i * 37 - 4000) % (2 * min(top, 5000) + 1) - min(top, 5000)


INTS = "DELTA_BINARY_PACKED"
# name: type, values, the encoding of the "delta" files
cols = {
    "b": (pa.bool_(), some(lambda i: i % 3 == 0 or 40 < i < 90), "RLE"),
    "i8": (pa.int8(), some(lambda i: wave(i, 2**7 - 1)), INTS),
    "i16": (pa.int16(), some(lambda i: wave(i, 2**15 - 1)), INTS),
    "i32": (pa.int32(), some(lambda i: wave(i, 2**31 - 1)), INTS),
    "i64": (pa.int64(), some(lambda i: wave(i, 2**63 - 1)), INTS),
    "u8": (pa.uint8(), some(lambda i: i * 7 % 256), INTS),
    "u16": (pa.uint16(), some(lambda i: 65535 - i), INTS),
    "u32": (pa.uint32(), some(lambda i: 2**32 - 1 - i * 1000), INTS),
    "u64": (pa.uint64(), some(lambda i: 2**64 - 1 - i * 10**15), INTS),
    "full": (pa.int64(), [i * 3 - 100 for i in range(N)], INTS),
    "f32": (pa.float32(), some(lambda i: i / 8 - 3), "BYTE_STREAM_SPLIT"),
    "f64": (pa.float64(), some(lambda i: i / 1024 - 0.0625), "BYTE_STREAM_SPLIT"),
    "split": (pa.int32(), some(lambda i: i * 65537), "BYTE_STREAM_SPLIT"),
    "s": (pa.string(), some(lambda i: "" if i % 5 == 0 else "prefix-%04d-é" % (i // 3)), "DELTA_BYTE_ARRAY"),
    "sl": (pa.string(), some(lambda i: "x" * (i % 9) + str(i)), "DELTA_LENGTH_BYTE_ARRAY"),
    "bin": (pa.binary(), some(lambda i: bytes((i + k) % 256 for k in range(i % 6))), "DELTA_LENGTH_BYTE_ARRAY"),
    "fix": (pa.binary(5), some(lambda i: b"%05d" % i), None),
    "fix2": (pa.binary(2), some(lambda i: b"%02d" % (i % 100)), "BYTE_STREAM_SPLIT"),
    "date": (pa.date32(), some(lambda i: dt.date(1960, 1, 1) + dt.timedelta(i * 100)), INTS),
    "time": (pa.time32("ms"), some(lambda i: dt.time(i % 24, i % 60, i % 59, i * 1000)), INTS),
    "ts": (pa.timestamp("us"), some(lambda i: EPOCH + dt.timedelta(days=i * 500 - 20000, microseconds=i)), INTS),
    "dec": (pa.decimal128(9, 2), some(lambda i: D(i * 1234567 % 10**8) / 100 - 7), None),
    "dec2": (pa.decimal128(30, 4), some(lambda i: D(10) ** 20 * (i - 60) / 7 // 1 + D(i) / 10000), "BYTE_STREAM_SPLIT"),
    "l": (pa.list_(pa.int32()), some(lambda i: [None if k == 2 else i * k for k in range(i % 5)]), INTS),
    "ls": (pa.list_(pa.struct([("a", pa.int64()), ("t", pa.list_(pa.string()))])),
           some(lambda i: [{"a": None if k == 1 else i + k, "t": None if i % 4 == 1 else ["w%d" % (i % (k + 2))] * k} for k in range(i % 4)], 5), None),
    "m": (pa.map_(pa.string(), pa.list_(pa.float64())), some(lambda i: [("k%d" % k, None if k == 1 else [k / 4] * k) for k in range(i % 4)], 6), None),
    "st": (pa.struct([("x", pa.int16()), ("y", pa.struct([("z", pa.string()), ("w", pa.bool_())]))]),
           some(lambda i: {"x": i, "y": None if i % 3 == 1 else {"z": None if i % 2 else "z%d" % i, "w": i % 4 == 0}}), None),
}
leaf = {"l": "l.list.element"}


def form(v, scale=0):
    if isinstance(v, (dt.datetime,)):
        s = v.isoformat()
        return s.rstrip("0").rstrip(".") if "." in s else s
    if isinstance(v, dt.time):
        s = v.isoformat()
        return s.rstrip("0").rstrip(".") if "." in s else s
    if isinstance(v, dt.date):
        return v.isoformat()
    if isinstance(v, D):
        with decimal.localcontext(prec=80):
            return format(v.quantize(D(1).scaleb(-scale)), "f")
    if isinstance(v, bytes):
        return base64.b64encode(v).decode()
    if isinstance(v, dict):
        return {k: form(x) for k, x in v.items()}
    if isinstance(v, list):
        if v and isinstance(v[0], tuple):
            return [{"key": k, "value": form(x)} for k, x in v]
        return [form(x) for x in v]
    return v


def table(names):
    t = pa.table([pa.array(cols[n][1], cols[n][0]) for n in names], schema=pa.schema([pa.field(n, cols[n][0], nullable=n != "full") for n in names]))
    return t


def lines(file, names):
    with open(file, "w") as f:
        for i in range(N):
            f.write(json.dumps({n: form(cols[n][1][i], getattr(cols[n][0], "scale", 0)) for n in names}, ensure_ascii=False) + "\n")


every = list(cols)
lines("enc.jsonl", every)
small = dict(row_group_size=70, data_page_size=200, write_batch_size=16)
for v in ["1.0", "2.0"]:
    n = "v" + v[0]
    pq.write_table(table(every), "enc-plain.%s.parquet" % n, use_dictionary=False, compression="none", data_page_version=v, write_page_checksum=True, **small)
    pq.write_table(table(every), "enc-dict.%s.parquet" % n, use_dictionary=True, compression="none", data_page_version=v, dictionary_pagesize_limit=150,
                   write_page_index=True, **small)
    enc = {leaf.get(k, k): e for k, (_, _, e) in cols.items() if e}
    pq.write_table(table(every), "enc-delta.%s.parquet" % n, use_dictionary=False, compression="none", data_page_version=v, column_encoding=enc,
                   write_page_index=True, write_page_checksum=True, **small)
few = ["i64", "f64", "s", "ls", "m"]
lines("codec.jsonl", few)
for c in ["none", "snappy", "gzip", "zstd", "lz4", "brotli"]:
    pq.write_table(table(few), "codec-%s.parquet" % c, compression=c, write_page_checksum=True, store_schema=False)
# of small pages pyarrow stores some as they are, in data pages v2
pq.write_table(table(few), "codec-zstd.small.v2.parquet", compression="zstd", data_page_version="2.0", data_page_size=64, write_batch_size=16, row_group_size=30,
               write_page_checksum=True, store_schema=False)
# DELTA_BYTE_ARRAY of values of a fixed length: alone, in a struct beside another, in lists, behind a dictionary that became too long
fixed = {
    "id": pa.array(range(N), pa.int32()),
    "fix": pa.array(some(lambda i: b"%05d" % (i // 3)), pa.binary(5)),
    "full": pa.array([b"%03d" % (i % 20) for i in range(N)], pa.binary(3)),
    "dec": pa.array(some(lambda i: D(10) ** 20 * (i - 60) / 7 // 1 + D(i) / 10000, 5), pa.decimal128(30, 4)),
    "d9": pa.array(some(lambda i: D(i * 1234567 % 10**8) / 100 - 7), pa.decimal128(9, 2)),
    "st": pa.array(some(lambda i: {"a": b"%02d" % (i % 100) if i % 3 else None, "b": i}), pa.struct([("a", pa.binary(2)), ("b", pa.int64())])),
    "l": pa.array(some(lambda i: [None if k == 2 else b"%04d" % (i * k) for k in range(i % 5)]), pa.list_(pa.binary(4))),
}
plain = {n: a.to_pylist() for n, a in fixed.items()}
with open("fixed.jsonl", "w") as f:
    for i in range(N):
        f.write(json.dumps({n: form(v[i], getattr(fixed[n].type, "scale", 0)) for n, v in plain.items()}, ensure_ascii=False) + "\n")
enc = {n: "DELTA_BYTE_ARRAY" for n in ["fix", "full", "dec", "d9", "st.a", "l.list.element"]}
for v, c in [("1.0", "none"), ("2.0", "none"), ("1.0", "snappy"), ("2.0", "zstd"), ("1.0", "gzip"), ("2.0", "brotli"), ("1.0", "lz4")]:
    pq.write_table(pa.table(fixed), "fixed-%s.v%s.parquet" % (c, v[0]), use_dictionary=False, compression=c, data_page_version=v, column_encoding=enc,
                   write_page_index=True, write_page_checksum=c != "none", **small)
# no rows: there are dictionaries, and no data pages
pq.write_table(table(few)[:0], "empty.parquet", store_schema=False)
# rows in an order, in two row groups; pages that are longer than the first one, nulls and lists, so that there are all histograms of levels
ordered = sorted(range(N), key=lambda i: (-(i % 7), (i * 31) % 23 == 0, i * 31 % 23))
order = pa.table({
    "desc": pa.array([i % 7 for i in ordered], pa.int32()),
    "s": pa.array([None if i * 31 % 23 == 0 else "k%02d" % (i * 31 % 23) for i in ordered], pa.string()),
    "ls": pa.array([None if i % 9 == 4 else [None if k == 1 else "x" * k for k in range(i % 4)] for i in ordered], pa.list_(pa.string())),
    "st": pa.array([None if i % 5 == 2 else {"a": None if i % 3 == 0 else i} for i in ordered], pa.struct([("a", pa.int64())])),
})
for v in ["1.0", "2.0"]:
    pq.write_table(order, "order.v%s.parquet" % v[0], row_group_size=70, data_page_size=200, write_batch_size=16, data_page_version=v, write_page_index=True,
                   write_page_checksum=True, compression="none", use_dictionary=["s"], dictionary_pagesize_limit=60,
                   sorting_columns=[pq.SortingColumn(0, descending=True), pq.SortingColumn(1, nulls_first=False)])
print("pyarrow", pa.__version__)
