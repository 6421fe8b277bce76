"""Are the files of a folder found in order, without what is hidden, ignored or excluded?"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.collection.files.open_below import open_file
from birchbark.collection.files.walk import OUTSIDE, chosen_files, walk
from birchbark.collection.parsing.intake import Intake
from birchbark.errors import InputError

NAMES = st.lists(st.sampled_from(["a", "b.md", "B", "a b", "é", "_", "0"]), min_size=1, max_size=3)


def fill(folder: Path, *names: str, **contents: str) -> Path:
    """Write files below `folder`. contents: of .gitignore files, by folder."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    for name, text in contents.items():
        (folder / name.strip("_") / ".gitignore").write_text(text)
    return folder


def names(folder: Path, **patterns: list[str]) -> list[str]:
    """Return the paths that are read."""
    return [file.path.as_posix() for file in walk(folder, Intake(), **patterns)]


@given(st.lists(NAMES.map("/".join)))
def test_all_files_in_order_of_path(
    tmp_path_factory: pytest.TempPathFactory, paths: list[str]
) -> None:
    """Sorted by the names of folders and files, so that the files of a folder stay together."""
    folder = tmp_path_factory.mktemp("walk")
    for path in paths:
        is_file = any((folder / part).is_file() for part in Path(path).parents)
        if not is_file and not (folder / path).exists():
            fill(folder, path)
    files = [file.relative_to(folder) for file in folder.rglob("*") if file.is_file()]
    assert [file.path for file in walk(folder, Intake())] == sorted(files)


def test_gitignore(tmp_path: Path) -> None:
    """As in git, inner files decide over outer ones; nothing below an ignored folder is read."""
    fill(
        tmp_path, "a.log", "keep.log", "b.txt", "build/c.txt", "sub/d.log", "sub/e.log", "sub/f.txt"
    )
    fill(tmp_path, _="*.log\n!keep.log\nbuild/\n!\n", sub="!d.log\nf.txt")
    intake = Intake()
    found = [file.path.as_posix() for file in walk(tmp_path, intake)]
    assert found == ["b.txt", "keep.log", "sub/d.log"]
    assert dict(intake.notes) == {
        "hidden file not read": 2,  # the .gitignore files
        "file not read, because of .gitignore": 3,
        "folder not read, because of .gitignore": 1,
    }


def test_patterns(tmp_path: Path) -> None:
    """Only what is included and not excluded; patterns apply to files in subfolders as well."""
    fill(tmp_path, "a.md", "b.txt", "drafts/c.md", "docs/d.md", "docs/old/e.md")
    assert names(tmp_path, include=["*.md"]) == [
        "a.md",
        "docs/d.md",
        "docs/old/e.md",
        "drafts/c.md",
    ]
    assert names(tmp_path, exclude=["drafts/", "old"]) == ["a.md", "b.txt", "docs/d.md"]
    assert names(tmp_path, include=["docs/*.md"], exclude=["d.md"]) == []
    assert names(tmp_path, include=["docs/**"], exclude=["old/"]) == ["docs/d.md"]


@pytest.mark.parametrize("pattern", ["", " ", "!", "\\"])
def test_invalid_patterns(tmp_path: Path, pattern: str) -> None:
    """The message shows valid ones."""
    with pytest.raises(InputError, match=r"invalid pattern .*expected .*\*\.md"):
        names(tmp_path, include=[pattern])


def test_links(tmp_path: Path) -> None:
    """Links to files are read; links to folders are not, since they may lead in circles."""
    fill(tmp_path, "a/b.txt")
    (tmp_path / "c.txt").symlink_to("a/b.txt")
    (tmp_path / "a/up").symlink_to(tmp_path)
    (tmp_path / "broken").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "to-pipe.txt").symlink_to("pipe.txt")
    intake = Intake()
    found = {file.path.as_posix(): file.status for file in walk(tmp_path, intake)}
    assert found == dict.fromkeys(["a/b.txt", "c.txt"], (tmp_path / "a/b.txt").stat())
    assert dict(intake.notes) == {"link to a folder, broken link or special file not read": 4}


