# Write tables as Parquet, several files each, and print pyarrow's metadata of their columns.    usage: stats.py OUT SEED TABLES
# Prints a line of JSON for each table: its files, and for each column path the raw and stored bytes, values, nulls and codecs.
import json, os, random, sys
import pyarrow as pa, pyarrow.parquet as pq

out, seed, tables = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for s in range(seed, seed + tables):
    R = random.Random(s)
    n = R.choice([0, 1, 50, 700])
    null = lambda x: None if R.random() < 0.2 else x
    t = pa.table({
        "i": pa.array([null(R.randint(0, 50)) for _ in range(n)], pa.int64()),
        "s": pa.array([null("w%d" % R.randint(0, 9)) for _ in range(n)], pa.string()),
        "none": pa.array([None] * n, pa.string()),
        "f": pa.array([R.random() for _ in range(n)], pa.float64()),
        "l": pa.array([[R.randint(0, 9)] * R.randint(0, 3) for _ in range(n)], pa.list_(pa.int32())),
        "st": pa.array([{"a": R.randint(0, 5), "b": null("x")} for _ in range(n)], pa.struct([("a", pa.int8()), ("b", pa.string())])),
    })
    files, columns = [], {}
    for k in range(R.choice([1, 2, 3])):
        f = os.path.join(out, f"{s}-{k}.parquet")
        pq.write_table(t, f, compression=R.choice(["snappy", "none", "zstd", "gzip", "lz4", "brotli"]), data_page_version=R.choice(["1.0", "2.0"]),
                       data_page_size=R.choice([64, 1000, 1 << 20]), use_dictionary=R.random() < 0.6, row_group_size=R.choice([50, 300, 1000]))
        files.append(f)
        m = pq.ParquetFile(f).metadata
        for g in range(m.num_row_groups):
            for c in range(m.num_columns):
                x = m.row_group(g).column(c)
                d = columns.setdefault(x.path_in_schema, {"stored": 0, "raw": 0, "values": 0, "nulls": 0, "codecs": []})
                d["stored"] += x.total_compressed_size
                d["raw"] += x.total_uncompressed_size
                d["values"] += x.num_values
                d["nulls"] += x.statistics.null_count if x.statistics else 0
                codec = {"UNCOMPRESSED": "UNCOMPRESSED", "LZ4": "LZ4_RAW"}.get(x.compression, x.compression)
                if codec not in d["codecs"]:
                    d["codecs"].append(codec)
    print(json.dumps({"files": files, "columns": columns}))
