"""Is everything in an e-mail or a mailbox read: text, headers and attached files?"""

from __future__ import annotations

import mailbox
from email.message import EmailMessage
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.collection.file_readers import mail
from birchbark.collection.file_readers.file import File
from birchbark.collection.file_readers.file_types import FileType
from birchbark.collection.file_readers.mail_headers import declared_charset, words_of
from birchbark.collection.files import file_documents
from birchbark.collection.files.folder import read_folder
from birchbark.collection.parsing.intake import Intake
from birchbark.errors import InputError
from birchbark.records import Document

HEADERS = "From: Ann <ann@example.org>\nTo: Bob <bob@example.org>\n\n"


def message(subject: str = "Baskets", text: str = "They are small.\n") -> EmailMessage:
    made = EmailMessage()
    made["Subject"], made["From"], made["To"] = subject, "Ann <ann@example.org>", "bob@example.org"
    made["Date"] = "Tue, 24 Nov 2026 12:03:00 +0200"
    made["Message-ID"] = f"<{len(subject)}@example.org>"
    made.set_content(text)
    return made


def read(
    folder: Path, raw: bytes, name: str = "a.eml", intake: Intake | None = None
) -> dict[str, Document]:
    """Return doc_id → document of the one file that is written to `folder`."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(raw)
    intake = intake or Intake(skip_bad=False)
    return {document.doc_id: document for _, document in read_folder(folder, intake)}


def body(folder: Path, raw: bytes | str) -> str:
    """Return the text of a message without names and addresses."""
    (document,) = read(folder, raw.encode() if isinstance(raw, str) else raw).values()
    return document.text


def parts(*parts: str, kind: str = "mixed") -> str:
    """Return a multipart message; parts: each with its headers, a blank line and its body."""
    listed = "".join(f"--cut\n{part}\n" for part in parts)
    return f"Content-Type: multipart/{kind}; boundary=cut\n\n{listed}--cut--\n"


def test_years_of_three_digits(tmp_path: Path) -> None:
    """Programs of around 2000 counted from 1900; the date sorts as text."""
    raw = b"From: ann@example.org\nDate: Tue, 1 Jul 103 10:52:37 +0200\n\nBees."
    (document,) = read(tmp_path, raw).values()
    assert document.fields["date"] == "2003-07-01T08:52:37Z"


def test_headers_are_fields_and_text(tmp_path: Path) -> None:
    """Names and addresses are searched as text; the date is in UTC, so that it sorts."""
    made = message("Größe der Körbe")
    made["Cc"] = "Jörg Ö <joerg@example.org>, cee@example.org"
    (document,) = read(tmp_path, made.as_bytes()).values()
    fields = document.fields
    assert (fields["title"], fields["type"]) == ("Größe der Körbe", "email")
    assert (fields["from"], fields["to"]) == ("Ann <ann@example.org>", "bob@example.org")
    assert fields["cc"] == "Jörg Ö <joerg@example.org>, cee@example.org"
    assert fields["modified"] == "2026-11-24"
    assert (fields["date"], fields["authors"]) == ("2026-11-24T10:03:00Z", "Ann <ann@example.org>")
    assert document.text.split("\n") == [
        "From: Ann <ann@example.org>",
        "To: bob@example.org",
        "Cc: Jörg Ö <joerg@example.org>, cee@example.org",
        "",
        "They are small.",
    ]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("=?utf-8?q?Gr=C3=B6=C3=9Fe?= =?utf-8?q?_x?=", "Größe x"),
        ("=?iso-8859-1?q?=93yes=94?=", "“yes”"),
        ("=?no-such?q?caf=C3=A9?=", "café"),
        ("=?utf-8?b?broken!?=", "=?utf-8?b?broken!?="),
        (b"Gr\xc3\xb6\xc3\x9fe".decode("ascii", "surrogateescape"), "Größe"),
        (b"caf\xe9".decode("ascii", "surrogateescape"), "café"),
        ("two\n lines", "two lines"),
        ("Привет 🐝 =?UTF-8?B?0LzQuNGA?=", "Привет 🐝 мир"),
        (r"C:\users caf\ud800 =?utf-8?q?x?=", r"C:\users caf\ud800 x"),
    ],
)
def test_words_in_headers(raw: str, expected: str) -> None:
    """Encoded as they should be, in an encoding that nobody knows, or not at all."""
    assert words_of(raw) == expected


@pytest.mark.parametrize("label", ["", "us-ascii", "no-such", "x" * 100, "base64", "\udcff"])
def test_labels_that_say_nothing(label: str) -> None:
    """The bytes decide then."""
    assert declared_charset(label) == ""


@pytest.mark.parametrize(
    ("charset", "raw"),
    [
        ("utf-8", "Die Größe — “klein”."),
        ("windows-1252", "Die Größe — “klein”."),
        ("iso-8859-1", "Die Größe — “klein”."),
        ("koi8-r", "Кора берёзы белая."),
        ("iso-2022-jp", "白樺の樹皮は白く"),
    ],
)
def test_the_declared_encoding(tmp_path: Path, charset: str, raw: str) -> None:
    """ISO-8859-1 is Windows-1252, as in browsers; 8-bit bodies need no transfer encoding."""
    encoded = raw.encode("cp1252" if charset == "iso-8859-1" else charset)
    head = f"Content-Type: text/plain; charset={charset}\nContent-Transfer-Encoding: 8bit\n\n"
    assert body(tmp_path, head.encode() + encoded) == raw


@pytest.mark.parametrize(
    "head",
    [
        "",
        "Content-Type: text/plain; charset=no-such\n",
        "Content-Type: text/plain; charset=us-ascii\n",
        "Content-Type: text/plain; charset=iso-8859-1\n",
    ],
)
def test_bodies_in_another_encoding_than_declared(tmp_path: Path, head: str) -> None:
    """They are read in UTF-8 if they are valid in it, else in the encoding that is detected."""
    text = "Die Rinde der Birke ist weiß und läßt sich leicht abschälen."
    assert body(tmp_path, head.encode() + b"\n" + text.encode()) == text
    assert body(tmp_path, head.encode() + b"\n" + text.encode("cp1252")) == text


def test_blank_plain_text_gives_way_to_html(tmp_path: Path) -> None:
    """It does so in nested alternatives, too; HTML is not read beside plain text."""
    html = "Content-Type: text/html\n\n<p>The baskets<br>are small.</p>"
    plain = "Content-Type: text/plain\n\n"
    assert (
        body(tmp_path, parts(f"{plain} \n", html, kind="alternative")) == "The baskets\nare small."
    )
    assert body(tmp_path, parts(f"{plain}Small.", html, kind="alternative")) == "Small."
    inner = parts(html, kind="related").replace("cut", "inner")
    assert body(tmp_path, parts(plain, inner, kind="alternative")) == "The baskets\nare small."


def test_all_text_that_is_shown_is_read(tmp_path: Path) -> None:
    """Apple Mail writes such messages: text, picture, text."""
    text = "Content-Type: text/plain\n\n"
    picture = "Content-Type: image/png; name=a.png\nContent-Disposition: inline\n\nx"
    intake = Intake(skip_bad=False)
    raw = parts(f"{text}Above.\n", picture, f"{text}Below.\n").encode()
    (document,) = read(tmp_path, raw, intake=intake).values()
    assert document.text == "Above.\n\nBelow."
    assert dict(intake.notes) == {"attachment of another type not read: .png": 1}


def test_attachments_are_documents(tmp_path: Path) -> None:
    """Each is read as a file of its type is, and has the headers of its e-mail."""
    made = message()
    made.add_attachment("item,count\nlamp,12\n", subtype="csv", filename="C:\\My list.csv")
    made.add_attachment("# Lamps\nBright.", filename="notes.md")
    made.add_attachment("Dim.", filename="notes.md")
    made.add_attachment(b"\0\1", maintype="application", subtype="zip", filename="a.zip")
    made.add_attachment(b"\0\1", maintype="application", subtype="gzip", filename="a.txt.gz")
    intake = Intake(skip_bad=False)
    documents = read(tmp_path, made.as_bytes(), intake=intake)
    assert {doc_id: (d.title, d.text) for doc_id, d in documents.items()} == {
        "a.eml": ("Baskets", "From: Ann <ann@example.org>\nTo: bob@example.org\n\nThey are small."),
        "a.eml/My%20list.csv": ("My list.csv", "item: lamp; count: 12"),
        "a.eml/notes.md": ("Lamps", "Bright."),
        "a.eml/2-notes.md": ("notes.md", "Dim."),
    }
    table = documents["a.eml/My%20list.csv"].fields
    assert (table["type"], table["path"], table["folder"]) == ("table", "a.eml", ".")
    assert (table["from"], table["date"]) == ("Ann <ann@example.org>", "2026-11-24T10:03:00Z")
    assert table["modified"] == "2026-11-24"
    assert dict(intake.notes) == {
        "attachment of another type not read: .zip": 1,
        "attachment of another type not read: .txt.gz": 1,
    }


def test_a_dot_in_the_name_of_an_attachment_is_no_type(tmp_path: Path) -> None:
    """The declared type counts if the name tells none, or only a number."""
    made = message()
    for name in ("Offer No. 12 from Dr. Smith", "Report v1.2", "Ledger 3.4", "notes.md"):
        made.add_attachment("a,b\n1,2\n", subtype="csv", filename=name)
    made.add_attachment(b"A note.", maintype="application", subtype="octet-stream", filename="memo")
    documents = read(tmp_path, made.as_bytes())
    assert {doc_id: d.fields["type"] for doc_id, d in documents.items()} == {
        "a.eml": "email",
        "a.eml/Offer%20No.%2012%20from%20Dr.%20Smith.csv": "table",
        "a.eml/Report%20v1.2.csv": "table",
        "a.eml/Ledger%203.4.csv": "table",
        "a.eml/notes.md": "markdown",
        "a.eml/memo": "text",
    }


def test_attached_messages_are_documents_with_attachments(tmp_path: Path) -> None:
    """They do not inherit the headers of the message that they are attached to."""
    inner = message("Inner", "Inside.\n")
    del inner["To"]
    inner.add_attachment("Deep.", filename="deep.txt")
    outer = message("Outer", "Outside.\n")
    outer.add_attachment(inner)
    documents = read(tmp_path, outer.as_bytes())
    assert {doc_id: d.title for doc_id, d in documents.items()} == {
        "a.eml": "Outer",
        "a.eml/message.eml": "Inner",
        "a.eml/message.eml/deep.txt": "deep.txt",
    }
    assert "to" not in documents["a.eml/message.eml"].fields


def test_reports_on_messages_are_attachments(tmp_path: Path) -> None:
    """They are headers alone; a message in Unicode (RFC 6532) is one like others."""
    parts = {
        "message/delivery-status": "Reporting-MTA: dns; b.org\n\nAction: failed\nStatus: 5.1.1\n",
        "message/disposition-notification": "Disposition: manual-action; displayed\n",
        "message/global": "Subject: Bark\nFrom: Ann <ann@example.org>\n\nBirch.\n",
        "message/news": "Subject: Oak\nFrom: Ann <ann@example.org>\n\nAcorns.\n",
    }
    body = "".join(f"--x\nContent-Type: {kind}\n\n{text}\n" for kind, text in parts.items())
    head = 'Subject: Undelivered\nContent-Type: multipart/report; boundary="x"\n\n'
    (tmp_path / "a.eml").write_text(f"{head}{body}--x--\n")
    status, notification, message, news = [d for _, d in read_folder(tmp_path, Intake())][1:]
    assert status.text.split() == parts["message/delivery-status"].split()
    assert notification.text.strip() == parts["message/disposition-notification"].strip()
    assert message.title == "Bark"
    assert message.text.endswith("Birch.")
    assert news.title == "Oak"
    assert news.text.endswith("Acorns.")


def test_a_damaged_attachment_does_not_spoil_its_message(tmp_path: Path) -> None:
    """It is listed with the reason."""
    made = message()
    made.add_attachment(b"\0\xff\1", maintype="text", subtype="x-a", filename="bad.txt")
    intake = Intake()
    assert list(read(tmp_path, made.as_bytes(), intake=intake)) == ["a.eml"]
    assert [str(e).split(": ")[:2] for e in intake.skipped] == [
        [f"{tmp_path / 'a.eml/bad.txt'}:1", "wrong encoding"]
    ]


def test_messages_in_messages_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not read is noted: deep ones, and more attachments than anybody needs."""
    monkeypatch.setattr(mail, "MOST_ATTACHMENTS", 2)
    made = message("Deepest")
    for number in range(6):
        outer = message(f"Around {number}")
        outer.add_attachment(made)
        made = outer
    for number in range(3):
        made.add_attachment("x", filename=f"{number}.txt")
    intake = Intake(skip_bad=False)
    documents = read(tmp_path, made.as_bytes(), intake=intake)
    assert len(documents) == 1 + 4 + 1
    assert dict(intake.notes) == {
        f"file within {file_documents.MOST_NESTED} other files not read": 1,
        "attachment after the first 2 of an e-mail not read": 2,
    }
    deep = "Content-Type: text/plain\n\nx"
    for number in range(30):
        deep = parts(deep).replace("=cut", f"=c{number}").replace("--cut", f"--c{number}")
    assert read(tmp_path, deep.encode(), intake=intake)["a.eml"].text == ""
    assert intake.notes["part of an e-mail within 20 others not read"] == 1


