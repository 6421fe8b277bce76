"""Is it recorded beside a run how it was made?"""

from __future__ import annotations

import errno
import json
import os
import platform
from pathlib import Path

import pytest

from birchbark import __version__
from birchbark.collection.run_metadata import (
    known_stages,
    metadata_path,
    write_described_run,
)
from birchbark.collection.runs import read_run
from birchbark.errors import InputError
from birchbark.records import Ranking, Run
from command_line import birchbark
from conftest import write_bert

RUN = Run({"q1": Ranking.of(["bees"], [1.0])}, "bm25")
STAGE = {"name": "bm25", "method": "bm25", "k1": 0.9}


def test_metadata_has_the_parts_of_ir_metadata(tmp_path: Path) -> None:
    write_described_run(
        RUN, tmp_path / "a.run", [STAGE], indexing={"analyzer": "english"}, data={"topics": "q.tsv"}
    )
    made = json.loads((tmp_path / "a.run.ir-metadata.yml").read_text())
    assert (made["schema-version"], made["tag"]) == (0.1, "bm25")
    assert made["platform"]["hardware"]["cpu"]["architecture"] == platform.machine()
    assert made["platform"]["software"]["retrieval toolkit"] == [f"birchbark=={__version__}"]
    assert made["implementation"]["executable"]["cmd"].startswith("birchbark")
    assert made["method"]["indexing"] == {"analyzer": "english"}
    assert made["method"]["retrieval"] == [STAGE]
    assert made["data"]["test collection"] == {"topics": "q.tsv"}


def test_a_stream_has_no_metadata(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    write_described_run(RUN, Path(f"/dev/fd/{writing}"), [STAGE])
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert pipe.read() == "q1 Q0 bees 1 1.0 bm25\n"
    assert list(tmp_path.iterdir()) == []


def test_a_stream_into_a_file_has_no_metadata(tmp_path: Path) -> None:
    """As of `--output /dev/stdout > FILE`: nothing can be written beside a stream."""
    with (tmp_path / "a.run").open("w") as file:
        write_described_run(RUN, Path(f"/dev/fd/{file.fileno()}"), [STAGE])
    assert [path.name for path in tmp_path.iterdir()] == ["a.run"]
    assert (tmp_path / "a.run").read_text() == "q1 Q0 bees 1 1.0 bm25\n"


@pytest.mark.parametrize(
    "text", ["", "a: 1", "[]", '{"method": 1}', '{"method": {"retrieval": 1}}']
)
def test_others_metadata_is_left_alone(tmp_path: Path, text: str) -> None:
    metadata_path(tmp_path / "a.run").write_text(text)
    assert known_stages([(tmp_path / "a.run", RUN), (tmp_path / "missing.run", RUN)]) == []


def test_metadata_of_a_run_that_was_replaced_does_not_count(tmp_path: Path) -> None:
    write_described_run(RUN, tmp_path / "a.run", [STAGE])
    assert known_stages([(tmp_path / "a.run", RUN)]) == [STAGE]
    assert known_stages([(tmp_path / "a.run", Run(RUN.rankings, "anserini"))]) == []


def test_metadata_stays_with_a_run_that_is_not_replaced(tmp_path: Path) -> None:
    """A new run with an id that cannot be written leaves the old one as it was."""
    write_described_run(RUN, tmp_path / "a.run", [STAGE])
    bad = Run({"q1": Ranking.of(["two bees"], [1.0])}, "bm25")
    with pytest.raises(InputError, match="run files cannot contain 'two bees'"):
        write_described_run(bad, tmp_path / "a.run", [STAGE])
    assert known_stages([(tmp_path / "a.run", read_run(tmp_path / "a.run"))]) == [STAGE]


def test_metadata_stays_if_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It tells of the old run, which stays as well."""

    def fill(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    write_described_run(RUN, tmp_path / "a.run", [STAGE])
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setattr("birchbark.artifact.os.fsync", fill)
    with pytest.raises(OSError, match="no space left"):
        write_described_run(RUN, tmp_path / "a.run", [{**STAGE, "k1": 1.2}])
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_names_of_files_in_any_encoding(tmp_path: Path) -> None:
    path = tmp_path / "bad\udcff.run"
    write_described_run(RUN, path, [STAGE], data={"topics": "q\udcff.tsv"})
    assert json.loads(metadata_path(path).read_text())["tag"] == "bm25"


def test_each_command_adds_its_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Retrieve, rerank, fuse and tune: the pipeline in order, each stage once."""
    monkeypatch.chdir(tmp_path)
    Path("c.jsonl").write_text(
        '{"id": "bees", "text": "Bees dance."}\n{"id": "canoe", "text": "A birch canoe."}\n'
    )
    Path("q.tsv").write_text("q1\tbees dance\nq2\tbirch canoe\n")
    Path("q.qrels").write_text("q1 0 bees 1\nq2 0 canoe 1\n")
    model = str(write_bert(tmp_path / "tiny", labels=1))
    birchbark("index", "c.jsonl", "--to", "c.index")
    retrieve = ("retrieve", "c.index", "--queries", "q.tsv")
    birchbark(*retrieve, "--set", "first_stage.k1=1.2", "--rm3", "--output", "bm25.run")
    rerank = ("rerank", "c.index", "--run", "bm25.run", "--queries", "q.tsv", "--model", model)
    birchbark(*rerank, "--set", "first_stage_weight=0.3", "--output", "bert.run", "--tag", "bert")
    birchbark("fuse", "bm25.run", "bert.run", "--output", "both.run")
    tune = ("tune", "q.qrels", "bm25.run", "bert.run", "--folds", "2")
    birchbark(*tune, "--output", "mixed.run")
    first, second, fused = known_stages([(Path("both.run"), read_run("both.run"))])
    assert (first["name"], first["method"], first["k1"]) == ("bm25+rm3", "bm25", 1.2)
    assert first["rm3"]["terms"] == 10
    assert (second["name"], second["reranks"]) == ("bert", "bm25+rm3")
    assert (second["method"], second["first_stage_weight"]) == ("tiny cross-encoder", 0.3)
    assert (second["segments"], second["aggregate"]) == ("passages:120", "topmean:1,0.5,0.25")
    assert (second["read_segments"], second["read_pairs"]) == ("3", "30")
    assert second["embedding"] == "cosine of birchbark-embedding-l6 embeddings"
    assert fused == {
        "name": "rrf",
        "method": "fusion by ranks",
        "interpolates": ["bm25+rm3", "bert"],
        "weight": "equal",
    }
    *before, tuned = known_stages([(Path("mixed.run"), read_run("mixed.run"))])
    assert before == [first, second]
    assert tuned["interpolates"] == ["bm25+rm3", "bert"]
    assert len(tuned["weight"]) == 2


def test_a_shard_of_a_run_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.jsonl").write_text('{"id": "bees", "text": "Bees dance."}\n')
    Path("q.tsv").write_text("q1\tbees\nq2\tdance\n")
    birchbark("index", "c.jsonl", "--to", "c.index")
    retrieve = ("retrieve", "c.index", "--queries", "q.tsv", "--output", "bm25.run")
    birchbark(*retrieve, "--shard", "1/2")
    assert not list(tmp_path.glob("*.yml"))
    birchbark(*retrieve)
    assert len(list(tmp_path.glob("*.yml"))) == 1
    birchbark(*retrieve, "--shard", "2/2")
    birchbark("merge", "bm25.run")
    assert not list(tmp_path.glob("*.yml"))
