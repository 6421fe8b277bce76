"""Are several folders one index, each with its name in the paths?"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from birchbark.cli import group
from birchbark.cli.index_of_folder import index_and_folders, index_of, sync_and_report
from birchbark.errors import InputError
from birchbark.index.index import Index
from birchbark.pipeline.upkeep.folder_index import folder_has_changed, sync_folder
from birchbark.pipeline.upkeep.update_index import AddedDocuments
from birchbark.serve.original_files import OriginalFiles


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    """Two folders in different places with a file of the same name."""
    made = [tmp_path / "a" / "notes", tmp_path / "b" / "mail"]
    for number, folder in enumerate(made):
        (folder / "deep").mkdir(parents=True)
        (folder / "one.txt").write_text(f"Birch bark {number}.")
        (folder / "deep" / "two.txt").write_text(f"A canoe {number}.")
    return made


def test_one_index_of_both_is_beside_the_first(folders: list[Path]) -> None:
    """Ids, paths and folders begin with the names; original files are found."""
    index, found = index_and_folders(folders)
    assert len(Index(index)) == 0
    sync_and_report(index, folders)  # as a service does while it runs
    assert index == folders[0].parent / "notes+mail.index"
    assert found == tuple(folders)
    documents = {document.doc_id: document for document in Index(index)}
    assert sorted(documents) == [
        *("mail/deep/two.txt", "mail/one.txt", "notes/deep/two.txt", "notes/one.txt"),
    ]
    assert documents["mail/deep/two.txt"].fields["folder"] == "mail/deep"
    assert documents["notes/one.txt"].fields["folder"] == "notes"
    original = OriginalFiles(index, found).open("mail/one.txt")
    assert original
    with original.opened as file:
        assert (original.name, file.read()) == ("one.txt", (folders[1] / "one.txt").read_bytes())
    arguments = ["search", str(index), "birch canoe", "--model", "none", "--json"]
    result = CliRunner().invoke(group, [*arguments, "--filter", "path=mail/*"])
    ids = {json.loads(line)["doc_id"] for line in result.stdout.splitlines()}
    assert ids == {"mail/deep/two.txt", "mail/one.txt"}


def test_a_change_in_either_is_found(folders: list[Path]) -> None:
    """A sync brings the index up to date; a missing folder deletes nothing."""
    index, _ = index_and_folders(folders)
    (folders[1] / "three.txt").write_text("A river.")
    (folders[0] / "one.txt").unlink()
    assert folder_has_changed(index, folders)
    assert index_and_folders(folders) == (index, tuple(folders))
    assert folder_has_changed(index, folders)  # a service reads them while it runs
    sync_and_report(index, folders)
    ids = {document.doc_id for document in Index(index)}
    assert ids == {"mail/deep/two.txt", "mail/one.txt", "mail/three.txt", "notes/deep/two.txt"}
    shutil.rmtree(folders[1])
    with pytest.raises(InputError, match="no such folder"):
        sync_folder(index, no_change, folders)
    assert {document.doc_id for document in Index(index)} == ids


def no_change(*change: object) -> AddedDocuments:
    """Fail, in place of a function that changes the index."""
    raise AssertionError("the index must not change")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("a/notes", "c/notes"), "two folders have the same name"),
        (("a/notes", "file.txt"), "file.txt: not a folder: expected several folders, found a file"),
        (("a/notes", "gone"), "gone: no such index or folder"),
    ],
)
def test_what_cannot_be_one_index_is_refused(
    tmp_path: Path, folders: list[Path], names: tuple[str, str], message: str
) -> None:
    """Nothing is written then."""
    shutil.copytree(folders[0], tmp_path / "c" / "notes")
    (tmp_path / "file.txt").write_text("A file.")
    with pytest.raises(InputError, match=message):
        index_and_folders([tmp_path / name for name in names])
    assert not list(tmp_path.rglob("*.index"))


def test_a_folder_that_became_empty_deletes_nothing(folders: list[Path]) -> None:
    """A disk that is not mounted leaves such a folder; one with a single file left is believed."""
    index, _ = index_of(folders)
    (folders[0] / "one.txt").unlink()
    shutil.rmtree(folders[1])
    folders[1].mkdir()
    with pytest.raises(InputError, match="no documents in the folder"):
        sync_and_report(index, folders)
    assert len(Index(index)) == 4
    (folders[1] / "left.txt").write_text("Bark.")
    sync_and_report(index, folders)
    assert {d.doc_id for d in Index(index)} == {"mail/left.txt", "notes/deep/two.txt"}


def test_folders_in_folders_and_long_names(tmp_path: Path) -> None:
    """A folder within another is refused; a name that no file system holds is shortened."""
    folders = [tmp_path / f"{'n' * 60}{number}" for number in range(5)]
    for folder in folders:
        folder.mkdir()
        (folder / "a.txt").write_text("Birch.")
    index, _ = index_and_folders(folders)
    assert index == index_and_folders(folders)[0]
    assert len(index.name) < 90
    (folders[0] / "in").mkdir()
    with pytest.raises(InputError, match="one folder is in another"):
        index_and_folders([folders[0] / "in", folders[0]])


def test_an_index_of_other_folders_is_refused(folders: list[Path]) -> None:
    """Before it is served: its folders are still there, and others have their names."""
    index, _ = index_and_folders(folders)
    others = [folder.parent / "other" / folder.name for folder in folders]
    for folder, other in zip(folders, others, strict=True):
        shutil.copytree(folder, other)
    shutil.copytree(index, others[0].parent / index.name)
    with pytest.raises(InputError, match="the index was built from another folder"):
        index_and_folders(others)
