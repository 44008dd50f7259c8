"""The build backend of the wheel (PEP 517): it compiles capi/ with Go and cgo, and zips that with the Python files.

Nothing is needed but Go, a C compiler and Python: `pip wheel python/`, or `make wheel`. What can be set in the
environment: STOA_WHEEL_LIBRARY, a library that is built already; CC, GOOS and GOARCH, for another platform, with
STOA_WHEEL_PLATFORM, its tag.
"""

import base64
import hashlib
import os
import re
import struct
import subprocess
import sys
import tempfile
import zipfile

_here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_root = os.path.dirname(_here)


def _git(*args):
    try:
        return subprocess.run(["git", "-C", _root, *args], capture_output=True, text=True, check=True,
                              env={**os.environ, "TZ": "UTC"}).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _next(tag, when, commit):
    """Go's version of a commit after a tag, or without any: https://go.dev/ref/mod#pseudo-versions

    >>> _next("", "20240229120000", "0123456789ab")
    'v0.0.0-20240229120000-0123456789ab'
    >>> _next("v1.2.3", "20240229120000", "0123456789ab")
    'v1.2.4-0.20240229120000-0123456789ab'
    >>> _next("v1.2.3-rc.1", "20240229120000", "0123456789ab")
    'v1.2.3-rc.1.0.20240229120000-0123456789ab'
    """
    m = re.fullmatch(r"v(\d+)\.(\d+)\.(\d+)(-[0-9A-Za-z.-]+)?", tag)
    if not m:
        return f"v0.0.0-{when}-{commit}"
    if m[4]:
        return f"{tag}.0.{when}-{commit}"
    return f"v{m[1]}.{m[2]}.{int(m[3]) + 1}-0.{when}-{commit}"


def _python(version):
    """Go's version as Python has it (PEP 440), where it sorts in the same order.

    >>> [_python(v) for v in ("v1.2.3", "v1.2.3+dirty", "v1.2.3-rc.1", "v1.2.3-beta", "v1.2.3-odd")]
    ['1.2.3', '1.2.3+dirty', '1.2.3rc1', '1.2.3b0', '1.2.3.dev0+odd']
    >>> [_python(f"{v}20240229120000-0123456789ab") for v in ("v0.0.0-", "v1.2.4-0.", "v1.2.3-rc.1.0.")]
    ['0.0.0.dev20240229120000+g0123456789ab', '1.2.4.dev20240229120000+g0123456789ab', \
'1.2.3rc1.post0.dev20240229120000+g0123456789ab']
    >>> _python("v0.0.0-20240229120000-0123456789ab+dirty")
    '0.0.0.dev20240229120000+g0123456789ab.dirty'
    """
    version, _, dirty = version[1:].partition("+")
    release, _, pre = version.partition("-")
    local = [dirty] if dirty else []
    commit = re.fullmatch(r"(?:(.*?)\.?\b0\.)?(\d{14})-([0-9a-f]{12})", pre)
    if commit:
        pre, local = commit[1] or "", [f"g{commit[3]}"] + local
    words = re.fullmatch(r"(alpha|beta|rc|a|b)[.-]?(\d*)", pre)
    if words:
        release += {"alpha": "a", "beta": "b"}.get(words[1], words[1]) + (words[2] or "0") + ".post0" * bool(commit)
    elif pre:  # a word that Python does not have
        local = [re.sub(r"[^0-9A-Za-z]+", ".", pre)] + local
    dev = f".dev{commit[2]}" if commit else ".dev0" if pre and not words else ""
    return release + dev + ("+" + ".".join(local) if local else "")


def _version():
    """The version of the command of this commit, as Go would stamp it: of a tag, or of the time and the commit, and
    "+dirty" if a file is changed or new; what else `stoa version` says; and the version as Python has it."""
    commit = _git("rev-parse", "HEAD")
    if not commit:
        return "unknown,,,false", "0.0.0"
    when = _git("log", "-1", "--format=%cd", "--date=format-local:%Y-%m-%dT%H:%M:%SZ")
    tag = _git("describe", "--tags", "--exact-match", "--match", "v[0-9]*")
    last = _git("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*")
    changed = bool(_git("status", "--porcelain"))
    version = (tag or _next(last, re.sub(r"\D", "", when), commit[:12])) + ("+dirty" if changed else "")
    return f"{version},{commit},{when},{str(changed).lower()}", _python(version)


