"""What fails, fails the job, with its place; nothing is left running."""

import json
import os
import subprocess
import time

import conftest
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import session

STOA = subprocess.run(["which", "stoa"], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """80,000 rows, in batches of at most 65,536."""
    at = tmp_path_factory.mktemp("errors")
    table = pa.table({"id": pa.array(range(80_000), pa.int64()), "s": [f"row {i}" for i in range(80_000)]})
    pq.write_table(table, at / "rows.parquet")
    subprocess.run(["stoa", "convert", "-q", f"{at}/rows.parquet", "-o", f"{at}/rows.trv"], check=True)
    subprocess.run(["stoa", "demo", "-q", f"{at}/demo", "--damage"], check=True, capture_output=True)
    return at


def command(at, name, scan, version=""):
    """A program that is stoa, but for how it reads splits."""
    path = at / name
    text = f"#!/bin/bash\nset -o pipefail\ncase $1 in\nscan) {scan} ;;\n"
    if version:
        text += f"version) echo {version} ;;\n"
    path.write_text(text + f'*) exec {STOA} "$@" ;;\nesac\n')
    path.chmod(0o755)
    return str(path)


def fails(**question):
    with pytest.raises(session.Failed) as e:
        conftest.spark().ask(**question)
    return e.value.answer


def total(options, place):
    s = conftest.spark()
    s.ask(load=str(place), options=options, view="t")
    return json.loads(s.rows("select count(id) n, sum(id) s, max(s) m from t where id >= 0")[0])


def test_damage_has_its_place(place):
    a = fails(load=f"{place}/demo/damaged/key.cfile")
    assert a["object"].endswith("key.cfile") and a["offset"] == 539 and a["status"] == 1, a
    assert "expected 0x0eea0a49, computed 0x0f01d90f" in a["error"]


def test_damage_that_is_skipped(place):
    s = conftest.spark()
    rows = s.ask(load=f"{place}/demo/damaged/key.cfile", options={"damaged": "skip-rows"})["rows"]
    whole = s.ask(load=f"{place}/demo/key.cfile")["rows"]
    assert len(rows) == 272 and rows == whole[:128] + whole[256:]


def test_count_is_not_of_metadata_when_rows_may_be_lost(place):
    s = conftest.spark()
    s.ask(load=f"{place}/demo/damaged/key.cfile", options={"damaged": "skip-rows"}, view="t")
    assert json.loads(s.rows("select count(*) n from t")[0])["n"] == 272


def test_damage_at_opening(place):
    a = fails(load=f"{place}/demo/damaged/cut.cfile")
    assert "cut.cfile" in a["error"] and "kuducfl2" in a["error"]


def test_wrong_options(place):
    assert "no option dammaged" in fails(load=f"{place}/rows.trv", options={"dammaged": "x"})["error"]
    assert "skip-rows" in fails(load=f"{place}/rows.trv", options={"damaged": "perhaps"})["error"]
    assert "no such file" in fails(load=f"{place}/none.trv")["error"].lower()


def test_a_stream_that_is_cut_anywhere(place):
    """The stream of a split, cut after so many bytes though the program says that all is well."""
    whole = total({}, f"{place}/rows.trv")
    assert whole == {"n": 80_000, "s": 80_000 * 79_999 // 2, "m": "row 9999"}
    cuts = [0, 1, 4, 8, 100, 1000, 100_000, 600_000, -100_000, -1000, -9, -8, -7, -4, -1]  # from the end, if negative
    for n in cuts:
        c = command(place, f"cut{n}", f'{STOA} "$@" | head -c {n}; exit 0')
        s = conftest.spark()
        s.ask(load=f"{place}/rows.trv", options={"command": c}, view="t")
        a = fails(sql="select count(id), sum(id) from t where id >= 0 and s like '%ow%'")
        assert "torn" in a["error"], (n, a)


@pytest.mark.parametrize("scan, says", [
    (f'{STOA} "$@"; exit 1', "it said nothing"),
    (f'{STOA} "$@"; echo "stoa: a.b[7+9]: corrupt: x: y" >&2; exit 3', "known to be incomplete"),
    (f'{STOA} "$@" | head -c 5000; kill -9 $$', "signal 9"),
    ('echo "stoa: split: the file changed" >&2; exit 1', "the file changed"),
    ("cat /dev/zero | head -c 100000", "begins with its schema"),
], ids=["status", "incomplete", "killed", "refused", "zeros"])
def test_a_command_that_fails(place, scan, says):
    c = command(place, f"fails{abs(hash(scan))}", scan)
    conftest.spark().ask(load=f"{place}/rows.trv", options={"command": c}, view="t")
    a = fails(sql="select count(id), sum(id) from t where id >= 0")
    assert says in a["error"], a


def test_a_file_that_changes(place):
    os.system(f"cp {place}/rows.trv {place}/changes.trv")
    c = command(place, "changes", f'touch {place}/changes.trv; {STOA} "$@"')
    conftest.spark().ask(load=f"{place}/changes.trv", options={"command": c}, view="t")
    assert "changed" in fails(sql="select sum(id) from t")["error"]


def test_no_command():
    a = fails(load="x.trv", options={"command": "/nowhere/stoa"})
    assert "/nowhere/stoa" in a["error"]


def cmdline(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read()
    except OSError:
        return b""


def children(pid):
    """All descendants of a process, with their state."""
    out = {}
    for p in os.listdir("/proc"):
        if p.isdigit():
            try:
                with open(f"/proc/{p}/stat") as f:
                    rest = f.read().rpartition(")")[2].split()
                out[int(p)] = (int(rest[1]), rest[0])
            except OSError:
                pass
    found, look = {}, [pid]
    while look:
        at = look.pop()
        for p, (parent, state) in out.items():
            if parent == at:
                found[p] = state
                look.append(p)
    return found


def test_cancelled_jobs_and_limits_leave_nothing(place):
    s = conftest.spark()
    c = command(place, "hangs", f'{STOA} "$@" | (head -c 300000; sleep 600)')
    s.ask(load=f"{place}/rows.trv", options={"command": c}, view="t")
    begin = time.monotonic()
    a = fails(sql="select sum(id) from t where s like 'row%'", cancel=3)
    assert time.monotonic() - begin < 60 and "cancel" in a["error"].lower(), a
    s.ask(load=f"{place}/rows.trv", view="t")
    assert len(s.rows("select * from t limit 5")) == 5
    time.sleep(1)
    left = {p: cmdline(p) for p in children(s.process.pid) if b"scan" in cmdline(p)}
    assert not left and "Z" not in children(s.process.pid).values()


def test_versions(place):
    """An executor with another version of the command does not read: here it changes between planning and reading."""
    state = place / "state"
    state.write_text("stoa one")
    c = command(place, "versions", f'{STOA} "$@"', f"$(cat {state})")
    s = conftest.spark()
    s.ask(load=f"{place}/rows.trv", options={"command": c}, view="t")
    assert json.loads(s.rows("select sum(id) s from t")[0])["s"] == 80_000 * 79_999 // 2
    state.write_text("stoa two")
    os.utime(c, (1, 1))
    assert '"stoa two", the driver has "stoa one"' in fails(sql="select sum(id) from t")["error"]
