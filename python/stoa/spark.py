"""A data source for Spark in Python, where no jar can be added. It needs pyspark 4.0 or later (4.1 to write), and this
package on every machine.

    spark.dataSource.register(stoa.spark.StoaDataSource)
    spark.read.format("stoa").options(columns="id,price", where="price > 3").load("/data/kudu#orders")

Columns and rows that are not wanted are left out by options: Spark tells a source in Python nothing of columns, and what
Spark 4.1 and 4.2 tell it of filters holds for all later queries of the same DataFrame, which lose rows. So filters are
not asked for, and are Spark's. The jar (docs/spark.md) has none of these limits.
"""

from __future__ import annotations

import csv
import os
import re
import tempfile
import uuid
from dataclasses import dataclass
from typing import Iterator, Sequence

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import datasource as api
from pyspark.sql import types as st

from . import run
from ._core import Invalid, Unsupported
from ._table import Table, open
from ._verbs import meta

_INTEGERS = {pa.int8(): st.ByteType, pa.int16(): st.ShortType, pa.int32(): st.IntegerType, pa.int64(): st.LongType,
             pa.uint8(): st.ShortType, pa.uint16(): st.IntegerType, pa.uint32(): st.LongType}


def spark_type(t: pa.DataType) -> st.DataType | None:
    """The type in which Spark gets what Arrow has as t, the same as with the jar; None: it has none.

    >>> import pyarrow as pa, pytest
    >>> _ = pytest.importorskip("pyspark.sql.datasource")
    >>> from stoa.spark import spark_type
    >>> spark_type(pa.uint64()).simpleString()
    'decimal(20,0)'
    """
    if pt.is_dictionary(t):
        return spark_type(t.value_type)
    if t in _INTEGERS:
        return _INTEGERS[t]()
    if pt.is_uint64(t):
        return st.DecimalType(20, 0)
    if pt.is_time(t) or pt.is_duration(t):
        return st.IntegerType() if pt.is_time32(t) else st.LongType()
    if pt.is_decimal(t):
        return st.DecimalType(t.precision, t.scale) if t.precision <= 38 and t.scale >= 0 else st.StringType()
    if pt.is_timestamp(t) or pt.is_date64(t):
        return st.TimestampType() if pt.is_timestamp(t) and t.tz is not None else st.TimestampNTZType()
    for known, out in ((pt.is_boolean, st.BooleanType), (pt.is_float64, st.DoubleType), (pt.is_floating, st.FloatType),
                       (pt.is_date32, st.DateType), (pt.is_null, st.NullType), (_is_text, st.StringType),
                       (_is_bytes, st.BinaryType)):
        if known(t):
            return out()
    return _nested(t)


def _is_text(t: pa.DataType) -> bool:
    return pt.is_string(t) or pt.is_large_string(t) or t == pa.string_view()


def _is_bytes(t: pa.DataType) -> bool:
    return pt.is_binary(t) or pt.is_large_binary(t) or pt.is_fixed_size_binary(t) or t == pa.binary_view()


def _nested(t: pa.DataType) -> st.DataType | None:
    if pt.is_list(t) or pt.is_large_list(t) or pt.is_fixed_size_list(t):
        item = spark_type(t.value_type)
        return item and st.ArrayType(item, t.value_field.nullable)
    if pt.is_map(t):
        key, item = spark_type(t.key_type), spark_type(t.item_type)
        return st.MapType(key, item, t.item_field.nullable) if key and item else None
    if pt.is_struct(t) and t.num_fields:
        fields = [(f.name, spark_type(f.type), f.nullable) for f in t]
        return st.StructType([st.StructField(*f) for f in fields]) if all(f[1] for f in fields) else None
    return None


_PLAIN = {st.ByteType: pa.int8(), st.ShortType: pa.int16(), st.IntegerType: pa.int32(), st.LongType: pa.int64(),
          st.BooleanType: pa.bool_(), st.FloatType: pa.float32(), st.DoubleType: pa.float64(), st.DateType: pa.date32(),
          st.TimestampType: pa.timestamp("us", "UTC"), st.TimestampNTZType: pa.timestamp("us"), st.StringType: pa.string(),
          st.BinaryType: pa.binary(), st.NullType: pa.null()}


def _arrow_type(t: st.DataType) -> pa.DataType:
    """The type of Arrow that Spark expects of a column, and gives."""
    if isinstance(t, st.ArrayType):
        return pa.list_(pa.field("element", _arrow_type(t.elementType), t.containsNull))
    if isinstance(t, st.MapType):
        return pa.map_(_arrow_type(t.keyType), pa.field("value", _arrow_type(t.valueType), t.valueContainsNull))
    if isinstance(t, st.StructType):
        return pa.struct([pa.field(f.name, _arrow_type(f.dataType), f.nullable) for f in t.fields])
    if isinstance(t, st.DecimalType):
        return pa.decimal128(t.precision, t.scale)
    if type(t) not in _PLAIN:
        raise Unsupported(f"{t.simpleString()} is no type that can be written")
    return _PLAIN[type(t)]


