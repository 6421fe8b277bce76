"""Are files and directories written atomically?"""

from __future__ import annotations

import errno
import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from birchbark.artifact import (
    can_exist,
    fingerprint,
    lock,
    new_directory,
    new_file,
    read_json,
    refuse_existing,
    write_json,
)
from birchbark.errors import ArtifactError, InputError


@pytest.mark.parametrize("name", ["9" * 256, "a/" * 4000, "a\0b", "\ud800"])
def test_names_that_no_file_has(tmp_path: Path, name: str) -> None:
    """They are told from those of files that do not exist, without an error."""
    assert not can_exist(tmp_path / name)
    assert can_exist(tmp_path / name[:1].replace("\ud800", "ä"))


def test_failing_block_leaves_nothing(tmp_path: Path) -> None:
    """Neither the target nor the temporary directory remains."""
    with pytest.raises(RuntimeError), new_directory(tmp_path / "x") as scratch:
        (scratch / "half").write_text("…")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_failing_block_keeps_old_file(tmp_path: Path) -> None:
    """An existing file is unchanged until the new one is complete."""
    target = tmp_path / "x"
    target.write_text("old")
    with pytest.raises(RuntimeError), new_file(target) as out:
        out.write("new")
        raise RuntimeError
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_existing_directory_is_not_overwritten(tmp_path: Path) -> None:
    """Without `replace`, an existing directory is an error, unless it is empty."""
    target = tmp_path / "x"
    target.mkdir()
    with new_directory(target, check=pytest.fail) as scratch:
        (scratch / "new").touch()
    with pytest.raises(InputError, match="already exists"), new_directory(target):
        pass
    assert [*target.iterdir()] == [target / "new"]


def test_folders_that_cannot_be_replaced_are_refused_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty one is refused before any work if it is mounted, or the process is in it."""
    monkeypatch.chdir(tmp_path)
    for target in (Path(), tmp_path):
        with pytest.raises(InputError, match="already exists"):
            refuse_existing(target)
    monkeypatch.chdir("/")
    refuse_existing(tmp_path)
    monkeypatch.setattr(os.path, "ismount", lambda path: path == tmp_path)
    with pytest.raises(InputError, match="already exists"):
        refuse_existing(tmp_path)


def test_replace_swaps_the_directory(tmp_path: Path) -> None:
    """No file of the old directory remains."""
    for name in ("old", "new"):
        with new_directory(tmp_path / "x", replace=True) as scratch:
            (scratch / name).write_text("")
    assert [p.name for p in (tmp_path / "x").iterdir()] == ["new"]


def test_directories_of_killed_processes_are_deleted(tmp_path: Path) -> None:
    """Those of running processes stay, and so do folders of other programs."""
    code = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from birchbark.artifact import new_directory\n"
        "with new_directory(Path('x')) as scratch:\n"
        "    (scratch / 'half').write_text('')\n"
        "    print(scratch.name, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    (tmp_path / ".birchbark-tmp-mine").mkdir()
    command = [sys.executable, "-c", code]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout
        scratch = tmp_path / process.stdout.readline().strip()
        with new_directory(tmp_path / "y"):
            assert (scratch / "half").exists()
        process.kill()
    assert (scratch / "half").exists()
    with new_directory(tmp_path / "z"):
        assert not scratch.exists()
    assert {path.name for path in tmp_path.iterdir()} == {".birchbark-tmp-mine", "y", "z"}


def test_json_round_trip_and_damage(tmp_path: Path) -> None:
    """Damaged JSON raises an ArtifactError that names the file."""
    path = tmp_path / "m.json"
    write_json(path, {"ö": 1})
    assert read_json(path, "thing") == {"ö": 1}
    path.write_text("{")
    with pytest.raises(ArtifactError, match=r"m\.json: damaged thing"):
        read_json(path, "thing")
    with pytest.raises(InputError, match="no thing here"):
        read_json(tmp_path / "none.json", "thing")


def test_fingerprint_distinguishes_files(tmp_path: Path) -> None:
    """A fingerprint depends on the content, order and boundaries of files."""
    a, b, c = (tmp_path / n for n in "abc")
    a.write_text("1")
    b.write_text("23")
    c.write_text("12")
    assert fingerprint(a, b) != fingerprint(b, a)
    assert fingerprint(a, b) != fingerprint(c, a)


def test_target_created_meanwhile_is_not_deleted(tmp_path: Path) -> None:
    """A target that another process creates during the block remains; an error is raised."""
    with pytest.raises(InputError, match="already exists"), new_directory(tmp_path / "x"):
        (tmp_path / "x").mkdir()
        (tmp_path / "x" / "thesis").write_text("precious")
    assert (tmp_path / "x" / "thesis").read_text() == "precious"
    assert len(list(tmp_path.iterdir())) == 1


def test_replacing_is_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Directories are swapped atomically if the operating system can."""
    with new_directory(tmp_path / "x"):
        pass
    monkeypatch.setattr(Path, "rename", None)
    with new_directory(tmp_path / "x", replace=True) as scratch:
        (scratch / "new").write_text("")
    assert [p.name for p in (tmp_path / "x").iterdir()] == ["new"]


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("late", [False, True])
def test_an_interrupted_replacement_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, late: bool
) -> None:
    """Where directories are swapped by renames, the old or the new one is there after Ctrl-C."""
    with new_directory(tmp_path / "x") as scratch:
        (scratch / "old").touch()
    monkeypatch.setattr("birchbark.artifact.HAS_FOLDER_HANDLES", False)
    rename, steps = Path.rename, itertools.count(1)

    def interrupted(path: Path, to: Path) -> None:
        now = next(steps) == step
        if not now or late:
            rename(path, to)
        if now:
            raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt), new_directory(tmp_path / "x", replace=True) as scratch:
        (scratch / "new").touch()
    kept = "new" if (step, late) == (2, True) else "old"
    assert [path.name for path in (tmp_path / "x").iterdir()] == [kept]


