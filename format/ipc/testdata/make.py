# Makes the golden files of format/ipc and format/parquet with pyarrow (pip install pyarrow; made with 26.0.1).
# Run in format/ipc/testdata. The .jsonl files are the same rows, written by Python.
import base64, datetime as dt, decimal, json, random, zoneinfo
import pyarrow as pa, pyarrow.ipc as ipc, pyarrow.parquet as pq

random.seed(1)
N = 20
D = decimal.Decimal


def some(f):
    return [None if i % 5 == 3 else f(i) for i in range(N)]


plain = {
    "i64": (pa.int64(), some(lambda i: i * 10**17 - 5)),
    "f64": (pa.float64(), some(lambda i: i / 8 - 1)),
    "b": (pa.bool_(), some(lambda i: i % 2 == 0)),
    "s": (pa.string(), some(lambda i: "zeile\n%d é\"" % i)),
    "d": (pa.date32(), some(lambda i: dt.date(1960 + i, 2, 28) + dt.timedelta(1))),
    "l": (pa.list_(pa.int32()), some(lambda i: [None if k == 1 else k for k in range(i % 4)])),
    "st": (pa.struct([("x", pa.int16()), ("y", pa.string())]), some(lambda i: {"x": i, "y": None if i % 2 else "y%d" % i})),
    "m": (pa.map_(pa.string(), pa.float64()), some(lambda i: [("k%d" % k, k / 2) for k in range(i % 3)])),
    "ll": (pa.list_(pa.list_(pa.string())), some(lambda i: [["a"] * k for k in range(i % 3)])),
    "bin": (pa.binary(), some(lambda i: bytes(range(i)))),
}
rare = {
    "u8": (pa.uint8(), some(lambda i: i * 12)),
    "u64": (pa.uint64(), some(lambda i: 2**64 - 1 - i)),
    "f32": (pa.float32(), some(lambda i: i / 4)),
    "ls": (pa.large_string(), some(str)),
    "fsb": (pa.binary(3), some(lambda i: bytes([i, 0, 255]))),
    "d64": (pa.date64(), some(lambda i: dt.date(2000, 1, 1 + i))),
    "t32": (pa.time32("s"), some(lambda i: dt.time(i, i, i))),
    "t64": (pa.time64("ns"), some(lambda i: i * 10**9 + i)),
    "ts": (pa.timestamp("s"), some(lambda i: dt.datetime(1960 + i, 1, 2, 3, 4, 5))),
    "tu": (pa.timestamp("us", tz="Europe/Paris"), some(lambda i: dt.datetime(1990 + i, 1, 2, 3, 4, 5, 6, tzinfo=dt.timezone.utc))),
    "tn": (pa.timestamp("ns"), some(lambda i: i * 10**18 // 3)),
    "du": (pa.duration("ms"), some(lambda i: dt.timedelta(milliseconds=i))),
    "d1": (pa.decimal128(9, 2), some(lambda i: D(i) / 100 - 3)),
    "d2": (pa.decimal256(50, 10), some(lambda i: D(10) ** 38 + D(i))),
    "fl": (pa.list_(pa.int8(), 2), some(lambda i: [i, None])),
    "dict": (pa.dictionary(pa.int8(), pa.string()), some(lambda i: "abc"[i % 3])),
    "n": (pa.null(), [None] * N),
}


def table(cols):
    names = list(cols)
    arrays = []
    for n in names:
        typ, vals = cols[n]
        if pa.types.is_dictionary(typ):
            arrays.append(pa.array(vals, typ.value_type).dictionary_encode().cast(typ))
        else:
            arrays.append(pa.array(vals, typ))
    fields = [pa.field(n, a.type, metadata={"stoa.note": n} if n == "i64" else None) for n, a in zip(names, arrays)]
    return pa.table(arrays, schema=pa.schema(fields, metadata={"made": "by hand"}))


def clock(nanos):
    return (dt.datetime(1970, 1, 1) + dt.timedelta(seconds=nanos // 10**9)), (".%09d" % (nanos % 10**9)).rstrip("0").rstrip(".")


def form(v, n="", scale=0):
    if v is not None and n in ("t64", "tn"):
        t, frac = clock(v)
        return (t.time() if n == "t64" else t).isoformat() + frac
    if v is not None and n == "tu":
        return v.astimezone(zoneinfo.ZoneInfo("Europe/Paris")).isoformat()
    if isinstance(v, dt.timedelta):
        return "%dms" % (v // dt.timedelta(milliseconds=1))
    if isinstance(v, dt.time):
        return v.isoformat()
    if isinstance(v, D):
        with decimal.localcontext(prec=80):
            return format(v.quantize(D(1).scaleb(-scale)), "f")
    if isinstance(v, bytes):
        return base64.b64encode(v).decode()
    if isinstance(v, dt.date):
        return v.isoformat()
    if isinstance(v, dict):
        return {k: form(x) for k, x in v.items()}
    if isinstance(v, list):
        if v and isinstance(v[0], tuple):
            return [{"key": k, "value": x} for k, x in v]
        return [form(x) for x in v]
    return v


a, b = table(plain), table(rare)
for name, cols in [("plain", plain), ("rare", rare)]:
    with open(name + ".jsonl", "w") as f:
        for i in range(N):
            f.write(json.dumps({n: form(vals[i], n, getattr(t, "scale", 0)) for n, (t, vals) in cols.items()}, ensure_ascii=False) + "\n")


def write(name, t, new, **kw):
    with new(name, t.schema, **kw) as w:
        w.write_table(t, max_chunksize=7)


for name, t in [("plain", a), ("rare", b)]:
    write(name + ".arrow", t, ipc.new_file)
    write(name + ".lz4.arrows", t, ipc.new_stream, options=ipc.IpcWriteOptions(compression="lz4"))
    write(name + ".zstd.arrow", t, ipc.new_file, options=ipc.IpcWriteOptions(compression="zstd"))
write("v4.arrow", a, ipc.new_file, options=ipc.IpcWriteOptions(metadata_version=ipc.MetadataVersion.V4))
write("legacy.arrows", a, ipc.new_stream, options=ipc.IpcWriteOptions(metadata_version=ipc.MetadataVersion.V4, use_legacy_format=True))

# Dictionaries that differ from batch to batch: replaced in a stream, lengthened in a file.
parts = [["x", "y"], ["z", "x"], ["y", "w"]]
sc = pa.schema([("d", pa.dictionary(pa.int8(), pa.string()))])
with ipc.new_stream("replaced.arrows", sc) as w:
    for p in parts:
        w.write_batch(pa.record_batch([pa.array(p).dictionary_encode().cast(sc.field(0).type)], schema=sc))
words = []
with ipc.new_file("delta.arrow", sc, options=ipc.IpcWriteOptions(emit_dictionary_deltas=True)) as w:
    for p in parts:
        words += [x for x in p if x not in words]
        w.write_batch(pa.record_batch([pa.DictionaryArray.from_arrays(pa.array([words.index(x) for x in p], pa.int8()), pa.array(words))], schema=sc))

to = "../../parquet/testdata/"

for name, t in [("plain", a), ("rare", b)]:
    pq.write_table(t, to + name + ".parquet", row_group_size=9)
    pq.write_table(t, to + name + ".v2.parquet", row_group_size=9, data_page_version="2.0", compression="zstd", store_schema=False, use_dictionary=False, write_page_index=True, data_page_size=30)
pq.write_table(a, to + "plain.v1.parquet", version="1.0", compression="gzip", use_deprecated_int96_timestamps=True)
pq.write_table(b.select(["tn"]), to + "int96.parquet", use_deprecated_int96_timestamps=True, store_schema=False)
# What Spark writes for 9999-12-31 is beyond the nanoseconds of 64 bits. Pages of five rows; pq.read_table(…, coerce_int96_timestamp_unit="us") reads it; stoa refuses the page.
far = pa.table({"n": range(20), "t": pa.array([dt.datetime(2000, 1, 1 + i) if i != 12 else dt.datetime(9999, 12, 31) for i in range(20)], pa.timestamp("us"))})
pq.write_table(far, to + "refused/int96.far.parquet", use_deprecated_int96_timestamps=True, store_schema=False, use_dictionary=False, write_page_index=True, data_page_size=30, write_batch_size=5)
