"""The peers: pyarrow, DuckDB, polars, the bitshuffle library. usage: peer.py prepare ARROW DIR | peer.py measure DIR LOW HIGH KEYS PARTS

measure prints one JSON object: by name, what it can measure, with the checksums of what is read. Then it reads names, a JSON string a line,
runs each once, and prints the seconds of the processor. LOW and HIGH bound the keys of the filter; KEYS is a file of keys, one a line. PARTS
are the names of what is measured, with commas: scans, unshuffle, where, lookups, write.
"""
import json, os, sys, tempfile, time
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


SETS = ["key,int32,float64,low,high,time,bool,nullable,decimal,date", "key", "low", "high", "nullable"]


def seconds(f, n=1):
    t0 = time.process_time()
    f()
    return (time.process_time() - t0) / n


def scan(path, columns):
    """The faster of pyarrow's two ways to read: to one table, or in batches."""

    def batches():
        for b in pq.ParquetFile(path).iter_batches(batch_size=65536, columns=columns, use_threads=False):
            pass

    return min(seconds(lambda: pq.read_table(path, columns=columns, use_threads=False)), seconds(batches))


class Offers:
    def __init__(self):
        self.runs, self.told = {}, {}

    def add(self, name, run, table=None, looked=0):
        self.runs[name] = run
        self.told[name] = {"Looked": looked, "Sums": {c: checksum(table[c]) for c in table.column_names} if table else {}}

    def serve(self, out):
        print(json.dumps(self.told), file=out, flush=True)
        for line in sys.stdin:
            print(json.dumps(self.runs[json.loads(line)]()), file=out, flush=True)


def scans(o, folder, con):
    import polars as pl

    for names in SETS:
        cols = names.split(",")
        for codec in ("snappy", "none"):
            path = f"{folder}/{codec}.parquet"
            o.add(f"scan {codec}: {names}", lambda path=path, cols=cols: scan(path, cols), pq.read_table(path, columns=cols, use_threads=False))
    cols, path = SETS[0].split(","), f"{folder}/snappy.parquet"
    like = pq.read_schema(path)
    duck = lambda: con.sql(f"SELECT * FROM read_parquet('{path}')").to_arrow_table()
    o.add(f"duckdb: {SETS[0]}", lambda: seconds(duck), duck().cast(like))
    polars = lambda: pl.read_parquet(path, columns=cols).to_arrow()
    o.add(f"polars: {SETS[0]}", lambda: seconds(polars), polars().cast(like))


def where(o, folder, con, low, high):
    path = f"{folder}/snappy.parquet"
    d = ds.dataset(path)
    some = lambda: d.to_table(filter=(ds.field("key") >= low) & (ds.field("key") < high), use_threads=False)
    o.add("where pyarrow", lambda: seconds(some), some())
    ask = lambda: con.sql(f"SELECT * FROM read_parquet('{path}') WHERE key >= {low} AND key < {high}").to_arrow_table()
    o.add("where duckdb", lambda: seconds(ask), ask())


def lookups(o, folder, con, keyfile):
    keys = [int(k) for k in open(keyfile)][:200]  # the cost of one look-up does not depend on how many there are
    q = f"SELECT * FROM read_parquet('{folder}/pages.parquet') WHERE key = ?"

    def each():
        for k in keys:
            rows = con.execute(q, [k]).fetchall()
            assert len(rows) == 1 and rows[0][0] == k

    found = pa.concat_tables([con.sql(q, params=[k]).to_arrow_table() for k in keys])
    o.add("lookup duckdb", lambda: seconds(each, len(keys)), found, len(keys))


def write(o, folder, tmp):
    t = pq.read_table(f"{folder}/none.parquet")
    do = lambda: pq.write_table(t, tmp + "/x.parquet", compression="snappy")
    do()
    o.add("write snappy", lambda: seconds(do), pq.read_table(tmp + "/x.parquet"))


def unshuffle(o):
    import bitshuffle

    if not bitshuffle.using_AVX2():
        return
    data = np.random.default_rng(1).integers(0, 256, 256 << 10, dtype=np.uint8)
    for width in (4, 8):
        a = data.view({4: np.uint32, 8: np.uint64}[width])
        shuffled = bitshuffle.bitshuffle(a, 8192 // width)
        assert (bitshuffle.bitunshuffle(shuffled, 8192 // width) == a).all()

        def un(shuffled=shuffled, width=width):
            for _ in range(200):
                bitshuffle.bitunshuffle(shuffled, 8192 // width)

        o.add(f"unshuffle {width}", lambda un=un: seconds(un, 200))


def measure(folder, low, high, keyfile, parts):
    import duckdb

    out, sys.stdout = sys.stdout, sys.stderr  # a library that prints does not disturb
    parts = parts.split(",")
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    con = duckdb.connect(config={"threads": 1})
    o = Offers()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as tmp:
        if "scans" in parts:
            scans(o, folder, con)
        if "where" in parts:
            where(o, folder, con, int(low), int(high))
        if "lookups" in parts:
            lookups(o, folder, con, keyfile)
        if "write" in parts:
            write(o, folder, tmp)
        if "unshuffle" in parts:
            unshuffle(o)
        o.serve(out)


if sys.argv[1] == "prepare":
    prepare(*sys.argv[2:])
else:
    measure(*sys.argv[2:])
