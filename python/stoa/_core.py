"""The C library: calls, errors, handles. What is documented in stoa.h is not said again here."""

from __future__ import annotations

import _thread
import atexit
import ctypes
import functools
import itertools
import json
import operator
import os
import re
import sys
import threading
import time
import warnings
import weakref
from typing import Any, Callable, Iterator

_OK, _CANCELLED, _FORKED = 0, 9, 11
STREAM = 40  # sizeof(struct ArrowArrayStream)


class StoaError(Exception):
    """What stoa could not do.

    ``object``, ``offset``, ``length`` (bytes) and ``path`` (the field) say where, if the error is about a place in a
    file; else they are ``None``. ``reason`` is the message without the place.

    >>> import stoa
    >>> try:
    ...     stoa.open("nothing.cfile")
    ... except stoa.StoaError as e:
    ...     print(type(e).__name__, e.object)
    NotFound nothing.cfile
    """

    object: str | None = None
    offset: int | None = None
    length: int | None = None
    path: str | None = None
    reason: str | None = None

    def __init__(self, message: str = "", **place: Any):
        super().__init__(message)
        for k in ("object", "offset", "length", "path", "reason"):
            setattr(self, k, place.get(k))

    def __reduce__(self):
        return _remake, (type(self), str(self), {k: getattr(self, k) for k in
                                                 ("object", "offset", "length", "path", "reason")})


def _remake(cls, message, place):
    return cls(message, **place)


class Corrupt(StoaError):
    """The bytes of a file contradict its format."""


class Unsupported(StoaError):
    """The bytes may be fine; stoa does not have what they need."""


class Invalid(StoaError, ValueError):
    """The caller's mistake: a column, an option, a predicate."""


class Limit(StoaError):
    """A file asks for more than the limits allow."""


class Changed(StoaError):
    """A file is not what it was when it was opened, or when its reading was planned."""


class NotFound(StoaError, FileNotFoundError, KeyError):
    """No file has this name, or no row this key. (A table that a place does not hold is Invalid: the error lists those that
    it does.)"""

    def __str__(self):
        return self.args[0] if self.args else ""


class Unproven(StoaError):
    """What was written is not what went in. It did not get its name."""


class Forked(StoaError, RuntimeError):
    """The process is a child of fork(), which does not have the threads of stoa. Start children by "spawn"."""


class StoaWarning(UserWarning):
    """Something that was noticed, and ended nothing: a log that is missing, rows that could not be read."""


_classes = {"corrupt": Corrupt, "unsupported": Unsupported, "invalid": Invalid, "limit": Limit, "changed": Changed,
            "not-found": NotFound, "unproven": Unproven, "forked": Forked}


renamed: dict[str, str] = {}  # paths of copies, and the addresses that were copied


def original(text: str) -> str:
    """A text with the addresses of what was copied."""
    for path, address in list(renamed.items()):
        text = text.replace(path, address)
    return text


def error_of(doc: dict) -> BaseException:
    """The exception of an error's document."""
    if doc["class"] == "cancelled":
        return KeyboardInterrupt()
    cls = _classes.get(doc["class"], StoaError)
    place = {k: doc.get(k) for k in ("object", "offset", "length", "path", "reason")}
    if place["object"]:
        place["object"] = original(place["object"])
    return cls(original(doc["message"]), **place)


def _load() -> ctypes.CDLL:
    path = os.environ.get("STOA_LIBRARY") or os.path.join(os.path.dirname(__file__), "libstoa.so")
    lib = ctypes.CDLL(path)
    text, texts, handle, handles = (ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint64,
                                    ctypes.POINTER(ctypes.c_uint64))
    address, i64, i64s = ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64)
    for name, args, result in [
        ("stoa_version", [], text), ("stoa_free", [ctypes.c_void_p], None), ("stoa_release", [handle], ctypes.c_int),
        ("stoa_cancel", [handle], ctypes.c_int), ("stoa_open", [text, handles, texts], ctypes.c_int),
        ("stoa_open_split", [text, handles, texts], ctypes.c_int), ("stoa_info", [handle, texts, texts], ctypes.c_int),
        ("stoa_schema", [handle, text, address, texts], ctypes.c_int),
        ("stoa_scan", [handle, text, address, handles, texts], ctypes.c_int),
        ("stoa_wait", [handle, i64], ctypes.c_int), ("stoa_scan_report", [handle, texts, texts], ctypes.c_int),
        ("stoa_count", [handle, text, i64s, texts], ctypes.c_int),
        ("stoa_plan", [handle, text, i64, texts, texts], ctypes.c_int),
        ("stoa_write", [text, address, handle, texts, texts], ctypes.c_int),
        ("stoa_change", [text, address, handle, texts, texts], ctypes.c_int),
        ("stoa_token", [handles, texts], ctypes.c_int), ("stoa_run", [text, handles, texts], ctypes.c_int),
        ("stoa_read", [handle, ctypes.c_char_p, i64, i64], i64),
        ("stoa_run_report", [handle, texts, texts], ctypes.c_int),
        ("stoa_memory", [i64s, i64s], None), ("stoa_trim", [], None), ("stoa_handles", [], i64),
    ]:
        f = getattr(lib, name)
        f.argtypes, f.restype = args, result
    return lib


