"""The peer: pyarrow. usage: peer.py prepare ARROW DIR | scan PARQUET | take PARQUET N ROWS

prepare writes snappy.parquet (pyarrow's defaults) and pages.parquet (8 KiB pages and a page index).
scan: best of five of the faster of two ways to read all columns, and a checksum. take: seconds of one row each, N times.
"""
import json, random, sys, time
import numpy as np, pyarrow as pa, pyarrow.dataset as ds, pyarrow.parquet as pq


def prepare(arrow, folder):
    t = pa.ipc.open_file(pa.memory_map(arrow)).read_all()
    pq.write_table(t, folder + "/snappy.parquet", compression="snappy")
    pq.write_table(t, folder + "/pages.parquet", compression="snappy", data_page_size=8192, write_page_index=True, write_batch_size=64)


def scan(path):
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)

    def whole():
        return pq.read_table(path, use_threads=False)

    def batches():
        return sum(b.num_rows for b in pq.ParquetFile(path).iter_batches(batch_size=65536, use_threads=False))

    best = []
    for f in (whole, batches):
        for _ in range(5):
            t0, c0 = time.perf_counter(), time.process_time()
            f()
            best.append((time.perf_counter() - t0, time.process_time() - c0))
    c = whole()["key"].combine_chunks()
    key = c.to_numpy() if not isinstance(c, pa.ChunkedArray) else np.concatenate([x.to_numpy() for x in c.chunks])
    print(json.dumps({"Seconds": min(b[0] for b in best), "CPU": min(b[1] for b in best), "Sum": int(key.view(np.uint64).sum(dtype=np.uint64)), "Version": pa.__version__}))


def take(path, n, rows):
    pa.set_cpu_count(1)
    r = random.Random(1)
    d = ds.dataset(path)
    d.take([0], use_threads=False)
    t0, c0 = time.perf_counter(), time.process_time()
    for _ in range(n):
        assert d.take([r.randrange(rows)], use_threads=False).num_rows == 1
    print(json.dumps({"Seconds": time.perf_counter() - t0, "CPU": time.process_time() - c0, "Version": pa.__version__}))


if sys.argv[1] == "prepare":
    prepare(*sys.argv[2:])
elif sys.argv[1] == "scan":
    scan(sys.argv[2])
else:
    take(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
