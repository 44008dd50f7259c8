# Random schemas, rows and options.
import decimal, struct
from dremel import Field, REQUIRED, OPTIONAL, REPEATED

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def name(r, used, plain=False):
    while True:
        n = "".join(r.choice(LETTERS) for _ in range(r.randint(1, 6)))
        if r.random() < 0.05 and not plain:
            n += r.choice(["_1", "é", " x", "-", "列"])
        if n.lower() not in used:
            used.add(n.lower())
            return n


def fields(r, types, depth, room, plain=False):
    """Fields of a group: at most room[0] more leaves. plain: names of letters only."""
    out, used = [], set()
    for _ in range(r.randint(1, 4)):
        rep = r.choice([REQUIRED, OPTIONAL, OPTIONAL, REPEATED])
        if depth > 1 and room[0] > 1 and r.random() < 0.45:
            out.append(Field(name(r, used, plain), rep, None, fields(r, types, depth - 1, room, plain)))
        elif room[0] > 0 or not out:
            room[0] -= 1
            out.append(Field(name(r, used, plain), rep, r.choice(types)))
    return out


def nulls(r, fs):
    """How often each field is missing, and how long its lists are."""
    for f in fs:
        f.gap, f.length = r.choice([0, 0.05, 0.3, 0.9, 1]), r.choice([0.3, 1, 3])
        nulls(r, f.fields or [])


def row(r, fs, value):
    def one(f):
        return value(r, f.type) if f.fields is None else row(r, f.fields, value)

    out = {}
    for f in fs:
        if f.rep == REQUIRED:
            out[f.name] = one(f)
        elif f.rep == OPTIONAL:
            out[f.name] = None if r.random() < f.gap else one(f)
        else:
            n = 0 if r.random() < f.gap else int(r.expovariate(1 / f.length))
            out[f.name] = [one(f) for _ in range(n)]
    return out


def whole(r, size, signed=True):
    """A number of size bits: often small, sometimes one of the ends."""
    lo, hi = (-(1 << size - 1), (1 << size - 1) - 1) if signed else (0, (1 << size) - 1)
    if r.random() < 0.1:
        return r.choice([lo, hi, 0, max(lo, -1), 1, hi - 1])
    v = r.getrandbits(r.randint(1, size))
    return max(lo, min(hi, -v if signed and r.random() < 0.4 else v))


def real(r, form):
    x = (
        r.choice([0.0, -0.0, float("inf"), float("-inf"), float("nan"), 5e-324, 1.5])
        if r.random() < 0.1
        else r.gauss(0, 1) * 10 ** r.randint(-20, 20)
    )
    return struct.unpack(form, struct.pack(form, x))[0]


def octets(r):
    return r.randbytes(r.choice([0, 1, 2, 7, 30, 300 if r.random() < 0.05 else 3]))


def words(r):
    return "".join(r.choice('ab \n"\\é€😀\0z') for _ in range(r.choice([0, 1, 3, 12])))


def physical(r, type):
    """A value of a type of the documents."""
    t = type.upper()
    if t in ("INT", "INT32"):
        return whole(r, 32)
    if t in ("LONG", "INT64"):
        return whole(r, 64)
    if t.startswith("FIXED"):
        return whole(r, int(t[5:]), False)
    if t in ("FLOAT", "DOUBLE"):
        return real(r, "<f" if t == "FLOAT" else "<d")
    if t == "BOOLEAN":
        return r.random() < 0.5
    if t == "INT96":
        return r.randbytes(12)
    if t == "NULL":
        return None
    return words(r).encode() if t in ("STRING", "UTF8") else octets(r)


def count(r):
    return r.choice([0, 1, 2, 9, 40, 40, 150, 150, 600])


# Arrow's side: the input for stoa's writer, and the expected content of the file.


class Given:
    """A column of Arrow's: its type, its Dremel field, and a draw of (value for Arrow, value of the field)."""

    def __init__(self, type, field, draw):
        self.type, self.field, self.draw = type, field, draw


