"""Is an index built whole or not at all, and the same each time?"""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest

from birchbark.errors import ArtifactError, InputError
from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.index.writer import IndexWriter
from birchbark.records import Document
from conftest import DOCUMENTS


def test_duplicate_ids_are_refused(tmp_path: Path) -> None:
    """This holds across parts too, and no files are left behind."""
    documents = [Document("a", {"text": "bee"}), Document("b", {"text": "bee"}), DOCUMENTS[0]] * 2
    with pytest.raises(InputError, match="second document with the id a"):
        build_index(documents, tmp_path / "i", part_tokens=1)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_collection_is_refused(tmp_path: Path) -> None:
    """An index without documents is an error."""
    with pytest.raises(InputError, match="no documents"):
        build_index([], tmp_path / "i")


def test_an_index_is_replaced_only_on_request(tmp_path: Path) -> None:
    """A folder that is not an index is never replaced."""
    (tmp_path / "i").mkdir()
    build_index(DOCUMENTS, tmp_path / "i")  # into an empty folder
    with pytest.raises(InputError, match="already exists"):
        build_index(DOCUMENTS[:1], tmp_path / "i")
    assert len(build_index(DOCUMENTS[:1], tmp_path / "i", replace=True)) == 1
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="no index here"):
        build_index(DOCUMENTS, tmp_path / "mine", replace=True)
    (tmp_path / "mine" / "manifest.json").write_text("{")  # it may be another program's
    with pytest.raises(ArtifactError, match="damaged index"):
        build_index(DOCUMENTS, tmp_path / "mine", replace=True)
    assert (tmp_path / "mine" / "thesis.tex").exists()


@pytest.mark.parametrize("shards", [None, 2])
def test_an_index_of_another_version_is_replaced(tmp_path: Path, shards: int | None) -> None:
    """So is one whose manifest is damaged: the errors of both tell to build it again."""
    build_index(DOCUMENTS, tmp_path / "i", shards=shards)
    for changed in ({"version": 6}, {"checksum": ""}):
        for name in ("manifest.json", "shards.json", "shard-00/manifest.json"):
            if (path := tmp_path / "i" / name).exists():
                path.write_text(json.dumps(json.loads(path.read_text()) | changed))
        build_index(DOCUMENTS, tmp_path / "i", replace=True, shards=shards)
        assert len(Index(tmp_path / "i")) == len(DOCUMENTS)


def test_an_index_without_fields_is_refused(tmp_path: Path) -> None:
    """It could not be searched."""
    with pytest.raises(InputError, match="no field to index"):
        build_index(DOCUMENTS, tmp_path / "i", Schema(fields={}))


def test_a_failed_replacement_keeps_the_old_index(tmp_path: Path) -> None:
    """The documents come from a reader that raises in the middle."""

    def broken():  # type: ignore[no-untyped-def]
        yield DOCUMENTS[0]
        raise InputError("line 2 is broken")

    build_index(DOCUMENTS, tmp_path / "i")
    with pytest.raises(InputError, match="line 2"):
        build_index(broken(), tmp_path / "i", replace=True)
    assert len(Index(tmp_path / "i")) == len(DOCUMENTS)


def test_the_same_collection_gives_the_same_bytes(tmp_path: Path) -> None:
    """Files depend neither on time nor on the machine."""
    for name in ("a", "b"):
        build_index(DOCUMENTS, tmp_path / name)
    files = sorted(p.relative_to(tmp_path / "a") for p in (tmp_path / "a").rglob("*.*"))
    assert files
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_too_many_fields_are_refused(tmp_path: Path) -> None:
    """50,000 fields are refused before anything is written."""
    fields = {f"f{i}": [f"f{i}"] for i in range(50_000)}
    with pytest.raises(InputError, match="too many indexed fields: expected at most 1000"):
        build_index(DOCUMENTS, tmp_path / "i", Schema(fields=fields))
    assert list(tmp_path.iterdir()) == []


def test_records_are_indexed_as_documents(tmp_path: Path) -> None:
    """Mappings go through `Document.from_dict`, in build_index and in IndexWriter.add."""
    records = [
        {"id": "d1", "title": "Bark", "text": "Birch bark canoes"},
        {"_id": 2, "contents": "The river", "year": 1890},
    ]
    index = build_index([records[0], DOCUMENTS[1]], tmp_path / "i")
    with IndexWriter(index.directory) as writer:
        writer.add(records[1])
    documents = [Document.from_dict(records[0]), DOCUMENTS[1], Document.from_dict(records[1])]
    assert list(Index(index.directory)) == documents
    with pytest.raises(InputError, match="no text"):
        build_index([{"id": "d3"}], tmp_path / "j")
    assert not (tmp_path / "j").exists()


def test_too_few_descriptors_are_no_damage(tmp_path: Path) -> None:
    """The system's own error is raised, with the name of the file."""
    build_index(DOCUMENTS, tmp_path / "index")
    script = f"""
import resource
from birchbark.index.index import Index
Index({str(tmp_path / "index")!r})  # loads what is loaded at the first use
resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12))
kept = []
try:
    while True:
        kept.append(Index({str(tmp_path / "index")!r}))
except OSError as error:
    print(error.errno, error.filename)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ran.stderr == ""
    number, name = ran.stdout.split()
    assert int(number) == errno.EMFILE
    assert name.startswith(str(tmp_path / "index"))
