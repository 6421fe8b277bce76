"""How is a plain or compressed text file read line by line, so that errors name the line?"""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeVar, cast

from birchbark import defaults
from birchbark.collection.parsing.intake import Intake, unknown_encoding
from birchbark.errors import InputError, MissingPackageError, UnreadableError

COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".z")  # suffixes of names, in lower case
FORMATS = {  # how a file begins → how it is compressed
    re.compile(rb"\x1f\x8b"): "gzip",
    re.compile(rb"\x1f\x9d"): ".Z",
    re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"): "bzip2",
    re.compile(rb"\xfd7zXZ\x00"): "xz",
    re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"): "Zstandard",  # or a frame to skip
}
MAGIC_BYTES = 10  # by which these can be told
BLOCK_SIZE = 1 << 16  # bytes that are read at once
ZIP_MAGIC = b"PK\x03\x04"
UTF8_BOM, UTF16_MARKS = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")
MAX_LINE = 100_000_000  # bytes; limits also end the reading of small files that unpack to gigabytes
MAX_FILE = 250_000_000  # bytes of a file, or a part of one, that is read at once
XZ_MEMORY = 256_000_000  # bytes to unpack .xz, which its first bytes can set; `xz -9` needs 65 MB
LINE_BYTES = 64  # that a line needs in memory, beside its text

R = TypeVar("R")
T = TypeVar("T")
OpenFile = Callable[[Path], io.BufferedReader]


def open_by_name(path: Path) -> io.BufferedReader:
    """Open a file for reading bytes."""
    return path.open("rb")


@contextmanager
def open_decompressed(
    path: Path, open_file: OpenFile = open_by_name
) -> Iterator[io.BufferedReader]:
    """Open `path` for reading bytes; see `decompressed`. open_file: opens it as it is."""
    try:
        raw = open_file(path)
    except FileNotFoundError:
        raise UnreadableError("no such file", where=str(path)) from None
    except IsADirectoryError:
        raise InputError("is a folder", where=str(path), wanted="a file") from None
    except OSError as error:
        raise UnreadableError(f"cannot be read: {error.strerror}", where=str(path)) from None
    with raw, decompressed(raw, path) as stream:
        yield stream


@contextmanager
def decompressed(raw: io.BufferedReader, path: Path) -> Iterator[io.BufferedReader]:
    """Decompress gzip, bzip2, xz, Zstandard and Unix compress. raw: the open file at `path`.

    Turns errors of reading into InputError, and those that do not depend on the bytes into
    UnreadableError. Raises MissingPackageError if what decompresses
    Zstandard or Unix compress (.Z) is not installed.
    """
    compression = ""
    try:
        compression = _compression(raw)
        with _decompressed(raw, compression) as stream:
            yield stream
    except Exception as error:
        if isinstance(error, lzma.LZMAError) and "usage limit" in str(error):
            wanted = f"at most {XZ_MEMORY:,} bytes of memory to unpack it"
            remedy = "compress it with a smaller dictionary, as xz -9 does"
            raise InputError("the xz stream is too large", wanted=wanted, remedy=remedy) from None
        if compression and _is_broken(error):
            raise InputError(
                f"broken {compression} stream: {error}",
                remedy="the file is truncated or damaged; download it again",
            ) from error
        if isinstance(error, OSError):
            raise UnreadableError(f"cannot be read: {error.strerror}", where=str(path)) from None
        raise


def _is_broken(error: Exception) -> bool:
    """Whether what decompresses has found damage; an OSError without a number comes from it."""
    return (
        isinstance(error, EOFError | zlib.error | lzma.LZMAError)
        or (isinstance(error, OSError) and error.errno is None)
        or type(error).__name__ == "ZstdError"
    )


def read_decompressed(path: Path, open_file: OpenFile = open_by_name) -> bytes:
    """Return the bytes of a file, without compression; InputError if they exceed MAX_FILE."""
    try:
        with open_decompressed(path, open_file) as stream:
            return read_limited(stream, path)
    except InputError as error:
        raise error.at(str(path)) from None


def too_large(path: Path) -> InputError:
    """Return the error for a file of over MAX_FILE bytes, unpacked or not."""
    wanted = f"at most {MAX_FILE:,} bytes, unpacked"
    return InputError("the file is too large for one document", where=str(path), wanted=wanted)


def read_limited(stream: IO[bytes], path: Path) -> bytes:
    """Return all bytes of `stream`; InputError, which names `path`, if they exceed MAX_FILE."""
    content: bytes | None = stream.read(MAX_FILE + 1)
    if content is None:  # a file that would have to be waited for, as in /proc
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    if len(content) > MAX_FILE:
        raise too_large(path)
    return content


