"""Docstrings, the README's session and the notebook do what they say."""

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
    for c in code:
        exec(compile(c, "a-first-look.ipynb", "exec"), names)


def test_everything_has_a_docstring():
    for name in stoa.__all__:
        if name != "plot":
            assert getattr(stoa, name).__doc__, name
