"""Is a file of a folder opened, and never one from outside, whatever is swapped meanwhile?"""

from __future__ import annotations

import os
from pathlib import Path
from threading import Event, Thread

import pytest

from birchbark.collection.documents import read_collection
from birchbark.collection.files.folder_state import FolderSource
from birchbark.collection.files.open_below import OutsideError, open_file
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.parsing.lines import read_limited
from birchbark.errors import InputError, UnreadableError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file in a subfolder, beside a secret with the same names."""
    for name in ("files/sub/a.txt", "secret/sub/a.txt"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(name.split("/")[0])
    return tmp_path / "files"


def contents(folder: Path, name: str, *, follow_links: bool = False) -> str:
    with open_file(folder, Path(name), follow_links=follow_links) as file:
        return file.read().decode()


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("l.txt", "sub/a.txt"),
        ("l.txt", "./sub/../sub/a.txt"),
        ("l.txt", "../files/sub/a.txt"),
        ("sub/l.txt", "a.txt"),
        ("sub/l.txt", "../sub/a.txt"),
    ],
)
def test_links_within_the_folder(folder: Path, link: str, target: str) -> None:
    """They are followed however they are written, by an absolute path or through folders, too."""
    (folder / link).symlink_to(target)
    assert contents(folder, link) == "files"
    (folder / "absolute").symlink_to(folder / link)
    (folder / "to-sub").symlink_to("sub")
    (folder / "through").symlink_to("to-sub/a.txt")
    assert contents(folder, "absolute") == contents(folder, "through") == "files"
    (folder.parent / "elsewhere").symlink_to(folder)
    assert contents(folder.parent / "elsewhere", "absolute") == "files"


@pytest.mark.parametrize(
    "target", ["../secret/sub/a.txt", "/proc/self/environ", "sub/../../secret/sub/a.txt"]
)
def test_links_out_of_the_folder(folder: Path, target: str) -> None:
    """They are followed on request alone, also if a link in the folder leads to them."""
    (folder / "out").symlink_to(target)
    (folder / "sub/in.txt").symlink_to("../out")
    for name in ("out", "sub/in.txt"):
        with pytest.raises(OutsideError, match=f"leads out of the folder: found {target}"):
            contents(folder, name)
        assert contents(folder, name, follow_links=True) == (folder / target).read_text()


def test_a_folder_that_is_a_link_leads_nowhere_else(folder: Path) -> None:
    """It does not, though the name of the file in it is no link."""
    (folder / "to-secret").symlink_to("../secret/sub")
    with pytest.raises(OutsideError):
        contents(folder, "to-secret/a.txt")


@pytest.mark.parametrize(
    "name", ["../secret/sub/a.txt", "sub/../../secret/sub/a.txt", "/etc/passwd"]
)
def test_names_out_of_the_folder(folder: Path, name: str) -> None:
    with pytest.raises(OutsideError):
        contents(folder, name)


def test_circles_of_links(folder: Path) -> None:
    """They end with the error of the operating system."""
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("a")
    (folder / "self").symlink_to("self/self")
    for name in ("a", "self"):
        with pytest.raises(OSError, match="Too many levels"):
            contents(folder, name)


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_is_no_plain_file(folder: Path, kind: str) -> None:
    """It is refused at once; a pipe has no writer that could be waited for."""
    path = folder / "it"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(InputError, match="is not a plain file"):
        contents(folder, "it", follow_links=True)


def test_a_file_that_keeps_readers_waiting(folder: Path) -> None:
    """/proc/kmsg is one and calls itself a plain file; it is not read as an empty text."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    with os.fdopen(read_end, "rb") as file, pytest.raises(BlockingIOError):
        read_limited(file, folder)
    os.close(write_end)


def test_errors_name_the_file(folder: Path) -> None:
    """What is missing now may be there later."""
    source = FolderSource((str(folder),))
    with pytest.raises(UnreadableError, match=r"files/sub/b\.txt: no such file"):
        source.open("sub/b.txt")
    with pytest.raises(UnreadableError, match=r"a\.txt/c: cannot be read: Not a directory"):
        source.open("sub/a.txt/c")


@pytest.mark.parametrize(
    ("folders", "problem"),
    [
        (("a/notes", "b/notes"), "two folders have the same name"),
        (("a/notes", "b", "a"), "one folder is in another"),
    ],
)
def test_folders_that_cannot_be_one_source(folders: tuple[str, ...], problem: str) -> None:
    """They are refused at once; a single one may be anything."""
    with pytest.raises(InputError, match=problem):
        FolderSource(folders)
    assert FolderSource(("a/notes", "b")).locate("notes/c.txt") == (Path("a/notes"), Path("c.txt"))
    assert FolderSource(("",)).locate("a/b.txt") == (Path(), Path("a/b.txt"))


def test_nothing_else_is_read_while_names_are_swapped(folder: Path) -> None:
    """Ten thousand times, a file or its folder may be replaced by a link while it is opened."""
    (folder / "spare").mkdir()
    (folder / "link").symlink_to("../../secret/sub/a.txt")
    (folder / "folder-link").symlink_to("../secret/sub")
    ended = Event()

    def swap() -> None:
        while not ended.is_set():
            for name, link in (("sub", "folder-link"), ("sub/a.txt", "link")):
                (folder / name).rename(folder / "aside")
                (folder / link).rename(folder / name)
                (folder / name).rename(folder / link)
                (folder / "aside").rename(folder / name)

    swapping = Thread(target=swap)
    swapping.start()
    opened, refused = 0, 0
    try:
        for _ in range(10_000):
            try:
                assert contents(folder, "sub/a.txt") == "files"
                opened += 1
            except (OutsideError, OSError):
                refused += 1
    finally:
        ended.set()
        swapping.join()
    assert opened
    assert refused


@pytest.mark.parametrize(
    ("format_name", "name", "text"),
    [
        ("trec", "{}.sgml", "<DOC>\n<DOCNO>{}</DOCNO>\n<TEXT>x</TEXT>\n</DOC>\n"),
        ("nyt", "{}.xml", '<doc-id id-string="{}"/><hl1>x</hl1>'),
    ],
)
@pytest.mark.parametrize("follow_links", [False, True])
def test_collections_in_folders(
    tmp_path: Path, format_name: str, name: str, text: str, follow_links: bool
) -> None:
    """A link that is put in the place of a file after the walk is not followed without request."""
    folder, secret = tmp_path / "files", tmp_path / "secret"
    folder.mkdir()
    secret.write_text(text.format("secret"))
    for number in "12":
        (folder / name.format(number)).write_text(text.format(number))
    intake = Intake(skip_bad=True, follow_links=follow_links)
    documents = read_collection(str(folder), intake, format_name)
    assert next(documents).doc_id == "1"
    (folder / name.format(2)).unlink()
    (folder / name.format(2)).symlink_to(secret)
    assert [document.doc_id for document in documents] == ["secret"] * follow_links
    assert [type(error) for error in intake.skipped] == [OutsideError] * (not follow_links)
