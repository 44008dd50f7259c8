"""The peer: pyarrow. usage: peer.py prepare ARROW DIR | peer.py scan PARQUET THREADS COLUMN[,COLUMN...]

scan prints one JSON line: the best of five of the faster of two ways to read every column, and a checksum of the values.
"""
import json, sys, time
import numpy as np, pyarrow as pa, pyarrow.parquet as pq


def prepare(arrow, folder):
    t = pa.ipc.open_file(pa.memory_map(arrow)).read_all()
    pq.write_table(t, folder + "/snappy.parquet", compression="snappy")
    pq.write_table(t, folder + "/none.parquet", compression="none")


def checksum(c):
    c = c.combine_chunks()
    if isinstance(c, pa.ChunkedArray):
        c = pa.concat_arrays(c.chunks)
    nulls, n, t = c.null_count, len(c), c.type
    c = c.drop_null()
    if pa.types.is_boolean(t):
        total = c.true_count
    elif pa.types.is_string(t):
        data = b"".join(s.as_buffer().to_pybytes() for s in c) if len(c) < 1000 else None
        if data is None:
            off = np.frombuffer(c.buffers()[1], dtype=np.int32)[c.offset : c.offset + len(c) + 1]
            b = np.frombuffer(c.buffers()[2], dtype=np.uint8)[off[0] : off[-1]]
            total = int(b.sum(dtype=np.uint64)) + int(off[-1] - off[0])
        else:
            total = sum(data) + len(data)
    elif pa.types.is_decimal(t):
        total = int(np.frombuffer(c.buffers()[1], dtype=np.uint64)[2 * c.offset : 2 * (c.offset + len(c)) : 2].sum(dtype=np.uint64))
    else:
        w = {32: np.int32, 64: np.int64}[t.bit_width]
        total = int(np.frombuffer(c.buffers()[1], dtype=w)[c.offset : c.offset + len(c)].astype(np.int64).view(np.uint64).sum(dtype=np.uint64))
    return {"Rows": n, "Nulls": nulls, "Total": total % 2**64}


def scan(path, threads, columns):
    pa.set_cpu_count(threads)
    pa.set_io_thread_count(max(1, threads))
    many = threads > 1

    def whole():
        return pq.read_table(path, columns=columns, use_threads=many)

    def batches():
        n = 0
        for b in pq.ParquetFile(path).iter_batches(batch_size=65536, columns=columns, use_threads=many):
            n += b.num_rows
        return n

    best = {}
    for name, f in (("read_table", whole), ("iter_batches", batches)):
        times = []
        for _ in range(5):
            t0 = time.perf_counter()
            f()
            times.append(time.perf_counter() - t0)
        best[name] = min(times)
    t = whole()
    print(json.dumps({"Seconds": min(best.values()), "Way": min(best, key=best.get), "Sums": {c: checksum(t[c]) for c in columns}, "Version": pa.__version__}))


if sys.argv[1] == "prepare":
    prepare(*sys.argv[2:])
else:
    scan(sys.argv[2], int(sys.argv[3]), sys.argv[4].split(","))
