"""How is a text file, plain or gzipped, read line by line so that each fault names its line?"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TypeVar, cast

from birchbark.collection.intake import Intake
from birchbark.errors import InputError

GZIP_MAGIC, COMPRESS_MAGIC = b"\x1f\x8b", b"\x1f\x9d"
UTF8_MARK = b"\xef\xbb\xbf"

T = TypeVar("T")


@contextmanager
def opened(path: Path) -> Iterator[io.BufferedReader]:
    """The bytes of `path`; gzip is seen through. What fails while it is read is an InputError."""
    try:
        with path.open("rb") as raw, _unpacked(raw) as stream:
            yield stream
    except (EOFError, gzip.BadGzipFile, zlib.error) as broken:
        raise InputError(
            f"broken gzip stream: {broken}",
            remedy="the file was cut off or damaged; fetch it again",
        ) from broken
    except FileNotFoundError:
        raise InputError("no such file", where=str(path)) from None
    except IsADirectoryError:
        raise InputError("is a folder", where=str(path), wanted="a file") from None
    except OSError as refused:
        raise InputError(f"cannot be read: {refused.strerror}", where=str(path)) from None


def _unpacked(raw: io.BufferedReader) -> AbstractContextManager[io.BufferedReader]:
    """`raw`, opened once and never sought, so that pipes are read as well."""
    if raw.peek(2)[:2] == COMPRESS_MAGIC:
        raise InputError("packed by Unix compress (.Z)", remedy="unpack it first: gunzip FILE.Z")
    if raw.peek(2)[:2] == GZIP_MAGIC:
        return cast(io.BufferedReader, gzip.open(raw))  # it has read and peek alike
    return nullcontext(raw)


def binary_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Number (from 1) and bytes of each line of `path`, without its end; gzip is seen through."""
    number = 0
    try:
        with opened(path) as stream:
            for number, line in enumerate(stream, 1):
                bare = line.removeprefix(UTF8_MARK) if number == 1 else line
                yield number, bare.rstrip(b"\r\n")
    except InputError as error:
        error.at(f"{path}:{number + 1}")
        raise


def decode(raw: bytes, encoding: str = "utf-8") -> str:
    """The text of a line; InputError shows the first byte that does not fit."""
    try:
        if "\n".encode(encoding).removeprefix(UTF8_MARK) != b"\n":
            raise InputError(
                f"files in {encoding} cannot be read line by line",
                remedy="convert them to UTF-8 first, for example with iconv",
            )
        return raw.decode(encoding)
    except UnicodeDecodeError as wrong:
        raise InputError(
            "wrong encoding",
            wanted=encoding.upper(),
            found=f"byte 0x{raw[wrong.start]:02x} at position {wrong.start + 1} of the line",
            remedy="name the right one with --encoding, for example --encoding latin-1",
        ) from None
    except (LookupError, ValueError):  # what codecs raise for odd names
        raise InputError(f"unknown encoding {encoding!r}", remedy="try utf-8 or latin-1") from None


def decoded_lines(path: Path, encoding: str = "utf-8") -> Iterator[str]:
    """The lines of `path` as text; an InputError names the line."""
    return decoded(binary_lines(path), path, encoding)


def decoded(
    lines: Iterable[tuple[int, bytes]], path: Path, encoding: str = "utf-8"
) -> Iterator[str]:
    """As `decoded_lines`, for lines of `path` that were read before."""
    for number, raw in lines:
        try:
            yield decode(raw, encoding)
        except InputError as error:
            raise error.at(f"{path}:{number}") from None


def parsed_lines(path: Path, parse: Callable[[str], T], intake: Intake) -> Iterator[tuple[str, T]]:
    """Place (`file:line`) and record of each line that is not blank.

    `parse` raises InputError for a bad line; `intake` decides what follows.
    """
    return parsed(binary_lines(path), path, parse, intake)


def parsed(
    lines: Iterable[tuple[int, bytes]], path: Path, parse: Callable[[str], T], intake: Intake
) -> Iterator[tuple[str, T]]:
    """As `parsed_lines`, for lines of `path` that were read before."""
    for number, raw in lines:
        place = f"{path}:{number}"
        try:
            line = decode(raw, intake.encoding)
            if not line.strip():
                continue
            record = parse(line)
        except InputError as error:
            intake.bad(error.at(place))
            continue
        yield place, record
