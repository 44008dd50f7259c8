"""stoa: every file of Kudu, CarbonData, RedFile, Trevni, Parquet, Arrow and text is a dataset.

>>> import stoa
>>> t = stoa.open("try/kudu#d_major")
>>> t.scan(["id", "b"], where="b like 'upd%'", limit=3).read_all()["id"].to_pylist()
[21, 63, 105]

The files that examples read are written by ``stoa demo try --damage``.
"""

import typing as _typing

from ._core import (Changed, Corrupt, Forked, Invalid, Limit, NotFound, StoaError, StoaWarning, Unproven, Unsupported,
                    lib as _lib, memory, trim)
from ._polars import scan_polars
from ._table import Scanner, Split, Table, open
from ._verbs import (Entry, Finding, Node, convert, describe, diff, explain, formats, history, ls, meta, recover, seal,
                     stats, verify)
from ._write import (add_column, add_partition, add_segment, alter_column, clean, compact, create, delete,
                     delete_segments, drop, drop_column, drop_partition, load, merge, merge_indexes, rename,
                     set_properties, truncate, update, write)

__version__: str = _lib.stoa_version().decode()


def run(*args: str, input: str = "") -> str:
    """What the command prints for a command line; a status of 1 or 2 raises its error.

    >>> import stoa
    >>> stoa.run("count", "try/flat.red")
    '500\\n'
    """
    from ._core import verb

    return verb(list(args), (0, 3), input)[0].decode()


if _typing.TYPE_CHECKING:
    from . import plot as plot
else:

    def __getattr__(name: str):
        if name == "plot":
            import importlib

            return importlib.import_module(".plot", __name__)
        raise AttributeError(f"module 'stoa' has no attribute {name!r}")


__all__ = ["Changed", "Corrupt", "Entry", "Finding", "Forked", "Invalid", "Limit", "Node", "NotFound", "Scanner",
           "Split", "StoaError", "StoaWarning", "Table", "Unproven", "Unsupported", "add_column", "add_partition",
           "add_segment", "alter_column", "clean", "compact", "convert", "create", "delete", "delete_segments",
           "describe", "diff", "drop", "drop_column", "drop_partition", "explain", "formats", "history", "load", "ls",
           "memory", "merge", "merge_indexes", "meta", "open", "plot", "recover", "rename", "run", "scan_polars", "seal",
           "set_properties", "stats", "trim", "truncate", "update", "verify", "write"]
