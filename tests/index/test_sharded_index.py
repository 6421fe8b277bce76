"""Does an index that is divided into shards give what an index in one piece gives, bit for bit?"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from divided_indexes import BOTH, DOCUMENTS, QUERIES, STAGES, bits, built

from birchbark.cli import group
from birchbark.combine.aggregate import Top
from birchbark.errors import ArtifactError
from birchbark.index.build_index import Schema, build_index
from birchbark.index.describe import describe
from birchbark.index.index import Index
from birchbark.index.sharded_writer import open_writer
from birchbark.index.shards import is_index
from birchbark.index.verify import find_damage
from birchbark.pipeline.open_engine import open_engine
from birchbark.pipeline.search import search
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.stored.precompute import precompute_vectors
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import FirstStage, rank_queries
from birchbark.retrieve.vector_match import HYBRID, VectorMatch
from birchbark.score.load_scorer import load_scorer
from birchbark.segment.sentences import sentences


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> list[Index]:
    """Return an index in one piece, and the same in 1, 2 and 5 shards."""
    folder = tmp_path_factory.mktemp("sharded")
    return [built(folder / str(shards), shards) for shards in (None, 1, 2, 5)]


@pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES)
def test_first_stages(indexes: list[Index], stage: FirstStage) -> None:
    """Statistics are those of all shards, and RM3 takes its terms from documents in any of them."""
    whole, *divided = [bits(rank_queries(index, QUERIES, stage, depth=40)) for index in indexes]
    assert any(len(ids) > 5 for ids, _ in whole.values())
    for run in divided:
        assert run == whole


def test_vectors_and_rerankers(tmp_path: Path, bert: Callable[..., Path]) -> None:
    """Vectors are stored in each shard; dense, hybrid and re-ranked results are equal."""
    embedding, cross_encoder = load_scorer(bert()), load_scorer(bert(labels=1, seed=3))
    stage = FirstStage(BM25(), BOTH)
    ranker = Ranker(cross_encoder, sentences, Top((1.0,)), embedding=embedding, depth=20)
    found = []
    for shards in (None, 3):
        folder = tmp_path / str(shards)
        built(folder, shards)
        with open_writer(folder) as writer:
            precompute_vectors(embedding, sentences, "m").attach(writer)
            assert writer.missing_rows() == {}
        index = Index(folder)
        assert index.missing_rows() == {}
        engines = [IndexEngine(index, stage)]
        for match in (VectorMatch(), HYBRID):
            engines.append(open_engine(index, stage, match, lambda name: embedding))  # type: ignore[arg-type]
        found.append(
            [
                [(hit.document.doc_id, hit.score, hit.embedding) for hit in answer.hits]
                for engine in engines
                for query in QUERIES
                for answer in (search(engine, query.text, ranker), search(engine, query.text, ()))
            ]
        )
    assert found[0] == found[1]


def test_a_shard_that_stands_alone_knows_no_commit(tmp_path: Path) -> None:
    """A file of the same name beside it belongs to another program."""
    built(tmp_path / "i", 2)
    (tmp_path / "i/shard-01").rename(tmp_path / "shard-01")
    (tmp_path / "commit.json").write_text("{}")
    assert len(Index(tmp_path / "shard-01")) > 0


def test_commands(tmp_path: Path) -> None:
    """build, add, delete, stats, verify, retrieve and search take a divided index as any other."""
    lines = [json.dumps({"id": d.doc_id, **d.fields}) for d in DOCUMENTS]
    (tmp_path / "docs.jsonl").write_text("\n".join(lines[:50]) + "\n")
    (tmp_path / "more.jsonl").write_text("\n".join(lines[50:]) + "\n")
    (tmp_path / "q.tsv").write_text("".join(f"{q.query_id}\t{q.text}\n" for q in QUERIES))
    runs = []
    for name, options in (("one", ()), ("four", ("--shards", "4"))):
        index, run = str(tmp_path / name), str(tmp_path / f"{name}.run")

        def birchbark(*arguments: str) -> str:
            result = CliRunner().invoke(group, arguments)
            assert result.exit_code == 0, result.exception
            return result.stdout

        birchbark("index", str(tmp_path / "docs.jsonl"), "--to", index, *options)
        birchbark("index", "add", index, str(tmp_path / "more.jsonl"))
        birchbark("index", "delete", index, "d3", "d4")
        birchbark("retrieve", index, "--queries", str(tmp_path / "q.tsv"), "--output", run, "--rm3")
        hits = birchbark("search", index, QUERIES[0].text, "--model", "none", "--json")
        runs.append((Path(run).read_bytes(), hits))
        assert "documents" in birchbark("index", "stats", index)
        birchbark("index", "stats", index, "--verify")
    assert runs[0] == runs[1]
    assert describe(Index(tmp_path / "four"))["shards"] == 4
    assert is_index(tmp_path / "four")
    (tmp_path / "shards.json").write_text('{"shards": []}')  # of something else
    assert not is_index(tmp_path)
    searcher = Searcher(tmp_path / "four")
    assert searcher.delete(["d9"]) == 1
    assert len(searcher.index) == 57


def test_wrong_shards_are_refused(tmp_path: Path) -> None:
    """A shard is missing, in the place of another, of another index, or damaged."""
    folder = tmp_path / "i"
    built(folder, 3)
    good = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    def refused(message: str) -> None:
        with pytest.raises(ArtifactError, match=message):
            Index(folder)
        shutil.rmtree(folder)
        for path, data in good.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        assert len(Index(folder)) == 60

    shutil.rmtree(folder / "shard-01")
    refused(r"shard-01: a shard is missing: expected 3 shards in ")
    shutil.rmtree(folder / "shard-01")
    shutil.copytree(folder / "shard-02", folder / "shard-01")
    refused(
        r"shard-01: this is not the shard that belongs here: .*shard 1 of 3, found shard 2 of 3"
    )
    (folder / "shards.json").write_text('{"format": "birchbark shards", "version": 2}')
    refused("another version: expected birchbark shards 1")
    (folder / "shards.json").write_text("[")
    refused("damaged index")
    other = build_index(DOCUMENTS, tmp_path / "other", Schema("porter"), shards=3).directory
    shutil.rmtree(folder / "shard-02")
    shutil.copytree(other / "shard-02", folder / "shard-02")
    refused("shard-02: this shard was indexed in another way")
    (words_file,) = (folder / "shard-01").rglob("terms.bytes")
    words_file.write_bytes(words_file.read_bytes()[:-1] + b"!")
    assert len(find_damage(folder)) == 1
