"""Is what is written there whole, or not there at all?"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from birchbark.artifact import fingerprint, new_directory, new_file, read_json, write_json
from birchbark.errors import ArtifactError, InputError


def test_a_failing_block_leaves_nothing(tmp_path: Path) -> None:
    """Neither the directory nor a scratch one."""
    with pytest.raises(RuntimeError), new_directory(tmp_path / "x") as scratch:
        (scratch / "half").write_text("…")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_a_failing_block_keeps_the_old_file(tmp_path: Path) -> None:
    """What was there before stays until the new one is whole."""
    target = tmp_path / "x"
    target.write_text("old")
    with pytest.raises(RuntimeError), new_file(target) as out:
        out.write("new")
        raise RuntimeError
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_an_existing_directory_is_not_overwritten(tmp_path: Path) -> None:
    """Unless that is asked for."""
    with pytest.raises(InputError, match="already exists"), new_directory(tmp_path):
        pass


def test_replace_swaps_the_whole_directory(tmp_path: Path) -> None:
    """Nothing of the old one remains."""
    for name in ("old", "new"):
        with new_directory(tmp_path / "x", replace=True) as scratch:
            (scratch / name).write_text("")
    assert [p.name for p in (tmp_path / "x").iterdir()] == ["new"]


def test_json_round_trip_and_damage(tmp_path: Path) -> None:
    """What cannot be read is an ArtifactError that names the file."""
    path = tmp_path / "m.json"
    write_json(path, {"ö": 1})
    assert read_json(path, "thing") == {"ö": 1}
    path.write_text("{")
    with pytest.raises(ArtifactError, match=r"m\.json: damaged thing"):
        read_json(path, "thing")
    with pytest.raises(InputError, match="no thing here"):
        read_json(tmp_path / "none.json", "thing")


def test_fingerprint_tells_files_apart(tmp_path: Path) -> None:
    """Content and order count, not the split of bytes between files."""
    a, b, c = (tmp_path / n for n in "abc")
    a.write_text("1")
    b.write_text("23")
    c.write_text("12")
    assert fingerprint(a, b) != fingerprint(b, a)
    assert fingerprint(a, b) != fingerprint(c, a)


def test_what_appears_meanwhile_is_not_deleted(tmp_path: Path) -> None:
    """Somebody made the target while we were working: it stays, and we say so."""
    with pytest.raises(InputError, match="already exists"), new_directory(tmp_path / "x"):
        (tmp_path / "x").mkdir()
        (tmp_path / "x" / "thesis").write_text("precious")
    assert (tmp_path / "x" / "thesis").read_text() == "precious"
    assert len(list(tmp_path.iterdir())) == 1


def test_replacing_is_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Directories are exchanged, not renamed one after the other, where the system can."""
    with new_directory(tmp_path / "x"):
        pass
    monkeypatch.setattr(Path, "rename", None)
    with new_directory(tmp_path / "x", replace=True) as scratch:
        (scratch / "new").write_text("")
    assert [p.name for p in (tmp_path / "x").iterdir()] == ["new"]


def test_links_and_pipes_are_written_through(tmp_path: Path) -> None:
    """A link keeps pointing where it did; what is no file is not replaced by one."""
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
    """Files of a private user stay private."""
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