def test_links_out_of_the_folder(tmp_path: Path) -> None:
    """They are read on request alone, and told otherwise; those that stay in it always are."""
    folder = fill(tmp_path / "files", "a/b.txt")
    fill(tmp_path, "outside.txt", "files-too/d.txt")
    (folder / "environ").symlink_to("/proc/self/environ")
    (folder / "near.txt").symlink_to("../outside.txt")
    (folder / "name.txt").symlink_to("../files-too/d.txt")
    (folder / "a/absolute.txt").symlink_to(folder / "a/b.txt")
    (folder / "a/around.txt").symlink_to("../../files/a/b.txt")
    intake = Intake()
    inside = ["a/absolute.txt", "a/around.txt", "a/b.txt"]
    assert [file.path.as_posix() for file in walk(folder, intake)] == inside
    assert dict(intake.notes) == {OUTSIDE: 3}
    everything = walk(folder, Intake(), follow_links=True)
    outside = ["environ", "name.txt", "near.txt"]
    assert [file.path.as_posix() for file in everything] == [*inside, *outside]
    read = chosen_files(folder, Intake())
    assert [path.name for path, _ in read] == ["absolute.txt", "around.txt", "b.txt"]


def test_a_gitignore_file_is_one_of_the_folder(tmp_path: Path) -> None:
    """Git reads none from elsewhere, and neither does the walk, which tells so."""
    fill(tmp_path / "files", "a.log")
    (tmp_path / "patterns").write_text("*.log")
    (tmp_path / "files/.gitignore").symlink_to("../patterns")
    intake = Intake()
    assert [file.path.name for file in walk(tmp_path / "files", intake)] == ["a.log"]
    assert intake.notes[".gitignore that is no file of the folder not read"] == 1


def test_an_immense_gitignore_file_is_not_read(tmp_path: Path) -> None:
    """It may be larger than the memory, and take no room on the disk."""
    fill(tmp_path, "a.log")
    with (tmp_path / ".gitignore").open("wb") as file:
        file.truncate(1 << 40)
    intake = Intake()
    assert [file.path.name for file in walk(tmp_path, intake)] == ["a.log"]
    assert intake.notes[".gitignore with more than 50,000 bytes not read"] == 1


def test_gitignore_files_of_many_patterns_are_not_read(tmp_path: Path) -> None:
    """Those above a name count together: each of them is compared with it."""
    fill(tmp_path, "a.log", "inner/b.log", "inner/c.tmp")
    (tmp_path / ".gitignore").write_text("*.log\n" * 600)
    (tmp_path / "inner/.gitignore").write_text("*.tmp\n" * 600)
    intake = Intake()
    assert [file.path.name for file in walk(tmp_path, intake)] == ["c.tmp"]
    assert intake.notes[".gitignore not read, with which there are over 1,000 patterns"] == 1


def test_deeply_nested_folders(tmp_path: Path) -> None:
    """Paths may be longer than the system's; what is below too many folders is told."""
    depth, at, name = 1_100, os.open(tmp_path, os.O_RDONLY), "f" * 40
    try:
        for level in range(depth):
            os.mkdir(name, dir_fd=at)
            inner = os.open(name, os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = inner
            if level in (199, 200, depth - 1):
                os.close(os.open("a.txt", os.O_CREAT | os.O_WRONLY, dir_fd=at))
        open_before = len(list(Path("/dev/fd").iterdir()))
        intake = Intake()
        found = walk(tmp_path, intake)
        path = Path(*[name] * 200, "a.txt")
        assert next(found).path == path
        assert len(list(Path("/dev/fd").iterdir())) == open_before
        assert list(found) == []
        assert dict(intake.notes) == {"folder below 200 others not read": 1}
        with open_file(tmp_path, path) as file:
            assert file.read() == b""
    finally:
        os.close(at)
        subprocess.run(["rm", "-r", tmp_path / name], check=True)  # pytest cannot
