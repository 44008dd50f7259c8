"""Predicates: what pyarrow and polars say, in stoa's text, as far as it can be said.

A translation has a text and a grade. EXACT: true, false and null where the original is. TRUE: the same rows are chosen.
UPPER: no row is missing, but some may be too many, so that whoever reads filters again. Without text: every row.
"""

from __future__ import annotations

import ctypes
import datetime
import decimal
import json
import math
import struct
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.types as pt

UPPER, TRUE, EXACT = 0, 1, 2


class Field(NamedTuple):
    path: tuple


class Literal(NamedTuple):
    value: Any  # a pyarrow scalar


class Call(NamedTuple):
    name: str
    args: list
    options: dict


class Translation(NamedTuple):
    text: str | None
    grade: int


NOTHING = Translation(None, UPPER)


class _Schema(ctypes.Structure):
    _fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p)]


def _pairs(schema: pa.Schema) -> list[tuple[str, str]]:
    """A schema's metadata with keys that repeat, which pyarrow's dict would lose."""
    room = ctypes.create_string_buffer(72)
    at = ctypes.addressof(room)
    schema._export_to_c(at)
    try:
        p = _Schema.from_address(at).metadata
        if not p:
            return []

        def number():
            nonlocal p
            (n,) = struct.unpack("=i", ctypes.string_at(p, 4))
            p += 4
            return n

        def text():
            nonlocal p
            n = number()
            s = ctypes.string_at(p, n).decode()
            p += n
            return s

        return [(text(), text()) for _ in range(number())]
    finally:
        pa.Schema._import_from_c(at)  # it takes the exported one over, and releases it


def tree_of_arrow(e) -> Any:
    """The tree of a pyarrow expression, or None if it does not tell it (fields by number)."""
    try:
        serialized = e.__reduce__()[1][0]
    except (pa.ArrowException, NotImplementedError):
        return None
    batch = pa.ipc.open_file(serialized).get_batch(0)
    words = iter(_pairs(batch.schema))

    def read(key, value):
        if key == "literal":
            return Literal(batch.column(int(value))[0])
        if key == "field_ref":
            return Field((value,))
        if key == "nested_field_ref":
            return Field(tuple(next(words)[1] for _ in range(int(value))))
        if key != "call":
            raise ValueError(key)
        args, options = [], {}
        for k, v in words:
            if k == "end":
                break
            if k == "options":
                options = batch.column(int(v))[0]
            else:
                args.append(read(k, v))
        return Call(value, args, options)

    try:
        return read(*next(words))
    except (ValueError, KeyError, StopIteration, IndexError):
        return None


def columns_of(tree) -> set | None:
    """The top-level columns of a tree; None if it is not known."""
    if tree is None:
        return None
    if isinstance(tree, Field):
        return {tree.path[0]}
    out: set = set()
    for a in tree.args if isinstance(tree, Call) else ():
        some = columns_of(a)
        if some is None:
            return None
        out |= some
    return out


def name_text(path) -> str:
    return ".".join('"' + n.replace('"', '""') + '"' for n in path)


def _type_of(schema: pa.Schema, path) -> pa.DataType | None:
    fields = [schema.field(i) for i in schema.get_all_field_indices(path[0])]
    for name in path[1:]:
        if len(fields) != 1 or not pt.is_struct(fields[0].type):
            return None
        t = fields[0].type
        fields = [t.field(i) for i in range(t.num_fields) if t.field(i).name == name]
    if len(fields) != 1:
        return None
    t = fields[0].type
    return t.value_type if pt.is_dictionary(t) else t


def _quote(s: str) -> str:
    return "'" + s.replace("'", "''") + "'"


def _moment(t: pa.DataType, v: pa.Scalar) -> str | None:
    if not pt.is_timestamp(v.type) or (v.type.tz is None) != (t.tz is None):
        return None
    per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[v.type.unit]
    seconds, rest = divmod(v.value, per)
    try:
        d = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
    except OverflowError:
        return None
    return f"timestamp '{d.year:04}-{d:%m-%d %H:%M:%S}.{rest * (10**9 // per):09}Z'"


