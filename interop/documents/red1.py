# RedFile (RED1), generations A to E, both ways: README, Encodings and the Thrift definitions of parquet-format e52693d (A),
# 1c3c4b8 (B), 2975dd3 (C), 684acaa (D), e1438f1 (E). Levels are as redelm wrote them, see docs/formats/redfile.md.
import gzip, struct, zlib
import cramjam
import thrift
from dremel import (
    Column,
    Field,
    columns,
    pack_lsb,
    unpack_lsb,
    pack_msb,
    unpack_msb,
    width,
    REQUIRED,
    OPTIONAL,
    REPEATED,
)

TYPES = ["BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY"]
FORMS = {"INT32": "<i", "INT64": "<q", "FLOAT": "<f", "DOUBLE": "<d"}
MARKS = ["UTF8", "MAP", "MAP_KEY_VALUE", "LIST"]
NONE, SNAPPY, GZIP = 0, 1, 2
PLAIN, GROUP_VAR_INT = 0, 1
SYNC = 0x53594E43

PAIR = {1: "text", 2: "text"}
ELEMENT = {1: "i32", 2: "i32", 3: "text", 5: "i32"}
CHUNK_META = {1: "i32", 2: ["i32"], 3: ["text"], 4: "i32", 5: "i64", 8: "i64", 9: "i64", 10: [PAIR], 30: "double"}
PAGE = {1: "i32", 2: "i32", 3: "i32", 4: "i32", 5: {1: "i32", 2: "i32"}, 6: {}, 21: "text"}
# Fields from 20 on are in no definition: readers pass over them.
FILE = {1: "i32", 5: [PAIR], 29: "bool"}


def tables(gen):
    meta = CHUNK_META | ({6: "i32", 7: "i32"} if gen in "AB" else {6: "i64", 7: "i64"})
    chunk = {1: "text", 2: "i64"} if gen == "A" else {1: "text", 2: "i64", 3: meta}
    group = {1: [chunk], 2: "i64", 3: "i64", 25: "i16"}
    own = {
        "A": {2: "i64", 3: "i32", 6: "i32"},
        "B": {2: "i64", 3: "i32", 6: "i32"},
        "C": {2: "i64", 3: "text"},
        "D": {2: [ELEMENT | {4: ["i32"]}], 3: "i64"},
        "E": {2: [ELEMENT | {4: "i32"}], 3: "i64"},
    }[gen]
    return meta, FILE | own | {4: [group]}


def elements(fields, gen):
    out = [{3: b"root"}]

    def add(fields, at):
        first = []
        for f in fields:
            first.append(len(out))
            e = {2: f.rep, 3: f.name.encode()}
            if f.mark:
                e[5] = MARKS.index(f.mark)
            out.append(e)
            if f.fields is None:
                e[1] = TYPES.index(f.type)
            else:
                add(f.fields, len(out) - 1)
        out[at][4] = first if gen == "D" else len(first)

    add(fields, 0)
    return out


def put(type, v):
    if type in FORMS:
        return struct.pack(FORMS[type], v)
    return v if type == "INT96" else struct.pack("<I", len(v)) + v


def put_all(type, values, encoding, pad):
    if encoding == GROUP_VAR_INT:
        return groups(values, type, pad)
    return pack_lsb([int(v) for v in values], 1) if type == "BOOLEAN" else b"".join(put(type, v) for v in values)


