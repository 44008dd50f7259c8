"""polars: lazy frames whose columns and filters are pushed down."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def scan_polars(path, table: str | None = None, **options: Any):
    """A ``polars.LazyFrame`` over a table: a path as ``open`` takes it, or an open table. polars pushes columns, filters
    and limits down; what stoa cannot do of a filter, polars does.

    >>> import polars as pl, stoa
    >>> stoa.scan_polars("try/flat.red").filter(pl.col("i") > 0).select("i").collect().width
    1
    """
    import polars as pl
    from polars.io.plugins import register_io_source

    from ._expr import Pushed
    from ._table import Table, open

    t = path if isinstance(path, Table) else open(path, table=table, **options)
    schema = pl.DataFrame(pl.from_arrow(pa.Table.from_batches([], t.schema))).schema

    def renamed(with_columns, predicate, n_rows, batch_size):
        """Where polars gives columns other names than they have (those without one): nothing is pushed down."""
        for b in t.to_batches(batch_size=batch_size):
            frame = pl.from_arrow(pa.Table.from_batches([b]))
            frame = frame if predicate is None else frame.filter(predicate)
            if n_rows is not None:
                frame = frame.head(n_rows)
                n_rows -= frame.height
            yield frame if with_columns is None else frame.select(with_columns)
            if n_rows == 0:
                return

    def source(with_columns, predicate, n_rows, batch_size):
        columns = None if with_columns is None else list(with_columns)
        if n_rows == 0:
            yield pl.from_arrow(t.head(0, columns=columns))
            return
        limit = n_rows if predicate is None else None
        where = () if predicate is None else (Pushed(predicate),)
        left = n_rows
        for b in t._scanner(columns, where, limit=limit, batch_size=batch_size).to_batches():
            frame = pl.from_arrow(pa.Table.from_batches([b]))
            if left is not None:
                frame = frame.head(left)
                left -= frame.height
            yield frame
            if left == 0:
                return

    source = source if list(schema) == t.schema.names else renamed
    return register_io_source(io_source=source, schema=schema, validate_schema=False, is_pure=True)