class StoaDataSource(api.DataSource):
    """Tables by ``spark.read.format("stoa").load(PATH)``, and ``df.write.format("stoa").option("to", "parquet").save(DIR)``.

    Options of reading: columns (names of top-level columns, separated by commas), table, format, at, damaged (fail,
    skip-rows, null-cells), nanoseconds (fail, truncate), target-size (stored bytes of a split), where (stoa's text), and
    those of the format. Of writing: to, and opt.
    """

    _own = ("path", "columns", "nanoseconds", "target-size", "where", "to", "opt", "since")

    @classmethod
    def name(cls) -> str:
        return "stoa"

    def _open(self, **more: str) -> Table:
        if not self.options.get("path"):
            raise Invalid("expected a path: load(PATH)")
        given = {k.replace("-", "_"): v for k, v in self.options.items() if k not in self._own}
        return open(self.options["path"], **given, **more)

    def _names(self, t: Table) -> list[str] | None:
        """The columns that are wanted: those that an option names, as CSV has names; None: all."""
        text = self.options.get("columns")
        return next(csv.reader([text], skipinitialspace=True)) if text else None

    def _arrow_schema(self, t: Table) -> pa.Schema:
        names = self._names(t)
        missing = [n for n in names or () if n not in t.schema.names]
        if missing:
            raise Invalid(f"columns: there is no column {missing[0]!r}")
        return t.schema if names is None else pa.schema([t.schema.field(n) for n in names])

    def schema(self) -> st.StructType:
        out = st.StructType()
        for f in self._arrow_schema(self._open()):
            has = spark_type(f.type)
            if has is None:
                raise Unsupported(f"column {f.name} is {f.type}, which Spark does not have; the option columns leaves it "
                                  "out")
            out.add(f.name, has, f.nullable)
        return out

    def reader(self, schema: st.StructType) -> "Reader":
        return Reader(self, schema)

    def streamReader(self, schema: st.StructType) -> "StreamReader":
        return StreamReader(self, schema)

    def writer(self, schema: st.StructType, overwrite: bool) -> "Writer":
        return Writer(self, schema, overwrite)


