"""Does an index that is kept in step with a folder equal one that is built afresh?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from io import BufferedReader
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from birchbark.cli.index_inspect import verify
from birchbark.collection.documents import read_collection
from birchbark.collection.files import folder as folder_module
from birchbark.collection.files import folder_state
from birchbark.collection.files.folder_state import FILE, FolderSource
from birchbark.collection.files.walk import OUTSIDE
from birchbark.collection.parsing.intake import Intake
from birchbark.errors import ArtifactError, InputError
from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.upkeep.folder_index import (
    SyncedFolder,
    build_folder_index,
    folder_has_changed,
    sync_folder,
)
from birchbark.pipeline.upkeep.update_index import AddedDocuments, add_documents
from birchbark.records import Document
from birchbark.retrieve.first_stage import FirstStage, rank_query

NAMES = ["a.txt", "b.md", "c d.txt", "c%20d.txt", "e/f.html", "e/g.txt", "h.zip", "i", ".j.txt"]


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests set the times of files explicitly."""
    monkeypatch.setattr(folder_state, "SETTLED_NS", 0)


def write(file: Path, contents: str | bytes, seconds: int = 1) -> None:
    """Write a file that was changed so many seconds after 1970."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
    os.utime(file, (seconds, seconds))


def no_model(name: str) -> None:
    raise AssertionError(name)


def sync(index: Path, folder: Path | None = None, intake: Intake | None = None) -> SyncedFolder:
    def change(documents: Sequence[Document], deleted: Sequence[str]) -> AddedDocuments:
        return add_documents(index, documents, no_model, delete=deleted)  # type: ignore[arg-type]

    return sync_folder(index, change, [folder] if folder else [], intake)


def documents(index: Path) -> dict[str, dict[str, str]]:
    return {document.doc_id: dict(document.fields) for document in Index(index)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of three documents."""
    for name in ("a.txt", "b.md", "e/f.html"):
        write(tmp_path / "files" / name, f"The text of {name}.")
    return tmp_path / "files"


@pytest.fixture
def index(folder: Path, tmp_path: Path) -> Path:
    build_folder_index(FolderSource((str(folder),)), tmp_path / "index")
    return tmp_path / "index"


CHANGE = st.tuples(
    st.sampled_from(NAMES), st.sampled_from(["", "one", "two", "\0\xff", None]), st.integers(1, 3)
)


@settings(max_examples=25)
@given(st.lists(st.lists(CHANGE, max_size=4), max_size=4))
def test_a_synced_index_equals_one_built_afresh(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[tuple[str, str | None, int]]]
) -> None:
    """Whatever was added, changed and deleted, readable or not."""
    root = tmp_path_factory.mktemp("sync")
    folder, index = root / "files", root / "index"
    write(folder / "always.txt", "x")
    build_folder_index(FolderSource((str(folder),)), index)
    clock = 10
    for number, changes in enumerate(rounds):
        for name, contents, seconds in changes:
            clock += 30_000 * seconds  # some changes are on another day
            if contents is None:
                (folder / name).unlink(missing_ok=True)
            else:
                write(folder / name, contents.encode("latin-1"), clock)
        sync(index)
        afresh = root / f"afresh-{number}"
        build_folder_index(FolderSource((str(folder),)), afresh)
        assert documents(index) == documents(afresh)
        assert not folder_has_changed(index, [folder])


def test_what_has_changed_is_counted(index: Path, folder: Path) -> None:
    """New, replaced, deleted and unchanged documents."""
    write(folder / "new.txt", "A new text.")
    write(folder / "a.txt", "Another text.", 2)
    (folder / "b.md").unlink()
    assert folder_has_changed(index, [folder])
    assert sync(index) == SyncedFolder(new=1, replaced=1, deleted=1, unchanged=1)
    assert sync(index) == SyncedFolder(0, 0, 0, 3)


