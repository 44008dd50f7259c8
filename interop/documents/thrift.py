# Thrift's compact and binary protocols, as far as the structures of RedFile need them. A structure is a dict from field
# number to value; what a field is, its table says: "i32", "i64", "text", "bool", ["…"] for a list, a table for a structure.
import struct

COMPACT = {"i16": 4, "i32": 5, "i64": 6, "double": 7, "text": 8, "list": 9, "struct": 12}
BINARY = {"bool": 2, "double": 4, "i16": 6, "i32": 8, "i64": 10, "text": 11, "struct": 12, "list": 15}


def kind(t):
    return "list" if isinstance(t, list) else "struct" if isinstance(t, dict) else t


def uvarint(v):
    out = b""
    while v > 127:
        out += bytes([v & 127 | 128])
        v >>= 7
    return out + bytes([v])


def zigzag(v):
    return uvarint((v << 1) ^ (v >> 63))


def compact(table, s):
    out, last = b"", 0
    for n in sorted(s):
        t, v = table[n], s[n]
        code = (1 if v else 2) if t == "bool" else COMPACT[kind(t)]
        out += bytes([(n - last) << 4 | code]) if 0 < n - last < 16 else bytes([code]) + zigzag(n)
        out += b"" if t == "bool" else compact_value(t, v)
        last = n
    return out + b"\0"


def compact_value(t, v):
    k = kind(t)
    if k in ("i16", "i32", "i64"):
        return zigzag(v)
    if k == "double":
        return struct.pack("<d", v)
    if k == "text":
        return uvarint(len(v)) + v
    if k == "struct":
        return compact(t, v)
    size = len(v)
    head = (
        bytes([size << 4 | COMPACT[kind(t[0])]]) if size < 15 else bytes([0xF0 | COMPACT[kind(t[0])]]) + uvarint(size)
    )
    return head + b"".join(compact_value(t[0], x) for x in v)


def binary(table, s):
    return (
        b"".join(struct.pack(">BH", BINARY[kind(table[n])], n) + binary_value(table[n], s[n]) for n in sorted(s))
        + b"\0"
    )


def binary_value(t, v):
    k = kind(t)
    if k in ("bool", "i16", "i32", "i64", "double"):
        return struct.pack({"bool": ">?", "i16": ">h", "i32": ">i", "i64": ">q", "double": ">d"}[k], v)
    if k == "text":
        return struct.pack(">I", len(v)) + v
    if k == "struct":
        return binary(t, v)
    return struct.pack(">BI", BINARY[kind(t[0])], len(v)) + b"".join(binary_value(t[0], x) for x in v)


class Reader:
    """Reads structures without a table: {number: (code, value)} with the compact protocol's codes."""

    def __init__(self, data, at):
        self.data, self.at = data, at

    def take(self, n):
        if n < 0 or self.at + n > len(self.data):
            raise ValueError(f"{n} bytes at {self.at} of {len(self.data)}")
        self.at += n
        return self.data[self.at - n : self.at]

    def uvarint(self):
        v = shift = 0
        while True:
            b = self.take(1)[0]
            v |= (b & 127) << shift
            shift += 7
            if b < 128:
                return v

    def zigzag(self):
        v = self.uvarint()
        return (v >> 1) ^ -(v & 1)


class Compact(Reader):
    def struct(self):
        out, last = {}, 0
        while True:
            b = self.take(1)[0]
            if b == 0:
                return out
            last = last + (b >> 4) if b >> 4 else self.zigzag()
            if last in out:
                raise ValueError(f"field {last} twice")
            out[last] = (b & 15, self.value(b & 15))

    def value(self, code):
        if code in (1, 2):
            return code == 1
        if code in (4, 5, 6):
            return self.zigzag()
        if code == 7:
            return struct.unpack("<d", self.take(8))[0]
        if code == 8:
            return self.take(self.uvarint())
        if code == 9:
            b = self.take(1)[0]
            return [self.value(b & 15) for _ in range(b >> 4 if b >> 4 < 15 else self.uvarint())]
        if code == 12:
            return self.struct()
        raise ValueError(f"type {code} at {self.at}")


class Binary(Reader):
    CODES = {2: 1, 4: 7, 6: 4, 8: 5, 10: 6, 11: 8, 12: 12, 15: 9}

    def struct(self):
        out = {}
        while True:
            code = self.take(1)[0]
            if code == 0:
                return out
            (n,) = struct.unpack(">H", self.take(2))
            if n in out:
                raise ValueError(f"field {n} twice")
            out[n] = (self.CODES.get(code), self.value(code))

    def value(self, code):
        forms = {2: ">?", 4: ">d", 6: ">h", 8: ">i", 10: ">q"}
        if code in forms:
            return struct.unpack(forms[code], self.take(struct.calcsize(forms[code])))[0]
        if code == 11:
            return self.take(struct.unpack(">I", self.take(4))[0])
        if code == 12:
            return self.struct()
        if code == 15:
            item, n = struct.unpack(">BI", self.take(5))
            return [self.value(item) for _ in range(n)]
        raise ValueError(f"type {code} at {self.at}")


def plain(v):
    """Without the codes."""
    if isinstance(v, dict):
        return {n: plain(x) for n, (_, x) in v.items()}
    return [plain(x) for x in v] if isinstance(v, list) else v


def read(data, at):
    """The structure at a place, in either protocol, and where it ends."""
    r = (Binary if data[at] in (8, 10) else Compact)(data, at)
    return r.struct(), r.at
