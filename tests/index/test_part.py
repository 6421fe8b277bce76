"""Is a part opened without being read, and damage in it reported?"""

from __future__ import annotations

import shutil
from mmap import mmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from birchbark.errors import ArtifactError, InputError
from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.index.verify import find_damage
from birchbark.records import Document
from birchbark.retrieve.first_stage import FirstStage, rank_query
from birchbark.retrieve.rm3 import RM3
from conftest import DOCUMENTS


def test_a_frequency_above_65535(tmp_path: Path) -> None:
    """Frequencies are not capped."""
    index = build_index([Document("d", {"text": "bee " * 70_000})], tmp_path / "i")
    postings = index.parts[0].fields[0].postings("bee")
    assert postings is not None
    assert postings.tfs.tolist() == [70_000]


def test_missing_and_damaged_files_are_reported(index: Index, tmp_path: Path) -> None:
    """Opening the index fails, and the error names the part."""
    shutil.copytree(index.directory, tmp_path / "i")
    lengths = next((tmp_path / "i").rglob("lengths.npy"))
    lengths.write_bytes(b"not an array")
    with pytest.raises(ArtifactError, match="part-000001-000: damaged index"):
        Index(tmp_path / "i")
    lengths.unlink()
    with pytest.raises(ArtifactError, match="damaged index"):
        Index(tmp_path / "i")


def test_another_vocabulary_is_refused(tmp_path: Path) -> None:
    """One that was cut would make known words unknown, in queries and in new documents."""
    vocabulary = ("[UNK]", *"abcdefghijklmnopqrstuvwxyz", *(f"##{c}" for c in "abcdefghijklm"))
    schema = Schema(analyzer="wordpiece", vocabulary=vocabulary)
    folder = build_index(DOCUMENTS, tmp_path / "i", schema).directory
    path = folder / "vocab.txt"
    path.write_text("\n".join(path.read_text().split("\n")[:-3]))
    with pytest.raises(ArtifactError, match=r"vocab\.txt: damaged vocabulary"):
        rank_query(Index(folder), "bee")
    path.unlink()
    with pytest.raises(ArtifactError, match=r"damaged vocabulary"):
        rank_query(Index(folder), "bee")


def test_arrays_are_memory_mapped(index: Index) -> None:
    """An index may therefore be larger than memory."""
    part = index.parts[0]
    for array in (part.lengths, part.postings.words, part.postings.starts):
        memory: Any = array
        while isinstance(memory, np.ndarray):
            memory = memory.base
        assert isinstance(memory.obj if isinstance(memory, memoryview) else memory, mmap)


@pytest.mark.parametrize(
    "name", ["terms.bytes", "doc_ids.bytes", "postings.words", "lengths.npy", "texts.blocks"]
)
def test_truncated_files_are_detected_on_opening(index: Index, tmp_path: Path, name: str) -> None:
    """Otherwise half a term table would look like an index without the missing terms."""
    shutil.copytree(index.directory, tmp_path / "i")
    file = next((tmp_path / "i").rglob(name))
    file.write_bytes(file.read_bytes()[:-4])
    with pytest.raises(ArtifactError, match="damaged index"):
        Index(tmp_path / "i")


def test_damaged_postings_are_reported(tmp_path: Path) -> None:
    """A wrong byte in a list never leads to reading or writing outside of an array."""
    documents = [Document(f"d{i:03}", {"text": "bee " + "honey " * (i % 3)}) for i in range(300)]
    build_index(documents, tmp_path / "i", Schema(forward=True))
    errors = 0
    for name in ("postings.words", "postings.starts.npy", "terms.offsets.npy", "forward.words"):
        file = next((tmp_path / "i").rglob(name))
        intact = file.read_bytes()
        for at in range(128 if name.endswith("npy") else 0, len(intact), 7):
            file.write_bytes(intact[:at] + bytes([intact[at] ^ 0xFF]) + intact[at + 1 :])
            try:
                index = Index(tmp_path / "i")
                assert len(rank_query(index, "bee honey", depth=5)) <= 300
                assert len(rank_query(index, "bee honey", FirstStage(expansion=RM3()))) <= 300
            except (ArtifactError, InputError):
                errors += 1
        file.write_bytes(intact)
    assert errors > 10


def test_the_last_list_is_not_read_beyond_its_end(tmp_path: Path) -> None:
    """One document of 1,023 terms fills the words to the last byte of a page."""
    text = " ".join(f"w{i}" for i in range(1023))
    index = build_index([Document("d", {"text": text})], tmp_path / "i")
    assert len(index.parts[0].postings.words) == 1024
    assert index.document_frequencies(("w999", "w1022"), "contents") == {"w999": 1, "w1022": 1}
    assert len(rank_query(index, text)) == 1


def test_a_part_that_is_a_link_is_refused(tmp_path: Path) -> None:
    """The error is a sentence that says what to do."""
    build_index(DOCUMENTS, tmp_path / "i")
    (part,) = (tmp_path / "i").glob("part-*")
    part.rename(tmp_path / "part")
    part.symlink_to(tmp_path / "part")
    with pytest.raises(ArtifactError, match=r"part-.*is a symbolic link.*move the folder"):
        Index(tmp_path / "i")
    assert len(find_damage(tmp_path / "i")) == 1