def test_a_mailbox_is_a_document_a_message(tmp_path: Path) -> None:
    """The standard library writes the mailbox; a line that begins with From is restored."""
    box = mailbox.mbox(tmp_path / "box")
    for subject in ("One", "Three", "Three"):
        box.add(message(subject, "First.\n\nFrom here on, all is well.\n"))
    box.close()
    documents = read(tmp_path / "files", (tmp_path / "box").read_bytes(), "in.mbox")
    assert [d.title for d in documents.values()] == ["One", "Three", "Three"]
    assert [d.fields["type"] for d in documents.values()] == ["email"] * 3
    ids = list(documents)
    assert ids[2] == f"in.mbox/2-{ids[1].removeprefix('in.mbox/')}"
    assert {d.text.split("\n\n", 1)[1] for d in documents.values()} == {
        "First.\n\nFrom here on, all is well."
    }


def test_a_message_keeps_its_id_when_another_is_deleted(tmp_path: Path) -> None:
    """Ids stay, so that only what is gone is deleted from an index."""
    texts = [f"From x Tue Nov 24 10:00:00 2026\nMessage-ID: <{n}@x>\n\n{n}\n\n" for n in "ab"]
    both = read(tmp_path, "".join(texts).encode(), "in.mbox")
    last = read(tmp_path, texts[1].encode(), "in.mbox")
    assert [d.text for d in both.values()] == ["a", "b"]
    assert list(last) == list(both)[1:]


