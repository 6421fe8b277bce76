"""How are readers tried with broken input, and which law must each of them keep?

The law: input is read, or refused by an error of birchbark's own that names the place. Nothing else
is raised, nothing hangs, nothing is written.

Tests that try it are marked `fuzz`. By default, each tries a few examples, always the same ones;
`make fuzz` tries many, others each time. An example that was refused wrongly stays as a fixed one.
"""

from __future__ import annotations

import copy
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, event, settings
from hypothesis import strategies as st

from birchbark.errors import BirchbarkError

T = TypeVar("T")
SHARE = os.environ.get("FUZZ")  # of what `make fuzz` tries; None for the few of default tests
TIMES_MORE = 20  # which take five minutes on two processors
MOST_SECONDS = 20  # of processor time, for one small input

# What is put into texts: ends of encodings, numbers, markup and syntax of all formats.
PIECES = tuple(
    piece.encode() if isinstance(piece, str) else piece
    for piece in (
        *" \t\n\r\0\x0b\x1b\x85\u2028\u3000\ufeff\xad\u0130\U0001f332",
        *"\"'`<>&;:,=|#%$@!?*+-_/\\()[]{}~^.",
        *(b"\xff", b"\xff\xfe", b"\xed\xa0\x80", b"\xc3", b"\x80", b"\x1f\x8b", b"PK\x03\x04"),
        *("\r\n", "\n\n", '""', "''", "<!--", "-->", "<![CDATA[", "]]>", "<?", "</", "/>", "<a "),
        *("&#0;", "&#x110000;", "&#xd800;", "&#" + "9" * 5000 + ";", "&amp;", "\\ud800", "\\u0000"),
        *("9" * 5000, "1e999", "-1", "0", "1e-400", "nan", "Infinity", "null", "true", "1_0", "٣"),
        *("../../x", "/dev/zero", "=?utf-8?q?=00?=", "=?x?b?", "```", "---", "+++", "{{", "%s"),
    )
)  # fmt: skip
# What is put in place of a value of JSON, of TOML or of an argument.
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 2**31, 2**63, 10**30, 10**400, 0.5, -0.0, 1e300),
    *(float("nan"), float("inf"), -float("inf")),
    *("", " ", "x", "1", "all", "\0", "\ud800", "../../x", "a" * 5000),
    *([], [[]], [1, 2], ["x"], ["x", "x"], [None], {}, {"x": {}}, {"": 1}),
)


