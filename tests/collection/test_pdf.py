"""Is all that a PDF shows read, with gaps where it shows them?"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from birchbark.collection.file_readers import ocr
from birchbark.collection.files.folder import read_folder
from birchbark.collection.parsing.intake import Intake
from birchbark.errors import InputError

pytest.importorskip("pypdfium2")

SCAN = "/Im0 Do"  # a page with nothing but a picture
IMAGE = (
    b"<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /BitsPerComponent 8 "
    b"/ColorSpace /DeviceGray /Length 1 >>\nstream\n\0\nendstream"
)


def drawn(*pieces: tuple[int, int, str]) -> str:
    """Return the commands that draw each text at (x, y)."""
    lines = (f"BT /F1 12 Tf {x} {y} Td ({text}) Tj ET" for x, y, text in pieces)
    return "\n".join(lines)


def pdf(
    *pages: str, annotations: str = "", catalog: str = "", extra: tuple[str, ...] = ()
) -> bytes:
    """Return a PDF with these pages, in Helvetica. extra: objects from number 5 on."""
    objects = [
        f"<< /Type /Catalog /Pages 2 0 R {catalog} >>".encode(),
        b"",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        IMAGE,
        *(text.encode() for text in extra),
    ]
    kids = []
    for page in pages:
        content = page.encode("latin-1")
        objects.append(b"<< /Length %d >>\nstream\n%b\nendstream" % (len(content), content))
        resources = "<< /Font << /F1 3 0 R >> /XObject << /Im0 4 0 R >> >>"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {len(objects)} 0 R "
            f"/Resources {resources} /Annots [{annotations}] >>".encode()
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>".encode()
    file, offsets = b"%PDF-1.7\n", []
    for number, contents in enumerate(objects, 1):
        offsets.append(len(file))
        file += b"%d 0 obj\n%b\nendobj\n" % (number, contents)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size, start = len(objects) + 1, len(file)
    file += b"xref\n0 %d\n0000000000 65535 f \n%b" % (size, table)
    return file + b"trailer << /Root 1 0 R /Size %d >>\nstartxref\n%d\n%%%%EOF" % (size, start)


def read(folder: Path, raw: bytes) -> tuple[str, dict[str, int]]:
    """Return the text of a PDF, and the notes."""
    (folder / "a.pdf").write_bytes(raw)
    intake = Intake(skip_bad=False)
    ((_, document),) = read_folder(folder, intake)
    return document.text, dict(intake.notes)


def test_pieces_of_a_line_keep_their_gap(tmp_path: Path) -> None:
    """Numbers of two columns are two numbers, and a row stays a line."""
    rows = [(60, 700, "Giraffe lamp"), (210, 700, "14"), (360, 700, "7"),
            (60, 680, "Zebra"), (210, 680, "3"), (360, 680, "129"), (400, 680, "A"),
            (60, 660, "Total")]  # fmt: skip
    assert read(tmp_path, pdf(drawn(*rows)))[0] == "Giraffe lamp 14 7\nZebra 3 129 A\nTotal"


def test_lines_of_two_columns_stay_lines(tmp_path: Path) -> None:
    """What is drawn further up does not continue the line before it."""
    columns = drawn((60, 700, "one"), (60, 680, "two"), (360, 700, "three"), (360, 680, "four"))
    assert read(tmp_path, pdf(columns))[0] == "one\ntwo\nthree\nfour"


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("the sen-", "tence ends", "the sentence ends"),
        ("of COVID-", "19 cases", "of COVID-19 cases"),
        ("by Jean-", "Paul", "by Jean-Paul"),
        ("an X-", "ray of it", "an X-ray of it"),
        ("SARS-", "COV", "SARS-COV"),
        ("OPTIONAL is OP-", "TIONAL", "OPTIONAL is OPTIONAL"),
        ("it ends in a-", "", "it ends in a-"),
    ],
)
def test_hyphens_at_the_end_of_a_line(
    tmp_path: Path, first: str, second: str, expected: str
) -> None:
    """Only one that divides a word disappears."""
    text, _ = read(tmp_path, pdf(drawn((60, 700, first), (60, 686, second))))
    assert text == expected


def test_a_compound_that_the_file_has_elsewhere_keeps_its_hyphen(tmp_path: Path) -> None:
    """It may have another capital elsewhere; other words are joined."""
    lines = ("A Well-known poet, the well-", "known painter and the paint-", "ings.")
    drawing = drawn(*((60, 700 - 14 * n, line) for n, line in enumerate(lines)))
    text, _ = read(tmp_path, pdf(drawing))
    assert text == "A Well-known poet, the well-known painter and the paintings."


FORM = (
    "/FT /Tx /T (applicant) /V (Walrus Smith)",
    "/FT /Tx /T (f1) /TU (Town) /V (Bonn)",
    "/FT /Tx /T (empty) /V ()",
    "/FT /Tx /T (secret) /V (hidden) /Ff 8192",
    "/FT /Btn /T (agree) /V /Yes /AS /Yes /AP << /N << /Yes 4 0 R /Off 4 0 R >> >>",
    "/FT /Btn /T (refuse) /V /Off /AS /Off /AP << /N << /Yes 4 0 R /Off 4 0 R >> >>",
    "/FT /Ch /T (colour) /V (green) /Opt [(red) (green)] /Ff 131072",
)


def test_the_values_of_a_form_are_read(tmp_path: Path) -> None:
    """Names that people see are read with them; passwords and empty fields are not read."""
    common = "<< /Type /Annot /Subtype /Widget /Rect [60 600 260 620]"
    fields = tuple(f"{common} {field} >>" for field in FORM)
    references = " ".join(f"{5 + number} 0 R" for number in range(len(fields)))
    form = pdf(
        drawn((60, 700, "Application")),
        annotations=references,
        catalog=f"/AcroForm << /Fields [{references}] >>",
        extra=fields,
    )
    assert read(tmp_path, form)[0] == (
        "Application\n\napplicant: Walrus Smith\nTown: Bonn\nagree: Yes\ncolour: green"
    )


def test_a_damaged_page_does_not_spoil_the_others(tmp_path: Path) -> None:
    """Its place stays, so that page numbers are right; a file of such pages is none."""
    pages = pdf(drawn((60, 700, "one")), drawn((60, 700, "two")), drawn((60, 700, "three")))
    damaged = pages.replace(b"8 0 obj\n<< /Type /Page ", b"8 0 obj\n<( /Type /Page ")
    text, notes = read(tmp_path, damaged)
    assert text == "one\n\f\n\fthree"
    assert notes == {"damaged page of a PDF not read": 1}
    with pytest.raises(InputError, match="they are all damaged"):
        read(tmp_path, pages.replace(b"<< /Type /Page ", b"<( /Type /Page "))


def test_comments_are_read(tmp_path: Path) -> None:
    """Texts that were written on a page, but no descriptions of links."""
    box = "/Type /Annot /Rect [60 600 260 620]"
    remark = f"<< {box} /Subtype /FreeText /Contents (Please check) /DA (/F1 12 Tf) >>"
    link = f"<< {box} /Subtype /Link /Contents (to page 2) >>"
    text, _ = read(tmp_path, pdf(drawn((60, 700, "A")), annotations=f"{remark} {link}"))
    assert text == "A\n\nPlease check"


def fake_tesseract(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Make `script` the only program that is found."""
    programs = folder / "bin"
    programs.mkdir()
    if script:
        (programs / "tesseract").write_text(f"#!{sys.executable}\nimport sys, time\n{script}\n")
        (programs / "tesseract").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))


