"""Does an index that is kept in step with a folder equal one that is built afresh?"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from io import BufferedReader
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from birchbark.cli.index_inspect import stats
from birchbark.cli.index_of_folder import build_from
from birchbark.collection.documents import read_collection
from birchbark.collection.files import folder as folder_module
from birchbark.collection.files import folder_state
from birchbark.collection.files.folder_state import FolderSource
from birchbark.collection.files.walk import OUTSIDE
from birchbark.collection.parsing.intake import Intake
from birchbark.errors import ArtifactError, InputError
from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.index.origin import NewOrigin
from birchbark.index.sharded_writer import open_writer
from birchbark.index.shards import read_manifest
from birchbark.index.verify import find_damage
from birchbark.index.writer import IndexWriter
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.upkeep import folder_index
from birchbark.pipeline.upkeep.folder_index import (
    Change,
    SyncedFolder,
    build_folder_index,
    folder_has_changed,
    sync_folder,
)
from birchbark.pipeline.upkeep.folder_index import folder_state as known_folders
from birchbark.pipeline.upkeep.update_index import AddedDocuments, Changes, add_documents
from birchbark.records import Document
from birchbark.retrieve.first_stage import FirstStage, rank_query
from birchbark.score.load_scorer import load_scorer
from conftest import read_in_this_process

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


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def no_model(name: str) -> None:
    raise AssertionError(name)


def sync(index: Path, folder: Path | None = None, intake: Intake | None = None) -> SyncedFolder:
    return sync_folder(index, changing(index), [folder] if folder else [], intake)


def changing(index: Path) -> Change:
    """Return what changes an index without attachments."""

    return lambda changes: add_documents(index, changes, no_model)  # type: ignore[arg-type]


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


@settings(max_examples=10)
@given(st.lists(st.lists(CHANGE, max_size=4), max_size=4))
def test_a_synced_index_equals_one_built_afresh(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[tuple[str, str | None, int]]]
) -> None:
    """This holds whatever was added, changed and deleted, readable or not."""
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
    """It may become one even between the look at the folder and the reading of the file."""
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
    add_documents(index, Changes([Document("other", {"text": "x"})]), no_model)  # type: ignore[arg-type]
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
    """A sync refuses a bad file, as building the index does, and the index stays as it was."""
    build_folder_index(FolderSource((str(folder),), strict=True), tmp_path / "index")
    write(folder / "bad.html", b"\0\xff\1")
    write(folder / "a.txt", "changed", 2)
    before = documents(tmp_path / "index")
    with pytest.raises(InputError, match=r"bad\.html"):
        sync(tmp_path / "index")
    assert documents(tmp_path / "index") == before


def test_files_of_documents(index: Path, folder: Path, tmp_path: Path) -> None:
    """Each document's file exists; an index of no folder has none."""
    found = folder_index.files_of(index, [*documents(index), "none"])
    assert set(found) == set(documents(index))
    assert all(path.is_file() and path.is_relative_to(folder) for path in found.values())
    build_index([Document("d", {"text": "birch"})], tmp_path / "other")
    assert folder_index.files_of(tmp_path / "other", ["d"]) == {}


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
    with open_writer(index) as writer:
        writer.set_origin(NewOrigin(damaged.encode(), read_manifest(index).origin_checksum))
    with pytest.raises(ArtifactError, match=r"damaged folder.*build the index again"):
        sync(index)
    assert len(documents(index)) == 3


def test_a_changed_state_is_told(index: Path) -> None:
    """It is told even if it can be read: another id would leave a deleted document in the index."""
    [file] = index.glob("origin-*.json")
    assert "a.txt" in file.read_text()
    file.write_text(file.read_text().replace("a.txt", "e.txt"))
    with pytest.raises(ArtifactError, match=r"its checksum is wrong.*build the index again"):
        sync(index)
    shown = CliRunner().invoke(stats, [str(index), "--verify"])
    assert "its checksum is wrong" in shown.output


@pytest.mark.parametrize("shards", [None, 3])
def test_two_syncs_at_once(folder: Path, tmp_path: Path, shards: int | None) -> None:
    """The one that ends last begins again, so that no change of the other is lost."""
    source, index = FolderSource((str(folder),)), tmp_path / "index"
    build_folder_index(source, index, build=partial(build_index, shards=shards))
    write(folder / "a.txt", "Another text.", 2)
    intake, attempts = Intake(), 0

    def overtaken(changes: Changes) -> AddedDocuments:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            write(folder / "new.txt", "A new text.")
            (folder / "b.md").unlink()
            assert sync(index) == SyncedFolder(2, 1, 1, 1)
            (folder / "new.txt").unlink()
        return changing(index)(changes)

    write(folder / "empty.html", "")
    assert sync_folder(index, overtaken, (), intake) == SyncedFolder(0, 0, 1, 3)
    assert attempts == 2
    assert intake.notes["document without text"] == 0
    assert sorted(documents(index)) == ["a.txt", "e/f.html", "empty.html"]
    assert documents(index)["a.txt"]["text"] == "Another text."
    assert sync(index) == SyncedFolder(0, 0, 0, 3)