class Reader(api.DataSourceReader):
    """Reads a table, split by split."""

    def __init__(self, source: StoaDataSource, schema: st.StructType):
        self._source, self._schema = source, schema
        how = source.options.get("nanoseconds", "fail")
        if how not in ("fail", "truncate"):
            raise Invalid(f"nanoseconds: expected fail or truncate, found {how!r}")
        self._exact = how == "fail"

    def partitions(self) -> Sequence[api.InputPartition]:
        return self._splits(self._source._open()) or [api.InputPartition(None)]

    def _splits(self, t: Table) -> list[api.InputPartition]:
        splits = t.plan(self._schema.names, self._source.options.get("where"),
                        int(self._source.options.get("target-size", 128 << 20)))
        return [api.InputPartition(s) for s in splits]

    def read(self, partition: api.InputPartition) -> Iterator[pa.RecordBatch]:
        split = partition.value
        if split is None:  # of a plan without splits
            return
        for batch in split.to_batches():
            yield self._as_spark(batch)

    def _as_spark(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = []
        fields = [batch.schema.field(i) for i in range(batch.num_columns)]
        for f, want, column in zip(fields, self._schema.fields, batch.columns):
            try:
                columns.append(_cast(column, _arrow_type(want.dataType), self._exact))
            except pa.ArrowInvalid as e:
                raise Invalid(f"column {f.name}: {e}") from None
        return pa.RecordBatch.from_arrays(columns, names=self._schema.names)


class StreamReader(api.DataSourceStreamReader):
    """The loads of a CarbonData table, each once, as a stream: the rows of the segments after an offset, as they are now.

    A load that has not ended holds back those after it, so that none is passed over; stoa clean removes one that died.
    Of a segment that was compacted the rows are those of its own files, as long as they are there, and what compaction
    wrote is not read again. Segments that were deleted are left out. Rows that are deleted or updated later are not
    reported: a stream only adds.
    """

    def __init__(self, source: StoaDataSource, schema: st.StructType):
        self._source, self._reader = source, Reader(source, schema)
        taken = [k for k in ("segment", "segments", "at") if source.options.get(k)]
        if taken:
            raise Invalid(f"a stream chooses the segments itself: the option {taken[0]} cannot be given")

    def _segments(self) -> list[tuple[int, str]]:
        """The segments that loads wrote, and their states, in the order of their numbers."""
        facts = meta(self._source.options["path"])[0]["facts"]
        if facts.get("format") != "CarbonData table":
            raise Invalid(f"{self._source.options['path']}: only a CarbonData table can be read as a stream")
        named = [(k.partition(".")[2], v) for k, v in facts.items() if k.startswith("segment.")]
        return sorted((int(n), state) for n, state in named if n.isdigit())

    def initialOffset(self) -> dict:
        return {"segment": int(self._source.options.get("since", -1))}

    def latestOffset(self, *_, **more) -> dict:
        last = int(self._source.options.get("since", -1))
        for n, state in self._segments():
            if "Progress" in state or state.startswith("Streaming"):
                break
            last = max(last, n)
        return {"segment": last}

    def partitions(self, start: dict, end: dict) -> list[api.InputPartition]:
        known = dict(self._segments())
        if end["segment"] >= 0 and end["segment"] not in known:
            raise Invalid(f"{self._source.options['path']}: segment {end['segment']} was there before: this is another "
                          "table, or its history was removed")
        missing = [n for n in range(start["segment"] + 1, end["segment"] + 1) if n not in known]
        if missing:
            raise Invalid(f"{self._source.options['path']}: segments {missing} were removed before the stream came to "
                          "them. If they were compacted, their rows are in another segment, which only a batch reads")
        merged = [m[1] for v in known.values() if (m := re.search(", merged into ([0-9]+)(,|$)", v))]
        some = [str(n) for n, state in known.items() if start["segment"] < n <= end["segment"]
                and str(n) not in merged and state.partition(",")[0] in (
                    "Success", "Partial Success", "Load Partial Success", "Marked for Update", "Compacted")]
        return self._reader._splits(self._source._open(segments=",".join(some))) if some else []

    def read(self, partition: api.InputPartition) -> Iterator[pa.RecordBatch]:
        return self._reader.read(partition)


def _cast(column: pa.Array, to: pa.DataType, exact: bool) -> pa.Array:
    """A column as Spark has it. Values that it cannot have are an error; if not exact, times lose their nanoseconds."""
    if column.type == to:
        return column
    if pt.is_dictionary(column.type):
        return _cast(column.dictionary, to, exact).take(column.indices)
    if pt.is_decimal(column.type) and pt.is_string(to):
        return pa.array([None if v is None else format(v, "f") for v in column.to_pylist()], to)
    if pt.is_timestamp(column.type) and column.type.unit == "ns" and not exact:
        # towards earlier times also before 1970, as with the jar
        floor = pa.compute.floor_temporal(column, unit="microsecond")
        return floor.cast(to)
    if pt.is_nested(to):
        return _cast_nested(column, to, exact)
    return column.cast(to)


def _cast_nested(column: pa.Array, to: pa.DataType, exact: bool) -> pa.Array:
    if pt.is_struct(to):
        parts = [_cast(column.field(i), to.field(i).type, exact) for i in range(to.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=list(to), mask=column.is_null())
    if pt.is_fixed_size_list(column.type):
        column = column.cast(pa.list_(column.type.value_field))
    if pt.is_large_list(column.type):
        column = column.cast(pa.list_(column.type.value_field))
    column = pa.concat_arrays([column])  # without an offset: the offsets begin with 0
    mask = column.is_null() if column.null_count else None
    if pt.is_map(to):
        return pa.MapArray.from_arrays(column.offsets, _cast(column.keys, to.key_type, exact),
                                       _cast(column.items, to.item_type, exact), type=to, mask=mask)
    return pa.ListArray.from_arrays(column.offsets, _cast(column.values, to.value_type, exact), type=to, mask=mask)


@dataclass
class Staged(api.WriterCommitMessage):
    """What a task staged: the attempt that counts."""

    task: int
    attempt: int


class Writer(getattr(api, "DataSourceArrowWriter", api.DataSourceWriter)):
    """Writes in two phases: each task stages its rows, which nobody sees, and the commit makes those of all visible."""

    def __init__(self, source: StoaDataSource, schema: st.StructType, overwrite: bool):
        if not hasattr(api, "DataSourceArrowWriter"):
            raise Unsupported("writing needs pyspark 4.1 or later")
        self._place, self._opt, to = (source.options.get(k) for k in ("path", "opt", "to"))
        if not self._place:
            raise Invalid("expected a path: save(DIR)")
        self._schema, self._job = schema, "spark-" + uuid.uuid4().hex
        self._flags = ["--to", to] * bool(to)
        self._overwrite = ["--overwrite"] * overwrite

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        from pyspark import TaskContext

        context = TaskContext.get()
        out = Staged(context.partitionId(), context.taskAttemptId())
        schema = pa.schema([pa.field(f.name, _arrow_type(f.dataType), f.nullable) for f in self._schema.fields])
        with tempfile.TemporaryDirectory(prefix="stoa-") as d:
            name = os.path.join(d, "rows.arrow")
            with pa.ipc.new_file(name, schema) as w:
                for batch in iterator:
                    columns = [_cast(c, f.type, True) for c, f in zip(batch.columns, schema)]
                    w.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
            more = [x for o in (self._opt or "").split(",") if o for x in ("--opt", o)]
            run("load", self._place, name, *self._flags, *self._overwrite, *more, "--stage", self._job,
                "--task", str(out.task), "--attempt", str(out.attempt))
        return out

    def commit(self, messages: list) -> None:
        winners = "".join(f"{m.attempt}\n" for m in sorted(messages, key=lambda m: m.task))
        run("load", self._place, *self._flags, "--commit", self._job, "--winners", "-", input=winners)

    def abort(self, messages: list) -> None:
        run("load", self._place, *self._flags, "--abort", self._job)
