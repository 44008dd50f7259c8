# Compare stoa with the documents of Trevni and RedFile.
#   judge.py STOA DIR wiki-read|wiki-write|red1-read|red1-write|self|corpus SEED TABLES SECONDS
# …-read: files made here from the documents are read by stoa (schema, cat, verify). …-write: stoa writes, and every byte is
# decoded here. A table is drawn from its seed alone; its files are left in DIR at the first difference, or at all with
# STOA_FUZZ_ALL=1. It ends after TABLES and SECONDS, whichever is later.
import base64, json, os, random, shutil, subprocess, sys, time
import draw, red1, trevni
from dremel import Field, assemble, bits, columns, shred, REQUIRED, OPTIONAL, REPEATED

FLOATS = {"FLOAT": "<f", "DOUBLE": "<d", "Float": "<f", "Double": "<d"}
INTEGERS = {"Int": 32, "Long": 64, "Fixed32": 32, "Fixed64": 64, "INT32": 32, "INT64": 64}


class Difference(Exception):
    pass


def canon(type, v):
    """A value by its bits: integers modulo their width, as the documents do not define signs."""
    if isinstance(v, list):
        return [canon(type, x) for x in v]
    if v is None or type is None:
        return None
    if type in FLOATS:
        return bits(v, FLOATS[type])
    return v % (1 << INTEGERS[type]) if type in INTEGERS else v


def same(what, want, got):
    if want != got:
        raise Difference(f"{what}: {str(got)[:300]}, not {str(want)[:300]}")


def entries(c, type=None, top=99):
    """The entries of a column, comparable: by the bits that a type has."""
    return [(r, min(d, top), canon(type or c.type, v)) for r, d, v in c.entries]


def equal(want, got):
    same("number of columns", len(want), len(got))
    for w, g in zip(want, got):
        at = ".".join(w.path)
        top = 99
        if w.type.upper() == "NULL":  # whether it has a value does not matter
            top = min(w.maxd - (w.field.rep == OPTIONAL), g.maxd)
        else:
            same(f"levels of {at}", (w.maxr, w.maxd), (g.maxr, g.maxd))
        a, b = entries(w, None, top), entries(g, w.type, top)
        for i, (x, y) in enumerate(zip(a, b)):
            same(f"entry {i} of {at} ({w.type})", x, y)
        same(f"number of entries of {at}", len(a), len(b))
    return sum(len(w.entries) for w in want)


proof = {"due": False, "done": 0}  # main asks for one now and then


def compare(want, got):
    cells = equal(want, got)
    if proof["due"]:
        prove(want, got)
    return cells


