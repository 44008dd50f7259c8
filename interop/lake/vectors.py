#!/usr/bin/env python3
"""Tables of Delta Lake with deletion vectors and column mapping, by seed, made from the protocol's document: pyarrow
writes the files, pyroaring the vectors (inline, in files by UUID and by absolute path). The expected rows are known.

    python vectors.py STOA FIRST LAST    stoa, deltalake and DuckDB read them; exit status 1: one differs
    python vectors.py golden DIR         writes the golden tables of format/delta/testdata, with NAME.json beside each

needs pyarrow, pyroaring, deltalake 1.6, duckdb 1.4.4 with duckdb-ext-delta
"""
import glob
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import uuid
import zlib

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap

Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
IDS = {"id": 1, "s": 2, "n": 3, "a": 4}


def z85(b):
    out = ""
    for i in range(0, len(b), 4):
        n, word = int.from_bytes(b[i:i + 4], "big"), ""
        for _ in range(5):
            word, n = Z85[n % 85] + word, n // 85
        out += word
    return out


def bitmap(rows, r):
    b = struct.pack("<Q", 1) + struct.pack("<I", 0)
    m = BitMap(rows)
    if r.random() < .5:
        m.run_optimize()
    return struct.pack("<i", 1681511377) + b + m.serialize()


def vector(folder, rows, r):
    b, kind = bitmap(rows, r), r.choice("iupp")
    v = {"sizeInBytes": len(b), "cardinality": len(rows)}
    if kind == "i":
        return {"storageType": "i", "pathOrInlineDv": z85(b + b"\0" * (-len(b) % 4)), **v}
    u, prefix, at = uuid.UUID(int=r.getrandbits(128)), r.choice(["", "ab"]), r.choice([1, 1, 20])
    path = os.path.join(folder, prefix, f"deletion_vector_{u}.bin")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(b"\x01" + b"\xff" * (at - 1) + struct.pack(">i", len(b)) + b + struct.pack(">I", zlib.crc32(b)))
    if kind == "u":
        return {"storageType": "u", "pathOrInlineDv": prefix + z85(u.bytes), "offset": at, **v}
    return {"storageType": "p", "pathOrInlineDv": "file://" + path, "offset": at, **v}


def fields(mode, names):
    def field(name, kind):
        about = {"delta.columnMapping.id": IDS[name], "delta.columnMapping.physicalName": names[name]}
        return {"name": name, "type": kind, "nullable": True, "metadata": {} if mode == "none" else about}
    inner = {"type": "struct", "fields": [field("a", "integer")]}
    return [field("id", "long"), field("s", "string"), field("n", inner)]


def gone_of(n, r):
    kind = r.randrange(5)
    if kind == 1:
        return {i for i in range(n) if r.random() < .3}
    if kind == 2:
        first = r.randrange(n)
        return set(range(first, min(n, first + r.randrange(1, 90000))))
    return {0: set(), 3: set(range(n)), 4: {r.randrange(n) for _ in range(3)}}[kind]


def file(path, rows, mode, names, r):
    """Writes rows; in mode id, the names in the file may be any."""
    if mode == "id" and r.random() < .5:
        names = {c: c + " any" for c in names}

    def field(c, t):
        return pa.field(names[c], t, metadata={"PARQUET:field_id": str(IDS[c])} if mode == "id" else None)
    n = pa.struct([field("a", pa.int32())])
    t = pa.Table.from_arrays([
        pa.array([x["id"] for x in rows]), pa.array([x["s"] for x in rows], pa.string()),
        pa.array([None if x["n"] is None else {names["a"]: x["n"]["a"]} for x in rows], n),
    ], schema=pa.schema([field("id", pa.int64()), field("s", pa.string()), field("n", n)]))
    if r.random() < .5:
        t = t.select([2, 0, 1])
    pq.write_table(t, path, row_group_size=r.choice([1000, 40000, 10**6]), data_page_size=r.choice([1000, 10**6]))


