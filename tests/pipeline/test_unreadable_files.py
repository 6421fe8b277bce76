"""Does an index keep what it knows of files that cannot be read now, and read them again later?"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from birchbark.collection.files import folder_state
from birchbark.collection.files.folder_state import FolderSource
from birchbark.collection.parsing import lines
from birchbark.collection.parsing.intake import Intake
from birchbark.errors import InputError, MissingPackageError
from birchbark.index.index import Index
from birchbark.pipeline.upkeep.folder_index import (
    SyncedFolder,
    build_folder_index,
    folder_has_changed,
    sync_folder,
)
from birchbark.pipeline.upkeep.update_index import AddedDocuments, Changes, add_documents
from conftest import read_in_this_process

DAY = 86_400
KEPT = "document kept as it was, since its file cannot be read now"
Refuse = Callable[..., None]


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files need not be old to count as unchanged."""
    monkeypatch.setattr(folder_state, "SETTLED_NS", 0)


@pytest.fixture
def refuse(monkeypatch: pytest.MonkeyPatch) -> Refuse:
    """A function after whose call files and folders of these names cannot be read."""
    refused: set[str] = set()

    def checked(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Any, *args: Any, **options: Any) -> Any:
            if Path(path).name in refused:
                raise PermissionError(13, "Permission denied", str(path))
            return real(path, *args, **options)

        return call

    monkeypatch.setattr(os, "open", checked(os.open))

    def only(*names: str) -> None:
        refused.clear()
        refused.update(names)

    return only


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of three documents."""
    for name in ("a.txt", "b.txt", "sub/c.txt"):
        path = tmp_path / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"The text of {name}.")
    return tmp_path / "files"


@pytest.fixture
def index(folder: Path, tmp_path: Path) -> Path:
    build_folder_index(FolderSource((str(folder),)), tmp_path / "index")
    return tmp_path / "index"


def sync(index: Path, intake: Intake | None = None) -> SyncedFolder:
    def change(changes: Changes) -> AddedDocuments:
        return add_documents(index, changes, lambda name: None)  # type: ignore[arg-type, return-value]

    return sync_folder(index, change, (), intake)


def texts(index: Path) -> dict[str, str]:
    return {document.doc_id: document.text for document in Index(index)}


def test_a_file_that_cannot_be_read_once_is_read_again(
    folder: Path, index: Path, refuse: Refuse
) -> None:
    """It has no document until then, and nothing about the file itself has changed."""
    (folder / "new.txt").write_text("New.")
    refuse("new.txt")
    intake = Intake()
    assert sync(index, intake) == SyncedFolder(0, 0, 0, 3)
    assert [str(e) for e in intake.skipped] == [
        f"{folder / 'new.txt'}: cannot be read: Permission denied"
    ]
    refuse()
    assert sync(index) == SyncedFolder(1, 0, 0, 3)
    assert texts(index)["new.txt"] == "New."


def test_the_document_of_a_file_that_cannot_be_read_now_is_kept(
    folder: Path, index: Path, refuse: Refuse
) -> None:
    """It is kept even if the file has changed; the change is read when that is possible."""
    (folder / "a.txt").write_text("Other.")
    refuse("a.txt")
    intake = Intake()
    assert sync(index, intake) == SyncedFolder(0, 0, 0, 3)
    assert intake.notes == {KEPT: 1}
    assert texts(index)["a.txt"] == "The text of a.txt."
    refuse()
    assert sync(index) == SyncedFolder(0, 1, 0, 2)
    assert texts(index)["a.txt"] == "Other."


def test_an_unchanged_file_is_not_replaced_after_a_failure(
    folder: Path, index: Path, refuse: Refuse
) -> None:
    """It is read again, and found to be the same."""
    os.utime(folder / "a.txt")
    refuse("a.txt")
    sync(index)
    refuse()
    assert folder_has_changed(index, [folder], retry=True)
    assert sync(index) == SyncedFolder(0, 0, 0, 3)
    assert not folder_has_changed(index, [folder], retry=True)


@pytest.mark.parametrize("where", ["folder", "gitignore"])
def test_the_documents_of_an_unreadable_folder_are_kept(
    folder: Path, index: Path, refuse: Refuse, where: str
) -> None:
    """What is in the folder is not known then; nor is it, without its .gitignore file."""
    if where == "gitignore":
        (folder / "sub/.gitignore").write_text("*.tmp")
    refuse("sub" if where == "folder" else ".gitignore")
    intake = Intake()
    assert sync(index, intake) == SyncedFolder(0, 0, 0, 3)
    assert [error.what for error in intake.skipped] == ["cannot be read: Permission denied"]
    assert intake.notes[KEPT] == 1
    assert not folder_has_changed(index, [folder])
    assert folder_has_changed(index, [folder], retry=True)
    refuse()
    assert sync(index) == SyncedFolder(0, 0, 0, 3)
    assert not folder_has_changed(index, [folder], retry=True)


def test_a_deleted_folder_is_no_failure(folder: Path, index: Path) -> None:
    """Its documents are deleted."""
    (folder / "sub/c.txt").unlink()
    (folder / "sub").rmdir()
    assert sync(index) == SyncedFolder(0, 0, 1, 2)


def test_a_strict_sync_stops_at_what_cannot_be_read(
    folder: Path, tmp_path: Path, refuse: Refuse
) -> None:
    """The index stays as it was."""
    index = tmp_path / "strict"
    build_folder_index(FolderSource((str(folder),), strict=True), index)
    (folder / "b.txt").unlink()
    refuse("sub")
    with pytest.raises(InputError, match="sub: cannot be read: Permission denied"):
        sync(index)
    assert len(texts(index)) == 3


def test_pandocs_time_limit_says_nothing_about_a_file(
    folder: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine may have been busy; a file that pandoc refuses is not read again."""
    pytest.importorskip("pypandoc")
    (folder / "d.org").write_text("* Birch\nBark.")
    real = subprocess.run

    def too_slow(*args: Any, **options: Any) -> Any:
        raise subprocess.TimeoutExpired("pandoc", 60)

    read_in_this_process(monkeypatch)
    monkeypatch.setattr(subprocess, "run", too_slow)
    assert sync(index) == SyncedFolder(0, 0, 0, 3)
    monkeypatch.setattr(subprocess, "run", real)
    assert sync(index) == SyncedFolder(1, 0, 0, 3)
    (folder / "e.epub").write_bytes(b"PK no e-book")
    sync(index)
    assert not folder_has_changed(index, [folder], retry=True)


