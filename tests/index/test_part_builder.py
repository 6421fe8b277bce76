"""Does a part have its documents, their totals, and a checksum of its files?"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from birchbark.index.build_index import Schema
from birchbark.index.layout import FieldTotals
from birchbark.index.part import Part
from birchbark.index.part_builder import PartBuilder, field_totals, part_checksum
from birchbark.index.vocabulary import Vocabulary
from birchbark.records import Document
from birchbark.text.analyzer import analyzer


def builder(directory: Path) -> PartBuilder:
    return PartBuilder(directory, Schema("plain").manifest(), [Vocabulary(analyzer("plain"))])


def test_a_part_has_what_was_added(tmp_path: Path) -> None:
    """Documents are numbered in the order in which they were added."""
    new = builder(tmp_path / "part-1")
    new.add(Document("b", {"text": "bee river bee"}), {})
    new.add(Document("a", {"text": ""}), {})
    assert len(new) == 2
    entry = new.close()
    assert (entry.name, entry.documents) == ("part-1", 2)
    assert entry.fields == (FieldTotals(1, 3),)
    part = Part(tmp_path, entry, forward=False)
    assert list(part.live_documents()) == [("b", {"text": "bee river bee"}), ("a", {"text": ""})]
    assert part.fields[0].terms() == ["bee", "river"]


def test_a_part_is_full_when_its_tokens_are_counted(tmp_path: Path) -> None:
    """Characters are an upper bound, after which tokens are counted."""
    new = builder(tmp_path / "part-1")
    new.add(Document("a", {"text": "bee river"}), {})
    assert not new.reaches(10)
    assert not new.reaches(3)
    assert new.reaches(2)


def test_the_checksum_is_of_the_files_of_the_part_alone(tmp_path: Path) -> None:
    """Lists of deletions and folders of attached rows, which come later, do not count."""
    new = builder(tmp_path / "part-1")
    new.add(Document("a", {"text": "bee"}), {})
    entry = new.close()
    (tmp_path / "part-1" / "deleted-2.npy").write_text("x")
    (tmp_path / "part-1" / "attached-x-2").mkdir()
    assert part_checksum(tmp_path / "part-1") == entry.checksum
    (tmp_path / "part-1" / "other").write_text("x")
    assert part_checksum(tmp_path / "part-1") != entry.checksum


def test_totals_count_documents_with_tokens() -> None:
    """The sum may be larger than a length can be."""
    assert field_totals(np.array([0, 2**32 - 1, 0, 1], np.uint32)) == FieldTotals(2, 2**32)
