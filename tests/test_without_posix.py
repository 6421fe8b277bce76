"""Do folders and indexes work where the modules of POSIX are missing, as on Windows?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from birchbark.process_limits import PACKAGES

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it is tried on Linux")
LACKING = Path(__file__).parent / "without_posix"  # its sitecustomize.py takes POSIX away
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (LACKING, PACKAGES)))}
UNCHANGED = """
from pathlib import Path
from birchbark.pipeline.upkeep.folder_index import folder_has_changed

assert not folder_has_changed(Path("ix"))
"""
PROGRAM = """
import sys
from pathlib import Path
import birchbark as bb
from birchbark.errors import ArtifactError
from birchbark.index.writer import IndexWriter

index = Path("own.index")
bb.build_index([{"id": "a", "text": "a birch canoe"}, {"id": "b", "text": "an oak"}], index)
searcher = bb.Searcher(index)
assert [hit.document.doc_id for hit in searcher.search("canoe", 1).hits] == ["a"]
for number in range(12):  # parts are merged and deleted while they are mapped
    with IndexWriter(index) as writer:
        writer.add({"id": f"c{number}", "text": f"a paddle {number}"})
with IndexWriter(index) as writer:
    writer.delete("a")
    writer.merge()
    try:
        IndexWriter(index)
    except ArtifactError as error:
        assert "another process is writing" in str(error)
    else:
        sys.exit("two writers at once")
assert "a" not in {hit.document.doc_id for hit in searcher.search("canoe paddle", 20).hits}
assert len(bb.Index(index)) == 13
"""


def run(folder: Path, *arguments: str) -> str:
    """Run Python without POSIX and return its standard output."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_folder_is_indexed_synced_and_replaced(tmp_path: Path) -> None:
    """Links within it are followed, and those out of it are not."""
    files = tmp_path / "files" / "below"
    files.mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("a secret canoe")
    (files / "canoe.txt").write_bytes(b"A birch canoe\r\nis light.")
    (files / "bees.md").write_text("# Bees\n\nBees live in hives.")
    (files / "own.txt").symlink_to("canoe.txt")
    (files / "other.txt").symlink_to(tmp_path / "secret.txt")

    def found() -> set[str]:
        output = run(tmp_path, "-m", "birchbark", "search", "ix", "birch canoe", "--json")
        return {json.loads(line)["doc_id"] for line in output.splitlines()}

    run(tmp_path, "-m", "birchbark", "index", "files", "--to", "ix")
    before = found()  # equal documents are one hit
    assert before & {"below/own.txt", "below/canoe.txt"}
    assert "below/other.txt" not in before
    (files / "canoe.txt").unlink()
    (files / "own.txt").unlink()
    (files / "more.txt").write_text("Another birch canoe.")
    run(tmp_path, "-m", "birchbark", "index", "sync", "ix")
    after = found()
    assert "below/more.txt" in after
    assert not after & {"below/own.txt", "below/canoe.txt"}
    run(tmp_path, "-m", "birchbark", "index", "files", "--to", "ix", "--replace")
    assert "below/more.txt" in found()
    run(tmp_path, "-c", UNCHANGED)


@pytest.mark.slow
def test_an_index_is_written_while_it_is_searched(tmp_path: Path) -> None:
    """What is mapped cannot be deleted there, and is left."""
    run(tmp_path, "-c", PROGRAM)