def _number(t: pa.DataType, x: Any) -> str | None:
    """A number that a column's type has exactly. Others are compared by rules that differ between systems."""
    if pt.is_integer(t):
        if isinstance(x, float) and x.is_integer() and t.bit_width <= 32:
            x = int(x)
        if not isinstance(x, int):
            return None
        signed = pt.is_signed_integer(t)
        low, high = (-(2 ** (t.bit_width - 1)), 2 ** (t.bit_width - 1) - 1) if signed else (0, 2**t.bit_width - 1)
        return str(x) if low <= x <= high else None
    if pt.is_decimal(t):
        if isinstance(x, (int, decimal.Decimal)):
            d = decimal.Decimal(x)
            sign, digits, exponent = d.as_tuple()
            if isinstance(exponent, int) and len(digits) <= 37 and -t.scale <= exponent <= 0:
                return format(d, "f")
        return None
    if isinstance(x, int) and abs(x) <= 2**53:
        x = float(x)
    if not isinstance(x, float) or math.isnan(x):
        return None
    if pt.is_float32(t):
        try:
            if struct.unpack("f", struct.pack("f", x))[0] != x:
                return None
        except OverflowError:
            return None
    elif not pt.is_float64(t):
        return None
    return f"float '{'-' if x < 0 else ''}Infinity'" if math.isinf(x) else repr(x)


def literal_text(t: pa.DataType, v: pa.Scalar) -> str | None:
    """A literal that is compared with a column of type t; None if that may mean something else here and there."""
    if not v.is_valid:
        return None
    x = v.as_py() if not pt.is_timestamp(v.type) else None
    if pt.is_boolean(t):
        return str(x).lower() if isinstance(x, bool) else None
    if pt.is_integer(t) or pt.is_decimal(t) or pt.is_floating(t):
        return _number(t, x) if not isinstance(x, bool) else None
    if pt.is_string(t) or pt.is_large_string(t) or t == pa.string_view():
        return _quote(x) if isinstance(x, str) else None
    if pt.is_binary(t) or pt.is_large_binary(t) or pt.is_fixed_size_binary(t) or t == pa.binary_view():
        return f"x'{x.hex()}'" if isinstance(x, bytes) else None
    if pt.is_date32(t):
        if pt.is_date(v.type) and x is not None:
            return f"date '{x.year:04}-{x:%m-%d}'"
        return None
    if pt.is_timestamp(t):
        return _moment(t, v)
    return None


_compare = {"equal": "=", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
_turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}


