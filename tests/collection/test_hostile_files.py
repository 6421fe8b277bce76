"""Does no file stop the reading of a folder, or take time in the square of its length?"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from birchbark.collection.file_readers import plain
from birchbark.collection.file_readers.file import ContainedFile, Contents, File
from birchbark.collection.file_readers.front_matter import split_front_matter
from birchbark.collection.file_readers.mail import read_mail
from birchbark.collection.file_readers.pdf import _LINE_BREAK
from birchbark.collection.file_readers.spreadsheet import shown
from birchbark.collection.files.folder import read_folder
from birchbark.collection.parsing.intake import Intake
from growth import FASTER_THAN_SQUARE, growth


@pytest.mark.parametrize("number", ["9" * 5000, "0x" + "f" * 5000])
def test_a_file_that_its_reader_cannot_bear_is_a_bad_file(tmp_path: Path, number: str) -> None:
    """TOML with a number of thousands of digits is text."""
    (tmp_path / "a.md").write_text(f"+++\nx = {number}\n+++\nBirch.")
    (tmp_path / "b.txt").write_text("Bark.")
    found = {document.doc_id for _, document in read_folder(tmp_path, Intake())}
    assert found == {"a.md", "b.txt"}


def test_an_error_of_any_kind_is_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Libraries raise errors of many kinds for damaged files; each costs only its file."""

    def fail(*_: object) -> str:
        raise LookupError("unknown encoding: foo")

    monkeypatch.setattr(plain, "split_front_matter", fail)
    (tmp_path / "a.md").write_text("Birch.")
    (tmp_path / "b.txt").write_text("Bark.")
    intake = Intake()
    assert [document.doc_id for _, document in read_folder(tmp_path, intake)] == ["b.txt"]
    assert [str(error) for error in intake.skipped] == [
        f"{tmp_path / 'a.md'}: cannot be read: unknown encoding: foo"
    ]


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda n: plain._by_heading([f"# a{' ' * n}b"]), 20_000),
        (lambda n: plain._by_heading([f"# {' ' * n}b"]), 20_000),
        (lambda n: _LINE_BREAK.sub("", "a" + "\r\n" * n), 20_000),
        (lambda n: split_front_matter(["+++", ".".join("a" * n) + " = 1", "+++"]), 20_000),
        (lambda n: split_front_matter(["---", "tags: [" + "'," * n + "]", "---"]), 20_000),
    ],
)
def test_time_grows_with_the_length(call: Callable[[int], object], line: int) -> None:
    """Four times the length takes less than nine times as long, or next to nothing."""
    assert growth(call, line, 4 * line) < FASTER_THAN_SQUARE


def test_a_heading_may_be_closed() -> None:
    """A run of # after a blank closes it; otherwise # belongs to the heading."""
    titles = ["# Birch ##", "# C#", "# #", "#   Bark  "]
    assert [plain._by_heading([line])["title"] for line in titles] == ["Birch", "C#", "", "Bark"]


def test_flow_lists_with_apostrophes() -> None:
    """A quotation mark begins an item, or is a part of it."""
    fields, _ = split_front_matter(["---", "tags: [don't, can't, 'a, b', \"c\"]", "---"])
    assert fields == {"tags": "don't, can't, a, b, c"}


def mail(raw: bytes) -> tuple[str, list[ContainedFile], Intake]:
    """Return the text and the attachments of a message."""
    intake = Intake()
    contents = read_mail(File(Path("a.eml"), raw, intake))
    assert isinstance(contents, Contents)
    assert contents.fields is not None
    return contents.fields["text"], list(contents.files), intake


def test_a_damaged_attached_message_does_not_take_the_mail_along() -> None:
    """It is noted; the text and other attachments stay."""
    raw = (
        b"Content-Type: multipart/mixed; boundary=x\n\n--x\n\nInvoice 4711.\n"
        b"--x\nContent-Type: message/rfc822\n\nContent-Type: multipart/mixed\n\n\xe9\n--x--\n"
    )
    text, files, _ = mail(raw)
    assert text == "Invoice 4711."
    assert len(files) <= 1


def test_a_stub_of_plain_text_gives_way_to_the_page() -> None:
    """Far fewer words only say to look there."""
    page = "<p>" + "The invoice 4711 is due in March. " * 20 + "</p>"
    parts = f"--x\n\nSee the page.\n--x\nContent-Type: text/html\n\n{page}\n--x--\n"
    raw = f"Content-Type: multipart/alternative; boundary=x\n\n{parts}"
    assert mail(raw.encode())[0].startswith("The invoice 4711")