def leaf(pa, r, wiki):
    unit = r.choice(["s", "ms", "us", "ns"])
    ints = {
        "int8": (8, True),
        "int16": (16, True),
        "int32": (32, True),
        "uint8": (8, False),
        "uint16": (16, False),
        "uint32": (32, False),
        "int64": (64, True),
        "uint64": (64, False),
    }
    kind = r.choice(
        list(ints)
        + [
            "bool",
            "date32",
            "date64",
            "time32",
            "time64",
            "timestamp",
            "duration",
            "float",
            "double",
            "string",
            "large_string",
            "binary",
            "large_binary",
            "fixed",
            "int96",
            "decimal",
            "dictionary",
        ]
        + (["null"] if wiki else ["halffloat"])
    )
    if kind in ints:
        size, signed = ints[kind]
        return getattr(pa, kind)(), f"INT{64 if size == 64 else 32}", lambda r: [whole(r, size, signed)] * 2
    if kind == "bool":
        return pa.bool_(), "BOOLEAN", lambda r: [r.random() < 0.5] * 2
    if kind == "date32":
        return pa.date32(), "INT32", lambda r: [whole(r, 20)] * 2
    if kind == "date64":
        return pa.date64(), "INT64", lambda r: [whole(r, 20) * 86_400_000] * 2
    if kind == "time32":
        u = r.choice(["s", "ms"])
        return pa.time32(u), "INT32", lambda r: [r.randrange(86_400 * (1000 if u == "ms" else 1))] * 2
    if kind == "time64":
        u = r.choice(["us", "ns"])
        return pa.time64(u), "INT64", lambda r: [r.randrange(86_400_000_000 * (1000 if u == "ns" else 1))] * 2
    if kind == "timestamp":
        return pa.timestamp(unit, r.choice([None, "UTC"])), "INT64", lambda r: [whole(r, 60)] * 2
    if kind == "duration":
        return pa.duration(unit), "INT64", lambda r: [whole(r, 60)] * 2
    if kind in ("float", "double", "halffloat"):
        size, form = {"float": ("32", "<f"), "double": ("64", "<d"), "halffloat": ("16", "<e")}[kind]
        if size == "16":
            return pa.float16(), "BYTE_ARRAY", lambda r: half(r)
        return getattr(pa, "float" + size)(), kind.upper(), lambda r: [real(r, form)] * 2
    if kind in ("string", "large_string", "dictionary"):
        t = pa.dictionary(pa.int16(), pa.string()) if kind == "dictionary" else getattr(pa, kind)()
        return t, "BYTE_ARRAY UTF8", lambda r: (lambda s: (s, s.encode()))(words(r))
    if kind in ("binary", "large_binary"):
        return getattr(pa, kind)(), "BYTE_ARRAY", lambda r: [octets(r)] * 2
    if kind in ("fixed", "int96"):
        n = 12 if kind == "int96" else r.choice([1, 3, 16])
        return pa.binary(n), "INT96" if n == 12 else "BYTE_ARRAY", lambda r: [r.randbytes(n)] * 2
    if kind == "null":
        return pa.null(), "NULL", lambda r: [None, None]
    p = r.choice([1, 9, 18, 19, 38] + ([] if wiki else [50, 76]))
    s, size = r.randint(0, p), 16 if p <= 38 else 32

    def number(r):
        v = max(-(10**p) + 1, min(10**p - 1, whole(r, r.randint(2, 4 * p))))
        with decimal.localcontext(prec=100):
            return decimal.Decimal(v).scaleb(-s), v.to_bytes(*small(v) if wiki else (size, "little"), signed=True)

    return (pa.decimal128 if size == 16 else pa.decimal256)(p, s), "BYTE_ARRAY", number


def small(v):
    """Bytes of a decimal in Avro's form, which stoa writes to the wiki's Bytes, as the page has no decimals."""
    return (v if v >= 0 else ~v).bit_length() // 8 + 1, "big"


