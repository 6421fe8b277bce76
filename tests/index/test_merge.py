"""Are parts merged into one that equals a part built from their documents?"""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis.strategies import integers, lists

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
    """Of several groups it is the smallest parts'; sizes are alike that have as many digits.

    A part counts as one of the largest that follow, so that a mixture is merged, too.
    """
    large, small = [100] * 10, [1, 9] * 5
    assert [p.documents for p in parts_to_merge(entries(*large, *small))] == small
    assert [p.documents for p in parts_to_merge(entries(*large, 10, *small[1:]))] == large
    assert list(parts_to_merge(entries(*[1] * 8, 10, *[1] * 9))) == []
    mixture = [1, 50] * 5
    assert [p.documents for p in parts_to_merge(entries(400, *mixture, 9))] == mixture


@given(lists(integers(1, 2000), max_size=300))
def test_commits_of_any_size_leave_few_parts(sizes: list[int]) -> None:
    """There are at most nine of each order of magnitude."""
    parts: list[PartEntry] = []
    for size in sizes:
        parts += entries(size)
        while group := parts_to_merge(parts):
            begin = next(i for i, part in enumerate(parts) if part is group[0])
            parts[begin : begin + len(group)] = entries(sum(part.documents for part in group))
    assert sum(part.documents for part in parts) == sum(sizes)
    assert len(parts) <= 9 * len(str(sum(sizes)))


def test_documents_are_numbered_without_the_deleted(tmp_path: Path) -> None:
    """A deleted document has no new number; terms of all parts are sorted together."""
    documents = [Document(f"d{n}", {"text": word}) for n, word in enumerate(("river", "bee", "é"))]
    build_index(documents, tmp_path / "i", part_tokens=1)
    with IndexWriter(tmp_path / "i") as writer:
        writer.delete("d1")
    parts = Index(tmp_path / "i").parts
    assert [numbers.tolist() for numbers in merged_numbers(parts)] == [[0], [1]]
    assert union_of_terms([part.fields[0] for part in parts]) == ["river", "é"]
