"""The sessions of the documents, on Spark. Judge.java has no Python: this is what they use of its interface."""

import doctest
import json
import os
import pathlib
import re
import subprocess

import conftest
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Frame:
    """A view with a name of its own."""

    def __init__(self, **question):
        s = conftest.spark()
        s.names += 1
        self.view = f"frame{s.names}"
        s.ask(view=self.view, **question)

    def sql(self, text):
        return Frame(sql=text)

    def where(self, predicate):
        return self.sql(f"select * from {self.view} where {predicate}")

    def select(self, *names):
        return self.sql(f"select {', '.join(names)} from {self.view}")

    def rows(self, text):
        return [json.loads(r) for r in conftest.spark().rows(text)]

    def count(self):
        return self.rows(f"select count(*) n from {self.view}")[0]["n"]

    def show(self, n=20):
        rows = self.rows(f"select * from {self.view} limit {n + 1}")
        cells = [list(rows[0])] + [[str(v) for v in r.values()] for r in rows[:n]]
        widths = [max(3, *(len(c[k]) for c in cells)) for k in range(len(cells[0]))]
        line = "+" + "+".join("-" * w for w in widths) + "+"
        text = ["|" + "|".join(v.rjust(w) for v, w in zip(c, widths)) + "|" for c in cells]
        print("\n".join([line, text[0], line, *text[1:], line]))
        print(f"only showing top {n} rows" if len(rows) > n else "")

    @property
    def write(self):
        return self

    def mode(self, name):
        assert name == "overwrite"
        return self

    def parquet(self, place):
        conftest.spark().ask(sql=f"select * from {self.view}", save=os.path.abspath(place))


class Read:
    def __init__(self, form="stoa", **options):
        self.form, self.options = form, options

    def format(self, name):
        return Read(name, **self.options)

    def option(self, key, value):
        return Read(self.form, **self.options, **{key: value})

    def load(self, place):
        return Frame(load=os.path.abspath(place), format=self.form, options=self.options)

    def parquet(self, place):
        return self.format("parquet").load(place)


class Spark:
    read = Read()

    def sql(self, text):
        return Frame(sql=re.sub(r"(?<=stoa\.`)[^`]+", lambda m: os.path.abspath(m[0]), text))


@pytest.mark.parametrize("name", ["README.md", "docs/recipes/spark.md"])
def test_sessions(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    subprocess.run(["stoa", "demo", "-q", "try"], check=True, capture_output=True)
    text = (ROOT / name).read_text()
    sessions = [b for b in re.findall(r"```python\n(.*?)```", text, re.S) if "spark." in b]
    assert sessions
    test = doctest.DocTestParser().get_doctest("\n".join(sessions), {"spark": Spark()}, name, name, 0)
    assert len(test.examples) > 1
    assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test).failed == 0
