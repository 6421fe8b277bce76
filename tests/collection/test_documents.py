"""Do the common checks hold for every format: detection, distinct ids, errors with their place?"""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.collection.documents import READERS, detect_format, read_collection
from birchbark.collection.file_readers.file_types import file_type
from birchbark.collection.parsing.intake import Intake
from birchbark.errors import InputError
from birchbark.records import Document

GOOD = st.integers(0, 3).map(lambda number: json.dumps({"id": number, "text": "x"}))
BAD = st.sampled_from(
    ["{", "[]", '{"text": "x"}', '{"id": "a"}', '{"id": " ", "text": "x"}', "\xff"]
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path for one file, rewritten by each example."""
    return tmp_path_factory.mktemp("documents") / "file.jsonl"


def read(path: Path, raw: str | bytes, intake: Intake | None = None) -> list[Document]:
    """Write a file and return its documents."""
    path.write_bytes(raw if isinstance(raw, bytes) else raw.encode())
    return list(read_collection(str(path), intake or Intake()))


@given(st.lists(GOOD | BAD, max_size=8))
def test_each_record_is_read_or_counted(file: Path, lines: list[str]) -> None:
    """With skip_bad, good records are read in order and all others are counted."""
    intake = Intake(skip_bad=True)
    ids = [line[7] for line in lines if line.startswith('{"id": ') and line[7].isdigit()]
    kept = list(dict.fromkeys(ids))
    raw = "".join(f"{line}\n" for line in lines).encode("latin-1")
    try:
        read_ids = [document.doc_id for document in read(file, raw, intake)]
    except InputError as error:
        assert "no documents" in str(error)
        read_ids = []
    assert read_ids == kept
    assert len(intake.skipped) == len(lines) - len(kept)
    assert all(re.search(r":\d+$", error.where) for error in intake.skipped)


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # test_lines: closed
@given(st.binary(), st.sampled_from(sorted(READERS)))
def test_any_bytes_are_documents_or_an_input_error(
    file: Path, raw: bytes, format_name: str
) -> None:
    """This holds for any contents and any format."""
    file.write_bytes(raw)
    try:
        list(read_collection(str(file), Intake(), format_name))
    except InputError as error:
        assert str(file) in str(error)


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # test_lines: closed
@given(st.lists(st.integers(), unique=True, min_size=1))
def test_compression_changes_nothing(file: Path, ids: list[int]) -> None:
    """A gzipped collection has the same documents as the plain file."""
    raw = "".join(json.dumps({"id": n, "text": "x"}) + "\n" for n in ids).encode()
    assert read(file, gzip.compress(raw)) == read(file, raw)


@pytest.mark.parametrize(
    ("name", "format_name"),
    [
        ("c.jsonl", "jsonl"),
        ("c.json", "jsonl"),
        ("c.ndjson", "jsonl"),
        ("c.JSONL.GZ", "jsonl"),
        ("c.v2.tsv.gz", "tsv"),
        ("c.tsv", "tsv"),
        ("c.trec", "trec"),
        ("c.sgml.gz", "trec"),
        ("c.sgm", "trec"),
    ],
)
def test_the_format_is_detected_from_the_name(tmp_path: Path, name: str, format_name: str) -> None:
    """The last suffix counts, except .gz, in any case."""
    (tmp_path / name).touch()
    assert detect_format(tmp_path / name) == format_name


def test_a_folder_is_a_folder_of_texts(tmp_path: Path) -> None:
    """This is so even if its name has a suffix."""
    (tmp_path / "c.jsonl").mkdir()
    assert detect_format(tmp_path / "c.jsonl") == "folder"


@pytest.mark.parametrize("name", ["c", "c.gz", "c.csv", "jsonl", "c.jsonl.bak"])
def test_an_unknown_suffix_lists_the_formats(tmp_path: Path, name: str) -> None:
    """There is no guess; the error asks for --format."""
    (tmp_path / name).touch()
    with pytest.raises(
        InputError, match=r"cannot detect the format.*--format: one of jsonl, tsv, trec"
    ):
        detect_format(tmp_path / name)


def test_the_error_for_a_single_file_names_folders(tmp_path: Path) -> None:
    """A PDF is read in a folder only; for a file that is read nowhere, this would not help."""
    for name, helps in (("c.pdf", True), ("c.png", False)):
        (tmp_path / name).touch()
        with pytest.raises(InputError) as error:
            detect_format(tmp_path / name)
        assert ("name its folder" in error.value.remedy) == helps


@pytest.mark.parametrize("format_name", [None, "jsonl", "tsv", "trec"])
def test_a_missing_path_is_named(tmp_path: Path, format_name: str | None) -> None:
    """The error names it whether the format is given or not."""
    with pytest.raises(InputError, match=r"c\.jsonl: no such file"):
        list(read_collection(str(tmp_path / "c.jsonl"), Intake(), format_name))


@pytest.mark.parametrize("format_name", ["jsonl", "tsv"])
def test_a_folder_is_no_file(tmp_path: Path, format_name: str) -> None:
    """Formats of a single file refuse a folder."""
    with pytest.raises(InputError, match="is a folder: expected a file"):
        list(read_collection(str(tmp_path), Intake(), format_name))


@pytest.mark.parametrize(
    "format_name",
    [
        *READERS,
        "pydocs",
    ],
)
def test_every_format_refuses_a_missing_path(tmp_path: Path, format_name: str) -> None:
    """Each format raises InputError, including pydocs with a path."""
    with pytest.raises(InputError):
        list(read_collection(str(tmp_path / "no"), Intake(), format_name))


def test_an_unknown_format_is_an_input_error(tmp_path: Path) -> None:
    """The command line checks the format itself; programs rely on this."""
    with pytest.raises(InputError):
        list(read_collection(str(tmp_path), Intake(), "parquet"))


def test_a_given_format_overrides_the_name(tmp_path: Path) -> None:
    """A collection may have any file name."""
    (tmp_path / "c.txt").write_text("1\tx\n")
    documents = list(read_collection(str(tmp_path / "c.txt"), Intake(), "tsv"))
    assert documents == [Document("1", {"text": "x"})]


def test_a_file_called_pydocs_needs_a_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`pydocs` alone is the standard library; with a format it is a path."""
    library = [("shop.py", Document("shop", {"text": "A shop."}))]
    monkeypatch.setitem(READERS, "pydocs", lambda *_: iter(library))
    monkeypatch.chdir(tmp_path)
    Path("pydocs").write_text("1\tx\n")
    assert [d.doc_id for d in read_collection("pydocs", Intake(), "tsv")] == ["1"]
    assert [d.doc_id for d in read_collection("pydocs", Intake(), "pydocs")] == ["shop"]
    assert [d.doc_id for d in read_collection("pydocs", Intake())] == ["shop"]


def test_a_repeated_id_is_refused(tmp_path: Path) -> None:
    """The error names the place of the second document."""
    path = tmp_path / "c.tsv"
    with pytest.raises(
        InputError, match=rf"^{re.escape(str(path))}:3: a second document with the id a$"
    ):
        read(path, "a\tx\n\na\tx\n")


@pytest.mark.parametrize("doc_id", ["", " ", "\\t"])
def test_an_empty_id_is_refused(tmp_path: Path, doc_id: str) -> None:
    """An id of white space counts as empty."""
    with pytest.raises(InputError, match=r"c\.jsonl:1: document has an empty id"):
        read(tmp_path / "c.jsonl", f'{{"id": "{doc_id}", "text": "x"}}')


@pytest.mark.parametrize("name", ["c.jsonl", "c.tsv", "c.trec"])
def test_an_empty_collection_is_refused(tmp_path: Path, name: str) -> None:
    """An empty index would answer every query with nothing."""
    with pytest.raises(InputError, match=rf"{name}: no documents \(check the path; or name"):
        read(tmp_path / name, "\n\n")


def test_the_error_for_an_empty_folder_has_the_notes(tmp_path: Path) -> None:
    """They explain why nothing was read."""
    (tmp_path / "a.zip").touch()
    with pytest.raises(InputError, match=r"no documents \(file of another type not read: \.zip\)"):
        list(read_collection(str(tmp_path), Intake()))


def test_a_collection_of_bad_records_is_refused(tmp_path: Path) -> None:
    """The error says how many were skipped."""
    with pytest.raises(
        InputError, match=r"no documents: found 2 skipped, first .*c\.jsonl:1: broken JSON"
    ):
        read(tmp_path / "c.jsonl", "{\n{\n", Intake(skip_bad=True))


def test_bad_records_of_every_kind_are_counted(tmp_path: Path) -> None:
    """They are broken, incomplete, wrongly encoded, repeated or without id; each has its line."""
    raw = (
        b'{"id": "a", "text": "x"}\n{oops\n{"id": "b"}\n{"id": "caf\xe9", "text": "x"}\n\n'
        b'{"id": "a", "text": "again"}\n{"id": "", "text": "x"}\n{"id": "c", "text": "y"}\n'
    )
    intake = Intake(skip_bad=True)
    assert [d.doc_id for d in read(tmp_path / "c.jsonl", raw, intake)] == ["a", "c"]
    lines = [int(error.where.rpartition(":")[2]) for error in intake.skipped]
    assert lines == [2, 3, 4, 6, 7]


def test_documents_are_streamed(tmp_path: Path) -> None:
    """A bad second line does not prevent reading the first."""
    path = tmp_path / "c.tsv"
    path.write_text("a\tx\nbroken\n")
    documents = read_collection(str(path), Intake())
    assert next(documents).doc_id == "a"
    with pytest.raises(InputError, match=r"c\.tsv:2"):
        next(documents)


def test_a_lone_surrogate_is_refused(tmp_path: Path) -> None:
    """No index and no run could be written with it (\\ud800)."""
    path = tmp_path / "c.jsonl"
    path.write_text('{"id": "a", "text": "x"}\n{"id": "b", "text": "\\ud800"}\n')
    with pytest.raises(InputError, match=r"c\.jsonl:2: text contains a lone surrogate"):
        list(read_collection(str(path), Intake()))


def test_an_undecodable_file_name_is_refused(tmp_path: Path) -> None:
    """A file name in Latin-1 cannot be an id in an index or a run."""
    (tmp_path / "good.txt").write_text("x")
    try:
        (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("x")
    except (OSError, UnicodeError):
        pytest.skip("this file system takes no such name")
    intake = Intake(skip_bad=True)
    assert [d.doc_id for d in read_collection(str(tmp_path), intake)] == ["good.txt"]
    assert len(intake.skipped) == 1


def test_the_command_line_offers_every_format() -> None:
    """It has its own list, so that --help need not import the readers."""
    from birchbark.cli.index import command

    build = command.commands["build"]  # type: ignore[attr-defined]
    (option,) = (p for p in build.params if p.name == "format_name")
    assert list(option.type.choices) == list(READERS)


def test_a_folder_in_the_layout_of_beir(tmp_path: Path) -> None:
    """Its corpus is read, not its files as documents, unless that is asked for."""
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d1", "title": "T", "text": "x"}\n')
    (tmp_path / "README.md").write_text("about")
    assert [d.doc_id for d in read_collection(tmp_path)] == ["d1"]
    assert [d.doc_id for d in read_collection(tmp_path, format_name="folder")] == ["README.md"]


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst", ".Z", ".BZ2"])
def test_the_format_of_a_compressed_file_is_known(suffix: str, tmp_path: Path) -> None:
    """The suffix before that of the compression tells the format."""
    (tmp_path / f"c.jsonl{suffix}").touch()
    assert detect_format(tmp_path / f"c.jsonl{suffix}") == "jsonl"
    assert file_type(Path(f"notes.md{suffix}")) == file_type(Path("notes.md"))
