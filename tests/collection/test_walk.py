"""Are the files of a folder found in order, without what is hidden, ignored or excluded?"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.collection.files.walk import walk
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
    return [path.as_posix() for path in walk(folder, Intake(), **patterns)]


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
    assert list(walk(folder, Intake())) == sorted(files)


def test_gitignore(tmp_path: Path) -> None:
    """As git: inner files decide over outer ones, and nothing below an ignored folder is read."""
    fill(
        tmp_path, "a.log", "keep.log", "b.txt", "build/c.txt", "sub/d.log", "sub/e.log", "sub/f.txt"
    )
    fill(tmp_path, _="*.log\n!keep.log\nbuild/\n!\n", sub="!d.log\nf.txt")
    intake = Intake()
    assert [p.as_posix() for p in walk(tmp_path, intake)] == ["b.txt", "keep.log", "sub/d.log"]
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
    intake = Intake()
    assert [p.as_posix() for p in walk(tmp_path, intake)] == ["a/b.txt", "c.txt"]
    assert dict(intake.notes) == {"link to a folder, broken link or special file not read": 2}
