# Makes the golden files of format/ipc that Polars wrote (pip install polars; made with 2.1.0). Run in format/ipc/testdata.
# polars.jsonl is the same rows, written by Python.
import datetime as dt, json
import polars as pl

pl.DataFrame({"a": [1, 2, 3], "s": ["x", None, "y"]}).write_ipc("least.polars.arrow")

N = 20


def some(f):
    return [None if i % 5 == 3 else f(i) for i in range(N)]


cols = {
    "i": (pl.Int64, some(lambda i: i * 10**17 - 5)),
    "f": (pl.Float64, some(lambda i: i / 8 - 1)),
    "b": (pl.Boolean, some(lambda i: i % 2 == 0)),
    "s": (pl.String, some(lambda i: "%d, which is more than twelve bytes" % i if i % 2 else "%d" % i)),
    "d": (pl.Date, some(lambda i: dt.date(1960 + i, 2, 28))),
    "c": (pl.Categorical, some(lambda i: "abc"[i % 3])),
    "e": (pl.Enum(["x", "y", "z"]), some(lambda i: "zyx"[i % 3])),
    "l": (pl.List(pl.Int32), some(lambda i: [None if k == 1 else k for k in range(i % 4)])),
    "st": (pl.Struct({"x": pl.Int16, "y": pl.String}), some(lambda i: {"x": i, "y": None if i % 2 else "y%d" % i})),
    "ll": (pl.List(pl.List(pl.String)), some(lambda i: [["a"] * k for k in range(i % 3)])),
}
df = pl.DataFrame({n: pl.Series(n, v, dtype=t) for n, (t, v) in cols.items()})
with open("polars.jsonl", "w") as f:
    for i in range(N):
        f.write(json.dumps({n: str(v[i]) if n == "d" and v[i] else v[i] for n, (_, v) in cols.items()}) + "\n")
for c in ["uncompressed", "lz4", "zstd"]:
    df.write_ipc("polars.%s.arrow" % c, compression=c, record_batch_size=7)
df.write_ipc("polars.oldest.arrow", compat_level=pl.CompatLevel.oldest())

# An integer that Arrow does not have.
pl.DataFrame({"a": pl.Series([1, None], dtype=pl.Int128)}).write_ipc_stream("refused/int128.arrows")
