"""What type checkers say of programs that use the package."""

import subprocess
import sys
import textwrap

RIGHT = """
import stoa
import pyarrow as pa

t = stoa.open("x.cfile", table="t", damaged="skip-rows", storage_options={"anon": True})
n: int = len(t) + t.count_rows(where="a > 1")
names: list[str] = t.keys + [f.code for f in stoa.verify("x.cfile")] + [s.text for s in t.plan(["a"])]
row: dict[str, object] = t.filter("a = 1").get(5, columns=["a"])
offsets: list[int] = [n.offset for n in stoa.describe("x.cfile")]
deleted: int = stoa.delete("store#d.t", "a = 1", dry_run=True)
try:
    stoa.write({"a": [1]}, "y.trv", checksum="crc32")
except stoa.Corrupt as e:
    place: int | None = e.offset
reader: pa.RecordBatchReader = t.scan(["a"], limit=3, rows=(0, 5))
v: str = stoa.__version__
"""

WRONG = {
    "n: str = len(stoa.open('x'))": "assignment",
    "stoa.open('x', recover='yes')": "arg-type",
    "stoa.open('x').scan(limit='3')": "arg-type",
    "stoa.open('x').plan(target=None)": "arg-type",
    "stoa.verify('x')[0].nothing": "attr-defined",
    "stoa.nothing('x')": "attr-defined",
    "stoa.delete('x', 5)": "arg-type",
    "stoa.open(5)": "arg-type",
}


def check(tmp_path, program):
    file = tmp_path / "program.py"
    file.write_text(textwrap.dedent(program))
    p = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--disable-error-code",
                        "import-untyped", str(file)], capture_output=True, text=True, cwd=tmp_path)
    return p.returncode, p.stdout + p.stderr


def test_a_right_program(tmp_path):
    assert check(tmp_path, RIGHT) == (0, "")


def test_wrong_programs(tmp_path):
    status, said = check(tmp_path, "import stoa\n" + "\n".join(WRONG) + "\n")
    for line, code in zip(range(2, len(WRONG) + 2), WRONG.values()):
        assert f"program.py:{line}: error" in said and f"[{code}]" in said, (line, said)
    assert status == 1


def test_the_package_itself():
    import stoa

    p = subprocess.run([sys.executable, "-m", "mypy", "--disable-error-code", "import-untyped", "-p", "stoa"],
                       capture_output=True, text=True)
    assert p.returncode == 0, p.stdout
