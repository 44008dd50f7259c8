"""Pictures of files. They need matplotlib: ``pip install stoa[plot]``."""

from __future__ import annotations

import html

from ._core import Corrupt, Invalid
from ._verbs import Finding, Node, describe, stats, verify


def _axes(height: float, rows: int = 1):
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise Invalid("stoa.plot needs matplotlib: pip install 'stoa[plot]'") from None
    figure = Figure(figsize=(10, height), layout="constrained")
    return figure, figure.subplots(rows, squeeze=False)[:, 0]


def _damage(ax, f: Finding, bottom: float, height: float) -> None:
    """A finding in red: its bytes, a line where only an offset is known, or the frame, for a whole file."""
    name = "damage:" + html.escape(f.code)
    if f.offset is not None and f.length:
        ax.broken_barh([(f.offset, f.length)], (bottom, height), facecolor="red", alpha=0.6, gid=name)
    elif f.offset:
        ax.axvline(f.offset, color="red", gid=name)
    else:
        for side in ax.spines.values():
            side.set(color="red", linewidth=2, gid=name)


_colours = {"struct": "#9ab7d3", "data": "#4878a8", "pad": "#dddddd", "dead": "#bbbbbb", "gap": "#e0b000"}


def anatomy(path, depth: int = 2, most: int = 24, **options):
    """The bytes of a file, one row a level of its structure, damage in red: a matplotlib Figure. Of a place with many
    files those that are damaged come first, and most are shown at most.

    >>> import stoa.plot
    >>> type(stoa.plot.anatomy("try/damaged/key.cfile")).__name__
    'Figure'
    """
    nodes: list[Node] = []
    try:
        nodes.extend(n for n in describe(path, **options) if n.inner is None and n.depth <= depth)
    except Corrupt:
        pass  # what could be read is shown, and the damage below
    findings = [f for f in verify(path, **options) if f.severity != "note"]
    errors = {f.object for f in findings if f.severity == "error"}
    objects = list(dict.fromkeys([n.object for n in nodes] + [f.object for f in findings if f.object])) or [str(path)]
    left_out = len(objects) - most
    objects = sorted(objects, key=lambda name: name not in errors)[:most]
    figure, axes = _axes(1 + 0.6 * (depth + 2) * len(objects), len(objects))
    if left_out > 0:
        figure.suptitle(f"{left_out} more files are not shown", fontsize=9)
    for name, ax in zip(objects, axes):
        for n in nodes:
            if n.object == name:
                ax.broken_barh([(n.offset, n.length)], (-n.depth - 0.9, 0.8), facecolor=_colours.get(n.kind, "#4878a8"),
                               edgecolor="white", linewidth=0.4)
        for f in findings:
            if f.object == name:
                _damage(ax, f, -depth - 1.9, depth + 1.9)
        ax.set_title(name, loc="left", fontsize=9)
        ax.set_yticks([])
        ax.set_xlabel("offset in bytes", fontsize=8)
    return figure


def columns(path, bins: int = 20, sample: int = 100_000, **options):
    """The columns of a table: stored bytes with encodings and nulls, and histograms of the numbers among its first rows
    (NaN and infinities are counted beside them): a matplotlib Figure.

    >>> import stoa.plot
    >>> type(stoa.plot.columns("try/flat.red")).__name__
    'Figure'
    """
    import pyarrow.compute as pc
    import pyarrow.types as pt

    from ._table import open

    docs = stats(path, **options)
    t = open(path, **options)
    numbers = [f.name for f in t.schema if pt.is_integer(f.type) or pt.is_floating(f.type)]
    figure, axes = _axes(1.5 + 0.35 * len(docs) + 1.6 * len(numbers), 1 + len(numbers))
    names = [d["column"] for d in docs]
    ax = axes[0]
    ax.barh(names, [d["stored_bytes"] or 0 for d in docs], color="#4878a8")
    for i, d in enumerate(docs):
        nulls = f", {d['nulls']:,} nulls" if d["nulls"] else ""
        ax.text(d["stored_bytes"] or 0, i, f" {d.get('encoding') or ''} {d.get('codec') or ''}{nulls}", va="center",
                fontsize=7)
    ax.invert_yaxis()
    ax.set_xlabel("stored bytes", fontsize=8)
    if numbers:
        rows = t.head(sample, columns=numbers)
        for name, ax in zip(numbers, axes[1:]):
            values = rows[name].drop_null()
            finite = values.filter(pc.is_finite(values)).to_numpy()
            if len(finite):
                ax.hist(finite, bins=bins, color="#9ab7d3")
            others = f", and {len(values) - len(finite):,} NaN or infinite" if len(values) > len(finite) else ""
            ax.set_title(name + others, loc="left", fontsize=8)
    return figure