def _compression(raw: io.BufferedReader) -> str:
    """Return how a file is compressed; empty if it is not."""
    beginning = raw.peek(MAGIC_BYTES)
    return next((name for magic, name in FORMATS.items() if magic.match(beginning)), "")


def _decompressed(
    raw: io.BufferedReader, compression: str
) -> AbstractContextManager[io.BufferedReader]:
    """Return `raw` or its decompressed stream, without seeking, so that pipes can be read."""
    if not compression:
        return nullcontext(raw)
    if compression == ".Z":
        return io.BufferedReader(_from_unix_compress(raw))
    if compression == "gzip":
        return cast(io.BufferedReader, gzip.open(raw))  # GzipFile has readline and peek, too
    new: dict[str, Callable[[], Any]] = {
        "bzip2": bz2.BZ2Decompressor,
        "xz": partial(lzma.LZMADecompressor, memlimit=XZ_MEMORY),
        "Zstandard": _zstandard,
    }
    return io.BufferedReader(_Streams(raw, new[compression]))


class _Streams(io.RawIOBase):
    """What compressed streams hold that follow one another in a file.

    Anything else between or after them is an error; the libraries' own files end there instead.
    """

    def __init__(self, raw: io.BufferedReader, new: Callable[[], Any]) -> None:
        """new: returns what decompresses one stream."""
        self._raw, self._new, self._stream = raw, new, new()

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read as many bytes as are at hand, at least one; none at the end of the file."""
        while True:
            data = b""
            if self._stream.eof:
                data = self._after_stream()
                if not data:
                    return 0
                self._stream = self._new()
            elif self._stream.needs_input:
                data = self._raw.read(BLOCK_SIZE)
                if not data:
                    raise EOFError("the file ended before the end of the stream")
            if found := self._stream.decompress(data, len(buffer)):
                buffer[: len(found)] = found
                return len(found)

    def _after_stream(self) -> bytes:
        """Return bytes of the next stream, or none; xz files may be padded with zeros."""
        data: bytes = self._stream.unused_data
        while not (found := data.lstrip(b"\0")):
            data = self._raw.read(BLOCK_SIZE)
            if not data:
                return b""
        return found


def _zstandard() -> Any:
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ImportError:
        raise MissingPackageError(
            "file is compressed by Zstandard (.zst)",
            remedy="pip install 'birchbark[files]'; or decompress it first: unzstd FILE.zst",
        ) from None
    return zstd.ZstdDecompressor()


class _Unpacked(io.BytesIO):
    """Holds the first MAX_FILE bytes of what is unpacked, and counts all of them.

    `write` raises nothing, since ncompress could end the process then.
    """

    size = 0

    def write(self, data: Any) -> int:
        self.size += len(data)
        return super().write(data) if self.size <= MAX_FILE else len(data)


class _UntilFull:
    """A file that ends as soon as more than MAX_FILE bytes are unpacked."""

    def __init__(self, raw: io.BufferedReader, unpacked: _Unpacked) -> None:
        self._raw, self._unpacked = raw, unpacked

    def read(self, size: int = -1) -> bytes:
        """Return bytes as a file does."""
        return b"" if self._unpacked.size > MAX_FILE else self._raw.read(size)


def _from_unix_compress(raw: io.BufferedReader) -> io.BytesIO:
    """Return the contents of a file that Unix compress has made, as on TREC's discs."""
    try:
        from ncompress import decompress
    except ImportError:
        raise MissingPackageError(
            "file is compressed by Unix compress (.Z)",
            remedy="pip install 'birchbark[files]'; or decompress it first: gunzip FILE.Z",
        ) from None
    unpacked = _Unpacked()
    try:
        decompress(_UntilFull(raw, unpacked), unpacked)
    except ValueError:
        if unpacked.size <= MAX_FILE:  # or it was not read to its end
            raise InputError(
                "broken .Z stream", remedy="the file is truncated or damaged; copy it again"
            ) from None
    if unpacked.size > MAX_FILE:
        raise InputError("the file is too large", wanted=f"at most {MAX_FILE:,} bytes, unpacked")
    unpacked.seek(0)
    return unpacked