def half(r):
    x = struct.unpack("<e", struct.pack("<e", r.choice([0.0, -0.0, 1.5, -2.25, 65504.0, float("inf")])))[0]
    return x, struct.pack("<e", x)


def given(pa, r, n, depth, wiki, nullable, top):
    """A column named n."""
    pick = r.random() if depth > 1 else 1
    gap, rep = r.choice([0, 0.05, 0.3, 0.9, 1]), OPTIONAL if nullable else REQUIRED

    def missing(draw):
        return lambda r: (None, None) if nullable and r.random() < gap else draw(r)

    if pick < 0.2:  # a group
        children, used = [], set()
        for _ in range(r.randint(1, 3)):
            k = name(r, used)
            opt = r.random() < 0.6
            children.append((k, opt, given(pa, r, k, depth - 1, wiki, opt, False)))

        def draw(r):
            both = [(k, g.draw(r)) for k, _, g in children]
            return {k: a for k, (a, _) in both}, {k: d for k, (_, d) in both}

        t = pa.struct([pa.field(k, g.type, opt or pa.types.is_null(g.type)) for k, opt, g in children])
        return Given(t, Field(n, rep, None, [g.field for _, _, g in children]), missing(draw))
    if pick < 0.5:  # a list, perhaps of one length
        opt, size = r.random() < 0.6, r.choice([1, 3]) if r.random() < 0.25 else 0
        bare = not nullable and not opt
        item = given(pa, r, n if bare else "item", depth - 1, wiki, opt, False)
        long = r.choice([0.3, 1, 3])
        if bare and (item.field.rep != REQUIRED or item.field.mark and not (wiki and item.field.fields is None)):
            bare = False  # a list of lists: the inner one stands in a group (the wiki has no mark of strings)
            item.field.name = "item"
        if pa.types.is_null(item.type):
            opt = True
        f = pa.field("item", item.type, opt)
        t = pa.list_(f, size) if size else (pa.large_list if r.random() < 0.2 else pa.list_)(f)

        def draw(r):
            both = [item.draw(r) for _ in range(size or int(r.expovariate(1 / long)))]
            inner = [d for _, d in both]
            return [a for a, _ in both], inner if bare else {"list": [{"item": d} for d in inner]}

        if bare:
            field = item.field
            field.rep = REPEATED
        else:
            field = Field(n, rep, None, [Field("list", REPEATED, None, [item.field])], "LIST")
        g = Given(t, field, missing(draw))
        g.matrix = size if top and bare and item.field.fields is None and item.field.type != "NULL" else 0
        return g
    if pick < 0.6:
        opt = r.random() < 0.6
        value = given(pa, r, "value", depth - 1, wiki, opt, False)
        key = given(pa, r, "key", 1, wiki, False, False)
        while pa.types.is_null(key.type) or pa.types.is_float16(key.type):
            key = given(pa, r, "key", 1, wiki, False, False)
        t = pa.map_(key.type, pa.field("value", value.type, opt or pa.types.is_null(value.type)))

        def draw(r):
            both = {}
            for _ in range(int(r.expovariate(1))):
                k = key.draw(r)
                both[k[1] if k[1] == k[1] else "nan"] = (k, value.draw(r))
            both = list(both.values())
            return [(k[0], v[0]) for k, v in both], {"map": [{"key": k[1], "value": v[1]} for k, v in both]}

        return Given(
            t,
            Field(n, rep, None, [Field("map", REPEATED, None, [key.field, value.field], "MAP_KEY_VALUE")], "MAP"),
            missing(draw),
        )
    while True:
        t, physical, draw = leaf(pa, r, wiki)
        if top or not pa.types.is_dictionary(t):
            break
    kind, _, mark = physical.partition(" ")
    return Given(t, Field(n, rep, kind, None, mark or None), missing(draw))