READ = """
if "--list-langs" in sys.argv:
    print("List of languages (3):\\ndeu\\neng\\nosd")
else:
    picture = sys.stdin.buffer.read()
    header, pixels = picture.split(b"\\n", 1)
    kind, width, height, _ = header.split()
    print(sys.argv[-1], kind.decode(), len(pixels) == int(width) * int(height))
"""


@pytest.mark.parametrize(
    ("script", "text", "note"),
    [
        ("", "", ", a scan perhaps: install the program tesseract to read it"),
        (READ, "deu+eng P5 True", ": read by OCR"),
        ("print()", "", ": OCR found none either"),
        ("sys.exit(1)", "", ": tesseract failed, or took longer than 2 s"),
        ("time.sleep(60)", "", ": tesseract failed, or took longer than 2 s"),
    ],
)
def test_pages_without_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, text: str, note: str
) -> None:
    """Read by tesseract within its time, if it is installed, and noted in any case."""
    fake_tesseract(tmp_path, monkeypatch, script)
    monkeypatch.setattr(ocr, "MOST_SECONDS", 2.0)
    (tmp_path / "files").mkdir()
    scan = pdf(drawn((60, 700, "A")), SCAN, "", SCAN)  # an empty page is no scan
    found, notes = read(tmp_path / "files", scan)
    assert [page.strip() for page in found.split("\f")] == (
        ["A", text, "", text] if text else ["A"]
    )
    assert notes == {f"page of a PDF without text{note}": 2}


@pytest.mark.parametrize("most", [30_000_000, 500_000])
def test_the_resolution_of_a_picture_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """That of large pages is lower, so that their pictures are not too large."""
    script = READ.replace("print(sys.argv[-1],", "print(sys.argv[4], width.decode(),")
    fake_tesseract(tmp_path, monkeypatch, script)
    monkeypatch.setattr(ocr, "MOST_PIXELS", most)
    (tmp_path / "files").mkdir()
    text, _ = read(tmp_path / "files", pdf(SCAN))
    dots, width = map(int, text.split()[:2])
    assert width == pytest.approx(612 / 72 * dots, abs=5)  # dots are rounded
    assert (dots == ocr.DOTS_PER_INCH) == (most == 30_000_000)


def test_the_time_for_a_file_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages that are left then are noted."""
    fake_tesseract(tmp_path, monkeypatch, READ)
    monkeypatch.setattr(ocr, "MOST_SECONDS_IN_ALL", 0.0)
    (tmp_path / "files").mkdir()
    _, notes = read(tmp_path / "files", pdf(SCAN))
    assert notes == {"page of a PDF without text: the time to read the file by OCR was up": 1}


@pytest.mark.skipif(shutil.which("tesseract") is None, reason="tesseract is not installed")
def test_tesseract_reads_a_scan(tmp_path: Path) -> None:
    """A page that is a picture of a text."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure = pyplot.figure(figsize=(6, 2), dpi=200)
    figure.text(0.1, 0.5, "The walrus costs 129 crowns.", fontsize=20)
    figure.canvas.draw()
    pixels = figure.canvas.buffer_rgba()
    scan = pyplot.figure(figsize=(6, 2), dpi=200)
    scan.figimage(pixels)
    (tmp_path / "files").mkdir()
    scan.savefig(tmp_path / "scan.pdf")
    pyplot.close("all")
    text, notes = read(tmp_path / "files", (tmp_path / "scan.pdf").read_bytes())
    assert text == "The walrus costs 129 crowns."
    assert notes == {"page of a PDF without text: read by OCR": 1}
