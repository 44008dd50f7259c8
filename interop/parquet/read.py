# Write random nested tables as Parquet, and what pyarrow reads of these and of other files as Arrow IPC.    usage: read.py OUT SEED TABLES [FILE...]
# Prints a line for each file: its path, a tab, and the path of what pyarrow read, or "!" and its error, or "?" and the error of its writer.
import decimal, os, random, sys
import pyarrow as pa, pyarrow.parquet as pq

out, seed, tables, files = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
R = random.Random()


def word():
    return "".join(R.choice("aäbß☃ ") for _ in range(R.choice([0, 1, 3, 3, 12, 40])))


LEAVES = [
    (pa.bool_(), lambda: R.random() < 0.5),
    (pa.int8(), lambda: R.randint(-128, 127)), (pa.uint8(), lambda: R.randint(0, 255)),
    (pa.int16(), lambda: R.randint(-2**15, 2**15 - 1)), (pa.uint16(), lambda: R.randint(0, 2**16 - 1)),
    (pa.int32(), lambda: R.randint(-2**31, 2**31 - 1)), (pa.uint32(), lambda: R.randint(0, 2**32 - 1)),
    (pa.int64(), lambda: R.choice([R.randint(-5, 5), R.randint(-2**63, 2**63 - 1)])), (pa.uint64(), lambda: R.randint(0, 2**64 - 1)),
    (pa.float32(), lambda: R.randint(-999, 999) / 8), (pa.float64(), lambda: R.random()), (pa.float16(), lambda: R.randint(-99, 99) / 4),
    (pa.string(), word), (pa.large_string(), word), (pa.binary(), lambda: word().encode()), (pa.binary(5), lambda: R.randbytes(5)),
    (pa.string_view(), word),
    (pa.date32(), lambda: R.randint(-9999, 99999)), (pa.time32("ms"), lambda: R.randint(0, 86399999)), (pa.time64("ns"), lambda: R.randint(0, 86399999999999)),
    # no timestamp("s"): pyarrow reads it as milliseconds, stoa as seconds
    (pa.timestamp("us", "Europe/Berlin"), lambda: R.randint(-2**50, 2**50)),
    (pa.timestamp("ns"), lambda: R.randint(-2**62, 2**62)), (pa.duration("ms"), lambda: R.randint(-2**40, 2**40)),
    (pa.decimal128(7, 2), lambda: decimal.Decimal(R.randint(-9999999, 9999999)).scaleb(-2)),
    (pa.decimal128(30, 4), lambda: decimal.Decimal(R.randint(-10**29, 10**29)).scaleb(-4)),
    (pa.decimal256(60, 9), lambda: decimal.Decimal(R.randint(-10**59, 10**59)).scaleb(-9)),
]
decimal.getcontext().prec = 80


def kind(depth):
    """A type and a function that draws a value of it."""
    what = R.choice(["leaf"] * (2 + depth) + ["list", "large", "struct", "map", "fixed"] * (depth < 4))
    if what == "leaf":
        return R.choice(LEAVES)
    if what in ("list", "large"):
        t, f = kind(depth + 1)
        item = pa.field("item", t, R.random() < 0.8)
        draw = maybe(f, item.nullable)
        return (pa.list_ if what == "list" else pa.large_list)(item), lambda: [draw() for _ in range(R.choice([0, 0, 1, 2, 5]))]
    if what == "fixed":
        t, f = kind(4)
        return pa.list_(t, 3), lambda: [f() for _ in range(3)]
    if what == "map":
        (t, f), (u, g) = kind(4), kind(depth + 1)
        draw = maybe(g, True)
        return pa.map_(t, u), lambda: [(f(), draw()) for _ in range(R.choice([0, 1, 3]))]
    fields, draws = [], []
    for i in range(R.randint(1, 3)):
        t, f = kind(depth + 1)
        nullable = R.random() < 0.8
        fields.append(pa.field(f"f{i}", t, nullable))
        draws.append(maybe(f, nullable))
    return pa.struct(fields), lambda: {f.name: d() for f, d in zip(fields, draws)}


def maybe(f, nullable):
    share = R.choice([0, 0.1, 0.5, 1]) if nullable else 0
    return lambda: None if R.random() < share else f()


def table(rows):
    fields, columns = [], []
    for i in range(R.randint(1, 5)):
        t, f = kind(0)
        nullable = R.random() < 0.8
        draw = maybe(f, nullable)
        few = [draw() for _ in range(R.choice([3, rows]))]
        fields.append(pa.field(f"c{i}", t, nullable))
        columns.append(pa.array([R.choice(few) for _ in range(rows)], t))
    return pa.table(columns, schema=pa.schema(fields))


def write(path):
    rows = R.choice([0, 1, 10, 300, 2000])
    t = table(rows)
    if R.random() < 0.2:
        i = R.randrange(t.num_columns)
        if t.field(i).type == pa.string():
            t = t.set_column(i, t.field(i).name, t.column(i).dictionary_encode())
    pq.write_table(t, path, compression=R.choice(["none", "snappy", "gzip", "zstd", "lz4", "brotli"]), use_dictionary=R.random() < 0.5,
                   data_page_version=R.choice(["1.0", "2.0"]), data_page_size=R.choice([100, 2000, 1 << 20]), write_batch_size=R.choice([7, 100, 1024]),
                   row_group_size=R.choice([64, 1000, 1 << 20]), write_page_index=R.random() < 0.5, write_page_checksum=R.random() < 0.5,
                   store_schema=R.random() < 0.7, use_deprecated_int96_timestamps=R.random() < 0.1)


for n in range(tables):
    R.seed(seed + n)
    path = os.path.join(out, f"t{seed + n}.parquet")
    try:
        write(path)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as e:  # of its own writer
        print(path, "? " + str(e).split("\n")[0], sep="\t")
        continue
    files.append(path)
for n, path in enumerate(files):
    to = os.path.join(out, f"{n}.arrow")
    try:
        t = pq.ParquetFile(path).read()
        with pa.ipc.new_file(to, t.schema) as w:
            w.write_table(t)
    except Exception as e:
        to = "! " + str(e).split("\n")[0]
    print(path, to, sep="\t", flush=True)
