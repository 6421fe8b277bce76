"""Do patterns select the paths that git ignores, in a time that grows no faster than they do?"""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path, PurePath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.collection.files.ignore_patterns import IgnorePatterns
from birchbark.collection.files.walk import walk
from birchbark.collection.parsing.intake import Intake

FOLDERS, FILES = ("a", "ab", "-"), ("b", "aab", "a b", "c*", "[a", "]", "B0\\", "a!#")
PIECES = ["a", "b", "ab", "?", "[ab]", "[!a]", "[^b-z]", "[a-]", "[]a]", "[[:alpha:]]", "[\\]]"]
PIECES += ["\\a", "\\*", "\\[", "[", "-", "#", "!", " ", "\\ ", "0", "\\\\", "[a/b]", "[z-a]"]
NAME = st.lists(st.sampled_from(PIECES), min_size=1, max_size=3).flatmap(
    lambda pieces: st.sampled_from(["".join(pieces), "*".join(pieces), f"*{pieces[0]}", "*"])
)
PATTERN = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(NAME | st.just("**"), min_size=1, max_size=4).map("/".join),
    st.sampled_from(["", "", "/", " ", "  ", "\r"]),
)
PATTERNS = st.lists(PATTERN, max_size=4)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("git"):
        pytest.skip("needs git")
    top = tmp_path_factory.mktemp("repository")
    folders = [PurePath(), *map(PurePath, FOLDERS)]
    folders += [PurePath(outer, inner) for outer in FOLDERS for inner in FOLDERS]
    for folder in folders:
        (top / folder).mkdir(exist_ok=True)
        for name in FILES:
            (top / folder / name).touch()
    subprocess.run(["git", "init", "-q", top], check=True)
    return top


@given(PATTERNS, PATTERNS)
def test_as_git(repository: Path, outer: list[str], inner: list[str]) -> None:
    """Git lists the same files, with a .gitignore file at the top and one further down."""
    (repository / ".gitignore").write_text("\n".join(outer) + "\n")
    (repository / "a/.gitignore").write_text("\n".join(inner) + "\n")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--others", "--exclude-per-directory=.gitignore"],
        cwd=repository,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    expected = {name for name in listed.split("\0") if name and not name.endswith(".gitignore")}
    assert {file.path.as_posix() for file in walk(repository, Intake())} == expected


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 14 + "*b", "a" * 200),
        ("*?" * 100 + "b", "a" * 255),
        ("*[ab]" * 50 + "c", "ab" * 120),
        ("**/a/" * 40 + "b", "a/" * 2_000 + "a"),
        ("**/*a*/" * 40 + "b", "aaa/" * 1_000 + "a"),
        ("*a/" * 60 + "b", ("a" * 60 + "/") * 60 + "a"),
        ("[" * 4_000, "[" * 255),
        ("[:" * 2_000, "a"),
        (" " * 4_000 + "a", " " * 255),
    ],
)
def test_no_pattern_takes_long(pattern: str, path: str) -> None:
    """Those that have to try again where a `*` ends, at each of many.

    Each takes milliseconds; the best of three runs, since one may collect other tests' garbage.
    """
    taken = []
    for _ in range(3):
        start = time.thread_time()
        assert not IgnorePatterns.of_file(pattern).decide(PurePath(path), is_folder=False)
        taken.append(time.thread_time() - start)
    assert min(taken) < 1


def test_selected_below_a_folder() -> None:
    """A pattern that selects a folder selects its files; the last one that matches decides."""
    patterns = IgnorePatterns.of_lines(["docs/", "!*.txt", "docs/old/keep.txt"])
    assert patterns.select(PurePath("docs/old/a.md"))
    assert not patterns.select(PurePath("docs/old/a.txt"))
    assert patterns.select(PurePath("docs/old/keep.txt"))
    assert not patterns.select(PurePath("docs"))
