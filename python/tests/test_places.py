"""Places that are no paths: web servers, S3, and what storage_options say to them."""

import functools
import http.server
import os
import re
import threading
import urllib.parse

import pyarrow as pa
import pytest
import stoa

from conftest import rows

pytestmark = pytest.mark.filterwarnings("ignore::stoa.StoaWarning")


class Server(http.server.BaseHTTPRequestHandler):
    """Files of a directory, as a web server has them, and as S3 has those of one bucket."""

    protocol_version = "HTTP/1.1"

    def __init__(self, root, asked, *args):
        self.root, self.asked = root, asked
        super().__init__(*args)

    def log_message(self, *args):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for k, v in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(k.replace("_", "-"), v)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query, keep_blank_values=True)
        self.asked.append((self.command, self.path, dict(self.headers)))
        if "list-type" in query:
            return self.list(query)
        path = os.path.join(self.root, urllib.parse.unquote(url.path).removeprefix("/bucket").lstrip("/"))
        if not os.path.isfile(path):
            return self.answer(404)
        b = open(path, "rb").read()
        same = {"ETag": f'"{hash(b) & 0xffffffff:x}"', "Last-Modified": "Tue, 02 Jan 2024 03:04:05 GMT",
                "Accept-Ranges": "bytes"}
        m = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if self.command == "HEAD":
            return self.answer(200, b, **same)
        if not m:
            return self.answer(200, b, **same)
        first, last = int(m[1]), min(int(m[2] or len(b) - 1), len(b) - 1)
        self.answer(206, b[first:last + 1], Content_Range=f"bytes {first}-{last}/{len(b)}", **same)

    do_HEAD = do_GET

    def list(self, query):
        prefix, out = query.get("prefix", [""])[0], []
        for d, _, files in sorted(os.walk(self.root)):
            for f in sorted(files):
                key = os.path.relpath(os.path.join(d, f), self.root)
                if key.startswith(prefix):
                    b = open(os.path.join(d, f), "rb").read()
                    out.append(f"<Contents><Key>{key}</Key><Size>{len(b)}</Size><ETag>&quot;{hash(b) & 0xffffffff:x}"
                               "&quot;</ETag><LastModified>2024-01-02T03:04:05.000Z</LastModified></Contents>")
        body = ('<?xml version="1.0"?><ListBucketResult><Name>bucket</Name><IsTruncated>false</IsTruncated>'
                f"<KeyCount>{len(out)}</KeyCount>{''.join(out)}</ListBucketResult>")
        self.answer(200, body.encode(), Content_Type="application/xml")


