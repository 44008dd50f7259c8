"""Times stoa and its peers on objects behind a link of 20 ms and 100 MB/s: seconds (the best of three), requests, bytes."""
import glob, json, os, subprocess, sys, time

stoa, link, bucket, rows = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
work = os.environ["WORK"]
gateway = os.environ["AWS_ENDPOINT_URL_S3"]


def run(*args, endpoint=gateway, **more):
    env = dict(os.environ, AWS_ENDPOINT_URL_S3=endpoint)
    return subprocess.run(args, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)


def size(path):
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(d, f)) for d, _, fs in os.walk(path) for f in fs)


proxy = subprocess.Popen([link, "-to", gateway], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
address = proxy.stdout.readline().strip()


def counts():
    proxy.stdin.write("\n")
    proxy.stdin.flush()
    return json.loads(proxy.stdout.readline())


def timed(name, what, size=0):
    best = None
    for _ in range(3):
        counts()
        begin = time.time()
        what()
        took, c = time.time() - begin, counts()
        if best is None or took < best[0]:
            best = took, c
    took, c = best
    n = sum(c["requests"].values())
    rate = "%5.1f MB/s" % (size / 1e6 / took) if size else ""
    print("%-52s %7.2f s  %5d requests  %7.1f MB  %s  %s" %
          (name, took, n, c["bytes"] / 1e6, rate, " ".join("%s %d" % kv for kv in sorted(c["requests"].items()))), flush=True)


def command(*args):
    return lambda: run(stoa, *args, endpoint=address)


# A script of Python pays for its imports once; the peers are timed inside of one process.
def peers():
    import pyarrow.fs, pyarrow.parquet as pq
    fs = pyarrow.fs.S3FileSystem(access_key=os.environ["AWS_ACCESS_KEY_ID"], secret_key=os.environ["AWS_SECRET_ACCESS_KEY"],
                                 endpoint_override=address, region="us-east-1")

    def arrow():
        n = sum(b.num_rows for b in pq.ParquetFile("bucket/big.parquet", filesystem=fs, pre_buffer=True).iter_batches(65536))
        assert n == rows, n

    def table():
        assert pq.read_table("bucket/big.parquet", filesystem=fs, use_threads=True).num_rows == rows

    total = size(bucket + "/big.parquet")
    timed("Parquet, pyarrow, batches", arrow, total)
    timed("Parquet, pyarrow, read_table", table, total)
    sys.path.insert(0, os.path.join(work, "duckdb"))
    import duckdb
    con = duckdb.connect()
    con.execute("install '%s'" % glob.glob(os.path.join(work, "duckdb/duckdb_extension_httpfs/extensions/*/*"))[0])
    con.execute("load httpfs")
    con.execute("set enable_external_file_cache = false")  # it would answer the second time without a request
    for k, v in {"endpoint": address.split("//")[1], "use_ssl": "false", "url_style": "path", "region": "us-east-1",
                 "access_key_id": os.environ["AWS_ACCESS_KEY_ID"],
                 "secret_access_key": os.environ["AWS_SECRET_ACCESS_KEY"]}.items():
        con.execute("set s3_%s = '%s'" % (k, v))

    def duck():  # all columns of all rows are read; what is made of them is small
        got = con.execute("select count(*), %s from 's3://bucket/big.parquet'" %
                          ", ".join("bit_xor(hash(%s))" % c for c in "abcde")).fetchall()
        assert got[0][0] == rows, got

    timed("Parquet, DuckDB, a hash of each column", duck, total)


kudu = os.environ.get("KUDU")
if kudu:
    timed("Kudu directory, open and count", command("count", "s3://bucket/kudu#" + kudu))
if os.path.isdir(bucket + "/carbon"):
    timed("CarbonData table, open and scan", command("cat", "-f", "arrow", "s3://bucket/carbon"))
timed("CFile set, open", command("schema", "s3://bucket/big"))
for threads in sys.argv[5:] or ["1"]:
    p = ["--parallel", threads]
    timed("CFile set, all columns, %s workers" % threads, command("cat", "-f", "arrow", *p, "s3://bucket/big"), size(bucket + "/big"))
    timed("Parquet, all columns, %s workers" % threads, command("cat", "-f", "arrow", *p, "s3://bucket/big.parquet"), size(bucket + "/big.parquet"))
peers()
proxy.stdin.close()