lib = _load()
_forked = False


def _in_child() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def take(text: ctypes.c_void_p) -> str:
    """A text that the library gave, which it then takes back."""
    if not text.value:
        return ""
    out = ctypes.string_at(text.value).decode()
    lib.stoa_free(text)
    return out


def call(name: str, *args: Any) -> None:
    """Calls a function of the library whose last argument is the place of an error, and raises that error."""
    enter()
    error = ctypes.c_void_p()
    if getattr(lib, name)(*args, ctypes.byref(error)) != _OK:
        raise failure(error)


def failure(error: ctypes.c_void_p) -> BaseException:
    """The exception of a call that failed."""
    return error_of(json.loads(take(error) or '{"class": "io", "message": "out of memory"}'))


def text_of(name: str, *args: Any, named: bool = True) -> Any:
    """Calls a function that gives a document; named: for people, with the addresses of what was copied."""
    out = ctypes.c_void_p()
    call(name, *args, ctypes.byref(out))
    text = take(out)
    return json.loads(original(text) if named else text)


def encode(doc: Any) -> bytes | None:
    """A request as the library takes it. A half of a surrogate pair, which Python's texts can have, would become another
    character there, and another condition or name."""
    if doc is None:
        return None
    try:
        return json.dumps(doc, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError as e:  # the text itself may be a secret
        raise Invalid(f"{_not_utf8(doc)}: expected a text that UTF-8 has, found one with {e.object[e.start]!r}") from None
    except (TypeError, ValueError) as e:  # NaN, or an object
        raise Invalid(f"expected texts and numbers: {e}") from None


def _not_utf8(doc: Any, name: str = "") -> str:
    """The name of the member of a request that has a text which is not UTF-8; empty: there is none."""
    if isinstance(doc, str):
        return name if re.search("[\ud800-\udfff]", doc) else ""
    parts = doc.items() if isinstance(doc, dict) else [(name, x) for x in doc] if isinstance(doc, list) else []
    return next(filter(None, (_not_utf8(k, str(k)) or _not_utf8(v, str(k)) for k, v in parts)), "")


def whole(name: str, v: Any, least: int | None = None) -> int:
    """A whole number of Python's or numpy's, of 64 bits."""
    try:
        n = operator.index(v)
    except TypeError:
        n = None
    if n is None or isinstance(v, bool) or n >= 1 << 63 or n < (-(1 << 63) if least is None else least):
        raise Invalid(f"{name}: expected a whole number" + ("" if least is None else f" from {least} on") +
                      f", found {v!r}")
    return n


# Finalizers run where an object goes, which may be in a destructor of pyarrow's C++ (see enter), so this call does not
# give up the interpreter's lock. The function has one argument; the second is the reference that a weak reference gives
# its callback, and C leaves it alone.
_release = ctypes.PyDLL(None, handle=lib._handle).stoa_release
_release.argtypes = [ctypes.c_uint64, ctypes.py_object]


class Handle:
    """A handle of the library, which is released with the last reference to this object. An interrupt may come between
    any two instructions, so this object is there, with a place for the number, before the library makes the handle, and
    what happens when it goes is C's alone: an interrupt would end a finalizer of Python's before its first line."""

    def __init__(self):
        self.cell = ctypes.c_uint64()
        serial = next(_serials)
        _owners[serial] = (weakref.ref(self, functools.partial(_release, self.cell)),
                           weakref.ref(self, functools.partial(_owners.pop, serial)))

    def close(self) -> None:
        calls_of_c(functools.partial(_release, self.cell, None), functools.partial(setattr, self.cell, "value", 0))

    @property
    def number(self) -> int:
        return self.cell.value

    @classmethod
    def made(cls, name: str, *args: Any) -> "Handle":
        h = cls()
        call(name, *args, ctypes.byref(h.cell))
        return h


_serials = itertools.count()
_owners: dict[int, tuple[weakref.ref, weakref.ref]] = {}  # what keeps the weak references


def calls_of_c(*calls: functools.partial) -> list:
    """What calls of C functions return, one after the other. No interrupt comes between them."""
    return list(map(functools.partial.__call__, calls))


_threads: dict[int, float] = {}  # other threads than the main one, and when each last entered the library
_hosts: set[int] = set()  # tokens of calls that are in a stream of the host's
_ending = False


def enter() -> None:
    """To be called before a call of the library that another thread than the main one may make. While the interpreter
    ends such a thread, a daemon, stops here: until CPython 3.14 the next wait for the interpreter's lock unwinds its
    stack, and with a frame of pyarrow's C++ on it, the process aborts."""
    me = threading.get_ident()
    if me == threading.main_thread().ident:
        return
    _threads[me] = time.monotonic()
    if _ending:
        del _threads[me]
        threading.Event().wait(10)  # the process has ended by then, unless what runs at exit needs this thread


def _end() -> None:
    """At exit: ends calls that are in a stream of the host's, and lets the threads that read come to enter."""
    global _ending
    begin, _ending = time.monotonic(), True
    if _forked:
        return
    for token in list(_hosts):
        lib.stoa_cancel(token)
    while _hosts and time.monotonic() < begin + 5:
        time.sleep(0.002)
    late = time.monotonic() + 1
    while time.monotonic() < late:
        running = sys._current_frames()
        if not any(me in running and at > begin - 1 for me, at in list(_threads.items())):
            break
        time.sleep(0.002)


weakref.finalize(lib, int).atexit = False  # weakref's hook, which removes copies, comes before ours and so runs after it
atexit.register(_end)


def interruptible(do: Callable[[int], Any], host: bool = False) -> Any:
    """Calls do with a token's handle in a thread, so that an interrupt can end it; in other threads than the main one,
    to which no signals come, it calls do directly. host: do reads a stream of the host's. Such a thread must not be in
    there when the interpreter ends."""
    main = threading.current_thread() is threading.main_thread()
    if not main and not host:
        return do(0)
    token = Handle.made("stoa_token")
    out: list = []
    over: list = []  # something, when nothing more is to be waited for
    begun, wake = threading.Lock(), threading.Lock()  # an interrupt in an Event or a Condition may leave it locked
    wake.acquire()

    def work():
        if not begun.acquire(blocking=False):
            return
        try:
            if host:
                _hosts.add(token.number)
            out.append((do(token.number), None))
        except BaseException as e:  # it is raised below, in the caller's thread
            out.append((None, e))
        finally:
            _hosts.discard(token.number)
            over.append(True)
            wake.release()

    def begin():
        try:
            _thread.start_new_thread(work, ())
        except RuntimeError:  # the interpreter is ending, and begins no threads any more
            work()

    def stop():
        lib.stoa_cancel(token.number)
        # if the interrupt came before the thread, that has nothing to do any more; one call of C's
        over.extend(filter(None, map(begun.acquire, (False,))))

    if not main or _ending:
        work()
        enter()
    else:
        try:
            interrupt = _until(over, wake, begin, stop)
        except BaseException:  # another one came in the middle of handling the first
            lib.stoa_cancel(token.number)
            raise
        if interrupt is not None:
            raise interrupt
    result, error = out[0]
    if error is not None:
        raise error
    return result


def _until(over: list, wake: Any, begin: Callable[[], None], stop: Callable[[], None]) -> BaseException | None:
    """Begins something and waits until it is over; the first interrupt, which stops it, is returned. An interrupt may
    come between any two instructions, so all of them are in the try."""
    interrupt, step = None, begin
    while True:
        try:
            step()
            while not over:
                wake.acquire(timeout=0.1)
            return interrupt
        except BaseException as e:
            interrupt, step = interrupt or e, stop


def run(args: list[str], input: str = "", environment: dict | None = None) -> Iterator[bytes | dict]:
    """The output of a verb as it comes, in pieces; at the end, the report as a dict."""
    h = Handle.made("stoa_run", encode({"args": args, "input": input, "environment": environment or surroundings()}))
    buffer = ctypes.create_string_buffer(1 << 16)
    try:
        while True:
            enter()
            n = lib.stoa_read(h.number, buffer, len(buffer), 100)
            if n == -1:  # not yet: signals are handled between two calls
                continue
            if n <= 0:
                break
            yield buffer.raw[:n]
        report = text_of("stoa_run_report", h.number)
    finally:
        if not _forked:
            lib.stoa_cancel(h.number)
        h.close()
    yield report


def verb(args: list[str], fine: tuple = (0,), input: str = "", environment: dict | None = None) -> tuple[bytes, dict]:
    """The whole output of a verb, and its report. A status that is not fine raises its error."""
    pieces: list[bytes] = []
    report: dict = {}
    for x in run(args, input, environment):
        if isinstance(x, dict):
            report = x
        else:
            pieces.append(x)
    check(report, fine)
    return b"".join(pieces), report


def check(report: dict, fine: tuple) -> None:
    """Raises the error of a verb. A status that is fine has none, or said all of it in its output."""
    if report["error"]:
        raise error_of(report["error"])
    if report["status"] in fine:
        return
    cls = {2: Invalid, 3: Corrupt}.get(report["status"], StoaError)
    message = original(report["messages"].strip()).removeprefix("stoa: ")
    at = re.search(r"(?:^|\s)(\S[^\[\]\n]*)\[(\d+)\+(\d+)\]", re.sub(r"(?m)^(?:error|warning|note) \S+ ", "", message))
    place = {} if at is None else {"object": at[1], "offset": int(at[2]), "length": int(at[3])}
    raise cls(message or f"status {report['status']}", **place)


_words = {"key": "AWS_ACCESS_KEY_ID", "access_key_id": "AWS_ACCESS_KEY_ID", "secret": "AWS_SECRET_ACCESS_KEY",
          "secret_access_key": "AWS_SECRET_ACCESS_KEY", "token": "AWS_SESSION_TOKEN",
          "session_token": "AWS_SESSION_TOKEN", "endpoint_url": "AWS_ENDPOINT_URL_S3",
          "endpoint": "AWS_ENDPOINT_URL_S3", "region": "AWS_REGION", "profile": "AWS_PROFILE",
          "anon": "AWS_NO_SIGN_REQUEST", "skip_signature": "AWS_NO_SIGN_REQUEST"}


def surroundings(storage_options: dict | None = None) -> dict[str, str]:
    """The settings of stores: those of the environment as it is now (the library has a copy from when it was loaded),
    and those of storage_options, in the words of fsspec and of object_store."""
    out = {k: v for k, v in os.environ.items() if k.startswith("AWS_")}
    for k, v in (storage_options or {}).items():
        name = _words.get(k.lower().removeprefix("aws_"), k.upper())
        if not name.startswith("AWS_"):
            raise Invalid(f"storage_options: expected one of {', '.join(sorted(_words))}, or AWS_…, found {k!r}")
        out[name] = ("true" if v else "false") if isinstance(v, bool) else str(v)
    return out


_package = os.path.dirname(os.path.abspath(__file__)) + os.sep


def warn(message: str) -> None:
    """Warns of something, at the line that called the package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_package):
        level, frame = level + 1, frame.f_back
    warnings.warn(original(message), StoaWarning, stacklevel=level)


def text_option(v: Any) -> str:
    """The value of an option, as the command takes it."""
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, (list, tuple)):
        return ",".join(map(str, v))
    return str(v)


def options_of(options: dict[str, Any] | None) -> dict[str, str]:
    """Options of a format: their names may have _ for -; None is an option that is not given."""
    return {k.replace("_", "-"): text_option(v) for k, v in (options or {}).items() if v is not None}


def memory() -> dict[str, int]:
    """Bytes of the C heap: in use by batches that somebody has, and kept for the next ones.

    >>> import stoa
    >>> sorted(stoa.memory())
    ['handles', 'kept', 'used']
    """
    used, kept = ctypes.c_int64(), ctypes.c_int64()
    lib.stoa_memory(ctypes.byref(used), ctypes.byref(kept))
    return {"used": used.value, "kept": kept.value, "handles": lib.stoa_handles()}


def trim() -> None:
    """Gives memory that is kept for the next batches back to the system.

    >>> import stoa
    >>> stoa.trim()
    >>> stoa.memory()["kept"]
    0
    """
    lib.stoa_trim()
