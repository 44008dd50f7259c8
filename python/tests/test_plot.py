"""The pictures show what is in the files: every bar is where describe, verify, stats and the rows say."""

import io
import math
import warnings

import numpy as np
import pyarrow as pa
import pytest
import stoa
import stoa.plot

pytestmark = pytest.mark.filterwarnings("ignore::stoa.StoaWarning")


def damage(ax):
    """(code, from, to) of what is red."""
    out = []
    for c in ax.collections:
        if (c.get_gid() or "").startswith("damage:"):
            assert tuple(c.get_facecolor()[0][:3]) == (1, 0, 0)
            x = [p.vertices[:, 0] for p in c.get_paths()]
            out += [(c.get_gid()[7:], round(v.min()), round(v.max())) for v in x]
    return out


def bars(ax):
    return sorted((round(p.vertices[:, 0].min()), round(p.vertices[:, 0].max()))
                  for c in ax.collections if not c.get_gid() for p in c.get_paths())


def red(figure):
    """How many pixels are as red as damage is drawn."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure).print_png(to := io.BytesIO())
    to.seek(0)
    import matplotlib.image

    p = matplotlib.image.imread(to)
    return int(((p[..., 0] > 0.7) & (p[..., 1] < 0.45) & (p[..., 2] < 0.5)).sum())


def test_anatomy():
    whole, broken = (stoa.plot.anatomy(p) for p in ("try/key.cfile", "try/damaged/key.cfile"))
    assert damage(whole.axes[0]) == [] and red(whole) == 0
    assert damage(broken.axes[0]) == [("cfile.block.checksum", 539, 539 + 525)] and red(broken) > 1000
    nodes = [n for n in stoa.describe("try/key.cfile") if n.inner is None and n.depth <= 2]
    assert bars(whole.axes[0]) == sorted((n.offset, n.offset + n.length) for n in nodes) and len(nodes) > 5


def test_anatomy_of_a_place():
    figure = stoa.plot.anatomy("try/damaged")
    assert {ax.get_title(loc="left"): damage(ax) for ax in figure.axes} == {
        "try/damaged/cut.cfile": [("cfile.footer.damaged", 1488, 1496)],
        "try/damaged/key.cfile": [("cfile.block.checksum", 539, 1064)],
        "try/damaged/primitives.trv": [("trevni.block.checksum", 1845, 2334)]}
    one = stoa.plot.anatomy("try", most=2)  # what is damaged comes first
    assert len(one.axes) == 2 and all(damage(ax) for ax in one.axes) and "more files" in one.get_suptitle()


def test_damage_without_a_length_is_red_too():
    _, (ax,) = stoa.plot._axes(2)
    stoa.plot._damage(ax, stoa.Finding("a.b", "error", "", "x", 100, 0), -1, 1)
    assert ax.lines[0].get_color() == "red" and list(ax.lines[0].get_xdata()) == [100, 100]
    stoa.plot._damage(ax, stoa.Finding("a.b", "error", "", "x"), -1, 1)
    assert ax.spines["left"].get_edgecolor()[:3] == (1, 0, 0)


def test_columns():
    data = pa.table({"x": [math.nan, math.inf, 1.0, None], "n": pa.array([None] * 4, pa.int64()),
                     "big": [2**63 - 1, -(2**63), 0, 1], "s": ["a"] * 4})
    stoa.write(data, "x.parquet")
    sizes, *histograms = stoa.plot.columns("x.parquet").axes
    docs = stoa.stats("x.parquet")
    assert [b.get_width() for b in sizes.patches] == [d["stored_bytes"] for d in docs]
    assert [t.get_text() for t in sizes.get_yticklabels()] == data.column_names
    texts = [t.get_text() for t in sizes.texts]
    assert all(d["encoding"] in t for t, d in zip(texts, docs)) and "1 nulls" in texts[0] and "4 nulls" in texts[1]
    assert [ax.get_title(loc="left") for ax in histograms] == ["x, and 2 NaN or infinite", "n", "big"]
    assert [sum(b.get_height() for b in ax.patches) for ax in histograms] == [1, 0, 4]
    sizes, histogram = stoa.plot.columns("try/key.cfile").axes
    values = stoa.open("try/key.cfile").to_table()["value"].to_numpy()
    assert [b.get_height() for b in histogram.patches] == np.histogram(values, bins=20)[0].tolist()
    with pytest.raises(stoa.Corrupt):
        stoa.plot.columns("try/damaged/key.cfile")


def test_everything_can_be_drawn():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for e in stoa.ls("try"):
            if not e.problem:
                assert stoa.plot.anatomy(e.name).axes, e.name
                if e.kind != "directory" and "damaged" not in e.name:
                    assert stoa.plot.columns(e.name).axes, e.name
