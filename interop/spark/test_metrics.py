"""What Spark's UI shows of a scan: pages and bytes, by arithmetic from how the table was written."""

import json
import subprocess

import conftest

ROWS, PAGE = 40_000, 2_000


def test_pages(tmp_path):
    """Three columns of 20 pages, in one split: one row by bounds, one that only values find, and all."""
    rows = tmp_path / "rows.jsonl"
    with open(rows, "w") as f:
        for i in range(ROWS):
            t = "a needle z" if i == 23_456 else f"a{i * 7919:x}z"
            f.write(json.dumps({"n": i * i, "t": t, "x": f"{i * 104729:x} and {i * 1299709:x}"}) + "\n")
    place = f"{tmp_path}/a.carbondata"
    subprocess.run(["stoa", "convert", "-q", str(rows), "-o", place, "--opt", f"page-rows={PAGE}"], check=True)
    size = (tmp_path / "a.carbondata").stat().st_size
    pages = ROWS // PAGE
    conftest.spark().ask(load=place, options={"target-size": "1GB"}, view="pages")
    for where, count, read, skipped in (
            ("true", ROWS, 3 * pages, 0), ("t like '%needle%'", 1, pages + 2, 2 * pages - 2),
            ("t like '%noodle%'", 0, pages, 2 * pages),
            (f"n = {23_456 ** 2}", 1, 3, 0)):  # bounds keep the other pages out of the split
        a = conftest.spark().ask(sql=f"select n, t, x from pages where {where}")
        m = a["metrics"]
        assert len(a["rows"]) == count, where
        assert (m["stoaPagesRead"], m["stoaPagesSkipped"], m["stoaSplits"]) == (read, skipped, 1), (where, m)
        # metadata are read when the file is opened; a page is of about the same size as all others of its column
        assert size * read / (3 * pages) / 4 < m["stoaBytesRead"] < 1.5 * size, (where, m, size)
        assert m["stoaBytesStored"] <= size and m["stoaLosing"] == 0, (where, m)