class Translator:
    """Translates trees about a schema. total: NaN is a value like others, the greatest, as polars has it; else it is as
    IEEE 754 has it: no comparison with it is true but !=."""

    def __init__(self, schema: pa.Schema, total: bool = False):
        self.schema, self.total = schema, total

    def translate(self, tree) -> Translation:
        if isinstance(tree, Literal):
            if pt.is_boolean(tree.value.type) and tree.value.is_valid:
                return Translation(str(tree.value.as_py()).lower(), EXACT)
            return NOTHING
        if isinstance(tree, Field):
            t = _type_of(self.schema, tree.path)
            return Translation(name_text(tree.path), EXACT) if t is not None and pt.is_boolean(t) else NOTHING
        if not isinstance(tree, Call):
            return NOTHING
        if tree.name in _compare and len(tree.args) == 2:
            return self.compare(_compare[tree.name], *tree.args)
        do = getattr(self, "_" + tree.name, None)
        return do(tree) if do else NOTHING

    def compare(self, op: str, a, b) -> Translation:
        if isinstance(a, Literal) and isinstance(b, Field):
            a, b, op = b, a, _turned[op]
        if not isinstance(a, Field) or not isinstance(b, Literal):
            return NOTHING
        t = _type_of(self.schema, a.path)
        text = literal_text(t, b.value) if t is not None else None
        if text is None:
            return NOTHING
        name = name_text(a.path)
        s = f"{name} {op} {text}"
        if pt.is_floating(t) and op in (">", ">=") and not self.total:
            s = f"({s} and {name} != float 'NaN')"
        return Translation(s, EXACT)

    def _and_kleene(self, tree) -> Translation:
        parts = [self.translate(a) for a in tree.args]
        texts = [p.text for p in parts if p.text is not None]
        if not texts:
            return NOTHING
        return Translation("(" + " and ".join(texts) + ")", min(p.grade for p in parts))

    def _or_kleene(self, tree) -> Translation:
        parts = [self.translate(a) for a in tree.args]
        texts = [p.text for p in parts if p.text is not None]
        if len(texts) < len(parts):
            return NOTHING
        return Translation("(" + " or ".join(texts) + ")", min(p.grade for p in parts))

    def _invert(self, tree) -> Translation:
        p = self.translate(tree.args[0])
        return Translation(f"(not {p.text})", EXACT) if p.grade == EXACT and p.text is not None else NOTHING

    def _named(self, tree) -> tuple[str, pa.DataType] | None:
        if len(tree.args) != 1 or not isinstance(tree.args[0], Field):
            return None
        t = _type_of(self.schema, tree.args[0].path)
        if t is None or pt.is_union(t) or pt.is_run_end_encoded(t) or pt.is_null(t):
            return None
        return name_text(tree.args[0].path), t

    def _is_null(self, tree) -> Translation:
        n = self._named(tree)
        if n is None or _option(tree, "nan_is_null", False):
            return NOTHING
        return Translation(f"{n[0]} is null", EXACT)

    def _is_valid(self, tree) -> Translation:
        n = self._named(tree)
        return Translation(f"{n[0]} is not null", EXACT) if n else NOTHING

    def _is_nan(self, tree) -> Translation:
        n = self._named(tree)
        if n is None or not pt.is_floating(n[1]):
            return NOTHING
        return Translation(f"{n[0]} = float 'NaN'", EXACT)

    def _is_in(self, tree) -> Translation:
        n = self._named(tree)
        values = tree.options["value_set"].values if tree.options else None
        if n is None or values is None or len(values) > 10_000:
            return NOTHING
        literals = [literal_text(n[1], v) for v in values if v.is_valid]
        texts = [s for s in literals if s is not None]
        if len(texts) < len(literals) or _option(tree, "null_matching_behavior", 0) != 0:
            return NOTHING
        inside = f"({n[0]} is not null and {n[0]} in ({', '.join(texts)}))"
        if len(literals) < len(values):
            inside = f"({n[0]} is null or {inside})"
        # pyarrow's is_in, and nothing else of it, tells 0.0 from -0.0
        zero = pt.is_floating(n[1]) and not self.total and any(v.is_valid and v.as_py() == 0 for v in values)
        return Translation(inside, UPPER if zero else EXACT)

    def _like(self, tree, before: str, after: str) -> Translation:
        n = self._named(tree)
        pattern = _option(tree, "pattern", None)
        if (n is None or not (pt.is_string(n[1]) or pt.is_large_string(n[1])) or _option(tree, "ignore_case", False)
                or not isinstance(pattern, str)):
            return NOTHING
        for c in "\\%_":
            pattern = pattern.replace(c, "\\" + c)
        return Translation(f"{n[0]} like {_quote(before + pattern + after)}", EXACT)

    def _starts_with(self, tree) -> Translation:
        return self._like(tree, "", "%")

    def _ends_with(self, tree) -> Translation:
        return self._like(tree, "%", "")

    def _match_substring(self, tree) -> Translation:
        return self._like(tree, "%", "%")


def _option(tree: Call, name: str, preset: Any) -> Any:
    try:
        v = tree.options[name]
    except (KeyError, TypeError):
        return preset
    return v.as_py() if isinstance(v, pa.Scalar) else v


# polars: the JSON of an expression, as far as it is known. What is not becomes None, and is filtered afterwards.

_ops = {"Eq": "equal", "NotEq": "not_equal", "Lt": "less", "LtEq": "less_equal", "Gt": "greater",
        "GtEq": "greater_equal", "And": "and_kleene", "Or": "or_kleene", "LogicalAnd": "and_kleene",
        "LogicalOr": "or_kleene"}


def tree_of_polars(e) -> Any:
    """The tree of a polars expression; parts that it does not understand are None."""
    try:
        return _polars(json.loads(e.meta.serialize(format="json")))
    except Exception:  # the form is polars' own, and may change with any version: then everything is filtered later
        return None


