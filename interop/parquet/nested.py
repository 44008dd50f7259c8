# Compare tables with what pyarrow reads.    usage: nested.py LIST
# LIST has a line "FILE.parquet FILE.json" for each; the JSON is a list of columns, each a list of cells in the form of formattest.Plain.
# Prints "WRONG file column row: got, want" for differences, at most once a column, and at the end "READ files cells".
import json, struct, sys
import pyarrow as pa, pyarrow.parquet as pq

NANOS = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}


def unscaled(v):
    sign, digits, _ = v.as_tuple()
    n = int("".join(map(str, digits)))
    return str(-n if sign else n)


def plain(a):
    t = a.type
    if isinstance(a, pa.ChunkedArray):
        return [v for c in a.chunks for v in plain(c)]
    if isinstance(a, pa.ExtensionArray):
        return plain(a.storage)
    if pa.types.is_dictionary(t):
        return plain(a.dictionary_decode())
    if pa.types.is_null(t) or pa.types.is_boolean(t) or pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t):
        return a.to_pylist()
    if pa.types.is_timestamp(t) or pa.types.is_time(t) or pa.types.is_duration(t):
        n = NANOS[t.unit]
        return [None if v is None else str(v * n) for v in a.view(pa.int64() if t.bit_width == 64 else pa.int32()).to_pylist()]
    if pa.types.is_date32(t):
        return [None if v is None else str(v) for v in a.view(pa.int32()).to_pylist()]
    if pa.types.is_date64(t):
        return [None if v is None else str(v // 86400000) for v in a.view(pa.int64()).to_pylist()]
    if pa.types.is_decimal(t):
        return [None if v is None else unscaled(v) for v in a.to_pylist()]
    if pa.types.is_floating(t):
        w = t.bit_width // 8
        bits = a.view({2: pa.uint16(), 4: pa.uint32(), 8: pa.uint64()}[w])
        return [None if v is None else v.to_bytes(w, "little").hex() for v in bits.to_pylist()]
    if pa.types.is_integer(t):
        return [None if v is None else str(v) for v in a.to_pylist()]
    if pa.types.is_map(t):
        return lists(a, [list(p) for p in zip(plain(a.keys), plain(a.items))])
    if pa.types.is_fixed_size_list(t):
        items, n = plain(a.values), t.list_size
        at = a.offset
        return [items[(at + i) * n : (at + i + 1) * n] if ok else None for i, ok in enumerate(a.is_valid().to_pylist())]
    if pa.types.is_list(t) or pa.types.is_large_list(t):
        return lists(a, plain(a.values))
    if pa.types.is_struct(t) and [f.name for f in t] == ["stoa_no_fields"]:
        return [[] if ok else None for ok in a.is_valid().to_pylist()]
    if pa.types.is_struct(t):
        children = [plain(c) for c in a.flatten()]
        return [[c[i] for c in children] if ok else None for i, ok in enumerate(a.is_valid().to_pylist())]
    if t == pa.month_day_nano_interval():
        return [None if v is None else struct.pack("<iiq", *v).hex() for v in a.to_pylist()]
    return [None if v is None else bytes(v).hex() for v in a.to_pylist()]


def lists(a, items):
    off = a.offsets.to_pylist()
    return [items[off[i] : off[i + 1]] if ok else None for i, ok in enumerate(a.is_valid().to_pylist())]


def main():
    files = cells = 0
    for line in open(sys.argv[1]):
        name, expected = line.split()
        want = json.load(open(expected))
        try:
            t = pq.read_table(name, page_checksum_verification=True)
            t.validate()
        except Exception as e:
            print("WRONG", name, repr(e)[:500])
            continue
        if t.num_columns != len(want):
            print("WRONG", name, t.num_columns, "columns")
        for i, w in enumerate(want):
            got = plain(t.column(i))
            cells += len(w)
            if len(got) != len(w):
                print("WRONG", name, i, "got", len(got), "rows, want", len(w))
            for k, (x, y) in enumerate(zip(got, w)):
                if x != y:
                    print("WRONG", name, f"c{i} row {k}: got", json.dumps(x)[:300], "want", json.dumps(y)[:300], str(t.schema.field(i))[:500])
                    break
        files += 1
    print("READ", files, cells)


if __name__ == "__main__":
    main()
