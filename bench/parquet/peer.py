"""The peers, one thread: pyarrow, and of scans DuckDB's export to Arrow. usage: peer.py ten ARROW DIR CODEC ROUNDS | lists DIR ROWS ROUNDS | shapes DIR ROWS

ten writes, scans and filters the ten columns, each ROUNDS times, and prints the least seconds of processor time of each, the bytes, and a sum of the keys. lists does so with
scans of a column of lists.
shapes writes tables of several shapes as Arrow and, with pyarrow's defaults, as Parquet.
"""
import json, os, random, sys, time
import duckdb, numpy as np, pyarrow as pa, pyarrow.dataset as ds, pyarrow.parquet as pq

CODECS = ["none", "snappy", "zstd"]


def least(rounds, f):
    out = []
    for _ in range(rounds):
        t = time.process_time()
        f()
        out.append(time.process_time() - t)
    return min(out)


def scans(path, rounds):
    """The least time in which pyarrow reads a file, and DuckDB exports it to Arrow."""
    def batches():
        return sum(b.num_rows for b in pq.ParquetFile(path).iter_batches(batch_size=65536, use_threads=False))

    scan = min(least(rounds, lambda: pq.read_table(path, use_threads=False)), least(rounds, batches))
    d = duckdb.connect(config={"threads": 1})

    def export():
        n = d.sql(f"select * from read_parquet('{path}')").to_arrow_table().num_rows
        assert n == pq.ParquetFile(path).metadata.num_rows

    return {"Scan": scan, "Duck": least(rounds, export)}


def lists(folder, rows, rounds):
    pa.set_cpu_count(1)
    g = np.random.default_rng(7)
    at = np.concatenate([[0], np.cumsum(g.integers(0, 6, rows))]).astype("int32")
    path = f"{folder}/lists.parquet"
    pq.write_table(pa.table({"x": pa.ListArray.from_arrays(pa.array(at), pa.array(g.integers(0, 1000, at[-1])))}), path)
    items = pq.read_table(path)["x"].combine_chunks().values.to_numpy()
    print(json.dumps(scans(path, rounds) | {"Sum": int(items.sum()), "Items": len(items), "Rows": rows}))


def ten(arrow, folder, codec, rounds):
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    t = pa.ipc.open_file(pa.memory_map(arrow)).read_all()
    path = f"{folder}/pyarrow.{codec}.parquet"
    write = least(rounds, lambda: pq.write_table(t, path, compression=codec))

    key = t["key"].to_numpy()
    lo, hi = int(key[len(key) // 2]), int(key[len(key) // 2 + len(key) // 1000])
    kept = (ds.field("key") >= lo) & (ds.field("key") < hi)
    where = least(rounds, lambda: ds.dataset(path).to_table(filter=kept, use_threads=False))
    print(json.dumps(scans(path, rounds) | {"Write": write, "Where": where, "Bytes": os.path.getsize(path), "Lo": lo, "Hi": hi,
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
elif sys.argv[1] == "lists":
    lists(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
else:
    shapes(sys.argv[2], int(sys.argv[3]))