@pytest.mark.parametrize("zone", ["-0000", "", "+0000"])
def test_a_date_without_a_zone_is_in_utc(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in UTC wherever the machine is."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    raw = f"Date: Tue, 24 Nov 2026 10:03:00 {zone}\n\nText.".encode()
    contents = read_mail(File(Path("a.eml"), raw, Intake()))
    monkeypatch.undo()
    time.tzset()
    assert isinstance(contents, Contents)
    assert contents.fields is not None
    assert contents.fields["date"] == "2026-11-24T10:03:00Z"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (4111111111111110.0, "4111111111111110"),
        (4111111111111111, "4111111111111111"),
        (12.0, "12"),
        (0.1, "0.1"),
        (1e300, "1e+300"),
        (True, "TRUE"),
    ],
)
def test_numbers_of_a_spreadsheet(value: object, text: str) -> None:
    """They are read as people see them: no decimal is added, and no digit is lost."""
    assert shown(value) == text


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("infor\xad\n  mation, co\xadop\nof birch", "information,\nco\xadop\nof birch"),
        ("Donau\xad\ndampf\xad \n schiff\xads x\ny", "Donaudampfschiff\xads\n\nx\ny"),
        ("bir\xad\n\nch\xad", "bir\n\nch\xad"),
    ],
)
def test_a_soft_hyphen_at_the_end_of_a_line_joins_the_word(
    tmp_path: Path, written: str, text: str
) -> None:
    """It does so in any text file, and no line changes its number; elsewhere it stays."""
    (tmp_path / "a.txt").write_text(written)
    [(_, document)] = read_folder(tmp_path, Intake())
    assert document.text == text


@pytest.mark.parametrize(
    "first",
    ["From x@y Fri Nov 25 16: 18:08 2016", "\nFrom - ", "\ufeffFrom a", "From a Fri, 25 Nov 2016"],
)
def test_a_mailbox_may_state_any_date(tmp_path: Path, first: str) -> None:
    """A line From before a header begins a message; one before text does not."""
    messages = f"{first}\nSubject: one\n\nFrom here on.\n\nFrom b\nSubject: two\n\nText.\n"
    (tmp_path / "a.mbox").write_text(messages)
    documents = [document for _, document in read_folder(tmp_path, Intake())]
    assert [d.title for d in documents] == ["one", "two"]
    assert documents[0].text == "From here on."


def test_a_mailbox_without_a_suffix_is_one(tmp_path: Path) -> None:
    """Thunderbird names its own so; a text that begins with From stays a text."""
    messages = "From - Fri Mar 01 10:00:00 2024\nSubject: one\n\nText.\n"
    (tmp_path / "Inbox").write_text(messages)
    (tmp_path / "poem").write_text("From here on\nthe river: wide.\n")
    documents = [document for _, document in read_folder(tmp_path, Intake())]
    assert [(d.title, d.fields["type"]) for d in documents] == [("one", "email"), ("", "text")]


def test_a_message_in_base64_is_read() -> None:
    """It is read though RFC 2046 allows only 7bit, 8bit and binary for attached messages."""
    inner = b"Subject: inner\n\nThe words of the message.\n"
    raw = (
        b"Content-Type: multipart/mixed; boundary=X\n\n--X\n\nsee attached\n--X\n"
        b"Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n"
        + base64.encodebytes(inner)
        + b"--X--\n"
    )
    text, [attached], _ = mail(raw)
    assert text == "see attached"
    assert attached.raw == inner


def test_readings_above_characters_are_left_out(tmp_path: Path) -> None:
    """The characters are one word then, also if an end tag is missing."""
    page = "<p>これは<ruby>東<rp>(</rp><rt>とう</rt><rp>)</rp>京<rt>きょう</ruby>の</p><p>two</p>"
    (tmp_path / "a.html").write_text(f"<html><body>{page}</body></html>")
    [(_, document)] = read_folder(tmp_path, Intake())
    assert document.text == "これは東京の\n\ntwo"


def test_entities_of_markdown_are_characters(tmp_path: Path) -> None:
    """They are so outside fenced code, and only with their semicolon."""
    (tmp_path / "a.md").write_text("M&uuml;ller &copy=1 &#233;t&eacute;\n\n```\na &amp; b\n```")
    [(_, document)] = read_folder(tmp_path, Intake())
    assert document.text == "Müller &copy=1 été\n\n```\na &amp; b\n```"
