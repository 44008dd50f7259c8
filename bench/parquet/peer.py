"""The peer: pyarrow, one thread. usage: peer.py ten ARROW DIR CODEC ROUNDS | shapes DIR ROWS

ten writes, scans and filters the ten columns, each ROUNDS times, and prints the least seconds of processor time of each, the bytes, and a sum of the keys.
shapes writes tables of several shapes as Arrow and, with pyarrow's defaults, as Parquet.
"""
import json, os, random, sys, time
import numpy as np, pyarrow as pa, pyarrow.dataset as ds, pyarrow.parquet as pq

CODECS = ["none", "snappy", "zstd"]


def least(rounds, f):
    out = []
    for _ in range(rounds):
        t = time.process_time()
        f()
        out.append(time.process_time() - t)
    return min(out)


def ten(arrow, folder, codec, rounds):
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    t = pa.ipc.open_file(pa.memory_map(arrow)).read_all()
    path = f"{folder}/pyarrow.{codec}.parquet"
    write = least(rounds, lambda: pq.write_table(t, path, compression=codec))

    def batches():
        return sum(b.num_rows for b in pq.ParquetFile(path).iter_batches(batch_size=65536, use_threads=False))

    scan = min(least(rounds, lambda: pq.read_table(path, use_threads=False)), least(rounds, batches))
    key = t["key"].to_numpy()
    lo, hi = int(key[len(key) // 2]), int(key[len(key) // 2 + len(key) // 1000])
    kept = (ds.field("key") >= lo) & (ds.field("key") < hi)
    where = least(rounds, lambda: ds.dataset(path).to_table(filter=kept, use_threads=False))
    print(json.dumps({"Write": write, "Scan": scan, "Where": where, "Bytes": os.path.getsize(path), "Lo": lo, "Hi": hi,
                      "Sum": int(key.view(np.uint64).sum(dtype=np.uint64)), "Version": pa.__version__}))


def shapes(folder, rows):
    r = random.Random(7)
    g = np.random.default_rng(7)
    words = [f"{w}-{i}" for i in range(500) for w in ("north", "south")]
    out = {
        "sorted int64": pa.array(np.cumsum(g.integers(1, 9, rows))),
        "random int64": pa.array(g.integers(-2**62, 2**62, rows)),
        "small int32": pa.array(g.integers(0, 100000, rows).astype("int32")),
        "instants": pa.array(1_700_000_000_000_000 + np.cumsum(g.integers(0, 500_000, rows)), pa.timestamp("us")),
        "random float64": pa.array(g.random(rows)),
        "prices float64": pa.array(np.round(g.random(rows) * 1000, 2)),
        "walk float32": pa.array(np.cumsum(g.standard_normal(rows)).astype("float32")),
        "unique strings": pa.array([f"{r.getrandbits(96):024x}" for _ in range(rows)]),
        "sorted strings": pa.array([f"/var/log/service/{i:09d}.log" for i in range(rows)]),
        "low cardinality": pa.array([words[i] for i in g.zipf(1.3, rows) % len(words)]),
        "URLs": pa.array([f"https://example.org/{words[r.randrange(1000)]}/item?id={r.randrange(10**7)}" for _ in range(rows)]),
        "nulls, 90 %": pa.array([r.randrange(1000) if r.random() < 0.1 else None for _ in range(rows)], pa.int32()),
        "booleans in runs": pa.array([i // 1000 % 3 == 0 for i in range(rows)]),
        "decimals": pa.array(g.integers(0, 10**8, rows)).cast(pa.decimal128(20, 0)),
        "UUIDs": pa.array([r.randbytes(16) for _ in range(rows)], pa.binary(16)),
        "lists of int64": pa.array([[r.randrange(1000) for _ in range(r.randrange(6))] for _ in range(rows)]),
        "structs": pa.array([{"a": i, "b": words[i % 1000], "c": [1.5 * i] if i % 3 else None} for i in range(rows)]),
    }
    for k, (name, a) in enumerate(out.items()):
        t = pa.table({"x": a})
        with pa.ipc.new_file(f"{folder}/{k}.arrow", t.schema) as w:
            w.write_table(t)
        for c in CODECS:
            pq.write_table(t, f"{folder}/{k}.{c}.pyarrow.parquet", compression=c)
        print(name)


if sys.argv[1] == "ten":
    ten(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
else:
    shapes(sys.argv[2], int(sys.argv[3]))