def prove(want, got):
    """Change one value that was read, if there is one, and hold that equal notices."""
    values = [
        (c, i)
        for c in got
        for i, e in enumerate(c.entries)
        if c.type.upper() != "NULL" and isinstance(e[2], (bool, int, float, bytes))
    ]
    if not values:
        return
    c, i = values[len(values) // 2]
    r, d, v = whole = c.entries[i]
    c.entries[i] = (r, d, other(v))
    try:
        equal(want, got)
    except Difference:
        proof.update(due=False, done=proof["done"] + 1)
        print(f"entry {i} of {'.'.join(c.path)} changed on purpose: noticed: yes", flush=True)
    else:
        raise AssertionError(f"entry {i} of {'.'.join(c.path)} changed on purpose is not noticed")
    finally:
        c.entries[i] = whole


def other(v):
    """Another value of the same type."""
    if isinstance(v, bool):
        return not v
    if isinstance(v, bytes):
        return v + b"x"
    return v ^ 1 if isinstance(v, int) else 12345.0


def run(args, dir, ok=(0,)):
    p = subprocess.run(args, cwd=dir, capture_output=True)
    if p.returncode not in ok:
        raise Difference(f"{' '.join(args[1:])}: status {p.returncode}: {p.stderr.decode()[:600]}")
    return p.stdout


# stoa's output as fields and rows of the documents' kind.


def parse_fields(fs):
    return [parse_field(f) for f in fs]


def parse_field(f):
    t, children, opt = f["type"], f.get("children", []), f["nullable"]
    if t == "struct":
        return Field(f["name"], OPTIONAL if opt else REQUIRED, None, parse_fields(children))
    if t == "list":
        item = parse_field(children[0])
        if opt or item.rep != REQUIRED:
            return Field(
                f["name"], OPTIONAL if opt else REQUIRED, None, [Field("list", REPEATED, None, [item])], "LIST"
            )
        item.name, item.rep = f["name"], REPEATED
        return item
    return Field(f["name"], OPTIONAL if opt and t != "null" else REQUIRED, t)


def parse_value(f, v):
    """A value of stoa's JSON as a value of the field."""
    if f.mark == "LIST" and v is not None:
        item = f.fields[0].fields[0]
        return {"list": [{item.name: parse_value(item, x)} for x in v]}
    if v is None:
        return None
    if f.rep == REPEATED:
        return [parse_one(f, x) for x in v]
    return parse_one(f, v)


def parse_one(f, v):
    if f.fields is not None:
        return {k.name: parse_value(k, v[k.name]) for k in f.fields}
    t = f.type
    if t.startswith("float"):
        return float(v)
    if t in ("binary", "large_binary") or t.startswith("fixed_size_binary"):
        return base64.b64decode(v)
    return v.encode() if t in ("utf8", "large_utf8") else v


def number(s):
    return -0.0 if s == "-0" else int(s)


def output_of(stoa, dir, name):
    schema = json.loads(run([stoa, "schema", "-f", "json", name], dir))
    fields = parse_fields(schema["fields"])
    rows = [json.loads(x, parse_int=number) for x in run([stoa, "cat", "-f", "jsonl", name], dir).split(b"\n") if x]
    return fields, rows


def check_output(stoa, dir, name, cols, n, fields=None):
    # that a part has no end of its own is a warning (redfile.part.end): the documents do not say whether it must
    findings = run([stoa, "verify", "--deep", name], dir, (0, 3)).decode()
    for line in findings.split("\n"):
        if line.startswith("error ") or line.startswith("warning ") and not line.startswith("warning redfile.part.end"):
            raise Difference(f"verify --deep: {line}")
    have, rows = output_of(stoa, dir, name)
    same("number of rows", n, len(rows))
    got = shred(have, [{f.name: parse_value(f, row[f.name]) for f in have} for row in rows])
    if fields is not None:
        same("schema", shape(fields), shape(have))
    elif cols and have:
        same("columns", [c.path for c in cols], [c.path for c in got])
    return compare(cols if got else [], got)


def shape(fs):
    return [(f.name, f.rep, shape(f.fields) if f.fields is not None else 0) for f in fs]


# The four games


def wiki_read(stoa, dir, r):
    fields = draw.fields(r, trevni.TYPES, r.randint(1, 6), [r.randint(1, 20)])
    draw.nulls(r, fields)
    rows = [draw.row(r, fields, draw.physical) for _ in range(draw.count(r))]
    cols = shred(fields, rows)
    blank, case = r.choice([True, False]), r.choice([str, str.lower, str.upper])
    spell = lambda k: (k if blank else k.replace(" ", ""))
    codecs = ["", "none", "null", "deflate", "zlib", "snappy", "bzip2"]
    meta, own = [(f"note{i}", r.randbytes(9)) for i in range(r.randint(0, 2))], {}
    default, crc = r.choice(codecs), r.random() < 0.5
    meta += [
        (r.choice(["CompressionCodec", "Compression Codec"]), b"deflate" if default == "zlib" else default.encode()),
        (r.choice(["ChecksumAlgorithm", "Checksum Algorithm"]), b"crc32" if crc else b"null"),
    ]
    for c in cols:
        o = own[c.path] = {
            "inherit": r.random() < 0.3,
            "codec": r.choice(codecs),
            "crc": r.random() < 0.5,
            "spell": spell,
            "case": case,
            "block": r.choice([1, 10, 1000]),
            "first": c.maxd == 0 and c.type != "Null" and r.random() < 0.3,
        }
        if o["inherit"]:
            o["codec"], o["crc"] = default, crc
        if c.maxd == 0 and len(c.path) == 1 and c.type != "Null" and r.random() < 0.2:
            o["width"] = r.randint(1, 4)
            c.entries = [(0, 0, [draw.physical(r, c.type) for _ in range(o["width"])]) for _ in rows]
    data = trevni.write(cols, len(rows), {"columns": own, "meta": meta}, r)
    trevni_again(data, cols, len(rows))
    for c in cols:  # a row of a matrix is a list of that many
        if "width" in own[c.path]:
            c.maxr, c.maxd = 1, 1
            c.entries = [(int(k > 0), 1, v) for e in c.entries for k, v in enumerate(e[2])]
    with open(os.path.join(dir, "t.trv"), "wb") as f:
        f.write(data)
    return check_output(stoa, dir, "t.trv", cols, len(rows))


def trevni_again(data, cols, n):
    """This decoder must return what this encoder was given."""
    rows, _, got = trevni.read(data)
    same("rows by our own decoder", n, rows)
    compare(cols, got)


def red1_read(stoa, dir, r):
    gen = r.choice("ABCDE")
    types = ["BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY"]
    # C's schema is a string of which no document says the form: it is written as redelm wrote schemas, in plain names
    fields = draw.fields(r, types, r.randint(1, 6), [r.randint(1, 20)], gen == "C")
    draw.nulls(r, fields)
    for c in columns(fields):
        if c.type == "BYTE_ARRAY" and gen in "DE" and r.random() < 0.5:
            c.field.mark = "UTF8"
    value = lambda r, t: draw.physical(r, t)
    parts, all_rows = [], 0
    for _ in range(r.choice([0, 1, 1, 2, 5])):
        n = max(1, draw.count(r)) if r.random() < 0.9 else 0
        rows = [row_of(r, fields, value) for _ in range(n)]
        parts.append((shred(fields, rows), n))
        all_rows += n
    total = shred(fields, [])
    for cols, _ in parts:
        for a, b in zip(total, cols):
            a.entries += b.entries
    own = {}
    for c in total:
        codec = r.choice([red1.NONE, red1.SNAPPY, red1.GZIP])
        own[c.path] = {
            "codec": codec,
            "framed": codec == red1.SNAPPY and r.random() < 0.3,
            "crc": r.random() < 0.7,
            "mixed": r.random() < 0.3,
            "encoding": r.choice([0, 1]) if c.type in ("INT32", "INT64") else 0,
            "pad": r.random() < 0.8,
            "page": r.choice([1, 20, 1000]),
            "alien": r.random() < 0.2,
        }
    pairs = [(b"k%d" % i, r.choice([b"v", "ä".encode(), None])) for i in range(r.randint(0, 2))]
    opts = {
        "gen": gen,
        "binary": r.random() < 0.2,
        "redelm": r.random() < 0.5,
        "split": r.random() < 0.15,
        "crc": r.random() < 0.5,
        "from_end": r.random() < 0.15,
        "pairs": pairs,
        "columns": own,
        "schema": "message root { " + " ".join(map(repr, fields)) + " }",
    }
    files = red1.write(fields, parts, opts, r)
    for name, data in files.items():
        with open(os.path.join(dir, name or "t.red"), "wb") as f:
            f.write(data)
    with open(os.path.join(dir, "about"), "w") as f:
        print(opts, fields, sep="\n", file=f)
    return check_output(stoa, dir, "t.red", total, all_rows, fields if gen in "DE" else None)


def row_of(r, fields, value):
    def text(fs):
        for f in fs:
            if f.mark == "UTF8":
                f.type = "UTF8"
            text(f.fields or [])

    def back(fs):
        for f in fs:
            if f.type == "UTF8":
                f.type = "BYTE_ARRAY"
            back(f.fields or [])

    text(fields)
    out = draw.row(r, fields, value)
    back(fields)
    return out


def arrow_file(pa, r, dir, null_type):
    used, given = set(), []
    for _ in range(r.randint(1, 6)):
        n, opt = draw.name(r, used), r.random() < 0.6
        given.append((n, opt, draw.given(pa, r, n, r.randint(1, 6), null_type, opt, True)))
    n = draw.count(r)
    both = [[g.draw(r) for _ in range(n)] for _, _, g in given]
    schema = pa.schema([pa.field(n, g.type, opt or pa.types.is_null(g.type)) for n, opt, g in given])
    arrays = [pa.array([a for a, _ in b], type=g.type) for b, (_, _, g) in zip(both, given)]
    with pa.OSFile(os.path.join(dir, "t.arrow"), "wb") as f, pa.ipc.new_file(f, schema) as w:
        batch = pa.record_batch(arrays, schema=schema)
        at = 0
        while at < n:
            k = r.randint(1, n - at)
            w.write_batch(batch.slice(at, k))
            at += k
    fields = [g.field for _, _, g in given]
    return schema, fields, [{f.name: b[i][1] for f, b in zip(fields, both)} for i in range(n)], [g for _, _, g in given]


def convert(stoa, dir, out, to, opts, r):
    args = [stoa, "convert", "t.arrow", "-o", out, "--to", to]
    if r.random() < 0.2:  # by way of JSON lines: what they say must load by the schema
        for name, verb in ("t.jsonl", ["cat", "-f", "jsonl"]), ("schema.json", ["schema", "-f", "json"]):
            with open(os.path.join(dir, name), "wb") as f:
                f.write(run([stoa, *verb, "t.arrow"], dir))
        args = [stoa, "convert", "t.jsonl", "--schema", "schema.json", "-o", out, "--to", to]
    if opts["arrow-schema"] == "false":  # stoa's own check says that types come back as others
        args.append("--no-check")
    for k, v in opts.items():
        args += ["--opt", f"{k}={v}"]
    with open(os.path.join(dir, "about"), "w") as f:
        print(" ".join(args), file=f)
    run(args, dir)


def wiki_write(stoa, dir, r):
    import pyarrow as pa

    _, fields, rows, given = arrow_file(pa, r, dir, True)
    opts = {
        "codec": r.choice(["null", "deflate", "snappy", "bzip2"]),
        "checksum": r.choice(["crc32", "null"]),
        "block-size": r.choice([1, 50, 1000, 65536]),
        "arrow-schema": r.choice(["true", "false"]),
    }
    flat = [f.name for f in fields if f.fields is None and f.rep == REQUIRED and f.type not in ("BOOLEAN", "NULL")]
    if flat and r.random() < 0.4:
        opts["first-values"] = r.choice(flat) if "," not in flat[0] and " " not in "".join(flat) else "all"
    parts = r.random() < 0.15
    if parts:
        opts["file-size"] = r.choice([100, 2000])
    convert(stoa, dir, "t.trv", "trevni", opts, r)
    place = os.path.join(dir, "t.trv")
    names = sorted(os.path.join(place, n) for n in os.listdir(place)) if os.path.isdir(place) else [place]
    got, n = None, 0
    for name in names:
        with open(name, "rb") as f:
            k, _, cols = trevni.read(f.read())
        n += k
        got = got or cols
        for a, b in zip(got, cols):
            a.entries += b.entries if a is not b else []
    same("rows", len(rows), n)
    matrices(fields, given, got)
    want = shred(fields, rows)
    for w in want:
        w.type = WIKI.get(w.type, w.type)
    return compare(want, got)


WIKI = {"INT32": "Int", "INT64": "Long", "FLOAT": "Float", "DOUBLE": "Double", "NULL": "Null"}


def matrices(fields, given, got):
    """Lists of one length without nulls are stored as matrices: their columns have no levels."""
    at = 0
    for f, g in zip(fields, given):
        here = len(columns([f]))
        if getattr(g, "matrix", 0):
            same(f"ArrayWidth of {f.name}", g.matrix, got[at].width)
            f.rep = REQUIRED
        at += here


def red1_write(stoa, dir, r):
    import pyarrow as pa

    schema, fields, rows, _ = arrow_file(pa, r, dir, False)
    opts = {
        "generation": r.choice("EA"),
        "compression": r.choice(["snappy", "gzip", "none"]),
        "encoding": r.choice(["plain", "group-varint"]),
        "row-group-rows": r.choice([1, 7, 100, 10000]),
        "page-size": r.choice([1, 100, 8192]),
        "crc": r.choice(["true", "false"]),
        "index": r.choice(["true", "false"]),
        "sync": r.choice([0, 1, 3, 16]),
        "protocol": r.choice(["compact", "binary"]),
        "arrow-schema": r.choice(["true", "false"]),
        "split": r.choice(["none", "none", "none", "row-group", "metadata"]),
    }
    if len(rows) > 150:
        opts["row-group-rows"], opts["page-size"] = 100, 8192
    split = opts["split"] != "none"
    out = "t" if split else "t.red"
    convert(stoa, dir, out, "redfile", opts, r)
    place = os.path.join(dir, out)
    name = os.path.join(place, "_metadata.red") if split else place
    load = lambda name: open(os.path.join(place if split else dir, name), "rb").read()
    with open(name, "rb") as f:
        file = red1.File(f.read(), load)
    same("generation", opts["generation"], file.gen)
    if not split or file.rows:
        same("protocol", opts["protocol"], file.protocol)
    want = shred(fields, rows)
    if file.fields is not None:
        same("schema", marks(fields), marks(file.fields))
    got = None
    for cols, _ in file.columns():
        if got is None:
            got = shred(fields, [])
        for a, b in zip(got, cols):
            same(f"levels of {b.path}", (a.maxr, a.maxd), (b.maxr, b.maxd))
            if b.declared and (b.declared[0], b.declared[1]) != (b.declared[2], b.declared[3]):
                raise Difference(f"sizes of {b.path}: {b.declared}")
            a.entries += b.entries
    same("rows", len(rows), file.rows)
    leftover(file)
    if got is not None:
        assemble(fields, got, len(rows))
    return compare(want, got or shred(fields, []))


def marks(fs):
    return [
        (f.name if f.name != "item" else None, f.rep, f.mark, f.type)
        + tuple(marks(f.fields) if f.fields is not None else ())
        for f in fs
    ]


def leftover(file):
    """What no chunk claims must be sync blocks, or metadata so far that the last metadata begins with."""
    import struct, zlib

    for name, at, b in file.unclaimed():
        data, end = file.file(name), at + len(b)
        at += 4 if name and at == 0 and b[:4] == b"RED1" else 0
        while at < end:
            coded, after = red1.thrift.read(data, at)
            h = red1.thrift.plain(coded)
            if h.get(1) == red1.SYNC:
                if h.get(4) and zlib.crc32(data[after : after + h[3]]) != h[4] & 0xFFFFFFFF:
                    raise Difference(f"checksum of the sync block at {at}")
                at = after + h[3]
            elif isinstance(h.get(1), int) and data[after + 4 : after + 8] == b"RED1":
                same(
                    f"length of the metadata so far at {at}",
                    after - at,
                    struct.unpack("<I", data[after : after + 4])[0],
                )
                so_far = h.get(4, [])
                if name == "" and so_far != file.meta[4][: len(so_far)]:
                    raise Difference(f"metadata so far at {at} is not the beginning of the last")
                at = after + 8
            else:
                raise Difference(f"{name} at {at}: {h}")
        same(f"end of what stands at {at}", end, at)


def self_test(stoa, dir, r):
    """The decoder must notice a cell, a level or a byte that is changed on purpose."""
    noticed = 0
    fields = draw.fields(r, [t for t in trevni.TYPES if t != "Null"], 1, [6])
    draw.nulls(r, fields)
    rows = [draw.row(r, fields, draw.physical) for _ in range(40)]
    cols = shred(fields, rows)
    same("assembled", [entries(c) for c in cols], [entries(c) for c in shred(fields, assemble(fields, cols, 40))])
    own = {
        c.path: {
            "inherit": False,
            "codec": "null",
            "crc": True,
            "spell": lambda k: k.replace(" ", ""),
            "case": str,
            "block": 10,
            "first": False,
        }
        for c in cols
    }
    data = trevni.write(cols, 40, {"columns": own, "meta": []}, r)
    broken = bytearray(data)
    broken[-1] ^= 1
    tries = [lambda: compare(cols, trevni.read(bytes(broken))[2]), lambda: trevni.read(data + b"\0")]
    _, _, got = trevni.read(data)
    compare(cols, got)
    c = r.choice([c for c in got if c.entries])
    i = r.randrange(len(c.entries))
    e = c.entries[i]
    c.entries[i] = (e[0], e[1] + 1, e[2])
    tries.append(lambda: compare(cols, got))
    with open(os.path.join(dir, "t.trv"), "wb") as f:
        f.write(data)
    full = [c for c in cols if any(e[2] is not None for e in c.entries)]
    if full:
        k = r.choice(full)
        i = r.choice([i for i, e in enumerate(k.entries) if e[2] is not None])
        changed = list(k.entries)
        e = changed[i]
        changed[i] = (e[0], e[1], other(e[2]))

        def lie():
            whole = k.entries
            k.entries = changed
            try:
                check_output(stoa, dir, "t.trv", cols, 40)
            finally:
                k.entries = whole

        tries.append(lie)
        check_output(stoa, dir, "t.trv", cols, 40)
    for i, t in enumerate(tries):
        try:
            t()
        except (Difference, ValueError):
            noticed += 1
        else:
            raise AssertionError(f"change {i} is not noticed")
    print(f"self: {noticed} changes: noticed: of {len(tries)}")
    return noticed


def corpus(stoa, dir, r):
    """This decoder against files that redelm wrote in 2013, with their expected rows, and the worked examples."""
    top, cells = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../corpus"), 0
    for name in sorted(os.listdir(os.path.join(top, "redfile/red1"))):
        if not name.endswith(".red"):
            continue
        at = os.path.join(top, "redfile/red1", name)
        with open(at, "rb") as f:
            file = red1.File(f.read())
        with open(at.replace(".red", ".expect.jsonl")) as f:
            want = [json.loads(x) for x in f]
        rows = []
        for cols, n in file.columns():
            cells += sum(len(c.entries) for c in cols)
            mine = columns(file.fields)
            for a, b in zip(mine, cols):
                a.entries = b.entries
            rows += [redelm(file.fields, row) for row in assemble(file.fields, mine, n)]
        same(name, want, rows)
        same(f"{name}: unclaimed", [], file.unclaimed())
    with open(os.path.join(top, "trevni/dialects/expect.json")) as f:
        want = json.load(f)["wiki_dremel"]
    with open(os.path.join(top, "trevni/dialects/wiki_dremel.trv"), "rb") as f:
        _, _, cols = trevni.read(f.read())
    text = lambda v: v.decode() if isinstance(v, bytes) else v
    same("wiki_dremel", want, {".".join(c.path): [[r, d, text(v)] for r, d, v in c.entries] for c in cols})
    return cells


def redelm(fields, row):
    """A row in the notation of the corpus: each field a list of its values, absent ones left out."""
    out = {}
    for f in fields:
        v = row[f.name]
        for x in v if f.rep == REPEATED else [] if v is None else [v]:
            one = redelm(f.fields, x) if f.fields is not None else x.decode() if isinstance(x, bytes) else x
            out.setdefault(f.name, []).append(one)
    return out


GAMES = {
    "corpus": corpus,
    "wiki-read": wiki_read,
    "wiki-write": wiki_write,
    "red1-read": red1_read,
    "red1-write": red1_write,
    "self": self_test,
}


def main():
    stoa, dir, game, seed, tables, seconds = sys.argv[1:7]
    begin, n, cells, bad = time.time(), 0, 0, 0
    while n < int(tables) or time.time() - begin < float(seconds):
        s = int(seed) + n
        proof["due"] = proof["due"] or "-" in game and n % 50 == 0
        here = os.path.join(dir, f"{game}-{s}")
        shutil.rmtree(here, ignore_errors=True)
        os.makedirs(here)
        try:
            cells += GAMES[game](stoa, here, random.Random(s))
        except Exception as e:
            bad += 1
            print(f"DIFFERENT {game} seed {s}: {type(e).__name__}: {e}", flush=True)
            if not isinstance(e, (Difference, ValueError)):
                import traceback

                traceback.print_exc(file=sys.stdout)
            if os.environ.get("STOA_FUZZ_ALL") is None:
                break
        else:
            shutil.rmtree(here)
        n += 1
    if "-" in game and int(tables) >= 50 and proof["done"] == 0:
        bad += 1
        print(f"DIFFERENT {game}: no value was changed on purpose", flush=True)
    print(f"COUNT {game}: {n} tables from seed {seed}, {cells} cells, {bad} different", flush=True)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
