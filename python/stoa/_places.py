"""Places that stoa does not read by itself: those of fsspec's other protocols are copied first."""

from __future__ import annotations

import os
import re
import tempfile
import weakref
from typing import Any, Sequence, Union

from . import _core
from ._core import Invalid, NotFound, StoaError


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
    try:
        p = os.fsdecode(os.fspath(path))
    except TypeError:
        raise Invalid(f"path: expected a path or an address, found {path!r}") from None
    try:
        p.encode()
    except UnicodeEncodeError:
        raise Invalid(f"path: expected UTF-8, found {p!r}") from None
    if not p or "\0" in p:
        raise Invalid(f"path: expected a path or an address, found {p!r}")
    return p


def texts(paths: Any) -> list[str]:
    """A path, or several, as the library takes them; none is an error."""
    if isinstance(paths, (str, bytes, os.PathLike)):
        return [text(paths)]
    try:
        out = [text(p) for p in paths]
    except TypeError:
        raise Invalid(f"path: expected a path, an address or a list of them, found {paths!r}") from None
    if not out:
        raise Invalid("path: expected a path or an address, found an empty list")
    return out


class Copy:
    """A copy of what lies at an address, which goes with this object. Errors about it name the address."""

    def __init__(self, address: str, storage_options: dict | None):
        try:
            import fsspec
        except ImportError:
            raise Invalid(f"{address}: fsspec is needed for this protocol: pip install fsspec") from None
        try:
            fs, inside = fsspec.core.url_to_fs(address, **(storage_options or {}))
        except (ImportError, ValueError, TypeError) as e:  # no such protocol, its package is missing, or a wrong option
            raise Invalid(f"{address}: {e}", object=address) from None
        except OSError as e:
            raise StoaError(f"{address}: {e}", object=address) from None
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
        return text(rest), None
    place, mark, name = p.partition("#")
    copy = Copy(place, storage_options)
    return copy.path + mark + name, copy


def written(path: Any) -> str:
    """A path or address that the library writes."""
    p = text(path)
    protocol, rest = _protocol(p)
    if protocol in ("file", "local"):
        return text(rest)
    if protocol:
        raise Invalid(f"{p}: expected a path or an address of s3://, found {protocol}://, which stoa does not write")
    return p
