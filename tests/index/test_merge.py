"""Are parts merged into one that equals a part built from their documents?"""

from __future__ import annotations

from pathlib import Path

from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.index.layout import PartEntry
from birchbark.index.merge import merged_numbers, parts_to_merge, union_of_terms
from birchbark.index.writer import IndexWriter
from birchbark.records import Document
from conftest import DOCUMENTS


def test_a_merged_index_has_the_bytes_of_a_new_one(tmp_path: Path) -> None:
    """Its files do not depend on its history."""
    build_index(DOCUMENTS[:2], tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        writer.add(Document("gone", {"text": "zeppelin"}))
        writer.commit()
        for document in DOCUMENTS[2:]:
            writer.add(document)
        writer.delete("gone")
        writer.merge()
    rebuilt = build_index(DOCUMENTS, tmp_path / "fresh")
    ours, theirs = Index(tmp_path / "i").parts[0].name, rebuilt.parts[0].name
    files = [p for p in (tmp_path / "fresh" / theirs).rglob("*") if p.is_file()]
    assert len(files) > 10
    for file in files:
        twin = tmp_path / "i" / ours / file.relative_to(tmp_path / "fresh" / theirs)
        assert twin.read_bytes() == file.read_bytes(), file.name


def entries(*documents: int) -> list[PartEntry]:
    return [PartEntry(f"part-{i}", n, (), "") for i, n in enumerate(documents)]


def test_ten_adjacent_parts_of_a_size_are_merged() -> None:
    """Of several groups it is the smallest parts'; sizes are alike that have as many digits."""
    large, small = [100] * 10, [1, 9] * 5
    assert [p.documents for p in parts_to_merge(entries(*large, *small))] == small
    assert [p.documents for p in parts_to_merge(entries(*large, 10, *small[1:]))] == large
    assert list(parts_to_merge(entries(*[1] * 9, 10, *[1] * 9))) == []


def test_documents_are_numbered_without_the_deleted(tmp_path: Path) -> None:
    """A deleted document has no new number; terms of all parts are sorted together."""
    documents = [Document(f"d{n}", {"text": word}) for n, word in enumerate(("river", "bee", "é"))]
    build_index(documents, tmp_path / "i", part_tokens=1)
    with IndexWriter(tmp_path / "i") as writer:
        writer.delete("d1")
    parts = Index(tmp_path / "i").parts
    assert [numbers.tolist() for numbers in merged_numbers(parts)] == [[0], [1]]
    assert union_of_terms([part.fields[0] for part in parts]) == ["river", "é"]
