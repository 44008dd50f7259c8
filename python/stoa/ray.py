"""Tables for Ray Data: a task a split. It needs ray: ``pip install 'ray[data]'``."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import ray.data
from ray.data.block import BlockMetadata
from ray.data.datasource import Datasource, ReadTask

from ._scan import Scanner
from ._table import Columns, Split, Table, open


class StoaDatasource(Datasource):
    """The scan of a table, as Ray reads it. Made by ``read``."""

    def __init__(self, table: Table, columns: Columns = None, where: Any = None, target: int | None = None):
        super().__init__()
        self._table, self._columns, self._where, self._target = table, columns, where, target

    def get_name(self) -> str:
        return "stoa"

    def estimate_inmemory_data_size(self) -> int | None:
        return None  # stored bytes are known, and say little about it

    def get_read_tasks(self, parallelism: int, per_task_row_limit: int | None = None, **more: Any) -> list[ReadTask]:
        splits = self._splits(max(parallelism, 1))
        schema = self._table.scan(self._columns, limit=0).schema
        return [_task(s, schema, self._table.files, per_task_row_limit) for s in splits]

    def _splits(self, parallelism: int) -> list[Split]:
        """About as many splits as Ray wants tasks, unless a size is named."""
        if self._target is not None:
            return self._table.plan(self._columns, self._where, self._target)
        splits = self._table.plan(self._columns, self._where)
        if len(splits) < parallelism:
            stored = sum(s.bytes for s in splits)
            splits = self._table.plan(self._columns, self._where, max(stored // parallelism, 1 << 20))
        return splits


def _task(split: Split, schema: Any, files: list[str], most: int | None) -> ReadTask:
    said = json.loads(split.text)

    def rows():
        scan: Scanner = split._scanner()
        for batch in scan.to_batches() if most is None else [scan.head(most)]:
            yield pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch

    # a number of rows that is only an estimate is none: Ray counts by it
    known = said["rows"] if said["exact"] and not split._rest else None
    meta = BlockMetadata(num_rows=known, size_bytes=None, input_files=files, exec_stats=None)
    return ReadTask(rows, meta, schema=schema, per_task_row_limit=most)


def read(path: Any, columns: Columns = None, where: Any = None, target: int | None = None, parallelism: int = -1,
         **options: Any) -> "ray.data.Dataset":
    """A ``ray.data.Dataset`` of a table: a path as ``stoa.open`` takes it, with its options, or an open table. Only columns
    and rows for which where is true are read. target: stored bytes of a task; else there are as many as Ray wants.

        stoa.ray.read("/data/kudu#orders", columns=["id", "price"], where="price > 3").map_batches(f)
    """
    t = path if isinstance(path, Table) else open(path, **options)
    return ray.data.read_datasource(StoaDatasource(t, columns, where, target), override_num_blocks=None if
                                    parallelism < 0 else parallelism)