@pytest.fixture
def server():
    asked = []
    s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Server, "try", asked))
    threading.Thread(target=s.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{s.server_address[1]}", asked
    s.shutdown()
    s.server_close()


def test_web(server):
    address, asked = server
    t = stoa.open(f"http://{address}/flat.red")
    assert t.to_table().equals(stoa.open("try/flat.red").to_table()) and asked
    assert t.files == [f"http://{address}/flat.red"]
    assert sum(s.scan().read_all().num_rows for s in t.plan(["i"])) == 500
    with pytest.raises(stoa.NotFound):
        stoa.open(f"http://{address}/nothing.red")
    with pytest.raises(stoa.Corrupt) as e:
        stoa.open(f"http://{address}/damaged/key.cfile").to_table()
    assert (e.value.object, e.value.offset) == (f"http://{address}/damaged/key.cfile", 539)


OPEN = {"anon": True, "region": "us-east-1"}


def test_s3(server):
    address, asked = server
    options = {**OPEN, "endpoint_url": f"http://{address}"}
    t = stoa.open("s3://bucket/kudu", table="d_major", storage_options=options)
    assert rows(t.to_table()) == rows(stoa.open("try/kudu#d_major").to_table())
    assert not any("Authorization" in h for _, _, h in asked)
    assert [e.name for e in stoa.ls("s3://bucket/flat.red", storage_options=options)] == ["s3://bucket/flat.red"]
    assert [f.code for f in stoa.verify("s3://bucket/damaged/key.cfile", storage_options=options)] == \
        ["cfile.block.checksum"]
    assert stoa.scan_polars("s3://bucket/flat.red", storage_options=options).collect().height == 500


def test_keys_are_used_and_are_in_no_split(server):
    import pickle

    address, asked = server
    options = {"key": "AKIDEXAMPLE", "secret": "wJalrXUtnFEMI", "region": "us-east-1",
               "endpoint_url": f"http://{address}", "anon": False}
    t = stoa.open("s3://bucket/key.cfile", storage_options=options)
    assert len(t.to_table()) == 400
    assert all("AKIDEXAMPLE" in h["Authorization"] for _, _, h in asked)
    assert b"wJalrXUtnFEMI" not in pickle.dumps(t.plan()) and "wJalrXUtnFEMI" not in repr(t) + t._repr_html_()


def test_wrong_options():
    for wrong in [{"nonsense": 1}, {"AWSOME": 1}]:
        with pytest.raises(stoa.Invalid, match="storage_options"):
            stoa.open("s3://bucket/x", storage_options=wrong)


def test_a_list_and_a_glob_are_one_table():
    for i in range(3):
        stoa.write(pa.table({"a": [i, i]}), f"part{i}.trv")
    for place in ["part*.trv", ["part0.trv", "part1.trv", "part2.trv"]]:
        t = stoa.open(place)
        assert t.to_table()["a"].to_pylist() == [0, 0, 1, 1, 2, 2] and len(t.files) == 3


def test_mistakes_are_invalid():
    """What no place, number or text of the library can be is said by the class that is documented, and does nothing."""
    schema, t, half = pa.schema([("n", pa.int64())]), stoa.open("try/flat.red"), "\ud800"
    before = sorted(os.listdir())
    for do in [
        lambda: stoa.create("", schema), lambda: stoa.create("s#d.t", None), lambda: stoa.load("", {"n": [1]}),
        lambda: stoa.create("s#d.t", schema, bucket_by=["n"], buckets=1.5), lambda: stoa.ls([]), lambda: stoa.ls(""),
        lambda: stoa.open([]), lambda: stoa.open(""), lambda: stoa.open(None), lambda: stoa.open(5), lambda: stoa.open("a\0b"),
        lambda: stoa.verify([]), lambda: list(stoa.describe([])), lambda: stoa.recover([], "o.parquet"),
        lambda: stoa.convert("try/flat.red", ""), lambda: stoa.write({"n": [1]}, ""), lambda: stoa.open("file://"),
        lambda: stoa.open("zzz://x"), lambda: stoa.ls("zzz://x"), lambda: stoa.write({"n": [1]}, "zzz://x"),
        lambda: stoa.open(half), lambda: stoa.ls(half), lambda: stoa.write({"n": [1]}, half), lambda: t.scan([half]),
        lambda: stoa.open("try/kudu", table=half), lambda: stoa.open("try/flat.red", format=half),
        lambda: t.count_rows(where=f"s = '{half}'"), lambda: t.get(half), lambda: stoa.run("count", half),
        lambda: stoa.explain("try/flat.red", where=f"s = '{half}'"), lambda: stoa.delete("s#d.t", f"s = '{half}'"),
        lambda: stoa.open("try/flat.red", limits={"fields": 2.5}), lambda: stoa.open("try/flat.red", limits={"nothing": 1}),
        lambda: t.head(1.5), lambda: t.head("3"), lambda: t.scan(rows=(0, float("inf"))), lambda: t.scan(rows=(0.5, 3)),
        *(lambda k=k, v=v: t.scan(**{k: v}) for k in ("limit", "batch", "parallel", "memory")
          for v in (1.5, 2.0, "3", True, float("nan"), float("inf"), -1, 2**70)),
        *(lambda v=v: t.plan(target=v) for v in (1.5, "x", float("nan"), float("inf"), -1, 2**70)),
    ]:
        with pytest.raises(stoa.Invalid, match="expected|zzz"):
            do()
    assert sorted(os.listdir()) == before
    with pytest.raises(stoa.Invalid) as e:
        stoa.open("s3://bucket/x", storage_options={"secret": "hidden" + half})
    assert "AWS_SECRET_ACCESS_KEY" in str(e.value) and "hidden" not in str(e.value)
