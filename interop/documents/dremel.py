# Rows and columns as in the Dremel paper: repetition and definition levels.
# A field is required, optional or repeated; a leaf has a type, a group has fields. A row is a dict; None is an absent
# value, a list the values of a repeated field.
import struct

REQUIRED, OPTIONAL, REPEATED = 0, 1, 2


class Field:
    def __init__(self, name, rep, type=None, fields=None, mark=None):
        self.name, self.rep, self.type, self.fields, self.mark = name, rep, type, fields, mark

    def __repr__(self):
        word = ("required", "optional", "repeated")[self.rep]
        mark = f" ({self.mark})" if self.mark is not None else ""
        if self.fields is None:
            return f"{word} {self.type} {self.name}{mark};"
        return f"{word} group {self.name}{mark} {{ {' '.join(map(repr, self.fields))} }}"


class Column:
    """The entries (repetition, definition, value) of a leaf; value is None where definition < maxd."""

    def __init__(self, path, field, maxr, maxd):
        self.path, self.field, self.type, self.maxr, self.maxd, self.entries = path, field, field.type, maxr, maxd, []


def columns(fields, path=(), r=0, d=0):
    out = []
    for f in fields:
        fr, fd, fp = r + (f.rep == REPEATED), d + (f.rep != REQUIRED), path + (f.name,)
        out += columns(f.fields, fp, fr, fd) if f.fields is not None else [Column(fp, f, fr, fd)]
    return out


def shred(fields, rows):
    cols = columns(fields)
    of = {id(c.field): c for c in cols}

    def none(f, r, d):
        if f.fields is None:
            of[id(f)].entries.append((r, d, None))
        for k in f.fields or []:
            none(k, r, d)

    def one(f, v, r, d, depth):
        if f.fields is None:
            of[id(f)].entries.append((r, d, v))
        for k in f.fields or []:
            put(k, v[k.name], r, d, depth)

    def put(f, v, r, d, depth):
        if f.rep == REQUIRED:
            one(f, v, r, d, depth)
        elif f.rep == OPTIONAL:
            none(f, r, d) if v is None else one(f, v, r, d + 1, depth)
        elif not v:
            none(f, r, d)
        else:
            for i, x in enumerate(v):
                one(f, x, depth + 1 if i else r, d + 1, depth + 1)

    for row in rows:
        for f in fields:
            put(f, row[f.name], 0, 0, 0)
    return cols


def split(entries, level):
    out = []
    for e in entries:
        if not out or e[0] <= level:
            out.append([])
        out[-1].append(e)
    return out


def assemble(fields, cols, rows):
    """The rows of columns. Contradictory columns are an error."""
    leaves = {id(c.field): split(c.entries, 0) for c in cols}
    for c in cols:
        if len(leaves[id(c.field)]) != rows:
            raise ValueError(f"{c.path}: {len(leaves[id(c.field)])} rows, not {rows}")
        for r, d, _ in c.entries:
            if r > c.maxr or d > c.maxd:
                raise ValueError(f"{c.path}: levels {r}, {d} of {c.maxr}, {c.maxd}")

    def first(f):
        return id(f) if f.fields is None else first(f.fields[0])

    def under(f):
        return {id(f)} if f.fields is None else set().union(*map(under, f.fields))

    def one(f, part, depth, d):
        if f.fields is None:
            (e,) = part[id(f)]
            return e[2]
        return {k.name: get(k, {i: part[i] for i in under(k)}, depth, d) for k in f.fields}

    def get(f, part, depth, d):
        if f.rep == REQUIRED:
            return one(f, part, depth, d)
        there = {p[0][1] > d for p in part.values()}
        if len(there) != 1:
            raise ValueError(f"{f.name}: some columns have it and others do not")
        if not there.pop():
            if any(len(p) != 1 for p in part.values()):
                raise ValueError(f"{f.name}: entries of what is not there")
            return None if f.rep == OPTIONAL else []
        if f.rep == OPTIONAL:
            return one(f, part, depth, d + 1)
        parts = {i: split(p, depth + 1) for i, p in part.items()}
        n = {len(p) for p in parts.values()}
        if len(n) != 1:
            raise ValueError(f"{f.name}: columns disagree on how many there are")
        return [one(f, {i: p[k] for i, p in parts.items()}, depth + 1, d + 1) for k in range(n.pop())]

    return [{f.name: get(f, {i: leaves[i][n] for i in under(f)}, 0, 0) for f in fields} for n in range(rows)]


def bits(x, form):
    """A floating point value by its bits; NaN is one value."""
    return "nan" if x != x else struct.pack(form, x)


def width(top):
    return top.bit_length()


def pack_lsb(values, w):
    n = 0
    for i, v in enumerate(values):
        n |= v << (i * w)
    return n.to_bytes((len(values) * w + 7) // 8, "little")


def unpack_lsb(data, n, w):
    x = int.from_bytes(data[: (n * w + 7) // 8], "little")
    if len(data) < (n * w + 7) // 8:
        raise ValueError("levels are cut")
    if x >> (n * w):
        raise ValueError("bits after the last one")
    return [x >> (i * w) & ((1 << w) - 1) for i in range(n)]


def pack_msb(values, w):
    n = 0
    for v in values:
        n = n << w | v
    size = (len(values) * w + 7) // 8
    return (n << (size * 8 - len(values) * w)).to_bytes(size, "big")


def unpack_msb(data, n, w):
    size = (n * w + 7) // 8
    if len(data) < size:
        raise ValueError("levels are cut")
    x = int.from_bytes(data[:size], "big")
    if x & ((1 << (size * 8 - n * w)) - 1):
        raise ValueError("bits after the last one")
    x >>= size * 8 - n * w
    return [x >> ((n - 1 - i) * w) & ((1 << w) - 1) for i in range(n)]