def make(folder, seed, sizes=(1, 50, 3000, 150000)):
    r, want, base = random.Random(seed), [], 0
    os.makedirs(folder + "/_delta_log")
    mode = r.choice(["none", "name", "id"])
    names = {c: c if mode == "none" else f"col-{r.getrandbits(40):x}" for c in IDS}
    need = ["deletionVectors"] + (["columnMapping"] if mode != "none" else [])
    actions = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": need, "writerFeatures": need}},
        {"metaData": {"id": str(uuid.UUID(int=seed)), "format": {"provider": "parquet", "options": {}},
                      "schemaString": json.dumps({"type": "struct", "fields": fields(mode, names)}),
                      "partitionColumns": [], "createdTime": 1,
                      "configuration": {} if mode == "none" else {"delta.columnMapping.mode": mode}}}]
    for k in range(r.randrange(1, 4)):
        n, name = r.choice(sizes), f"part {k}.parquet"
        rows = [{"id": base + i, "s": None if i % 7 == 0 else f"s{i}", "n": None if i % 11 == 0 else {"a": i}}
                for i in range(n)]
        file(f"{folder}/{name}", rows, mode, names, r)
        gone = gone_of(n, r)
        live = [x for i, x in enumerate(rows) if i not in gone]
        tight = bool(live) and r.random() < .3
        known = live if tight else rows
        stats = {"numRecords": n, "tightBounds": tight or not gone, "minValues": {names["id"]: known[0]["id"]},
                 "maxValues": {names["id"]: known[-1]["id"]},
                 "nullCount": {names["s"]: sum(x["s"] is None for x in known)}}
        path = (f"file://{folder}/" if r.random() < .2 else "") + name.replace(" ", "%20")
        add = {"path": path, "partitionValues": {}, "size": os.path.getsize(f"{folder}/{name}"),
               "modificationTime": 1, "dataChange": True, "stats": json.dumps(stats)}
        if gone:
            add["deletionVector"] = vector(folder, sorted(gone), r)
        actions.append({"add": add})
        want, base = want + live, base + n
    with open(f"{folder}/_delta_log/{0:020}.json", "w") as f:
        f.writelines(json.dumps(a) + "\n" for a in actions)
    return want


def golden(folder):
    for k, seed in enumerate((3, 5, 11)):
        name = f"{folder}/vectors{k}"
        shutil.rmtree(name, ignore_errors=True)
        want = make(name, seed, (1, 50, 300))
        with open(name + ".json", "w") as f:
            json.dump({"now": want, "0": want}, f)
            f.write("\n")
        print(name, len(want))


def foreign(folder):
    """The number of rows and the sum of id, as deltalake and DuckDB read them."""
    import duckdb
    import duckdb_ext
    from deltalake import DeltaTable, QueryBuilder
    query = "select count(*), coalesce(sum(id), 0), count(s) from "
    try:
        got = QueryBuilder().register("t", DeltaTable(folder)).execute(query + "t").read_all()
        yield "deltalake", tuple(pa.table(got).to_pylist()[0].values())
    except Exception as e:
        yield "deltalake", e
    con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for root in duckdb_ext.__path__:
        for path in glob.glob(f"{root}/extensions/*/*/delta.duckdb_extension"):
            con.execute(f"load '{path}'")
    try:
        yield "DuckDB", con.execute(f"{query} delta_scan('{folder}')").fetchone()
    except Exception as e:
        yield "DuckDB", e


def judge(stoa, first, last):
    bad = rows = 0
    agree, apart = {}, {}

    def ask(*words):
        return subprocess.run([stoa, *words], capture_output=True, text=True)
    for seed in range(first, last + 1):
        folder = tempfile.mkdtemp()
        want = make(folder, seed)
        rows += len(want)
        got = ask("cat", "-f", "jsonl", folder)
        expect = sorted(json.dumps(x, separators=(",", ":")) for x in want)
        middle = want[len(want) // 2]["id"] if want else 0
        count = ask("count", folder, "--where", f"id >= {middle} and s is null").stdout.split()[:1]
        some = sum(x["id"] >= middle and x["s"] is None for x in want)
        verify = ask("verify", "--deep", "-q", folder)
        if sorted(got.stdout.splitlines()) != expect or count != [str(some)] or verify.returncode:
            bad += 1
            print(f"seed {seed}: expected {len(expect)} rows, {some} with the filter; found "
                  f"{len(got.stdout.splitlines())}, {count}; {got.stderr[:300]} {verify.stdout[:300]}")
        truth = (len(want), sum(x["id"] for x in want), sum(x["s"] is not None for x in want))
        for who, found in foreign(folder):
            side = agree if found == truth else apart
            side[who] = side.get(who, 0) + 1
            if side is apart and apart[who] < 3:
                print(f"seed {seed}: {who} differs from the model: {str(found)[:200]}")
        shutil.rmtree(folder)
    print(f"seeds {first} to {last}, {rows} rows: stoa differs in {bad}; the model agrees with {agree}, not {apart}")
    return bad > 0 or rows == 0


if sys.argv[1] == "golden":
    golden(os.path.abspath(sys.argv[2]))
else:
    sys.exit(judge(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