def fuzz(few: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Mark a test of a law. few: the examples that it tries by default."""
    tried = few if SHARE is None else max(1, round(few * TIMES_MORE * float(SHARE)))
    health = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]

    def mark(test: Callable[..., None]) -> Callable[..., None]:
        chosen = settings(
            max_examples=tried,
            derandomize=SHARE is None,
            print_blob=SHARE is not None,
            suppress_health_check=health,
        )
        return pytest.mark.fuzz(chosen(test))  # type: ignore[no-any-return]

    return mark


@st.composite
def broken(draw: st.DrawFn, seeds: Sequence[bytes], most: int = 4) -> bytes:
    """Bytes of a valid file of which a few pieces are changed. most: how many."""
    raw = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(1, most))):
        start = draw(st.integers(0, len(raw)))
        end = draw(st.integers(0, 12) | st.integers(0, len(raw))) + start
        copied = draw(st.integers(0, len(raw)))
        own = st.integers(0, 40).map(lambda size, raw=raw, at=copied: raw[at : at + size])
        piece = draw(own | st.sampled_from(PIECES) | st.binary(max_size=3))
        raw = raw[:start] + piece * draw(st.sampled_from([1, 1, 1, 2, 300])) + raw[end:]
    return raw


@st.composite
def long_bytes(draw: st.DrawFn, seeds: Sequence[bytes], size: int) -> tuple[bytes, bytes]:
    """Two files with one piece that is repeated, of `size` bytes and of four times as many."""
    raw = draw(st.sampled_from(seeds))
    start, end, copied = sorted(draw(st.integers(0, len(raw))) for _ in range(3))
    own = st.integers(1, 30).map(lambda length: raw[copied : copied + length] or b" ")
    piece = draw(own | st.sampled_from(PIECES)) + draw(st.just(b"") | st.sampled_from(PIECES))
    times = size // len(piece) + 1
    rest = raw[end:] if draw(st.booleans()) else b""
    return raw[:start] + piece * times + rest, raw[:start] + piece * 4 * times + rest


@st.composite
def broken_tree(draw: st.DrawFn, trees: Sequence[Any], most: int = 3) -> Any:
    """One of the trees of dicts and lists, of which a few values are changed. most: how many."""
    tree = {"": copy.deepcopy(draw(st.sampled_from(trees)))}
    for _ in range(draw(st.integers(1, most))):
        places = list(_places(tree))
        (holder, key), (other, name) = (draw(st.sampled_from(places)) for _ in range(2))
        value = draw(st.sampled_from(VALUES) | st.just(other[name]))
        change = draw(st.sampled_from(["replace", "replace", "remove", "add"]))
        if change == "replace" or holder is tree:
            holder[key] = copy.deepcopy(value)
        elif change == "remove":
            del holder[key]
        elif isinstance(holder, dict):
            holder[draw(st.sampled_from(["x", "", "\ud800", str(name)]))] = copy.deepcopy(value)
        else:
            holder.insert(key, copy.deepcopy(value))
    return tree[""]


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yield dict and key, or list and index, of each value in a tree."""
    if isinstance(tree, dict | list):
        for key in tree if isinstance(tree, dict) else range(len(tree)):
            yield tree, key
            yield from _places(tree[key])


@st.composite
def broken_toml(draw: st.DrawFn, texts: Sequence[str], most: int = 3) -> str:
    """One of the texts, of which a few lines are changed, mostly their values. most: how many."""
    lines = draw(st.sampled_from(texts)).splitlines()
    for _ in range(draw(st.integers(1, most))):
        at, other = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        key, _, value = lines[at].partition(" = ")
        value = draw(st.sampled_from(TOML_VALUES) | st.just(lines[other].partition(" = ")[2]))
        change = draw(st.sampled_from(["value", "value", "value", "remove", "copy", "bytes"]))
        if change == "value":
            lines[at] = f"{key} = {value}"
        elif change == "bytes":
            raw = draw(broken([lines[at].encode()], 1))
            lines[at] = raw.decode("utf-8", "surrogateescape")
        elif change == "copy":
            lines.insert(at, lines[other])
        elif len(lines) > 1:
            del lines[at]
    return "\n".join(lines)


TOML_VALUES = (
    *("true", "0", "1", "-1", "2", "2147483648", "9223372036854775808", "9" * 400, "9" * 5000),
    *(
        f'"{"9" * 5000}"',
        "0.5",
        "-0.0",
        "1e300",
        "nan",
        "inf",
        "-inf",
        '""',
        '" "',
        '"x"',
        '"1"',
        '"all"',
        '"none"',
    ),
    *('"\\u0000"', '"../../x"', "[]", "[[]]", "[1, 2]", "[0.5]", "[nan]", '["x"]', '["x", "x"]'),
    *("{}", "{ x = 1 }", "[{}]", "2024-05-01", "07:32:00", "2024-05-01T07:32:00Z", "["),
)


def is_read(call: Callable[[], T], *places: object) -> T | None:
    """Return what `call` returns; None if it refuses its input and names one of `places`.

    Raises AssertionError, or what `call` raises, if it does not keep the law.
    """
    try:
        with _watched():
            found = call()
    except BirchbarkError as refusal:
        message = str(refusal)
        assert any(str(place) in message for place in places), f"no place in: {message}"
        event(f"refused by {type(refusal).__name__}")
        return None
    event("read")
    return found


class _Hang(BaseException):
    """More than MOST_SECONDS of processor time; no Exception, which readers may catch."""


@contextmanager
def _watched() -> Iterator[None]:
    """Fail if what is done here hangs, or writes."""
    hung: list[bool] = []

    def interrupt(*_: object) -> None:
        hung.append(True)
        raise _Hang

    before = signal.signal(signal.SIGPROF, interrupt)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    _written.clear()
    _watching.append(True)
    try:
        yield
    except _Hang:
        pass
    finally:
        _watching.pop()
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    assert not hung, f"takes more than {MOST_SECONDS} s"
    assert not _written, f"writes: {_written}"


_watching: list[bool] = []
_written: list[tuple[str, object]] = []
_CHANGES = {
    "os.mkdir",
    "os.rename",
    "os.remove",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.truncate",
}
_CHANGES |= {"os.chmod", "socket.connect", "shutil.rmtree"}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def _audit(name: str, arguments: tuple[Any, ...]) -> None:
    """Note what is written while it is watched; compiled code may be, and temporary files."""
    if not _watching or (name != "open" and name not in _CHANGES):
        return
    path = arguments[0]
    if isinstance(path, int) or path in (os.devnull, None) or "__pycache__" in str(path):
        return
    without_name = name == "open" and Path(path).is_dir()  # as `tempfile` opens them
    if (name != "open" or arguments[2] & _WRITES) and not without_name:
        _written.append((name, path))


sys.addaudithook(_audit)
