"""Places that stoa does not read by itself: those of fsspec's other protocols are copied first."""

from __future__ import annotations

import os
import re
import tempfile
import weakref
from typing import Any, Sequence, Union

from . import _core
from ._core import Invalid, NotFound


def _protocol(path: str) -> tuple[str, str]:
    """The protocol of an address, and what follows; "" for what is a path, or an address that stoa reads itself."""
    m = re.match(r"([a-z][a-z0-9+.-]*)://", path)
    if not m or m[1] in ("s3", "http", "https"):
        return "", path
    return m[1], path[m.end():]


Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]  # a path, PATH#TABLE, or an address
Paths = Union[Path, Sequence[Path]]


def text(path: Any) -> str:
    """A path as the library takes it."""
    p = os.fsdecode(os.fspath(path))
    try:
        p.encode()
    except UnicodeEncodeError:
        raise Invalid(f"path: expected UTF-8, found {os.fsencode(p)!r}") from None
    return p


class Copy:
    """A copy of what lies at an address, which goes with this object. Errors about it name the address."""

    def __init__(self, address: str, storage_options: dict | None):
        try:
            import fsspec
        except ImportError:
            raise Invalid(f"{address}: fsspec is needed for this protocol: pip install fsspec") from None
        fs, inside = fsspec.core.url_to_fs(address, **(storage_options or {}))
        if not fs.exists(inside):
            raise NotFound(f"{address}: it does not exist", object=address)
        holder = tempfile.TemporaryDirectory(prefix="stoa-")
        self.path = os.path.join(holder.name, os.path.basename(inside.rstrip("/")) or "place")
        slash = "/" if fs.isdir(inside) else ""
        fs.get(inside.rstrip("/") + slash, self.path + slash, recursive=True)
        _core.renamed[self.path] = address.rstrip("/")
        self._end = weakref.finalize(self, _remove, holder, self.path)


def _remove(holder, path):
    _core.renamed.pop(path, None)
    holder.cleanup()


def fetched(path: Any, storage_options: dict | None) -> tuple[str, Any]:
    """A path or address that the library reads, and what must live as long as it does."""
    p = text(path)
    protocol, rest = _protocol(p)
    if not protocol:
        return p, None
    if protocol in ("file", "local"):
        return rest, None
    place, mark, name = p.partition("#")
    copy = Copy(place, storage_options)
    return copy.path + mark + name, copy


def written(path: Any) -> str:
    """A path or address that the library writes."""
    p = text(path)
    protocol, rest = _protocol(p)
    if protocol in ("file", "local"):
        return rest
    if protocol:
        raise Invalid(f"{p}: expected a path or an address of s3://, found {protocol}://, which stoa does not write")
    return p
