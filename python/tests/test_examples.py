"""Docstrings, the README's session and the notebook do what they say."""

import ast
import doctest
import importlib
import json
import pathlib

import pytest
import stoa

HERE = pathlib.Path(__file__).resolve().parent


def options():
    return doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("name", ["stoa", "stoa._core", "stoa._table", "stoa._verbs", "stoa._write", "stoa._polars",
                                  "stoa.plot"])
@pytest.mark.filterwarnings("ignore")
def test_docstrings(name):
    r = doctest.testmod(importlib.import_module(name), optionflags=options())
    assert r.failed == 0
    assert r.attempted > 0


@pytest.mark.filterwarnings("ignore")
def test_readme():
    r = doctest.testfile(str(HERE.parent / "README.md"), module_relative=False, optionflags=options())
    assert r.failed == 0 and r.attempted > 10


@pytest.mark.filterwarnings("ignore")
def test_notebook():
    cells = json.loads((HERE.parent / "examples" / "a-first-look.ipynb").read_text())["cells"]
    code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    assert len(code) > 4
    names: dict = {}
    shown = [shows(run(c, names)) for c in code]
    assert "<table>" in shown[1] and "id: int64" in shown[1] and "kudu.wal.missing" in shown[1]  # the table's view
    assert "cfile.block.checksum" in shown[5] and shown[6].startswith("<Figure") and shown[7].startswith("<Figure")
    assert "'from': 128, 'to': 256" in shown[8]


def run(cell, names):
    """The value of a cell's last line, which a notebook shows."""
    tree = ast.parse(cell)
    *before, last = tree.body
    exec(compile(ast.Module(before, []), "a-first-look.ipynb", "exec"), names)
    if not isinstance(last, ast.Expr):
        return exec(compile(ast.Module([last], []), "a-first-look.ipynb", "exec"), names)
    return eval(compile(ast.Expression(last.value), "a-first-look.ipynb", "eval"), names)


def shows(v):
    return v._repr_html_() if hasattr(v, "_repr_html_") and v._repr_html_() else repr(v)


def test_everything_has_a_docstring():
    for name in stoa.__all__:
        if name != "plot":
            assert getattr(stoa, name).__doc__, name
