# Nong Li's wiki page on Trevni, both ways. What the page leaves open is decided as docs/formats/trevni.md says: levels are
# packed in the width of their maximum, lowest bit first; the checksum is CRC-32 of the raw bytes after it, little-endian;
# sizes do not count it; descriptors of repeated columns count entries; the codec covers all after the checksum.
import bz2, struct, zlib
import cramjam
from dremel import Column, Field, pack_lsb, unpack_lsb, width, REQUIRED, OPTIONAL, REPEATED

TYPES = ["Null", "Long", "Int", "Fixed32", "Fixed64", "Float", "Double", "String", "Bytes", "Boolean"]
FORMS = {"Fixed32": "<I", "Fixed64": "<Q", "Float": "<f", "Double": "<d"}


def varint(v):
    v = (v << 1) ^ (v >> 63)
    out = b""
    while v > 127:
        out += bytes([v & 127 | 128])
        v >>= 7
    return out + bytes([v])


def text(b):
    return varint(len(b)) + b


def metadata(pairs):
    return varint(len(pairs)) + b"".join(text(k.encode()) + text(v) for k, v in pairs)


def put(type, v):
    if type == "Null":
        return b""
    if type in ("Long", "Int"):
        return varint(v)
    if type in FORMS:
        return struct.pack(FORMS[type], v)
    return text(v)


def put_all(type, values):
    return pack_lsb([int(v) for v in values], 1) if type == "Boolean" else b"".join(put(type, v) for v in values)


def raw_deflate(b):
    c = zlib.compressobj(6, zlib.DEFLATED, -15)
    return c.compress(b) + c.flush()


PACK = {
    "": bytes,
    "none": bytes,
    "null": bytes,
    "bzip2": bz2.compress,
    "deflate": raw_deflate,
    "zlib": zlib.compress,
    "snappy": lambda b: bytes(cramjam.snappy.compress_raw(b)),
}


def inflate(b):
    try:
        return zlib.decompress(b)  # Impala's; the page does not say
    except zlib.error:
        return zlib.decompress(b, -15)


UNPACK = dict(
    PACK,
    bzip2=bz2.decompress,
    deflate=inflate,
    snappy=lambda b: bytes(cramjam.snappy.decompress_raw(b)) if len(b) else b"",
)


def write(cols, rows, opts, r):
    """A file. opts of a column: codec, crc, first, width, block (rows), spell and case (of the page's words)."""
    heads, bodies = [], []
    for c in cols:
        o = opts["columns"][c.path]
        w = o.get("width", 0)
        k = o["spell"]
        pairs = [(k("Name"), ".".join(c.path).encode()), (k("Type"), o["case"](c.type).encode())]
        if c.maxr or r.random() < 0.1:
            pairs.append((k("MaxRepetition"), b"%d" % c.maxr))
        if c.maxd or r.random() < 0.1:
            pairs.append((k("MaxDefinition"), b"%d" % c.maxd))
        if w:
            pairs.append((k("ArrayWidth"), b"%d" % w))
        if o["first"]:
            pairs.append((k("HasInitialValue"), r.choice([b"true", b"1", b"", b"True"])))
        if not o["inherit"]:
            codec = "deflate" if o["codec"] == "zlib" else o["codec"]
            pairs += [(k("Compression Codec"), codec.encode())]
            pairs += [(k("Checksum Algorithm"), r.choice([b"crc32", b"Crc32", b"crc-32"]) if o["crc"] else b"null")]
        r.shuffle(pairs)
        heads.append(metadata(pairs))
        descriptors, blocks = b"", b""
        for part in cut(c, w, r, o["block"]):
            values = [e[2] for e in part if e[1] == c.maxd]
            raw = b""
            if c.maxd:
                raw += pack_lsb([e[1] for e in part], width(c.maxd))
            if c.maxr:
                raw += pack_lsb([e[0] for e in part], width(c.maxr))
            flat = [x for v in values for x in v] if w else values
            raw += put_all(c.type, flat)
            stored = PACK[o["codec"]](raw)
            n = len(part)
            descriptors += struct.pack("<III", n, len(raw), len(stored))
            if o["first"]:
                descriptors += put_all(c.type, flat[:1])
            blocks += (struct.pack("<I", zlib.crc32(raw)) if o["crc"] else b"") + stored
            o["blocks"] = o.get("blocks", 0) + 1
        bodies.append(struct.pack("<I", o.get("blocks", 0)) + descriptors + blocks)
    head = b"Trv\1" + struct.pack("<QI", rows, len(cols)) + metadata(opts["meta"]) + b"".join(heads)
    at, starts, body = len(head) + 8 * len(cols), [], b""
    for b in bodies:
        starts.append(at + len(body))
        body += b
    return head + struct.pack(f"<{len(cols)}Q", *starts) + body


