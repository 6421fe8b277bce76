"""Are shards built by several processes, or not at all?"""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest
from divided_indexes import DOCUMENTS, SCHEMA, built

from birchbark.errors import ArtifactError, InputError
from birchbark.index.build_shards import _Worker
from birchbark.index.shards import write_shards
from birchbark.index.writer import IndexWriter


def test_invalid_documents_and_numbers(tmp_path: Path) -> None:
    """The same errors as for an index in one piece; nothing is left behind."""
    with pytest.raises(InputError, match="a second document with the id d1"):
        built(tmp_path / "i", 2, [*DOCUMENTS, DOCUMENTS[1]])
    with pytest.raises(InputError, match="no documents to index"):
        built(tmp_path / "i", 2, [])
    for count in (0, 1001):
        with pytest.raises(InputError, match="number of shards is out of range"):
            built(tmp_path / "i", count)
    assert not (tmp_path / "i").exists()
    built(tmp_path / "i", 2)
    with pytest.raises(InputError, match=r"no index here .*open_writer changes such an index"):
        IndexWriter(tmp_path / "i")


def test_a_process_that_ends_early(tmp_path: Path) -> None:
    """It is told, whether documents are still to be sent or not."""
    folders = write_shards(tmp_path, 1)
    SCHEMA.manifest().write(folders[0])
    for last in (False, True):
        worker = _Worker(multiprocessing.get_context("spawn"), folders, 1000)
        worker.add(0, DOCUMENTS[0])
        if last:
            worker.flush(last=True)
        worker.process.kill()
        worker.process.join()
        with pytest.raises(ArtifactError, match="a process that builds shards has ended"):
            for document in DOCUMENTS * 20:
                worker.add(0, document)
            worker.result()
        worker.stop()