def _glibc(library):
    """The newest version of glibc whose symbols a library needs: those of .gnu.version_r, as (major, minor)."""
    with open(library, "rb") as f:
        b = f.read()
    if b[:5] != b"\x7fELF\x02":
        return None
    at, = struct.unpack_from("<Q", b, 40)
    size, count = struct.unpack_from("<HH", b, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", b, at + i * size) for i in range(count)]
    newest = (2, 0)
    for s in sections:
        if s[1] != 0x6FFFFFFE:  # SHT_GNU_verneed
            continue
        names = sections[s[6]][4]
        need = s[4]
        for _ in range(s[7]):
            _, n, _, aux, step = struct.unpack_from("<HHIII", b, need)
            a = need + aux
            for _ in range(n):
                _, _, _, name, following = struct.unpack_from("<IHHII", b, a)
                text = b[names + name:b.index(b"\0", names + name)].decode()
                m = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(\.\d+)?", text)
                if m:
                    newest = max(newest, (int(m[1]), int(m[2])))
                a += following
            need += step
    return newest


def _platform(library):
    tag = os.environ.get("STOA_WHEEL_PLATFORM")
    if tag:
        return tag
    if not sys.platform.startswith("linux"):
        import sysconfig

        return re.sub(r"[^A-Za-z0-9_]", "_", sysconfig.get_platform())
    major, minor = _glibc(library)
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(os.environ.get("GOARCH", ""), os.uname().machine)
    return f"manylinux_{max((major, minor), (2, 17))[0]}_{max((major, minor), (2, 17))[1]}_{machine}"


def _library(directory, stamp):
    given = os.environ.get("STOA_WHEEL_LIBRARY")
    if given:
        return given
    out = os.path.join(directory, "libstoa.so")
    env = {**os.environ, "CGO_ENABLED": "1"}
    env.setdefault("GOFLAGS", "-trimpath")
    subprocess.run(["go", "build", "-buildmode=c-shared", "-buildvcs=false",
                    "-ldflags", f"-s -w -X stoa/cmd/stoa/internal/about.stamp={stamp}", "-o", out, "."],
                   cwd=os.path.join(_root, "capi"), env=env, check=True)
    return out


def _metadata(version):
    with open(os.path.join(_here, "README.md"), encoding="utf-8") as f:
        readme = f.read()
    return (f"Metadata-Version: 2.4\nName: stoa\nVersion: {version}\n"
            "Summary: Every file of Kudu, CarbonData, RedFile, Trevni, Parquet and Arrow is a dataset\n"
            "License-Expression: Apache-2.0\nLicense-File: LICENSE\nLicense-File: NOTICE\n"
            "Requires-Python: >=3.10\nRequires-Dist: pyarrow>=17\n"
            "Provides-Extra: plot\nRequires-Dist: matplotlib; extra == 'plot'\n"
            "Provides-Extra: fsspec\nRequires-Dist: fsspec; extra == 'fsspec'\n"
            f"Description-Content-Type: text/markdown\n\n{readme}")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    stamp, version = _version()
    with tempfile.TemporaryDirectory() as d:
        library = _library(d, stamp)
        tag = f"py3-none-{_platform(library)}"
        files = {f"stoa/{n}": open(os.path.join(_here, "stoa", n), "rb").read()
                 for n in sorted(os.listdir(os.path.join(_here, "stoa"))) if n.endswith((".py", ".typed"))}
        files["stoa/libstoa.so"] = open(library, "rb").read()
        files["stoa/stoa.h"] = open(os.path.join(_root, "capi", "stoa.h"), "rb").read()
    info = f"stoa-{version}.dist-info"
    for n in ("LICENSE", "NOTICE"):
        files[f"{info}/licenses/{n}"] = open(os.path.join(_root, n), "rb").read()
    files[f"{info}/METADATA"] = _metadata(version).encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: stoa_build\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    record = "".join(f"{n},sha256={base64.urlsafe_b64encode(hashlib.sha256(b).digest()).rstrip(b'=').decode()},{len(b)}\n"
                     for n, b in files.items())
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    name = f"stoa-{version}-{tag}.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as z:
        for n, b in files.items():
            i = zipfile.ZipInfo(n, (1980, 1, 1, 0, 0, 0))  # the same bytes every time
            i.compress_type, i.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            z.writestr(i, b)
    return name


if __name__ == "__main__":
    to = sys.argv[1]
    os.makedirs(to, exist_ok=True)
    print(os.path.join(to, build_wheel(to)))
