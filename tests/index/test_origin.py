"""Is what an index knows of where its documents come from committed with them?"""

from __future__ import annotations

from pathlib import Path

import pytest

from birchbark.errors import ArtifactError, OutdatedError
from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.index.origin import NewOrigin, Origin, read_origin
from birchbark.index.sharded_writer import open_writer
from birchbark.index.verify import find_damage
from birchbark.records import Document

DOCUMENTS = [Document(f"d{n}", {"text": "birch bark"}) for n in range(12)]


@pytest.fixture(params=[None, 3])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An index that knows its origin, in one piece and in shards."""
    build_index(
        DOCUMENTS,
        tmp_path / "i",
        shards=request.param,
        finish=lambda writer: writer.set_origin(NewOrigin(b"first")),
    )
    return tmp_path / "i"


def known(index: Path) -> Origin:
    origin = read_origin(index)
    assert origin
    return origin


def test_it_stays_until_it_is_replaced(index: Path) -> None:
    """Additions, deletions and merges keep it; its file is deleted when it is replaced."""
    first = known(index)
    before = Index(index).fingerprint
    for number in range(12):
        with open_writer(index) as writer:
            writer.add(Document(f"new{number}", {"text": "birch"}))
    with open_writer(index) as writer:
        writer.delete("d3")
        writer.merge()
    assert known(index) == first
    with open_writer(index) as writer:
        writer.set_origin(NewOrigin(b"second", first.checksum))
    assert known(index).text == b"second"
    assert len([*index.rglob("origin-*")]) == 1
    assert not find_damage(index)
    assert Index(index).fingerprint != before


def test_it_is_no_part_of_what_is_searched(index: Path) -> None:
    """The fingerprint of the documents stays."""
    before = Index(index)
    with open_writer(index) as writer:
        writer.set_origin(NewOrigin(b"second", known(index).checksum))
    assert Index(index).fingerprint == before.fingerprint
    assert before.outdated


def test_an_index_of_unknown_origin(tmp_path: Path) -> None:
    """Whoever built it did not say where its documents are from."""
    build_index(DOCUMENTS, tmp_path / "i")
    assert read_origin(tmp_path / "i") is None


def test_what_follows_from_another_origin_is_refused(index: Path) -> None:
    """Nothing of that commit is visible."""
    old = known(index).checksum
    with open_writer(index) as writer:
        writer.set_origin(NewOrigin(b"second", old))
    with pytest.raises(OutdatedError), open_writer(index) as writer:
        writer.add(Document("new", {"text": "birch"}))
        writer.set_origin(NewOrigin(b"third", old))
    assert known(index).text == b"second"
    assert Index(index).find("new") is None


@pytest.mark.parametrize("damage", ["changed", "missing"])
def test_damage_is_told(index: Path, damage: str) -> None:
    """Readers tell it, and so does the check of the whole index."""
    [file] = index.rglob("origin-*")
    if damage == "changed":
        file.write_bytes(b"other")
    else:
        file.unlink()
    with pytest.raises(ArtifactError, match=r"origin-.*build the index again"):
        read_origin(index)
    assert "origin-" in find_damage(index)[0]