def test_deleted_messages_of_thunderbird_are_not_read(tmp_path: Path) -> None:
    """They and the old copies of moved ones stay in the file until it is compacted."""
    states = {"0001": "read", "0009": "deleted", "0008": "moved"}
    box = "".join(
        f"From - Tue Nov 24 10:00:00 2026\nX-Mozilla-Status: {state}\n"
        f"Message-ID: <{text}@x>\n\n{text}\nX-Mozilla-Status: 0008\n\n"
        for state, text in states.items()
    )
    intake = Intake(skip_bad=False)
    found = read(tmp_path, box.encode(), "in.mbox", intake)
    assert [document.text.split("\n")[0] for document in found.values()] == ["read"]
    assert intake.notes == {
        "deleted e-mail not read, which the mail program has not removed yet": 2
    }


@pytest.mark.parametrize("before", ["\ufeff", "\r\n", "\ufeff\n\n"])
def test_what_precedes_the_headers_is_no_text(before: str, tmp_path: Path) -> None:
    """Some programs write a byte order mark, or a blank line."""
    raw = f"{before}Subject: Baskets\nFrom: ann@example.org\n\nSmall.\n"
    (document,) = read(tmp_path, raw.encode()).values()
    assert (document.title, document.fields["from"]) == ("Baskets", "ann@example.org")
    assert document.text.endswith("Small.") and "Subject" not in document.text