def cut(c, w, r, size):
    """Blocks of a column: they end where a row ends, each column's where it likes."""
    rows = []
    for e in c.entries:
        if not rows or e[0] == 0:
            rows.append([])
        rows[-1].append(e)
    while rows:
        n = max(1, min(len(rows), int(r.expovariate(1 / size))))
        yield [e for row in rows[:n] for e in row]
        rows = rows[n:]


class Cursor:
    def __init__(self, data, at=0, end=None):
        self.data, self.at, self.end = data, at, len(data) if end is None else end

    def take(self, n):
        if n < 0 or self.at + n > self.end:
            raise ValueError(f"{n} bytes at {self.at} of {self.end}")
        self.at += n
        return self.data[self.at - n : self.at]

    def form(self, f):
        return struct.unpack(f, self.take(struct.calcsize(f)))[0]

    def varint(self):
        v = shift = 0
        while True:
            b = self.take(1)[0]
            v |= (b & 127) << shift
            shift += 7
            if b < 128:
                return (v >> 1) ^ -(v & 1)

    def text(self):
        return self.take(self.varint())

    def metadata(self):
        return [(self.text().decode(), self.text()) for _ in range(self.varint())]

    def value(self, type):
        if type == "Null":
            return None
        if type in ("Long", "Int"):
            return self.varint()
        if type in FORMS:
            return self.form(FORMS[type])
        return self.text()

    def values(self, type, n):
        if type == "Boolean":
            return [bool(b) for b in unpack_lsb(self.take((n + 7) // 8), n, 1)]
        return [self.value(type) for _ in range(n)]


def read(data):
    """rows, file metadata and columns of a file; every byte of it must be something."""
    c = Cursor(data)
    if c.take(4) != b"Trv\1":
        raise ValueError("no magic")
    rows, n = c.form("<Q"), c.form("<I")
    meta = dict(c.metadata())
    heads = [dict(c.metadata()) for _ in range(n)]
    starts = [c.form("<Q") for _ in range(n)]
    cols = []
    for head, start in zip(heads, starts):
        if start != c.at:
            raise ValueError(f"column at {start}, not at {c.at}")
        cols.append(read_column(c, head, meta))
        entries = cols[-1].entries
        if rows != sum(e[0] == 0 for e in entries):
            raise ValueError(f"{cols[-1].path}: {sum(e[0] == 0 for e in entries)} rows, not {rows}")
    if c.at != len(data):
        raise ValueError(f"{len(data) - c.at} bytes after the last column")
    return rows, meta, cols


def read_column(c, head, meta):
    head = {k.replace(" ", "").lower(): v for k, v in list(meta.items()) + list(head.items())}
    get = lambda k, d="0": head.get(k.lower(), d.encode()).decode()
    type, maxr, maxd = (
        {t.lower(): t for t in TYPES}[get("Type").lower()],
        int(get("MaxRepetition")),
        int(get("MaxDefinition")),
    )
    w, first = int(get("ArrayWidth")), get("HasInitialValue", "false").lower() in ("true", "1", "")
    codec, crc = get("CompressionCodec", "null"), get("ChecksumAlgorithm", "null").lower().replace("-", "")
    if type not in TYPES or crc not in ("crc32", "null", "none", ""):
        raise ValueError(f"type {type}, checksum {crc}")
    if w and (maxr or maxd):
        raise ValueError("a matrix with levels")
    path = tuple(get("Name").split("."))
    col = Column(path, Field(path[-1], REPEATED if maxr else OPTIONAL if maxd else REQUIRED, type), maxr, maxd)
    col.width, col.first = w, first
    blocks = []
    for _ in range(c.form("<I")):
        blocks.append((c.form("<I"), c.form("<I"), c.form("<I"), c.values(type, 1)[0] if first else None))
    for n, raw, stored, begin in blocks:
        sum = c.form("<I") if crc == "crc32" else None
        body = UNPACK[codec](c.take(stored))
        if len(body) != raw or n == 0:
            raise ValueError(f"{path}: a block of {n} rows and {len(body)} bytes, {raw} declared")
        if sum is not None and sum != zlib.crc32(body):
            raise ValueError(f"{path}: checksum")
        b = Cursor(body)
        defs = unpack_lsb(b.take((n * width(maxd) + 7) // 8), n, width(maxd)) if maxd else [0] * n
        reps = unpack_lsb(b.take((n * width(maxr) + 7) // 8), n, width(maxr)) if maxr else [0] * n
        have = [d == maxd for d in defs].count(True)
        values = b.values(type, have * w if w else have)
        if first and values[0] != begin and values[0] == values[0]:
            raise ValueError(f"{path}: first value {begin}, not {values[0]}")
        if b.at != b.end:
            raise ValueError(f"{path}: {b.end - b.at} bytes after the values")
        if w:
            values = [values[i * w : i * w + w] for i in range(n)]
        it = iter(values)
        col.entries += [(r, d, next(it) if d == maxd else None) for r, d in zip(reps, defs)]
    return col
