"""The verbs of the command that look at places: what they return is what ``stoa VERB -f json`` prints. All take
storage_options, as ``open`` does."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import tempfile
from typing import Any, Iterator, Sequence

from . import _core, _expr
from ._core import Invalid
from ._places import Path, Paths, fetched, text, texts, written
from ._types import add_retyped


class _Doc:
    @classmethod
    def _of(cls, d: dict):
        names = {f.name for f in dataclasses.fields(cls)}  # type: ignore[arg-type]  # its subclasses are dataclasses
        d = {("from_" if k == "from" else k): v for k, v in d.items()}
        return cls(**{k: v for k, v in d.items() if k in names})


@dataclasses.dataclass(frozen=True)
class Finding(_Doc):
    """What ``verify`` found: a stable code (``stoa finding CODE`` explains it), how grave it is ("error", "warning",
    "note"), where (offset and length in bytes of object; path is the field), and which rows, from_ to to, it touches.
    None: not known."""

    code: str
    severity: str
    message: str
    object: str | None = None
    offset: int | None = None
    length: int | None = None
    path: str | None = None
    part: str | None = None
    table: str | None = None
    column: str | None = None
    from_: int | None = None
    to: int | None = None
    lost: int | None = None


@dataclasses.dataclass(frozen=True)
class Entry(_Doc):
    """What ``ls`` lists: a table, or a file. None: not known."""

    name: str
    format: str | None = None
    kind: str | None = None
    rows: int | None = None
    bytes: int | None = None
    columns: int | None = None
    problem: str | None = None
    facts: dict | None = None
    parts: list | None = None


@dataclasses.dataclass(frozen=True)
class Node(_Doc):
    """A structure of a file: bytes offset to offset + length of object; its parts follow with depth + 1. Of a node with
    inner, the offset is in the decoded bytes of the page around it. kind: struct, data, pad, dead, gap; role and column
    say more where the format does."""

    depth: int
    kind: str
    name: str
    object: str
    offset: int
    length: int
    value: str | None = None
    inner: int | None = None
    role: str | None = None
    column: str | None = None


def _found(paths, storage_options: dict[str, Any] | None) -> tuple[list[str], list, dict]:
    """Places as the command takes them, what must live as long as it runs, and its environment."""
    places, keep = [], []
    for p in texts(paths):
        place, holder = fetched(p, storage_options)
        places.append(place)
        keep.append(holder)
    remote = any(p.startswith(("s3://", "http://", "https://")) for p in places)
    return places, keep, _core.surroundings(storage_options if remote else None)


def _args(verb: str, places: list[str], form: str | None = "json", **options: Any) -> list[str]:
    """A command line. Options have the names of flags, with _ for -; True is a flag without a value."""
    out = [verb]
    for k, v in options.items():
        flag = "--" + k.rstrip("_").replace("_", "-")
        if v is None or v is False:
            continue
        for one in v if isinstance(v, (list, tuple)) else [v]:
            out.append(flag if one is True else f"{flag}={one}")
    if form:
        out += ["-f", form]
    return out + ["--"] + places


def _pairs(options: dict[str, Any] | None) -> list[str] | None:
    return [f"{k}={v}" for k, v in _core.options_of(options).items()] or None


def _text(where) -> str | None:
    """A condition as text, for verbs that cannot filter afterwards."""
    if where is None or isinstance(where, str):
        return where
    raise Invalid("where: expected a text; expressions are for open(…).scan")


def _json(verb: str, paths, fine=(0,), storage_options: dict[str, Any] | None = None, **options: Any) -> Any:
    doc, said = _said(verb, paths, fine, storage_options, **options)
    _warn(said)
    return doc


def _warn(said: str) -> None:
    """Warns of the findings among what a verb says to people."""
    for code, rest in re.findall(r"(?m)^(?:stoa: )?(?:warning|error) ([a-z][\w-]*(?:\.[\w-]+)+) (.*)$", said):
        _core.warn(f"{code}: {rest}")


def _said(verb: str, paths, fine=(0,), storage_options: dict[str, Any] | None = None,
          **options: Any) -> tuple[Any, str]:
    """The document of a verb, and what it says to people."""
    places, _keep, environment = _found(paths, storage_options)
    out, report = _core.verb(_args(verb, places, **options), fine, environment=environment)
    return json.loads(_core.original(out.decode())), report["messages"]


def ls(path: Paths = ".", **options: Any) -> list[Entry]:
    """What a place holds, at any depth. What could not be read has a problem.

    >>> import stoa
    >>> [e.name for e in stoa.ls("try/flat.red")]
    ['try/flat.red']
    """
    return [Entry._of(d) for d in _json("ls", path, (0, 3), **options)]


def verify(path: Paths, deep: bool = False, quick: bool = False, seal: str | None = None,
           **options: Any) -> list[Finding]:
    """What is damaged or unusual, and what cannot be told (notes: a file without checksums); none: healthy. quick looks
    at the structure alone, deep at every value; seal is a file that ``seal`` wrote.

    >>> import stoa
    >>> stoa.verify("try/key.cfile")
    []
    >>> [f.code for f in stoa.verify("try/damaged/key.cfile")]
    ['cfile.block.checksum']
    """
    doc, _ = _said("verify", path, (0, 3), deep=deep, quick=quick, seal=seal, **options)
    return [Finding._of(d) for d in doc["findings"]]


def describe(path: Paths, pages: bool = False, storage_options: dict[str, Any] | None = None,
             **options: Any) -> Iterator[Node]:
    """The anatomy of a file, as it is found out: every byte has an owner. An error comes after what could be read.

    >>> import stoa
    >>> next(stoa.describe("try/key.cfile")).offset
    0
    """
    rest = b""
    places, _keep, environment = _found(path, storage_options)
    for piece in _core.run(_args("describe", places, "jsonl", pages=pages, **options), environment=environment):
        if isinstance(piece, dict):
            _core.check(piece, (0,))
            return
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield Node._of(json.loads(_core.original(line.decode())))


def stats(path: Paths, **options: Any) -> list[dict[str, Any]]:
    """What each column is made of: encodings, codec, blocks, nulls, bytes, min and max.

    >>> import stoa
    >>> [c["column"] for c in stoa.stats("try/key.cfile")]
    ['value']
    """
    return _json("stats", path, **options)


def explain(path: Paths, where: str | None = None, columns: Sequence[str] | None = None, analyze: bool = False,
            **options: Any) -> dict[str, Any]:
    """What a scan reads, what it skips, and why; with analyze it is run.

    >>> import stoa
    >>> stoa.explain("try/key.cfile", where="value > 2000000000")["filter"]
    'value > 2000000000'
    """
    return _json("explain", path, where=_text(where), columns=_columns(columns), analyze=analyze, **options)


def _columns(columns) -> str | None:
    if columns is None:
        return None
    if isinstance(columns, str):
        raise Invalid(f"expected a list of names, found the text {columns!r}")
    return ",".join('"' + c.replace('"', '""') + '"' if "," in c else c for c in columns)


def meta(path: Paths, **options: Any) -> list[dict[str, Any]]:
    """What files say about themselves.

    >>> import stoa
    >>> stoa.meta("try/key.cfile")[0]["format"]
    'cfile'
    """
    return _json("meta", path, **options)


def history(path: Paths, **options: Any) -> list[dict[str, Any]]:
    """Which moments of a Kudu table's past are known.

    >>> import stoa
    >>> [t["table"] for t in stoa.history("try/kudu#d_major")]
    ['d_major']
    """
    return _json("history", path, (0, 3), **options)


def diff(a: Path, b: Path, on: Sequence[str] | None = None, columns: Sequence[str] | None = None,
         tolerance: float | None = None, relative: float | None = None,
         where: str | None = None, **options: Any) -> dict[str, Any]:
    """What differs between two tables of any formats: ["equal"] says whether nothing does.

    >>> import stoa
    >>> stoa.diff("try/flat.red", "try/flat.red")["equal"]
    True
    """
    return _json("diff", [a, b], (0, 3), on=_columns(on), columns=_columns(columns), tolerance=tolerance,
                 relative=relative, where=_text(where), **options)


def formats() -> list[dict[str, Any]]:
    """The formats, what can be done with each, and their options.

    >>> import stoa
    >>> "kudu" in [f["name"] for f in stoa.formats()]
    True
    """
    return json.loads(_core.verb(["formats", "-f", "json"])[0])


def seal(path: Paths, output: Path, parity: str | None = None, rows: bool = True, storage_options: dict[str,
         Any] | None = None,
         **options: Any) -> None:
    """Writes checksums of files, and parity, to a sidecar, with which ``verify(…, seal=output)`` finds every change.

    >>> import stoa
    >>> stoa.seal("try/key.cfile", "key.seal")
    >>> stoa.verify("try/key.cfile", seal="key.seal")
    []
    """
    places, _keep, environment = _found(path, storage_options)
    _core.verb(_args("seal", places, None, output=written(output), parity=parity, no_rows=not rows, **options),
               environment=environment)


def convert(path: Paths, output: Path, format: str | None = None, columns: Sequence[str] | None = None,
            where: str | None = None,
            options: dict[str, Any] | None = None, source_options: dict[str, Any] | None = None, check: bool = True,
            **flags: Any) -> dict[str, Any]:
    """Writes the rows of a table in another format; output appears when it is whole and was read back. Returns rows,
    bytes, files, …; options are those of the format that is written. retyped are columns that come back as another type,
    as of ``write``.

    >>> import stoa
    >>> stoa.convert("try/flat.red", "flat.parquet")["rows"]
    500
    """
    to = written(output)
    doc, said = _said("convert", path, output=to, to=format, columns=_columns(columns), where=_text(where),
                      opt=_pairs(options), source_opt=_pairs(source_options), no_check=not check, **flags)
    _warn(said)
    if not flags.get("all"):
        add_retyped(doc, said, path, columns, to, format, flags.get("storage_options"), _request(flags, source_options))
    return doc


def _request(flags: dict[str, Any], source_options: dict[str, Any] | None, recover: bool = False) -> dict[str, Any]:
    """How open opens a source as the flags of a command do."""
    return {"format": flags.get("from_") or flags.get("from") or "", "options": _core.options_of(source_options),
            "recover": recover}


def _name(paths: Paths) -> str:
    return texts(paths)[0]


def recover(path: Paths, output: Path, format: str | None = None, damaged: str = "skip-rows", options: dict[str,
            Any] | None = None,
            source_options: dict[str, Any] | None = None, seal: str | None = None, **flags: Any) -> dict[str, Any]:
    """Writes what can still be read of a damaged file to another. Returns the summary (rows, accounts, …) with losses
    and findings. That something was lost is a StoaWarning, too.

    With a seal, the file that ``seal`` wrote with parity, the files themselves are written as they were sealed, byte
    for byte: the summary has files, whole (how many were), blocks (how many were restored) and left_out.

    >>> import stoa, warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     r = stoa.recover("try/damaged/key.cfile", "saved.parquet")
    >>> r["rows"], [(l["from"], l["to"]) for l in r["losses"]]
    (272, [(128, 256)])
    """
    if seal is not None:
        if format or options or source_options or damaged != "skip-rows":
            raise Invalid("recover: with a seal the files' bytes are written; expected no format, options or damaged")
        return _mend(path, output, seal, **flags)
    to = written(output)
    with tempfile.TemporaryDirectory(prefix="stoa-") as d:
        manifest = os.path.join(d, "manifest.json")
        doc, said = _said("recover", path, (0, 3), output=to, to=format, damaged=damaged, manifest=manifest,
                          opt=_pairs(options), source_opt=_pairs(source_options), **flags)
        m: dict = {"losses": [], "findings": []}
        if os.path.exists(manifest):
            with open(manifest, encoding="utf-8") as f:
                m = json.load(f)
    doc["losses"], doc["findings"] = m["losses"], m["findings"]
    _warn(said)
    if not flags.get("all"):
        add_retyped(doc, said, path, flags.get("columns"), to, format, flags.get("storage_options"),
                    _request(flags, source_options, recover=True))
    if m["losses"]:
        _core.warn(f"{_name(path)}: {len(m['losses'])} losses; see losses")
    return doc


def _mend(paths: Paths, output: Path, seal: str, storage_options: dict[str, Any] | None = None,
          **flags: Any) -> dict[str, Any]:
    """Sealed files as they were."""
    doc = _json("recover", paths, (0,), storage_options, output=written(output), seal=seal, **flags)
    return {k: doc[k] for k in ("files", "whole", "blocks", "left_out")}
