"""Is damage found in whichever file of an index it is?"""

from __future__ import annotations

from pathlib import Path

from birchbark.index.build_index import build_index
from birchbark.index.verify import find_damage
from birchbark.index.writer import IndexWriter
from conftest import DOCUMENTS


def test_damage_is_located(tmp_path: Path) -> None:
    """One changed byte in any file, including the list of deletions, is found."""
    build_index(DOCUMENTS, tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        writer.delete("canoe")
    assert find_damage(tmp_path / "i") == []
    files = [p for p in (tmp_path / "i").glob("part-*/**/*") if p.is_file()]
    for file in files:
        intact = file.read_bytes()
        at = len(intact) // 2
        file.write_bytes(intact[:at] + bytes([intact[at] ^ 1]) + intact[at + 1 :])
        (line,) = find_damage(tmp_path / "i")
        assert ("deletions" if "deleted" in file.name else "part-") in line
        file.write_bytes(intact)
    assert find_damage(tmp_path / "i") == []


def test_what_a_commit_replaces_meanwhile_is_not_damage(tmp_path: Path) -> None:
    """The files that replace it are verified, and damage elsewhere is still reported."""
    build_index(DOCUMENTS, tmp_path / "i", part_tokens=1)

    def merge(parts: int) -> None:
        if len([*(tmp_path / "i").glob("part-*")]) > 1:
            with IndexWriter(tmp_path / "i") as writer:
                writer.merge()

    assert find_damage(tmp_path / "i", merge) == []
    build_index(DOCUMENTS, tmp_path / "i", replace=True, part_tokens=1)
    first, *_ = sorted((tmp_path / "i").glob("part-*/texts.blocks"))
    first.write_bytes(b"x" * first.stat().st_size)

    def delete(parts: int) -> None:
        with IndexWriter(tmp_path / "i") as writer:
            writer.delete(DOCUMENTS[-1].doc_id)

    (line,) = find_damage(tmp_path / "i", delete)
    assert first.parent.name in line


def test_a_renamed_file_is_located(tmp_path: Path) -> None:
    """Its contents alone would have the right checksum."""
    build_index(DOCUMENTS, tmp_path / "i")
    (file,) = (tmp_path / "i").glob("part-*/lengths.npy")
    file.rename(file.with_name("lengths2.npy"))
    (line,) = find_damage(tmp_path / "i")
    assert "lengths.npy" in line
