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


def test_a_renamed_file_is_located(tmp_path: Path) -> None:
    """Its contents alone would have the right checksum."""
    build_index(DOCUMENTS, tmp_path / "i")
    (file,) = (tmp_path / "i").glob("part-*/lengths.npy")
    file.rename(file.with_name("lengths2.npy"))
    (line,) = find_damage(tmp_path / "i")
    assert "lengths.npy" in line