@pytest.mark.parametrize("commits", [1, 3, 4])
def test_many_documents_are_committed_file_by_file(
    folder: Path, index: Path, monkeypatch: pytest.MonkeyPatch, commits: int
) -> None:
    """Wherever that ends, the next sync finds what is new, changed and deleted."""
    read_in_this_process(monkeypatch)
    message = "From ann\nMessage-ID: <{}@example.org>\n\n{}\n\n".format
    write(folder / "m.mbox", message(1, "one") + message(2, "two"))
    sync(index)
    monkeypatch.setattr(folder_index, "MOST_CHARACTERS", 0)
    write(folder / "a.txt", "Another text.", 2)
    write(folder / "m.mbox", message(1, "three"), 2)
    write(folder / "c.txt", "A new text.")
    (folder / "b.md").unlink()
    done: list[list[str]] = []

    def change(changes: Changes) -> AddedDocuments:
        if len(done) == commits:
            raise KeyboardInterrupt
        done.append([document.fields["path"] for document in changes.documents])
        return changing(index)(changes)

    if commits < 4:
        with pytest.raises(KeyboardInterrupt):
            sync_folder(index, change)
        (folder / "c.txt").unlink()
        sync(index)
    else:
        assert sync_folder(index, change) == SyncedFolder(1, 2, 2, 1)
    assert done == [["a.txt"], ["c.txt"], ["m.mbox"], []][:commits]
    fresh = build_folder_index(FolderSource((str(folder),)), index.with_name("fresh"))
    assert documents(index) == documents(fresh.directory)
    assert sync(index) == SyncedFolder(0, 0, 0, len(fresh))


@pytest.mark.parametrize("shards", [None, 3])
def test_the_state_is_part_of_the_commit(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shards: int | None
) -> None:
    """Wherever a sync ends, the index has its documents and knows their files, or neither."""
    index = tmp_path / "index"
    build_folder_index(
        FolderSource((str(folder),)), index, build=partial(build_index, shards=shards)
    )
    real, left, before = Path.replace, 0, set(documents(index))

    def ending(scratch: Path, target: Path) -> Path:
        nonlocal left
        if not left:
            raise KeyboardInterrupt
        left -= 1
        return real(scratch, target)

    monkeypatch.setattr(Path, "replace", ending)
    outcomes = []
    for steps in range(10):
        for number in range(9):
            (folder / f"{steps - 1}-{number}.txt").unlink(missing_ok=True)
            write(folder / f"{steps}-{number}.txt", "A text.")
        left = steps
        with suppress(KeyboardInterrupt):
            sync(index)
        known = {i for state in known_folders(index).files.values() for i in state.documents}
        found = set(documents(index))
        assert known == found
        outcomes.append(found != before)
        before = found
        left = 99
        assert not find_damage(index)
        if shards and steps % 2:
            IndexWriter(index / "shard-01").close()
            assert set(documents(index)) == found
        open_writer(index).close()
        assert set(documents(index)) == found
    assert outcomes == [False] + [True] * 9
    sync(index)
    assert set(documents(index)) == {file.relative_to(folder).as_posix() for file in files(folder)}


def test_a_build_that_ends_early_leaves_no_index(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rather than one that is never synced."""

    def killed(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(IndexWriter, "set_origin", killed)
    with pytest.raises(KeyboardInterrupt):
        build_folder_index(FolderSource((str(folder),)), tmp_path / "index")
    assert not (tmp_path / "index").exists()


def test_static_vectors_survive_a_kill(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new index appears with them, and a sync computes those that an earlier one could not."""

    def killed(*arguments: object) -> None:
        raise KeyboardInterrupt

    built, index = tmp_path / "built", tmp_path / "index"
    with monkeypatch.context() as patch:
        patch.setattr(IndexWriter, "attach", killed)
        with pytest.raises(KeyboardInterrupt):
            build_from(folder, built, Intake())
    assert not built.exists()
    build_from(folder, index, Intake())
    write(folder / "new.txt", "A new text.")
    with pytest.raises(KeyboardInterrupt):
        sync_folder(index, lambda c: add_documents(index, c, load_scorer, on_commit=killed))
    assert Index(index).missing_rows() == {"static": 1}
    sync_folder(index, lambda changes: add_documents(index, changes, load_scorer))
    assert not Index(index).missing_rows()
    assert len(documents(index)) == 4


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
    """A sync notes them as building an index does."""
    write(folder / "empty.html", "<p></p>")
    intake = Intake(None)
    sync_folder(index, changing(index), (), intake)
    assert intake.notes["document without text"] == 1


def test_a_file_is_found_by_its_name(tmp_path: Path) -> None:
    """The words of its path find a file that has no others; models do not read them."""
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