def groups(values, type, pad):
    """Group-varint: four of 32 bits with a byte of lengths, or five of 64 bits with two (the first number's on top)."""
    n, w, mask, head = (4, 2, 0xFFFFFFFF, ">B") if type == "INT32" else (5, 3, (1 << 64) - 1, ">H")
    out = b""
    for i in range(0, len(values), n):
        part = [v & mask for v in values[i : i + n]]
        lengths, body = 0, b""
        for k in range(n):
            v = part[k] if k < len(part) else 0
            size = max(1, (v.bit_length() + 7) // 8)
            lengths = lengths << w | (size - 1)
            if k < len(part) or pad:
                body += v.to_bytes(size, "little")
        out += struct.pack(head, lengths) + body
    return out


def definition(levels, w, r):
    """One bit that says whether a count follows, the level, the count: runs wherever r likes."""
    n = at = i = 0
    bits = []

    def put(v, size):
        nonlocal n, at
        n |= v << at
        at += size

    while i < len(levels):
        k = i
        while k < len(levels) and levels[k] == levels[i]:
            k += 1
        if r.random() < 0.1:
            k = r.randint(i + 1, k)
        if k - i >= (w + 9) // (w + 1) or r.random() < 0.05:
            put(1, 1), put(levels[i], w)
            for b in thrift.uvarint(k - i):
                put(b, 8)
            i = k
        else:
            put(0, 1), put(levels[i], w)
            i += 1
    body = n.to_bytes((at + 7) // 8, "little")
    return struct.pack(">I", len(body)) + body


def undefinition(data, n, w):
    """n levels of a stream of bits; its end and where it ends in data."""
    (size,) = struct.unpack(">I", data[:4])
    x, at, out = int.from_bytes(data[4 : 4 + size], "little"), 0, []
    if 4 + size > len(data):
        raise ValueError("definition levels are cut")

    def take(k):
        nonlocal at
        at += k
        if at > 8 * size:
            raise ValueError("definition levels are cut")
        return x >> (at - k) & ((1 << k) - 1)

    while len(out) < n:
        run, v = take(1), take(w)
        if not run:
            out.append(v)
            continue
        count = shift = 0
        while True:
            b = take(8)
            count |= (b & 127) << shift
            shift += 7
            if b < 128:
                break
        out += [v] * count
    if len(out) != n or (at + 7) // 8 != size or x >> at:
        raise ValueError(f"{len(out)} definition levels in {at} bits of {size} bytes, not {n}")
    return out, 4 + size


def pack(codec, b, framed):
    if codec == GZIP:
        return gzip.compress(b, mtime=0)
    if codec == SNAPPY:
        s = bytes(cramjam.snappy.compress_raw(b))
        return struct.pack(">II", len(b), len(s)) + s if framed else s
    return b


def unpack(codec, b):
    return gzip.decompress(b) if codec == GZIP else bytes(cramjam.snappy.decompress_raw(b)) if codec == SNAPPY else b


def write(fields, parts, opts, r):
    """The files of a table by name; "" has the metadata. parts: the columns of every row group and its rows."""
    gen, ser = opts["gen"], thrift.binary if opts["binary"] else thrift.compact
    meta_table, file_table = tables(gen)
    files, groups = {"": b"RED1"}, []
    for k, (cols, rows) in enumerate(parts):
        name = f"part{k}.red" if opts["split"] else ""
        out = bytearray(files.get(name, b"RED1"))
        chunks, total = [], 0
        for c in cols:
            at, meta, raw = len(out), None, 0
            body, meta, raw = chunk(c, opts, r, len(out), ser, gen)
            out += body
            m = {2: at}
            if gen in "ABCD" or not opts["redelm"]:
                m[2] = len(out)
                out += ser(meta_table, meta)
                if gen != "A" and (gen == "E" or r.random() < 0.7):
                    m[3] = meta
            else:
                m[3] = meta
            if name:
                m[1] = name.encode()
            chunks.append(m)
            total += raw
        files[name] = bytes(out)
        g = {1: chunks, 2: total}
        if gen not in "AB":
            g[3] = rows
        if r.random() < 0.1:
            g[25] = 7
        groups.append(g)
    n = sum(rows for _, rows in parts)
    m = {1: 1, 4: groups}
    if opts["pairs"] or r.random() < 0.5:
        m[5] = [{1: k, 2: v} if v is not None else {1: k} for k, v in opts["pairs"]]
    if gen in "AB":
        m.update({2: n, 3: len(columns(fields))})
    elif gen == "C":
        m.update({2: n, 3: opts["schema"].encode()})
    else:
        m.update({2: elements(fields, gen), 3: n})
    if r.random() < 0.1:
        m[29] = True
    if gen in "AB" and opts["crc"]:
        m[6] = struct.unpack("<i", struct.pack("<I", zlib.crc32(ser(file_table, m))))[0]
    b = ser(file_table, m)
    length = len(b) + (8 if opts["from_end"] else 0)
    files[""] += b + struct.pack("<I", length) + b"RED1"
    return files


def chunk(c, opts, r, at, ser, gen):
    o, out, raw_total, stored_total, used = opts["columns"][c.path], b"", 0, 0, set()
    rows = []
    for e in c.entries:
        if e[0] == 0 or not rows:
            rows.append([])
        rows[-1].append(e)
    pages = []
    while rows:
        k = max(1, min(len(rows), int(r.expovariate(1 / o["page"]))))
        pages.append([e for row in rows[:k] for e in row])
        rows = rows[k:]
    first = None
    for i, part in enumerate(pages):
        if o["alien"] and 0 < i == len(pages) // 2:  # "Additional page types can be added and safely skipped"
            junk = r.randbytes(r.randint(0, 40))
            kind = {1: r.choice([1, 7, 99]), 2: len(junk), 3: len(junk)}
            out += ser(PAGE, kind | {6: {}} if kind[1] == 1 else kind) + junk
        enc = o["encoding"] if not o["mixed"] else r.choice([PLAIN, o["encoding"]])
        used.add(enc)
        body = pack_msb([e[0] for e in part], width(c.maxr)) if c.maxr else b""
        if c.maxd:
            body += definition([e[1] for e in part], width(c.maxd), r)
        body += put_all(c.type, [e[2] for e in part if e[1] == c.maxd], enc, o["pad"])
        stored = pack(o["codec"], body, o["framed"])
        h = {1: 0, 2: len(body), 3: len(stored), 5: {1: len(part), 2: enc}}
        if o["crc"] or gen in "AB":
            h[4] = struct.unpack("<i", struct.pack("<I", zlib.crc32(stored)))[0] if o["crc"] else 0
        if r.random() < 0.02:
            h[21] = b"unknown"
        first = at + len(out) if first is None else first
        out += ser(PAGE, h) + stored
        raw_total, stored_total = raw_total + len(body), stored_total + len(stored)
    meta = {
        1: TYPES.index(c.type),
        2: sorted(used),
        3: [p.encode() for p in c.path],
        4: o["codec"],
        5: len(c.entries),
        8: at if first is None else first,
    }
    meta.update({6: c.maxd, 7: c.maxr} if gen in "AB" else {6: raw_total, 7: stored_total})
    if o["alien"]:
        meta[30] = 0.5
    return out, meta, raw_total


class File:
    """A file as it lies there; every byte of it must be something. fields are None in generations A to C."""

    def __init__(self, data, parts=lambda name: None):
        self.parts, self.seen, self.files = parts, {"": []}, {"": data}
        if data[:4] != b"RED1" or data[-4:] != b"RED1" or len(data) < 12:
            raise ValueError("no magic")
        (v,) = struct.unpack("<I", data[-8:-4])
        start = len(data) - 8 - v
        coded, end = thrift.read(data, start)
        if end != len(data) - 8:
            raise ValueError(f"metadata ends at {end} of {len(data) - 8}")
        self.protocol = "binary" if data[start] == 8 else "compact"
        self.mark("", 0, 4), self.mark("", start, len(data))
        self.gen, self.meta = generation(coded), thrift.plain(coded)
        m = self.meta
        self.pairs = {p[1]: p.get(2) for p in m.get(5, [])}
        self.rows, self.fields = (m[2], None) if self.gen in "ABC" else (m[3], tree(m[2], self.gen))
        self.schema = m[3] if self.gen == "C" else None
        if m[1] != 1:
            raise ValueError(f"version {m[1]}")
        if m.get(6) and self.gen in "AB":
            ser = thrift.binary if self.protocol == "binary" else thrift.compact
            own = {k: v for k, v in m.items() if k != 6}
            if zlib.crc32(ser(tables(self.gen)[1], own)) != m[6] & 0xFFFFFFFF:
                raise ValueError("checksum of the metadata")

    def mark(self, name, start, end):
        self.seen.setdefault(name, []).append((start, end))

    def file(self, name):
        if name not in self.files:
            self.files[name] = self.parts(name)
            self.seen.setdefault(name, [])
        return self.files[name]

    def columns(self):
        """The columns of each row group with its rows."""
        out = []
        for g in self.meta.get(4, []):
            cols, total = [], 0
            for k, c in enumerate(g[1]):
                col, raw = self.chunk(c, k)
                cols.append(col)
                total += raw
            rows = {sum(e[0] == 0 for e in c.entries) for c in cols}
            if len(rows) > 1 or (3 in g and rows and rows != {g[3]}):
                raise ValueError(f"a row group of {rows} rows, {g.get(3)} declared")
            out.append((cols, rows.pop() if rows else g.get(3, 0)))
        if sum(n for _, n in out) != self.rows:
            raise ValueError(f"{sum(n for _, n in out)} rows, not {self.rows}")
        return out

    def chunk(self, c, k):
        name = c.get(1, b"").decode()
        data, meta, after = self.file(name), c.get(3), None
        at = c[2]
        if meta is None or at != meta[8]:
            there, end = thrift.read(data, at)
            if meta is not None and thrift.plain(there) != meta:
                raise ValueError("the two copies of a column's metadata differ")
            meta, after = thrift.plain(there), at
            self.mark(name, at, end)
        type, codec, at = TYPES[meta[1]], meta[4], meta[8]
        path = tuple(p.decode() for p in meta[3])
        if self.fields is not None:
            shape = columns(self.fields)[k]
            if shape.path != path or shape.type != type:
                raise ValueError(
                    f"column {k} is {shape.path} {shape.type} in the schema and {path} {type} in its metadata"
                )
            col = Column(path, shape.field, shape.maxr, shape.maxd)
        else:
            maxd, maxr = (meta[6], meta[7]) if self.gen in "AB" else (0, 0)
            col = Column(path, Field(path[-1], REPEATED if maxr else OPTIONAL if maxd else REQUIRED, type), maxr, maxd)
        raw, stored, used = 0, 0, set()
        while len(col.entries) < meta[5]:
            h, body, at = self.page(name, at, codec)
            if h[1] == 0:
                self.data_page(col, h, body)
                used.add(h[5][2])
                raw, stored = raw + h[2], stored + h[3]
        if 9 in meta:
            h, _, end = self.page(name, meta[9], codec)
            if h[1] != 1:
                raise ValueError(f"{path}: no index page at {meta[9]}")
            at = max(at, end)
        if after is not None and at != after:
            raise ValueError(f"{path}: pages end at {at}, metadata is at {after}")
        if set(meta[2]) != used and meta[5]:
            raise ValueError(f"{path}: encodings {meta[2]}, used are {used}")
        col.declared = (meta.get(6), meta.get(7), raw, stored) if self.gen in "CDE" else None
        return col, raw

    def page(self, name, at, codec):
        data = self.file(name)
        coded, end = thrift.read(data, at)
        h = thrift.plain(coded)
        body = data[end : end + h[3]]
        if len(body) != h[3]:
            raise ValueError("a page is cut")
        if h.get(4) and zlib.crc32(body) != h[4] & 0xFFFFFFFF:
            raise ValueError("checksum of a page")
        self.mark(name, at, end + h[3])
        if h[1] != 0:
            return h, None, end + h[3]
        body = unpack(codec, body)
        if len(body) != h[2]:
            raise ValueError(f"a page of {len(body)} bytes, {h[2]} declared")
        return h, body, end + h[3]

    def data_page(self, col, h, body):
        n, enc, at = h[5][1], h[5][2], 0
        reps = [0] * n
        if col.maxr:
            reps = unpack_msb(body, n, width(col.maxr))
            at = (n * width(col.maxr) + 7) // 8
        defs = [0] * n
        if col.maxd:
            defs, size = undefinition(body[at:], n, width(col.maxd))
            at += size
        have = [d == col.maxd for d in defs].count(True)
        values, end = take_all(col.type, body, at, have, enc)
        if end != len(body):
            raise ValueError(f"{col.path}: {len(body) - end} bytes after the values")
        it = iter(values)
        col.entries += [(r, d, next(it) if d == col.maxd else None) for r, d in zip(reps, defs)]

    def unclaimed(self):
        """What no part of the file claimed: [(file, start, bytes)]. stoa's sync blocks and metadata so far are such."""
        out = []
        for name, spans in self.seen.items():
            data, at = self.file(name), 0
            for start, end in sorted(set(spans)) + [(len(data), len(data))]:
                if start > at:
                    out.append((name, at, data[at:start]))
                if start < at and (start, end) != (0, 4):
                    raise ValueError(f"{name}: two claim {start}")
                at = max(at, end)
        return out


def generation(coded):
    two, three = coded.get(2, (0,))[0], coded.get(3, (0,))[0]
    if two == 6 and three == 8:
        return "C"
    if two == 6 and three == 5:
        inline = any(3 in c for g in coded.get(4, (9, []))[1] for c in g[1][1])
        return "B" if inline else "A"
    if two == 9 and three == 6:
        return "D" if any(4 in e and e[4][0] == 9 for e in coded[2][1]) else "E"
    raise ValueError(f"no generation has fields of types {two} and {three}")


def tree(elements, gen):
    def make(i):
        e = elements[i]
        mark = MARKS[e[5]] if 5 in e else None
        if 1 in e:
            return Field(e[3].decode(), e.get(2), TYPES[e[1]], None, mark), i + 1
        children, at = [], i + 1
        if gen == "D":
            children = [make(k)[0] for k in e.get(4, [])]
        else:
            for _ in range(e.get(4, 0)):
                k, at = make(at)
                children.append(k)
        return Field(e[3].decode(), e.get(2), None, children, mark), at

    root, end = make(0)
    if gen == "E" and end != len(elements):
        raise ValueError(f"{len(elements)} elements of the schema, {end} used")
    return root.fields


def take_all(type, b, at, n, enc):
    if enc == GROUP_VAR_INT:
        return ungroups(type, b, at, n)
    if type == "BOOLEAN":
        end = at + (n + 7) // 8
        return [bool(v) for v in unpack_lsb(b[at:end], n, 1)], end
    out = []
    for _ in range(n):
        if type in FORMS:
            size = struct.calcsize(FORMS[type])
            out.append(struct.unpack_from(FORMS[type], b, at)[0])
        elif type == "INT96":
            size = 12
            out.append(b[at : at + 12])
        else:
            size = struct.unpack_from("<I", b, at)[0] + 4
            out.append(b[at + 4 : at + size])
        at += size
        if at > len(b):
            raise ValueError("values are cut")
    return out, at


def ungroups(type, b, at, n):
    count, w, head, half = (4, 2, 1, 1 << 31) if type == "INT32" else (5, 3, 2, 1 << 63)
    out = []
    while len(out) < n:
        lengths = int.from_bytes(b[at : at + head], "big")
        at += head
        if head == 2 and lengths >> 15:
            raise ValueError("the unused bit")
        for k in range(count):
            size = (lengths >> (w * (count - 1 - k)) & ((1 << w) - 1)) + 1
            v = int.from_bytes(b[at : at + size], "little")
            if at + size > len(b):
                raise ValueError("values are cut")
            at += size
            if len(out) < n:
                out.append((v ^ half) - half if v >= half else v)
            elif v or size != 1:
                raise ValueError("the last group is not filled with 0")
    return out, at