def _polars(x) -> Any:
    if not isinstance(x, dict) or len(x) != 1:
        return None
    (kind, v), = x.items()
    if kind == "Column":
        return Field((v,))
    if kind == "Literal":
        s = _polars_literal(v)
        return None if s is None else Literal(s)
    if kind == "BinaryExpr" and v.get("op") in _ops:
        return Call(_ops[v["op"]], [_polars(v["left"]), _polars(v["right"])], {})
    if kind == "Function":
        f = v.get("function")
        args = [_polars(a) for a in v.get("input", [])]
        if isinstance(f, dict) and "Boolean" in f:
            b = f["Boolean"]
            if b in ("IsNull", "IsNotNull", "Not", "IsNan"):
                name = {"IsNull": "is_null", "IsNotNull": "is_valid", "Not": "invert", "IsNan": "is_nan"}[b]
                return Call(name, args, {})
            if isinstance(b, dict) and "IsBetween" in b and len(args) == 3:
                closed = b["IsBetween"]["closed"]
                low = "greater_equal" if closed in ("Both", "Left") else "greater"
                high = "less_equal" if closed in ("Both", "Right") else "less"
                return Call("and_kleene", [Call(low, [args[0], args[1]], {}), Call(high, [args[0], args[2]], {})], {})
            if isinstance(b, dict) and "IsIn" in b and len(args) == 2:
                values = v["input"][1]["Literal"]["Scalar"]["List"]
                return Call("is_in", args[:1], {"value_set": _Values(_polars_series(bytes(values)))})
        if isinstance(f, dict) and f.get("StringExpr") in ("StartsWith", "EndsWith") and isinstance(args[1], Literal):
            name = {"StartsWith": "starts_with", "EndsWith": "ends_with"}[f["StringExpr"]]
            return Call(name, args[:1], {"pattern": args[1].value.as_py()})
    return None


class Pushed(NamedTuple):
    """An expression that polars itself pushes down, and so one that looks at each row by itself."""

    expression: Any


def known(tree) -> bool:
    """Whether nothing of a tree is None. What a tree can say looks at each row by itself."""
    return tree is not None and (not isinstance(tree, Call) or all(known(a) for a in tree.args))


def row_by_row(e, schema: pa.Schema) -> set | None:
    """The columns that a polars expression reads; None if it does not look at each row by itself, so that batches cannot
    be filtered one by one. polars knows both: it pushes no other predicate down, and says which columns it wants, also
    for selectors. It splits what is joined by "and", so the expression is put behind an "or"."""
    import polars as pl
    from polars.io.plugins import register_io_source

    frame = pl.DataFrame(pl.from_arrow(pa.Table.from_batches([], schema)))
    flag = "".join(frame.columns) + "?"  # no column has this name
    frame = frame.with_columns(pl.lit(False).alias(flag))
    asked: list = []

    def source(with_columns, predicate, n_rows, batch_size):
        asked.append((with_columns, predicate))
        yield frame if with_columns is None else frame.select(with_columns)

    lazy = register_io_source(source, schema=frame.schema, is_pure=False)
    lazy.filter(pl.col(flag) | e).select(flag).collect()
    (names, predicate), = asked
    return None if predicate is None else set(frame.columns if names is None else names) - {flag}


class _Values(NamedTuple):
    """The values of a list, where pyarrow has a scalar of a list."""

    values: Any


def _polars_series(serialized: bytes) -> pa.Array:
    a = pa.ipc.open_stream(serialized).read_all().column(0).combine_chunks()
    return a.cast(pa.string()) if a.type == pa.string_view() else a


def _polars_literal(v) -> pa.Scalar | None:
    while isinstance(v, dict) and len(v) == 1:
        (kind, inner), = v.items()
        if kind in ("Dyn", "Scalar"):
            v = inner
            continue
        if kind in ("Int", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"):
            return pa.scalar(int(inner), pa.uint64() if int(inner) > 2**63 - 1 else pa.int64())
        if kind in ("Float", "Float32", "Float64"):
            return pa.scalar(float(inner), pa.float64())
        if kind in ("String", "StringOwned", "Str"):
            return pa.scalar(inner, pa.string())
        if kind == "Boolean":
            return pa.scalar(bool(inner))
        return None
    return None