def test_a_file_dated_in_the_future_is_read_once(
    folder: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time does not come from a change that has just been made."""
    monkeypatch.setattr(folder_state, "SETTLED_NS", 50_000_000)
    later = time.time() + 30 * DAY
    os.utime(folder / "a.txt", (later, later))
    time.sleep(0.1)
    assert sync(index).replaced == 1
    assert not folder_has_changed(index, [folder])


def test_files_that_swap_their_names_are_noticed(folder: Path, index: Path) -> None:
    """They are noticed though size and time are equal."""
    for name in ("a.txt", "b.txt"):
        os.utime(folder / name, (1, 1))
    sync(index)
    assert not folder_has_changed(index, [folder])
    (folder / "a.txt").rename(folder / "x")
    (folder / "b.txt").rename(folder / "a.txt")
    (folder / "x").rename(folder / "b.txt")
    assert folder_has_changed(index, [folder])
    assert sync(index) == SyncedFolder(0, 2, 0, 1)
    assert texts(index)["a.txt"] == "The text of b.txt."


def test_a_file_whose_unpacker_is_not_installed_is_read_once_it_is(
    folder: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is listed with what to install, and stops nothing."""
    (folder / "new.txt.zst").write_bytes(
        b"\x28\xb5\x2f\xfd\x20\x04\x21\x00\x00New.\xbb\x0d\x95\x5f"
    )

    def missing() -> None:
        raise MissingPackageError("compressed by Zstandard", remedy="pip install it")

    monkeypatch.setattr(lines, "_zstandard", missing)
    intake = Intake()
    assert sync(index, intake) == SyncedFolder(0, 0, 0, 3)
    assert [str(error) for error in intake.skipped] == [
        f"{folder / 'new.txt.zst'}: compressed by Zstandard (pip install it)"
    ]
    assert folder_has_changed(index, [folder], retry=True)


def test_names_that_look_like_lists_are_names(folder: Path, index: Path) -> None:
    """A filter compares whole values; a folder [2024] is one."""
    (folder / "[2024]").mkdir()
    (folder / "[2024]" / "[1]").write_text("Birch.")
    assert sync(index).new == 1
    assert texts(index)["[2024]/[1]"] == "Birch."
