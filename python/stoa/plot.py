"""Pictures of files. They need matplotlib: ``pip install stoa[plot]``."""

from __future__ import annotations

import html

from ._core import Corrupt, Invalid
from ._verbs import Node, describe, stats, verify


def _axes(height: float, rows: int = 1):
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise Invalid("stoa.plot needs matplotlib: pip install 'stoa[plot]'") from None
    figure = Figure(figsize=(10, height), layout="constrained")
    return figure, figure.subplots(rows, squeeze=False)[:, 0]


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
    findings = [f for f in verify(path, **options) if f.severity != "note" and f.length]
    damaged = {f.object for f in findings}
    objects = list(dict.fromkeys(n.object for n in nodes)) or [str(path)]
    left_out = len(objects) - most
    objects = sorted(objects, key=lambda name: name not in damaged)[:most]
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
                ax.broken_barh([(f.offset, f.length)], (-depth - 1.9, depth + 1.9), facecolor="red", alpha=0.6,
                               gid="damage:" + html.escape(f.code))
        ax.set_title(name, loc="left", fontsize=9)
        ax.set_yticks([])
        ax.set_xlabel("offset in bytes", fontsize=8)
    return figure


def columns(path, bins: int = 20, sample: int = 100_000, **options):
    """The columns of a table: stored bytes with encodings and nulls, and histograms of the numbers among its first rows:
    a matplotlib Figure.

    >>> import stoa.plot
    >>> type(stoa.plot.columns("try/flat.red")).__name__
    'Figure'
    """
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
            values = rows[name].drop_null().to_numpy()
            ax.hist(values, bins=bins, color="#9ab7d3") if len(values) else None
            ax.set_title(name, loc="left", fontsize=8)
    return figure
