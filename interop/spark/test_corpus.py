"""Every table of the corpus, read by Spark and written by its own Parquet writer, has the rows that the real programs,
or the generators' formulas, say: the tests of interop/python/test_corpus.py, word by word, with Spark in the place of
the Python package (conftest.py)."""

import importlib.util
import pathlib

_spec = importlib.util.spec_from_file_location("corpus", pathlib.Path(__file__).parent / "../python/test_corpus.py")
_corpus = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_corpus)
globals().update({k: v for k, v in vars(_corpus).items() if k.startswith("test_") or k == "pytestmark"})
