"""Are the rows and full texts of CORD-19 read as its release notes describe them?"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from birchbark.collection.cord19 import is_release
from birchbark.collection.documents import detect_format, read_collection
from birchbark.collection.parsing.intake import Intake
from birchbark.errors import InputError
from birchbark.records import Document

COLUMNS = "cord_uid,sha,title,abstract,publish_time,pdf_json_files,pmc_json_files"
FIRST = 'ug7v899j,d1aa,"Culture, and\nfindings",OBJECTIVE: Bees.,2001-07-04,parses/d1.json,p/c.json'
FULL = {
    "paper_id": "c",
    "body_text": [
        {"text": "Bees dance.", "section": "Introduction"},
        {"text": " "},
        {"text": "They turn.", "section": "Results"},
    ],
    "ref_entries": {},
}


def written(folder: Path, *rows: str, columns: str = COLUMNS) -> Path:
    """Write metadata.csv with these rows."""
    path = folder / "metadata.csv"
    path.write_text("\n".join([columns, *rows]) + "\n", encoding="utf-8")
    return path


def full_text(folder: Path, name: str, content: object = FULL) -> None:
    """Write a full text beside it."""
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))


def read(path: Path, intake: Intake | None = None) -> list[Document]:
    """Return all documents."""
    return list(read_collection(str(path), intake or Intake()))


def test_papers(tmp_path: Path) -> None:
    """Title, abstract, paragraphs and every other column with a value are fields."""
    path = written(tmp_path, FIRST, "aaaa0001,,A letter,,2020,,")
    full_text(tmp_path, "parses/d1.json", {"body_text": [{"text": "From a PDF."}]})
    full_text(tmp_path, "p/c.json")
    assert detect_format(path) == "cord19"
    assert read(path) == [
        Document(
            "ug7v899j",
            {
                "title": "Culture, and\nfindings",
                "text": "OBJECTIVE: Bees.",
                "body": "Bees dance.\n\nThey turn.",
                "sha": "d1aa",
                "publish_time": "2001-07-04",
            },
        ),
        Document("aaaa0001", {"title": "A letter", "text": "", "publish_time": "2020"}),
    ]
    intake = Intake()
    assert list(read_collection(str(tmp_path), intake, "cord19")) == read(path)
    assert intake.notes["additional full text of a paper not read"] == 1


def test_the_pdf_is_used_if_there_is_no_pmc_file(tmp_path: Path) -> None:
    """The first file that exists is read; listed files that do not exist are counted."""
    row = "a,x; y,t,a,,parses/x.json; parses/y.json,p/none.json"
    path = written(tmp_path, row)
    intake = Intake()
    assert "body" not in read(path, intake)[0].fields
    assert intake.notes == {"full text that is listed, but does not exist": 1}
    full_text(tmp_path, "parses/y.json", {"body_text": [{"text": "Of y."}]})
    assert read(path)[0].fields["body"] == "Of y."


def test_rows_of_one_paper_are_merged(tmp_path: Path) -> None:
    """The first value of each column counts; merged rows and different values are noted."""
    rows = ("a,,Bees,,2020,,", "b,,Other,,,,", "a,s1,Bees!,Dances.,2021,,", "a,s2,Bees,,,,")
    intake = Intake()
    documents = read(written(tmp_path, *rows), intake)
    assert [document.doc_id for document in documents] == ["b", "a"]
    assert documents[1].fields == {
        "title": "Bees",
        "text": "Dances.",
        "publish_time": "2020",
        "sha": "s1",
    }
    assert intake.notes == {
        "additional row of a paper": 2,
        "row of a paper with a different title, which was ignored": 1,
    }


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (",,No id,,,,", r"metadata\.csv:2: row has no cord_uid: found No id"),
        ("a,b", r"metadata\.csv:2: wrong number of values: expected 7.*found 2"),
        ('a,,"open,,,,', r"metadata\.csv:\d+: broken CSV: unexpected end of data"),
    ],
)
def test_bad_rows(tmp_path: Path, row: str, message: str) -> None:
    """The error names the line."""
    with pytest.raises(InputError, match=message):
        read(written(tmp_path, row, "c,,Good,,,,"))


def test_bad_rows_can_be_skipped(tmp_path: Path) -> None:
    """Each counts once, though the file is read twice; line numbers count lines within values."""
    path = written(tmp_path, FIRST, ",,No id,,,,", "c,,Good,,,,", "d")
    intake = Intake(skip_bad=True)
    assert [document.doc_id for document in read(path, intake)] == ["ug7v899j", "c"]
    assert [fault.where for fault in intake.skipped] == [f"{path}:4", f"{path}:6"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (json.dumps(FULL)[:60], "broken JSON"),
        ([], "no full text"),
        ({"body_text": [{"section": "x"}]}, "paragraph without text"),
    ],
)
def test_unreadable_full_texts(tmp_path: Path, content: object, message: str) -> None:
    """The error names both files; if it is skipped, the rest of the paper is read."""
    path = written(tmp_path, FIRST)
    full_text(tmp_path, "p/c.json", content)
    with pytest.raises(InputError, match=rf"metadata\.csv:2: ug7v899j: .*c\.json: {message}"):
        read(path)
    intake = Intake(skip_bad=True)
    [document] = read(path, intake)
    assert document.text == "OBJECTIVE: Bees."
    assert "body" not in document.fields
    assert len(intake.skipped) == 1


def test_files_outside_the_collection_are_refused(tmp_path: Path) -> None:
    """A collection may be untrusted."""
    (tmp_path / "secret.json").write_text(json.dumps(FULL))
    (tmp_path / "cord").mkdir()
    path = written(tmp_path / "cord", "a,,t,,,../secret.json,")
    with pytest.raises(InputError, match="full text is outside the folder of the collection"):
        read(path)


@pytest.mark.parametrize("columns", [COLUMNS, "cord_uid,pmcid,title,sha,x,y,full_text_file"])
@pytest.mark.parametrize("name", ["9" * 1000, "a\0b"])
def test_names_that_no_file_has(tmp_path: Path, columns: str, name: str) -> None:
    """A paper whose full text has such a name is read without it."""
    intake = Intake()
    [document] = read(written(tmp_path, f"a,,t,,,,{name}", columns=columns), intake)
    assert document.title == "t"
    if columns == COLUMNS:
        assert intake.notes == {"full text that is listed, but does not exist": 1}


@pytest.mark.parametrize(
    ("header", "is_one"),
    [
        ("cord_uid,title", True),
        ("\ufeffcord_uid,title", True),
        ('"title","cord_uid"', True),
        ("cord_uids,title", False),
        ('"title,cord_uid"', False),
        ("", False),
    ],
)
def test_a_release_is_known_by_its_header(header: str, is_one: bool, tmp_path: Path) -> None:
    (tmp_path / "metadata.csv").write_text(f"{header}\na,b\n", "utf-8")
    assert is_release(tmp_path) == is_one


def test_a_csv_file_of_another_kind(tmp_path: Path) -> None:
    """The error names the missing column."""
    with pytest.raises(InputError, match=r"metadata\.csv:1: no id column: expected cord_uid"):
        read(written(tmp_path, "x,y", columns="id,title"))


def test_releases_before_may_2020(tmp_path: Path) -> None:
    """Full texts have the names of the hash or the id in PubMed Central; their folder is listed."""
    columns = "cord_uid,sha,title,pmcid,has_pdf_parse,full_text_file"
    rows = (
        "a,d1; d2,One,PMC1,True,comm_use_subset",
        "b,d3,Two,,True,custom_license",
        "c,d4,Three,,True,",
        "d,d5,Four,,False,../elsewhere",
    )
    written(tmp_path, *rows, columns=columns)
    body = {"body_text": [{"text": "From a PDF."}]}
    for name, content in (
        ("comm_use_subset/comm_use_subset/pmc_json/PMC1.xml.json", FULL),
        ("comm_use_subset/pdf_json/d1.json", body),
        ("custom_license/pdf_json/d3.json", body),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        full_text(tmp_path, name, content)
    assert detect_format(tmp_path) == "cord19"  # by its metadata.csv
    found = {d.doc_id: d.fields.get("body") for d in read(tmp_path)}
    assert found == {
        "a": "Bees dance.\n\nThey turn.",
        "b": "From a PDF.",
        "c": None,
        "d": None,
    }


def test_another_metadata_file_makes_no_release(tmp_path: Path) -> None:
    """A folder with a table of that name is a folder of files."""
    written(tmp_path, "x,y", columns="name,size")
    assert detect_format(tmp_path) == "folder"


def test_a_damaged_compressed_file_is_named(tmp_path: Path) -> None:
    """The error names the damaged file."""
    path = written(tmp_path, FIRST)
    path.write_bytes(gzip.compress(path.read_bytes())[:-9])
    with pytest.raises(InputError, match=r"metadata\.csv: broken gzip stream"):
        read(path)
