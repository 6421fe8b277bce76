"""Are attached rows read as they were stored, or refused if they are damaged?"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from attached_words import SCHEMA, assert_rows, attachment, words_in, words_of

from birchbark.errors import ArtifactError
from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.index.verify import find_damage
from birchbark.index.writer import IndexWriter
from conftest import DOCUMENTS


def test_rows_are_views_of_mapped_files(tmp_path: Path) -> None:
    """Rows are not copied, and are read-only."""
    build_index(DOCUMENTS, tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        writer.attach("words", SCHEMA, words_of())
    words = attachment(tmp_path / "i")
    (rows,) = words.rows(["bees"])
    assert rows is not None
    for name, values in rows.items():
        assert np.shares_memory(values, words.folders[0][0].values[name])
        assert not values.flags.writeable


def damaged(directory: Path) -> Iterable[Path]:
    """Damage each attached file in turn: change each byte, cut off the last, remove the file."""
    for file in sorted(directory.glob("part-*/attached-*/*")):
        intact = file.read_bytes()
        for at in range(len(intact)):
            file.write_bytes(intact[:at] + bytes([intact[at] ^ 0x41]) + intact[at + 1 :])
            yield file
        file.write_bytes(intact[:-1])
        yield file
        file.unlink()
        yield file
        file.write_bytes(intact)


@pytest.mark.parametrize("covered", ["all", "some"])
def test_damage_never_returns_wrong_rows(tmp_path: Path, covered: str) -> None:
    """With one wrong byte, reading gives the right rows, none, or an error; verify finds it."""
    build_index(DOCUMENTS[:3], tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        writer.attach("words", SCHEMA, words_of())
        if covered == "some":
            writer.add(DOCUMENTS[3])
            writer.merge()
    errors = 0
    for file in damaged(tmp_path / "i"):
        (line,) = find_damage(tmp_path / "i")
        assert str(file.parent) in line
        index = Index(tmp_path / "i")  # the rest of the index is usable
        for document in DOCUMENTS[:3]:
            try:
                (rows,) = attachment(index).rows([document.doc_id])
            except ArtifactError as error:
                assert "attached-words" in str(error)
                errors += 1
            else:
                if rows is not None:
                    assert_rows(rows, words_in(document))
    assert errors > 500
    assert find_damage(tmp_path / "i") == []
