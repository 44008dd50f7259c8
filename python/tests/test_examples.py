"""Docstrings, the README's session and the notebook do what they say."""

import ast
import doctest
import importlib
import json
import pathlib
import re

import pytest
import stoa
import stoa.plot

HERE = pathlib.Path(__file__).resolve().parent
DOCUMENTS = HERE.parent / "documents"  # copies of those of the repository, if the tests run away from it
if not DOCUMENTS.is_dir():
    DOCUMENTS = HERE.parent.parent


def options():
    return doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("name", ["stoa", "stoa._core", "stoa._scan", "stoa._table", "stoa._verbs", "stoa._write", "stoa._polars",
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


@pytest.mark.parametrize("name", ["README.md", "docs/recipes/pandas.md"])
@pytest.mark.filterwarnings("ignore")
def test_documents(name):
    text = (DOCUMENTS / name).read_text()
    sessions = [b for b in re.findall(r"```python\n(.*?)```", text, re.S) if "spark." not in b]  # interop/spark has those
    test = doctest.DocTestParser().get_doctest("\n".join(sessions), {}, name, name, 0)
    assert len(test.examples) > 2
    assert doctest.DocTestRunner(optionflags=options()).run(test).failed == 0


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


def public(cls):
    """The methods and properties of a class that are stoa's own, and not only what pyarrow's protocol asks for."""
    return {f"{cls.__name__}.{n}": v for c in cls.__mro__ if c.__module__.startswith("stoa") for n, v in vars(c).items()
            if not n.startswith("_") and n not in ("partition_expression", "physical_schema")
            and (callable(v) or isinstance(v, property))}


def test_everything_has_an_example():
    functions = {n: getattr(stoa, n) for n in stoa.__all__ if n != "plot"}
    errors = {n for n, f in functions.items() if isinstance(f, type) and issubclass(f, BaseException)}
    assert all(functions[n].__doc__ for n in errors)
    records = {"Entry", "Finding", "Node"}  # what functions return: their examples are those of the functions
    functions.update({"plot.anatomy": stoa.plot.anatomy, "plot.columns": stoa.plot.columns})
    functions.update(public(stoa.Table), **public(stoa.Split))
    without = {n for n, f in functions.items() if ">>> " not in (f.__doc__ or "")} - errors - records
    assert not without and len(functions) > 70
