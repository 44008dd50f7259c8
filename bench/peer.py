"""The peers: pyarrow, DuckDB, the bitshuffle library. usage: peer.py prepare ARROW DIR | peer.py measure DIR COLUMNS LOW HIGH KEYS PARTS

measure prints one JSON object: by name, the best of five in seconds of the processor (of the wall for what has two threads), and checksums.
COLUMNS is a JSON array of arrays of columns; LOW and HIGH bound the keys of the filter; KEYS is a file of keys, one a line. PARTS are the
names of what is measured, with commas: scans, unshuffle, where, lookups, write.
"""
import json, sys, time
import numpy as np, pyarrow as pa, pyarrow.parquet as pq, pyarrow.dataset as ds


def prepare(arrow, folder):
    t = pa.ipc.open_file(pa.memory_map(arrow)).read_all()
    pq.write_table(t, folder + "/snappy.parquet", compression="snappy")
    pq.write_table(t, folder + "/none.parquet", compression="none")
    pq.write_table(t, folder + "/pages.parquet", compression="snappy", write_page_index=True, data_page_size=16 << 10, row_group_size=1 << 20)


def checksum(c):
    c = c.combine_chunks()
    if isinstance(c, pa.ChunkedArray):
        c = pa.concat_arrays(c.chunks)
    nulls, n, t = c.null_count, len(c), c.type
    c = c.drop_null()
    if pa.types.is_boolean(t):
        total = c.true_count
    elif pa.types.is_string(t):
        if len(c) == 0:
            total = 0
        else:
            off = np.frombuffer(c.buffers()[1], dtype=np.int32)[c.offset : c.offset + len(c) + 1]
            b = np.frombuffer(c.buffers()[2], dtype=np.uint8)[off[0] : off[-1]]
            total = int(b.sum(dtype=np.uint64)) + int(off[-1] - off[0])
    elif pa.types.is_decimal(t):
        total = int(np.frombuffer(c.buffers()[1], dtype=np.uint64)[2 * c.offset : 2 * (c.offset + len(c)) : 2].sum(dtype=np.uint64))
    else:
        w = {32: np.int32, 64: np.int64}[t.bit_width]
        total = int(np.frombuffer(c.buffers()[1], dtype=w)[c.offset : c.offset + len(c)].astype(np.int64).view(np.uint64).sum(dtype=np.uint64))
    return {"Rows": n, "Nulls": nulls, "Total": total % 2**64}


def best(f, times=5, clock=time.process_time):
    low = None
    for _ in range(times):
        t0 = clock()
        f()
        t = clock() - t0
        low = t if low is None else min(low, t)
    return low


def scan(path, columns):
    """The faster of pyarrow's two ways to read."""

    def batches():
        for b in pq.ParquetFile(path).iter_batches(batch_size=65536, columns=columns, use_threads=False):
            pass

    whole = lambda: pq.read_table(path, columns=columns, use_threads=False)
    return min(best(whole), best(batches))


def measure(folder, columns, low, high, keyfile, parts):
    parts = parts.split(",")
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    out = {}

    def put(name, seconds, sums=None):
        out[name] = {"Seconds": seconds, "Sums": sums or {}}

    for cols in json.loads(columns) if "scans" in parts else []:
        for codec in ("snappy", "none"):
            path = f"{folder}/{codec}.parquet"
            t = pq.read_table(path, columns=cols, use_threads=False)
            put(f"scan {codec} {','.join(cols)}", scan(path, cols), {c: checksum(t[c]) for c in cols})

    path, low, high = f"{folder}/snappy.parquet", int(low), int(high)
    import duckdb

    con = duckdb.connect(config={"threads": 1})
    if "where" in parts:
        d = ds.dataset(path)
        some = lambda: d.to_table(filter=(ds.field("key") >= low) & (ds.field("key") < high), use_threads=False)
        t = some()
        put("where pyarrow", best(some), {c: checksum(t[c]) for c in t.column_names})
        ask = lambda: con.sql(f"SELECT * FROM read_parquet('{path}') WHERE key >= {low} AND key < {high}").to_arrow_table()
        t = ask()
        put("where duckdb", best(ask), {c: checksum(t[c]) for c in t.column_names})

    keys = [int(k) for k in open(keyfile)][:200]  # the cost of one look-up does not depend on how many there are

    def lookups():
        q = f"SELECT * FROM read_parquet('{folder}/pages.parquet') WHERE key = ?"
        for k in keys:
            rows = con.execute(q, [k]).fetchall()
            assert len(rows) == 1 and rows[0][0] == k

    if "lookups" in parts:
        q = f"SELECT * FROM read_parquet('{folder}/pages.parquet') WHERE key = ?"
        t = pa.concat_tables([con.sql(q, params=[k]).to_arrow_table() for k in keys])
        put("lookup duckdb", best(lookups, 2) / len(keys), {c: checksum(t[c]) for c in t.column_names})
        out["lookup duckdb"]["Looked"] = len(keys)

    if "write" in parts:
        t = pq.read_table(f"{folder}/none.parquet")
        import os, tempfile

        with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as tmp:
            seconds = best(lambda: pq.write_table(t, tmp + "/x.parquet", compression="snappy"))
            t = pq.read_table(tmp + "/x.parquet")
            put("write snappy", seconds, {c: checksum(t[c]) for c in t.column_names})

    import bitshuffle

    for width in (4, 8) if "unshuffle" in parts else ():
        data = np.random.default_rng(1).integers(0, 256, 256 << 10, dtype=np.uint8)
        a = data.view({4: np.uint32, 8: np.uint64}[width])
        shuffled = bitshuffle.bitshuffle(a, 8192 // width)

        def un():
            for _ in range(200):
                bitshuffle.bitunshuffle(shuffled, 8192 // width)

        assert (bitshuffle.bitunshuffle(shuffled, 8192 // width) == a).all()
        put(f"unshuffle {width}", best(un) / 200)
    out["AVX2"] = {"Seconds": float(bitshuffle.using_AVX2()), "Sums": {}}
    print(json.dumps(out))


if sys.argv[1] == "prepare":
    prepare(*sys.argv[2:])
else:
    measure(*sys.argv[2:])
