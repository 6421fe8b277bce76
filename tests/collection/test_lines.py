"""Are all lines of a file read, plain or gzipped, and do errors name the line?"""

from __future__ import annotations

import bz2
import gc
import gzip
import lzma
import os
import random
import re
import sys
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.collection.parsing import lines
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.parsing.lines import (
    BLOCK_SIZE,
    UTF8_BOM,
    binary_lines,
    decode,
    parse_file,
)
from birchbark.errors import InputError, MissingPackageError

# Until gzipped files are closed (test_files_are_closed), their warnings are no test's business.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")

LINES = st.lists(
    st.binary(max_size=8).filter(lambda b: not re.search(rb"[\r\n]|^\xef\xbb\xbf", b)), min_size=1
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path for one file, rewritten by each example."""
    return tmp_path_factory.mktemp("lines") / "file"


@given(
    lines=LINES,
    end=st.sampled_from([b"\n", b"\r\n"]),
    last=st.booleans(),
    mark=st.sampled_from([b"", UTF8_BOM]),
    zipped=st.booleans(),
)
def test_lines_are_the_same_however_the_file_is_written(
    file: Path, lines: list[bytes], end: bytes, last: bool, mark: bytes, zipped: bool
) -> None:
    """Kind of line breaks, a last one or none, a BOM and gzip make no difference."""
    lines = [b"first", *lines, b"last"]
    raw = mark + end.join(lines) + (end if last else b"")
    file.write_bytes(gzip.compress(raw) if zipped else raw)
    assert list(binary_lines(file)) == list(enumerate(lines, 1))


@given(st.binary() | st.binary().map(lambda b: gzip.compress(b"ab\n")[: len(b)] + b))
def test_any_bytes_are_lines_or_an_input_error(file: Path, raw: bytes) -> None:
    """Damaged files raise InputError and nothing else."""
    file.write_bytes(raw)
    try:
        numbers = [number for number, _ in binary_lines(file)]
    except InputError as error:
        assert re.match(rf"{re.escape(str(file))}:\d+: ", str(error))
    else:
        assert numbers == list(range(1, len(numbers) + 1))


@given(st.integers(min_value=2))
def test_a_truncated_gzip_is_refused(file: Path, length: int) -> None:
    """It is refused wherever it is cut off."""
    whole = gzip.compress(b"one\ntwo\nthree\n")
    file.write_bytes(whole[: 2 + (length - 2) % (len(whole) - 2)])
    with pytest.raises(InputError, match=r":\d+: broken gzip stream.*truncated.*download it again"):
        list(binary_lines(file))


@given(st.text(), st.sampled_from(["utf-8", "utf-7", "gb18030"]))
def test_decode_undoes_encode(text: str, encoding: str) -> None:
    """Text round-trips in every encoding."""
    assert decode(text.encode(encoding), encoding) == text


@given(st.binary(), st.sampled_from(["utf-8", "latin-1", "ascii", "cp1252", "shift_jis"]))
def test_any_bytes_are_text_or_an_input_error(raw: bytes, encoding: str) -> None:
    """Bytes that are invalid in an encoding raise no other exception."""
    try:
        decode(raw, encoding)
    except InputError as error:
        assert "wrong encoding: expected" in str(error)


def zstandard(raw: bytes) -> bytes:
    """Compress, as the command zstd does."""
    module = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    compressed: bytes = pytest.importorskip(module).compress(raw)
    return compressed


by_format = pytest.mark.parametrize(
    ("compress", "name"),
    [(bz2.compress, "bzip2"), (lzma.compress, "xz"), (zstandard, "Zstandard")],
)


@by_format
@pytest.mark.parametrize("raw", [b"", b"a\nb\n", b"a" * 300_000 + b"\n" + b"b"])
def test_other_compressions(
    tmp_path: Path, compress: Callable[[bytes], bytes], name: str, raw: bytes
) -> None:
    """Several files may follow one another; a truncated or damaged file is refused."""
    whole = compress(raw)
    (tmp_path / "c").write_bytes(whole)
    assert b"\n".join(line for _, line in binary_lines(tmp_path / "c")) == raw.rstrip(b"\n")
    (tmp_path / "c").write_bytes(whole + compress(b"c\n"))
    assert list(binary_lines(tmp_path / "c"))[-1][1].endswith(b"c")
    for broken in (whole[:-3], whole[:12] + b"damage"):
        (tmp_path / "c").write_bytes(broken)
        with pytest.raises(InputError, match=f"broken {name} stream: .*download it again"):
            list(binary_lines(tmp_path / "c"))


def test_frames_to_skip(tmp_path: Path) -> None:
    """pzstd puts one before each frame of text."""
    skipped = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"
    (tmp_path / "c").write_bytes(b"".join(skipped + zstandard(raw) for raw in (b"a\nb", b"c\n")))
    assert [line for _, line in binary_lines(tmp_path / "c")] == [b"a", b"bc"]


def test_dictionaries_of_xz_are_limited(tmp_path: Path) -> None:
    """A file of 80 bytes can ask for 4 GB; what `xz -9` writes is read."""
    whole = bytearray(lzma.compress(b"bee", preset=9))
    (tmp_path / "c").write_bytes(whole)
    assert list(binary_lines(tmp_path / "c")) == [(1, b"bee")]
    header = slice(12, 12 + (whole[12] + 1) * 4)  # of the block, with a checksum at its end
    whole[whole.index(b"\x21\x01", 12) + 2] = 40
    whole[header.stop - 4 : header.stop] = zlib.crc32(whole[header][:-4]).to_bytes(4, "little")
    (tmp_path / "c").write_bytes(whole)
    with pytest.raises(InputError, match=r"at most 256,000,000 bytes of memory.*xz -9"):
        list(binary_lines(tmp_path / "c"))


def test_without_what_reads_zstandard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says how to decompress the file."""
    (tmp_path / "c").write_bytes(b"\x28\xb5\x2f\xfd")
    monkeypatch.setitem(sys.modules, "backports", None)
    monkeypatch.setitem(sys.modules, "compression", None)
    with pytest.raises(MissingPackageError, match=r"Zstandard.*birchbark\[files\].*unzstd"):
        list(binary_lines(tmp_path / "c"))


def test_a_zip_archive_is_refused(tmp_path: Path) -> None:
    """It may hold several files."""
    (tmp_path / "c.run").write_bytes(b"PK\x03\x04rest\n")
    with pytest.raises(InputError, match=r"c\.run:1: is a zip archive: .*\(unpack it\)"):
        list(binary_lines(tmp_path / "c.run"))


@pytest.mark.parametrize("name", ["c.jsonl.gz", "c.jsonl", "c.txt", "c"])
def test_gzip_is_detected_from_its_bytes(tmp_path: Path, name: str) -> None:
    """The suffix is ignored, for gzipped and plain files."""
    (tmp_path / name).write_bytes(gzip.compress(b"a\nb\n"))
    assert list(binary_lines(tmp_path / name)) == [(1, b"a"), (2, b"b")]
    (tmp_path / name).write_bytes(b"a\nb\n")
    assert list(binary_lines(tmp_path / name)) == [(1, b"a"), (2, b"b")]


def test_bare_carriage_returns_are_refused(file: Path) -> None:
    """They would make one line of all; beside line feeds they are part of a text."""
    file.write_bytes(b"one\rtwo\rthree\r")
    with pytest.raises(InputError, match=r":1: lines end in carriage returns.*line feeds.*tr "):
        list(binary_lines(file))
    file.write_bytes(b"one\r\ntw\ro\r\n")
    assert list(binary_lines(file)) == [(1, b"one"), (2, b"tw\ro")]
    file.write_bytes(b"one\r")
    assert list(binary_lines(file)) == [(1, b"one")]


def test_joined_files_may_have_several_byte_order_marks(file: Path) -> None:
    """No line begins with one; within a line it is an ordinary character."""
    file.write_bytes(UTF8_BOM + b"one\n" + UTF8_BOM + b"two" + UTF8_BOM + b"\n")
    assert list(binary_lines(file)) == [(1, b"one"), (2, b"two" + UTF8_BOM)]


def test_the_length_of_a_line_is_limited(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small file that unpacks to gigabytes does not fill the memory."""
    monkeypatch.setattr(lines, "MAX_LINE", 1000)
    file.write_bytes(gzip.compress(b"short\n" + bytes(1_000_000)))
    with pytest.raises(InputError, match=r":2: a line is too long: expected at most 1,000 bytes"):
        list(binary_lines(file))
    file.write_bytes(b"x" * 999 + b"\n" + b"y" * 999)
    assert [len(line) for _, line in binary_lines(file)] == [999, 999]


def test_lines_in_memory_are_limited(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty lines count, too."""
    monkeypatch.setattr(lines, "MAX_FILE", 1000)
    file.write_bytes(b"\n" * 100)
    with pytest.raises(InputError, match=r":16: the file is too large"):
        lines.lines_in_memory(file)
    file.write_bytes(b"a\nb\n")
    assert lines.lines_in_memory(file) == [(1, b"a"), (2, b"b")]


@pytest.mark.parametrize("compress", [bz2.compress, lzma.compress])
@pytest.mark.parametrize("padding", [0, 1, BLOCK_SIZE - 1, BLOCK_SIZE, 3 * BLOCK_SIZE])
def test_streams_may_be_padded(
    file: Path, compress: Callable[[bytes], bytes], padding: int
) -> None:
    """Any number of zeros may be between them and at the end."""
    file.write_bytes(compress(b"one") + bytes(padding) + compress(b"two") + bytes(padding))
    assert lines.read_decompressed(file) == b"onetwo"


def test_unix_compress_unpacks_no_more_than_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more is read as soon as there is too much."""
    ncompress = pytest.importorskip("ncompress")
    (tmp_path / "a.Z").write_bytes(ncompress.compress(random.Random(0).randbytes(1_000_000)))
    monkeypatch.setattr(lines, "MAX_FILE", 1000)
    with (tmp_path / "a.Z").open("rb") as raw:
        with pytest.raises(InputError, match="too large"):
            lines._from_unix_compress(raw)
        assert raw.tell() < 500_000


def test_gzip_in_several_members_is_one_file(tmp_path: Path) -> None:
    """Concatenated files, and bgzip's blocks, are read to the end."""
    (tmp_path / "c").write_bytes(gzip.compress(b"a\nb") + gzip.compress(b"c\n"))
    assert list(binary_lines(tmp_path / "c")) == [(1, b"a"), (2, b"bc")]


def test_the_error_for_a_truncated_gzip_names_the_line(tmp_path: Path) -> None:
    """It is the first line that could not be read."""
    path = tmp_path / "c.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\n")[:-4])
    with pytest.raises(InputError, match=rf"^{re.escape(str(path))}:3: broken gzip stream"):
        list(binary_lines(path))


