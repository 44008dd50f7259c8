"""Every test runs in a directory of its own with the files of `stoa demo try --damage`."""

import os
import shutil

import pytest
import stoa


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    d = tmp_path_factory.mktemp("demo")
    was = os.getcwd()
    os.chdir(d)
    stoa.run("demo", "try", "--damage")
    os.chdir(was)
    return d / "try"


@pytest.fixture(autouse=True)
def place(demo, tmp_path, monkeypatch):
    shutil.copytree(demo, tmp_path / "try", symlinks=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(table):
    """Rows to be compared: all NaN are equal, 0.0 is not -0.0."""
    return [repr(r) for r in table.to_pylist()]