def test_other_files_are_no_mailboxes(tmp_path: Path) -> None:
    """An empty one is noted."""
    intake = Intake()
    assert read(tmp_path, b"Hello", "in.mbox", intake) == {}
    assert [error.what for error in intake.skipped] == ["not a mailbox"]
    assert read(tmp_path, b"", "in.mbox", intake) == {}
    assert intake.notes == {"mailbox without messages not read": 1}


@pytest.mark.parametrize(
    ("head", "text"),
    [
        (b"Content-Type: text/plain; " + b";" * 1_000_000, "x"),
        (b"To: " + b"(" * 1_000_000, "To: " + "(" * 10_000 + "\n\nx"),
        (b"Subject: " + b"=?utf-8?q?a?= " * 100_000, "x"),
        (b"X-Much: y\n" * 100_000, "x"),
    ],
)
def test_hostile_headers(tmp_path: Path, head: bytes, text: str) -> None:
    """They take no more time than others, and the text is read."""
    assert body(tmp_path, head.rstrip() + b"\n\nx") == text


def test_alternatives_in_alternatives_are_read_once(tmp_path: Path) -> None:
    """They are not read again at each level."""
    nested = b"".join(
        b"Content-Type: multipart/alternative; boundary=a%d\n\n--a%d\n" % (n, n) for n in range(18)
    )
    html = b"Content-Type: text/html\n\n" + b"<p>x" * 50_000
    assert body(tmp_path, nested + html).count("x") == 50_000


@given(st.binary(), st.sampled_from([b"", b"Content-Type: multipart/mixed; boundary=a\n\n--a\n"]))
def test_any_bytes_are_a_message_or_an_error(raw: bytes, head: bytes) -> None:
    """This holds for whatever strangers send."""
    file = File(Path("a.eml"), head + raw, Intake())
    found = list(file_documents.parts_of(file, "a.eml", FileType("email", mail.read_mail), {}))
    assert found[0].doc_id == "a.eml"
    assert all(isinstance(part.found, Document | InputError) for part in found)