def test_garbage_after_a_gzip_is_refused(tmp_path: Path) -> None:
    """Bytes that are not a gzip member are not ignored."""
    (tmp_path / "c.gz").write_bytes(gzip.compress(b"one\n") + b"garbage")
    with pytest.raises(InputError, match=r"c\.gz:2: broken gzip stream"):
        list(binary_lines(tmp_path / "c.gz"))


def test_files_are_closed(tmp_path: Path) -> None:
    """They are closed even if they are not read to the end, gzipped or not."""
    (tmp_path / "plain").write_bytes(b"a\nb\n")
    (tmp_path / "zipped").write_bytes(gzip.compress(b"a\nb\n"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for name in ("plain", "zipped"):
            list(binary_lines(tmp_path / name))
            next(binary_lines(tmp_path / name))
        gc.collect()
    assert [str(w.message) for w in caught] == []


def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    """Other line separators of Unicode are part of the line, as in grep and JSONL."""
    line = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\rh".encode()
    (tmp_path / "c").write_bytes(line + b"\n")
    assert list(binary_lines(tmp_path / "c")) == [(1, line)]


def test_an_empty_file_has_no_lines(tmp_path: Path) -> None:
    """It has none, whether it is compressed or not."""
    (tmp_path / "c").write_bytes(b"")
    assert list(binary_lines(tmp_path / "c")) == []
    (tmp_path / "c").write_bytes(gzip.compress(b""))
    assert list(binary_lines(tmp_path / "c")) == []


def test_a_missing_file_and_a_folder_have_different_errors(tmp_path: Path) -> None:
    """Both errors name the path."""
    with pytest.raises(InputError, match=rf"^{re.escape(str(tmp_path))}/no: no such file$"):
        list(binary_lines(tmp_path / "no"))
    with pytest.raises(InputError, match="is a folder: expected a file"):
        list(binary_lines(tmp_path))


@pytest.mark.parametrize("name", ["file/below", "x" * 300], ids=["below a file", "long"])
def test_an_invalid_path_is_an_input_error(tmp_path: Path, name: str) -> None:
    """A path below a file, and a name that is too long."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError):
        list(binary_lines(tmp_path / name))


def test_wrong_encoding_names_line_byte_and_remedy(tmp_path: Path) -> None:
    """The error has all parts: where, expected, found, remedy."""
    path = tmp_path / "c.tsv"
    path.write_bytes(b"1\tfine\n\n2\tcaf\xe9 au lait\n")
    with pytest.raises(InputError) as caught:
        list(parse_file(path, str, Intake()))
    assert str(caught.value) == (
        f"{path}:3: wrong encoding: expected UTF-8, found byte 0xe9 at position 6 of the line "
        "(convert it, as by iconv -f latin1 -t utf-8 FILE; or name its encoding: "
        "--encoding latin-1)"
    )


def test_the_given_encoding_is_used(tmp_path: Path) -> None:
    """Bytes that are invalid UTF-8 can be read as Latin-1."""
    (tmp_path / "c").write_bytes(b"caf\xe9\n")
    lines = parse_file(tmp_path / "c", str, Intake(encoding="latin-1"))
    assert list(lines) == [(f"{tmp_path / 'c'}:1", "café")]


@pytest.mark.parametrize("encoding", ["klingon", "", "rot13", "base64"])
def test_an_unknown_encoding_is_named(encoding: str) -> None:
    """Python's codecs that do not decode to text count as unknown."""
    with pytest.raises(InputError, match=f"unknown encoding '{encoding}'.*try utf-8 or latin-1"):
        decode(b"a", encoding)


@pytest.mark.parametrize("encoding", ["punycode", "undefined", "utf\0"])
def test_odd_encodings_raise_nothing_else(encoding: str) -> None:
    """Codecs that raise UnicodeError or ValueError lead to an InputError."""
    with pytest.raises(InputError):
        decode(b"+", encoding)


def test_utf_16_says_what_is_wrong(tmp_path: Path) -> None:
    """UTF-16 cannot be split at line feed bytes; the error does not blame the second line."""
    (tmp_path / "c").write_bytes("one\ntwo\n".encode("utf-16"))
    try:
        lines = [line for _, line in parse_file(tmp_path / "c", str, Intake(encoding="utf-16"))]
    except InputError as error:
        assert "0x00" not in str(error)
    else:
        assert lines == ["one", "two"]


def test_blank_lines_are_skipped_and_counted_as_lines(tmp_path: Path) -> None:
    """A blank line is no record, but counts in line numbers."""
    (tmp_path / "c").write_bytes(b"\n \t\r\na\n\n\nb")
    assert list(parse_file(tmp_path / "c", str, Intake())) == [
        (f"{tmp_path / 'c'}:3", "a"),
        (f"{tmp_path / 'c'}:6", "b"),
    ]


def test_a_bad_line_is_skipped_or_raised_with_its_place(tmp_path: Path) -> None:
    """The Intake decides; the other lines are read either way."""

    def parse(line: str) -> str:
        if line == "bad":
            raise InputError("bad line")
        return line

    (tmp_path / "c").write_bytes(b"a\nbad\nb\n\xff\nc\n")
    intake = Intake(skip_bad=True)
    assert [line for _, line in parse_file(tmp_path / "c", parse, intake)] == ["a", "b", "c"]
    assert [error.where for error in intake.skipped] == [f"{tmp_path / 'c'}:{n}" for n in (2, 4)]
    with pytest.raises(InputError, match=r"c:2: bad line"):
        list(parse_file(tmp_path / "c", parse, Intake()))


def test_pipes_can_be_read() -> None:
    """`<(zcat run.gz)` in a shell is opened once and never sought."""
    for content in (b"a\nb\n", gzip.compress(b"a\nb\n")):
        reading, writing = os.pipe()
        os.write(writing, content)
        os.close(writing)
        assert list(binary_lines(Path(f"/dev/fd/{reading}"))) == [(1, b"a"), (2, b"b")]
        os.close(reading)


@by_format
def test_what_follows_a_stream_is_not_dropped(
    tmp_path: Path, compress: Callable[[bytes], bytes], name: str
) -> None:
    """A second stream with a damaged header, and text, are errors; zeros may pad xz files."""
    first, second = compress(b"one\n"), compress(b"two\n")
    for rest in (second[:1] + b"x" + second[2:], b"two\n"):
        (tmp_path / "c").write_bytes(first + rest)
        with pytest.raises(InputError, match=f"broken {name} stream"):
            list(binary_lines(tmp_path / "c"))
    (tmp_path / "c").write_bytes(first + bytes(8) + second + bytes(4))
    assert list(binary_lines(tmp_path / "c")) == [(1, b"one"), (2, b"two")]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_named(tmp_path: Path, encoding: str) -> None:
    """Another encoding of single bytes would be no remedy."""
    (tmp_path / "c").write_bytes("\ufeffa\tb\n".encode(encoding))
    with pytest.raises(InputError, match=r"c:1: is UTF-16: expected UTF-8 \(iconv -f utf-16 -t"):
        list(parse_file(tmp_path / "c", str, Intake()))