def binary_lines(path: Path, open_file: OpenFile = open_by_name) -> Iterator[tuple[int, bytes]]:
    """Yield the number (from 1) and the bytes of each line, without its line break.

    A line may begin with a byte order mark, as the first one of each of several files that were
    joined. Raises InputError for a line of over MAX_LINE bytes, and for a file whose only line
    breaks are carriage returns.
    """
    number = 0
    try:
        with open_decompressed(path, open_file) as stream:
            if stream.peek(len(ZIP_MAGIC)).startswith(ZIP_MAGIC):
                raise InputError("is a zip archive", wanted="lines of text", remedy="unpack it")
            while line := stream.readline(MAX_LINE):
                ended = line.endswith(b"\n")
                if number == 0 and not ended and b"\r" in line.rstrip(b"\r"):
                    raise InputError(
                        "lines end in carriage returns alone",
                        wanted="line feeds",
                        remedy="convert them: tr '\\r' '\\n' < FILE",
                    )
                if len(line) == MAX_LINE and not ended:
                    raise InputError("a line is too long", wanted=f"at most {MAX_LINE:,} bytes")
                number += 1
                yield number, line.removeprefix(UTF8_BOM).rstrip(b"\r\n")
    except InputError as error:
        error.at(f"{path}:{number + 1}")
        raise


def lines_in_memory(path: Path) -> list[tuple[int, bytes]]:
    """Return what `binary_lines` yields; InputError if that would fill the memory."""
    lines, remaining = [], MAX_FILE
    for number, line in binary_lines(path):
        remaining -= len(line) + LINE_BYTES
        if remaining < 0:
            wanted = f"at most {MAX_FILE:,} bytes in memory, with {LINE_BYTES} for each line"
            raise InputError("the file is too large", where=f"{path}:{number}", wanted=wanted)
        lines.append((number, line))
    return lines


def decode(raw: bytes, encoding: str = defaults.ENCODING) -> str:
    """Decode a line.

    Raises InputError, which shows the first invalid byte, for an unknown encoding, and for one such
    as UTF-16 that cannot be decoded line by line.
    """
    try:
        if raw.startswith(UTF16_MARKS):
            raise InputError(
                "is UTF-16", wanted=encoding.upper(), remedy=f"iconv -f utf-16 -t {encoding} FILE"
            )
        if "\n".encode(encoding).removeprefix(UTF8_BOM) != b"\n":
            raise InputError(
                f"files in {encoding} cannot be read line by line",
                remedy="convert them to UTF-8 first, for example with iconv",
            )
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        raise InputError(
            "wrong encoding",
            wanted=encoding.upper(),
            found=f"byte 0x{raw[error.start]:02x} at position {error.start + 1} of the line",
            remedy=f"convert it, as by iconv -f latin1 -t {encoding} FILE; or name its encoding: "
            "--encoding latin-1",
        ) from None
    except (LookupError, ValueError):  # codecs raises either of them for an unknown name
        raise unknown_encoding(encoding) from None


def decode_lines(
    lines: Iterable[tuple[int, bytes]], path: Path, encoding: str = defaults.ENCODING
) -> Iterator[str]:
    """Yield the decoded `lines`, numbered lines that were read from `path`."""
    for number, raw in lines:
        try:
            yield decode(raw, encoding)
        except InputError as error:
            raise error.at(f"{path}:{number}") from None


def uncompressed_name(path: Path) -> str:
    """Return the name of a file, of a compressed one without the suffix that says so."""
    return path.stem if path.suffix.lower() in COMPRESSED else path.name


def parse_file(path: Path, parse: Callable[[str], T], intake: Intake) -> Iterator[tuple[str, T]]:
    """Yield location (`file:line`) and record of each line that is not blank.

    parse: maps a line to its record; raises InputError for a bad line. intake: determines whether
    bad lines are skipped.
    """
    return parse_lines(binary_lines(path), path, parse, intake)


def parse_records(
    located: Iterable[tuple[str, R]], parse: Callable[[R], T], intake: Intake
) -> Iterator[tuple[str, T]]:
    """Yield location and record of each raw record; one that `parse` refuses is a bad record."""
    for location, raw in located:
        try:
            record = parse(raw)
        except InputError as error:
            intake.bad(error.at(location))
        else:
            yield location, record


def parse_lines(
    lines: Iterable[tuple[int, bytes]], path: Path, parse: Callable[[str], T], intake: Intake
) -> Iterator[tuple[str, T]]:
    """Parse `lines`, numbered lines that were read from `path`; see `parse_file`."""
    for number, raw in lines:
        location = f"{path}:{number}"
        try:
            line = decode(raw, intake.encoding)
            if not line.strip():
                continue
            record = parse(line)
        except InputError as error:
            intake.bad(error.at(location))
            continue
        yield location, record
