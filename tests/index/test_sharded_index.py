"""Does an index that is divided into shards give what an index in one piece gives, bit for bit?"""

from __future__ import annotations

import json
import multiprocessing
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from birchbark.cli import group
from birchbark.combine.aggregate import Max
from birchbark.errors import ArtifactError, InputError
from birchbark.index.build_index import Schema, build_index
from birchbark.index.build_shards import _Worker
from birchbark.index.describe import describe
from birchbark.index.index import Index
from birchbark.index.layout import Manifest
from birchbark.index.sharded_writer import ShardedWriter, open_writer
from birchbark.index.shards import is_index, shard_folders, shard_number, write_shards
from birchbark.index.verify import find_damage
from birchbark.index.writer import IndexWriter
from birchbark.pipeline.open_engine import open_engine
from birchbark.pipeline.search import search
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.stored.precompute import precompute_vectors
from birchbark.records import Document, Query
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import FirstStage, rank_queries
from birchbark.retrieve.match import AND
from birchbark.retrieve.rm3 import RM3
from birchbark.retrieve.tfidf import TfIdf
from birchbark.retrieve.vector_match import HYBRID, VectorMatch
from birchbark.score.load_scorer import load_scorer
from birchbark.segment.sentences import sentences
from conftest import WORDS

RANDOM = np.random.default_rng(7)
FIELDS = {"title": ("title",), "text": ("text",)}
SCHEMA = Schema("plain", fields=FIELDS, keywords=("kind",))


def words(count: int) -> str:
    return " ".join(RANDOM.choice(WORDS[:12], count))


DOCUMENTS = [
    Document(f"d{n}", {"title": words(2), "text": words(3 + n % 9), "kind": "ab"[n % 2]})
    for n in range(60)
]
QUERIES = [Query(str(n), words(3)) for n in range(8)]
BOTH = {"title": 2.0, "text": 1.0}
STAGES = {
    "BM25": FirstStage(BM25(), {"text": 1.0}),
    "fields": FirstStage(BM25(1.2, 0.75), BOTH, {"title": BM25(0.5, 0.1)}),
    "tf-idf": FirstStage(TfIdf(), BOTH),
    "RM3": FirstStage(BM25(), BOTH, expansion=RM3(5, 6, 0.4, 0.9)),
    "all terms": FirstStage(BM25(), BOTH, match=AND),
    "filter": FirstStage(BM25(), BOTH, filters={"kind": "a"}),
}


def built(folder: Path, shards: int | None, documents: Sequence[Document] = DOCUMENTS) -> Index:
    return build_index(documents, folder, SCHEMA, shards=shards)


def bits(run: Any) -> dict[str, tuple[tuple[str, ...], bytes]]:
    """Return the ids and the bytes of the scores of each query."""
    return {q: (ranking.doc_ids, ranking.scores.tobytes()) for q, ranking in run.rankings.items()}


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
    ranker = Ranker(cross_encoder, sentences, Max(), embedding=embedding, depth=20)
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


def test_changes_go_to_the_right_shard(tmp_path: Path) -> None:
    """After additions, replacements, deletions and a merge, it equals an index built afresh."""
    folder = tmp_path / "i"
    built(folder, 3, DOCUMENTS[:40])
    replaced = [Document(d.doc_id, {**d.fields, "text": words(5)}) for d in DOCUMENTS[:10]]
    with open_writer(folder) as writer:
        assert isinstance(writer, ShardedWriter)
        for document in (*DOCUMENTS[40:], *replaced):
            writer.add(document)
        assert writer.delete("d20")
        assert not writer.delete("d20")
        assert "d21" in writer
        assert "d20" not in writer
        assert len(writer) == 59
    before = Index(folder)
    with open_writer(folder) as writer:
        writer.merge()
    assert before.outdated
    left = [*replaced, *(d for d in DOCUMENTS[10:] if d.doc_id != "d20")]
    afresh = built(tmp_path / "afresh", None, left)
    stage = STAGES["fields"]
    wanted = bits(rank_queries(afresh, QUERIES, stage, depth=40))
    for index in (before, Index(folder)):
        assert bits(rank_queries(index, QUERIES, stage, depth=40)) == wanted
    assert sorted(document.doc_id for document in index) == sorted(d.doc_id for d in left)
    for number, shard in enumerate(shard_folders(folder)):
        own = Index(shard)
        assert len(own.parts) == 1
        assert all(shard_number(document.doc_id, 3) == number for document in own)


def test_attachments_of_another_kind_are_replaced(
    tmp_path: Path, bert: Callable[..., Path]
) -> None:
    """The index can be opened at any time, also if the replacement fails in the middle."""
    embedding = load_scorer(bert())
    built(tmp_path / "i", 3)
    with open_writer(tmp_path / "i") as writer:
        precompute_vectors(embedding, sentences, "m").attach(writer)
    calls: list[int] = []

    def fail(documents: int) -> None:
        calls.append(len(Index(tmp_path / "i")))
        if len(calls) == 2:
            raise KeyError

    other = precompute_vectors(embedding, sentences, "m", 8)
    with pytest.raises(KeyError), open_writer(tmp_path / "i") as writer:
        other.attach(writer, fail)
    assert calls == [60, 60]
    assert Index(tmp_path / "i").missing_rows() != {}
    with open_writer(tmp_path / "i") as writer:
        other.attach(writer)
    assert Index(tmp_path / "i").missing_rows() == {}


def test_a_shard_takes_only_its_own_documents(tmp_path: Path) -> None:
    """Others would be in the index twice."""
    built(tmp_path / "i", 2)
    strays = [d for d in DOCUMENTS if shard_number(d.doc_id, 2) == 1]
    with IndexWriter(tmp_path / "i" / "shard-00") as writer:
        with pytest.raises(InputError, match="belongs to another shard"):
            writer.add(strays[0])
        own = next(d for d in DOCUMENTS if shard_number(d.doc_id, 2) == 0)
        writer.add(own)
    assert len(Index(tmp_path / "i")) == 60


def test_a_change_that_fails_changes_nothing(tmp_path: Path) -> None:
    """Uncommitted changes are dropped, and the locks of all shards are released."""
    index = built(tmp_path / "i", 2)

    def add_and_fail() -> None:
        with open_writer(tmp_path / "i") as writer:
            writer.add(Document("new", {"text": "birch"}))
            raise KeyError

    with pytest.raises(KeyError):
        add_and_fail()
    assert not index.outdated
    with open_writer(tmp_path / "i"), pytest.raises(ArtifactError, match="another process"):
        open_writer(tmp_path / "i")
    open_writer(tmp_path / "i").close()


def test_a_commit_is_seen_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers of all shards, and of one, see all of it while manifests of shards are replaced."""
    built(tmp_path / "i", 3)
    in_first = sum(shard_number(f"new{n}", 3) == 0 for n in range(20))
    before = len(Index(tmp_path / "i/shard-00"))
    real, seen = IndexWriter.publish, []

    def watched(writer: IndexWriter, manifest: Manifest) -> None:
        seen.append((len(Index(tmp_path / "i")), len(Index(tmp_path / "i/shard-00"))))
        real(writer, manifest)

    monkeypatch.setattr(IndexWriter, "publish", watched)
    with open_writer(tmp_path / "i") as writer:
        for n in range(20):
            writer.add(Document(f"new{n}", {"text": "birch"}))
        assert len(Index(tmp_path / "i")) == 60
    assert seen == [(80, before + in_first)] * 3
    assert not (tmp_path / "i/commit.json").exists()


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
        birchbark("index", "verify", index)
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