def test_an_old_directory_that_cannot_be_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new one is in place, which is no error."""
    with new_directory(tmp_path / "x") as scratch:
        (scratch / "old").touch()

    def stays(path: Path, *, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            raise OSError("directory not empty")

    monkeypatch.setattr("shutil.rmtree", stays)
    with new_directory(tmp_path / "x", replace=True) as scratch:
        (scratch / "new").touch()
    assert [path.name for path in (tmp_path / "x").iterdir()] == ["new"]


def test_links_and_pipes_are_written_through(tmp_path: Path) -> None:
    """A link keeps its target, and a pipe or open stream is not replaced by a file."""
    (tmp_path / "there").write_text("old")
    (tmp_path / "link").symlink_to("there")
    with new_file(tmp_path / "link") as out:
        out.write("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there").read_text() == "new"
    reading, writing = os.pipe()
    with new_file(Path(f"/dev/fd/{writing}")) as out:
        out.write("through")
    os.close(writing)
    assert os.read(reading, 100) == b"through"
    os.close(reading)
    log = (tmp_path / "log").open("w")
    log.write("before\n")
    log.flush()
    with new_file(Path(f"/dev/fd/{log.fileno()}")) as out:
        out.write("ours\n")
    log.write("after\n")
    log.close()
    assert (tmp_path / "log").read_text() == "before\nours\nafter\n"


def test_modes_follow_the_umask(tmp_path: Path) -> None:
    """With a private umask, new files are private."""
    old = os.umask(0o077)
    try:
        with new_file(tmp_path / "f") as out:
            out.write("x")
        with new_directory(tmp_path / "d"):
            pass
    finally:
        os.umask(old)
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "d").stat().st_mode & 0o777 == 0o700


def test_the_umask_is_never_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change of even a moment would open files of other threads to everyone."""
    monkeypatch.setattr(os, "umask", None)
    (tmp_path / "plain").touch()
    (tmp_path / "folder").mkdir()
    write_json(tmp_path / "f", 1)
    with new_directory(tmp_path / "d"):
        pass
    assert (tmp_path / "f").stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert (tmp_path / "d").stat().st_mode == (tmp_path / "folder").stat().st_mode


def test_a_lock_follows_no_link_and_truncates_nothing(tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text("mine")
    (tmp_path / "write.lock").symlink_to(tmp_path / "own.txt")
    with pytest.raises(OSError):
        lock(tmp_path / "write.lock", "index")
    lock(tmp_path / "own.txt", "index").close()
    assert (tmp_path / "own.txt").read_text() == "mine"
    held = lock(tmp_path / "new.lock", "index")
    with pytest.raises(ArtifactError, match="another process"):
        lock(tmp_path / "new.lock", "index")
    held.close()
    lock(tmp_path / "new.lock", "index").close()


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the file, which is closed."""
    handles: list[int] = []

    def refuse(handle: int) -> None:
        handles.append(handle)
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("birchbark.artifact.lock_handle", refuse)
    with pytest.raises(ArtifactError, match=r"x\.lock: the index cannot be locked: No locks"):
        lock(tmp_path / "x.lock", "index")
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(handles[0])
