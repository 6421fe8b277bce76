"""Are the fields of documents read as they were stored, from any block?"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from birchbark.errors import ArtifactError
from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.records import Document

ODD = ["a b", "tab\tid", "é日本", "x" * 300, "nul\0", "\N{HONEYBEE}", "'", "../up"]


def test_unusual_ids_and_texts_are_stored(tmp_path: Path) -> None:
    """Ids never become paths; texts may contain any Unicode character."""
    documents = [Document(odd, {"title": odd, "text": f"bee {odd}\n\r\0"}) for odd in ODD]
    index = build_index(documents, tmp_path / "i")
    assert index.documents(ODD) == documents


def test_documents_are_read_from_all_blocks_and_parts(tmp_path: Path) -> None:
    """Stored fields of a collection of several parts, each of several blocks."""
    documents = [Document(f"{i:05}", {"text": f"word{i} " * 40}) for i in range(500)]
    index = build_index(documents, tmp_path / "i", part_tokens=6000)
    assert len(index.parts) == 4
    assert len(index) == 500
    assert index.documents(["00499", "00000", "00250"]) == [
        documents[499],
        documents[0],
        documents[250],
    ]


def test_a_damaged_block_of_stored_fields_is_reported(index: Index, tmp_path: Path) -> None:
    """A block that cannot be decompressed raises ArtifactError."""
    shutil.copytree(index.directory, tmp_path / "i")
    blocks = next((tmp_path / "i").rglob("texts.blocks"))
    blocks.write_bytes(b"\0" * blocks.stat().st_size)
    with pytest.raises(ArtifactError, match="block 0 is damaged"):
        Index(tmp_path / "i").documents(["canoe"])


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (1, "block 0 is damaged: it has another number of documents"),
        (9, "the numbers of documents do not ascend"),
        (None, "texts"),
    ],
)
def test_damaged_starts_of_blocks_give_no_other_document(
    number: int | None, message: str, tmp_path: Path
) -> None:
    """A block that begins with another document would return the text of its neighbour."""
    documents = [Document(f"d{i}", {"text": f"word{i} " * 3_000}) for i in range(6)]
    build_index(documents, tmp_path / "i")
    path = next((tmp_path / "i").rglob("texts.starts.npy"))
    starts = np.load(path)
    assert starts[:, 1].tolist()[:2] == [0, 1]
    if number is None:
        starts[-1, 1] += 1
    else:
        starts[1, 1] += number
    np.save(path, starts)
    with pytest.raises(ArtifactError, match=message):
        Index(tmp_path / "i").documents(["d0"])