def test_unchanged_files_are_not_read(
    index: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only files with another size or time are; with the same contents they are not replaced."""
    write(folder / "a.txt", "The text of a.txt.", 2)
    read: list[str] = []
    real = folder_module.read_limited

    def record(stream: BufferedReader, file: Path) -> bytes:
        read.append(file.name)
        return real(stream, file)

    monkeypatch.setattr(folder_module, "read_limited", record)
    assert sync(index) == SyncedFolder(0, 0, 0, 3)
    assert read == ["a.txt"]
    assert sync(index) == SyncedFolder(0, 0, 0, 3)
    assert read == ["a.txt"]


def test_a_file_that_has_just_been_changed_is_read_again(
    index: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another change within the resolution of the clock would not be seen otherwise."""
    monkeypatch.setattr(folder_state, "SETTLED_NS", 60_000_000_000)
    (folder / "a.txt").write_text("First.")
    sync(index)
    status = (folder / "a.txt").stat()
    (folder / "a.txt").write_text("Other.")
    os.utime(folder / "a.txt", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert sync(index).replaced == 1
    assert documents(index)["a.txt"]["text"] == "Other."


def test_links_out_of_the_folder_are_read_on_request(folder: Path, tmp_path: Path) -> None:
    """They are told otherwise, also in a sync, which goes by what the index was built with."""
    write(tmp_path / "outside.txt", "A secret.")
    (folder / "link.txt").symlink_to("../outside.txt")
    intake = Intake()
    build_folder_index(FolderSource((str(folder),)), tmp_path / "without", intake=intake)
    assert "link.txt" not in documents(tmp_path / "without")
    assert intake.notes[OUTSIDE] == 1
    build_folder_index(FolderSource((str(folder),), follow_links=True), tmp_path / "with")
    assert documents(tmp_path / "with")["link.txt"]["text"] == "A secret."
    write(tmp_path / "outside.txt", "Another secret.", 2)
    assert sync(tmp_path / "with") == SyncedFolder(0, 1, 0, 3)
    assert sync(tmp_path / "without") == SyncedFolder(0, 0, 0, 3)


def test_a_file_that_becomes_a_link_out_of_the_folder_is_deleted(
    index: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even between the look at the folder and the reading of the file."""
    (tmp_path / "secret.txt").write_text("A secret.")
    write(folder / "a.txt", "Another text.", 2)
    real = FolderSource.open

    def swapped(self: FolderSource, path: Path) -> BufferedReader:
        (folder / "a.txt").unlink()
        (folder / "a.txt").symlink_to("../secret.txt")
        return real(self, path)

    monkeypatch.setattr(FolderSource, "open", swapped)
    intake = Intake()
    assert sync(index, intake=intake) == SyncedFolder(0, 0, 1, 2)
    assert "leads out of the folder" in str(intake.skipped[0])
    assert "a.txt" not in documents(index)


def test_documents_from_elsewhere_stay(index: Path, folder: Path) -> None:
    """They are not files that were deleted."""
    add_documents(index, [Document("other", {"text": "x"})], no_model)  # type: ignore[arg-type]
    (folder / "a.txt").unlink()
    assert sync(index).deleted == 1
    assert sorted(documents(index)) == ["b.md", "e/f.html", "other"]


def test_the_patterns_and_the_encoding_of_the_index_hold(folder: Path, tmp_path: Path) -> None:
    """Files are chosen and read as when it was built."""
    source = FolderSource((str(folder),), ("*.txt",), ("e/",), "latin-1")
    build_folder_index(source, tmp_path / "index")
    write(folder / "k.txt", b"caf\xe9")
    write(folder / "l.md", "x")
    write(folder / "e/m.txt", "x")
    assert sync(tmp_path / "index").new == 1
    assert documents(tmp_path / "index")["k.txt"]["text"] == "café"


def test_a_strict_index_refuses_bad_files_and_stays(folder: Path, tmp_path: Path) -> None:
    """As when it was built."""
    build_folder_index(FolderSource((str(folder),), strict=True), tmp_path / "index")
    write(folder / "bad.html", b"\0\xff\1")
    write(folder / "a.txt", "changed", 2)
    before = documents(tmp_path / "index")
    with pytest.raises(InputError, match=r"bad\.html"):
        sync(tmp_path / "index")
    assert documents(tmp_path / "index") == before


def test_a_moved_folder_can_be_named(index: Path, folder: Path, tmp_path: Path) -> None:
    """The index remembers where it is from then on."""
    folder.rename(tmp_path / "moved")
    with pytest.raises(InputError, match="no such folder"):
        sync(index)
    assert sync(index, tmp_path / "moved") == SyncedFolder(0, 0, 0, 3)
    assert sync(index) == SyncedFolder(0, 0, 0, 3)


def test_an_emptied_folder_deletes_nothing(index: Path, folder: Path) -> None:
    """It may be a disk that is not mounted."""
    for file in list(folder.rglob("*.*")):
        file.unlink()
    with pytest.raises(InputError, match="all would be deleted"):
        sync(index)
    assert len(documents(index)) == 3


def test_newly_readable_types_are_read(
    index: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All files are read again by another version, or with other readers."""
    write(folder / "bad.html", b"\0\xff\1")
    sync(index)
    assert not folder_has_changed(index, [folder])
    monkeypatch.setattr(folder_state, "__version__", "later")
    assert folder_has_changed(index, [folder])
    assert sync(index) == SyncedFolder(0, 0, 0, 3)
    assert not folder_has_changed(index, [folder])


def test_only_an_index_of_a_folder_can_be_synced(folder: Path, tmp_path: Path) -> None:
    """Otherwise it is not known which documents come from files."""
    build_index(read_collection(folder), tmp_path / "index")
    with pytest.raises(InputError, match="not built from a folder"):
        sync(tmp_path / "index")


@pytest.mark.parametrize("damaged", ["", "[]", "{}", '{"source": {"folder": 1}, "files": {}}'])
def test_a_damaged_state_is_told(index: Path, damaged: str) -> None:
    """The index itself can still be searched."""
    (index / FILE).write_text(damaged)
    with pytest.raises(ArtifactError, match="damaged"):
        sync(index)


def test_a_changed_state_is_told(index: Path) -> None:
    """Even where it can be read: another id would leave a deleted document in the index."""
    state = (index / FILE).read_text()
    assert "a.txt" in state
    (index / FILE).write_text(state.replace("a.txt", "e.txt"))
    with pytest.raises(ArtifactError, match=r"its checksum is wrong.*build the index again"):
        sync(index)
    shown = CliRunner().invoke(verify, [str(index)])
    assert "its checksum is wrong" in shown.output


def test_names_that_are_not_unicode_are_listed(folder: Path, tmp_path: Path) -> None:
    """One such file does not spoil the rest."""
    try:
        write(Path(os.fsdecode(os.fsencode(folder) + b"/\xff.txt")), "x")
    except OSError:
        pytest.skip("this file system allows valid Unicode alone")
    intake = Intake()
    build_folder_index(FolderSource((str(folder),)), tmp_path / "index", intake=intake)
    assert len(documents(tmp_path / "index")) == 3
    assert "not valid Unicode" in str(intake.skipped[0])
    assert sync(tmp_path / "index") == SyncedFolder(0, 0, 0, 3)
    assert not folder_has_changed(tmp_path / "index", [folder])


def test_another_folder_is_refused(index: Path, folder: Path, tmp_path: Path) -> None:
    """An index is not emptied because it bears the name of another folder."""
    write(tmp_path / "other" / "x.txt", "Another text.")
    before = documents(index)
    with pytest.raises(InputError, match="was built from another folder") as refused:
        sync(index, tmp_path / "other")
    assert refused.value.found == str(folder)
    assert documents(index) == before
    (tmp_path / "link").symlink_to(folder)
    assert not sync(index, tmp_path / "link").changed


def test_documents_without_text_are_noted(index: Path, folder: Path) -> None:
    """As when an index is built."""
    write(folder / "empty.html", "<p></p>")
    intake = Intake(None)
    sync_folder(index, lambda documents, deleted: AddedDocuments(len(documents), 0), (), intake)
    assert intake.notes["document without text"] == 1


def test_a_file_is_found_by_its_name(tmp_path: Path) -> None:
    """By the words of its path, also if it has no others; they are no part of what models read."""
    folder = tmp_path / "files"
    (folder / "tax_2023").mkdir(parents=True)
    (folder / "tax_2023" / "invoice-acme.txt").write_text("Nothing that tells.")
    (folder / "notes.txt").write_text("A canoe of birch bark.")
    index = build_folder_index(FolderSource((str(folder),)), tmp_path / "index")
    searcher = Searcher(tmp_path / "index", ())
    for query in ("invoice", "acme", "tax 2023"):
        [hit] = searcher.search(query).hits
        assert hit.document.doc_id == "tax_2023/invoice-acme.txt"
        assert hit.document.contents == "Nothing that tells."
    assert not index.unread_fields


def test_file_names_have_a_weight_of_their_own(tmp_path: Path) -> None:
    """A file with the query's words in its name comes before one with them in its text."""
    for name, text in (
        ("invoice-acme.txt", "Thirty bricks were sold."),
        ("letter.txt", "The invoice of Acme is here. An invoice."),
        ("other.txt", "Nothing of the kind."),
    ):
        write(tmp_path / "files" / name, text)
    index = build_folder_index(FolderSource((str(tmp_path / "files"),)), tmp_path / "index")
    assert rank_query(index, "invoice acme").doc_ids == ("invoice-acme.txt", "letter.txt")
    in_text = FirstStage(fields={"contents": 1.0})
    assert rank_query(index, "invoice acme", in_text).doc_ids == ("letter.txt", "invoice-acme.txt")
