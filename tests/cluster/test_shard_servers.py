"""Do shards on the nodes of a ray cluster answer as one index does, also if one of them is lost?"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from served import running, send

from birchbark.cli import group
from birchbark.cluster import serving
from birchbark.cluster.on_ray import Resources
from birchbark.cluster.serving import serving_processes
from birchbark.cluster.shard_servers import ShardServers
from birchbark.errors import InputError
from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.pipeline.answers.answer import Answer
from birchbark.pipeline.loaded_models import LoadedModels
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.records import Document
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import FirstStage
from birchbark.retrieve.rm3 import RM3
from birchbark.retrieve.tfidf import TfIdf
from birchbark.score.load_scorer import load_scorer
from ray_nodes import ray_nodes

ray = pytest.importorskip("ray")
pytest.importorskip("ray.cluster_utils")

pytestmark = pytest.mark.filterwarnings("default")  # ray's own

BUDGET = 2  # seconds
COLOURS, THINGS = ("red", "blue", "green", "grey"), ("car", "bus", "bicycle", "boat", "bridge")
DOCUMENTS = [
    Document(
        f"d{n}",
        {"title": THINGS[n % 5], "text": f"A {COLOURS[n % 4]} {THINGS[n % 5]}. " * (1 + n % 3)},
    )
    for n in range(60)
]
QUERIES = ["red car", "blue", "green boat bridge", "nothing", "grey bus bus red"]
STAGES = [
    FirstStage(),
    FirstStage(expansion=RM3(3, 3, 0.5, 1)),
    FirstStage(fields={"title": 2.0, "contents": 1.0}),
    FirstStage(TfIdf()),
]


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    with ray_nodes() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    schema = Schema("plain", fields={"title": ["title"], "contents": ["title", "text"]})
    return build_index(
        DOCUMENTS, tmp_path_factory.mktemp("shards") / "i", schema, shards=2
    ).directory


@pytest.fixture(scope="module")
def servers(nodes: Any, directory: Path) -> Iterator[ShardServers]:
    with serving_processes(directory, Resources(1), address=nodes.address) as started:
        yield started.rankers


def process_of(servers: ShardServers, shard: str) -> int:
    """Return the process that ranks a shard."""
    process: int = ray.get(servers._actors[shard].__ray_call__.remote(lambda server: os.getpid()))
    return process


@pytest.mark.parametrize("stage", STAGES, ids=str)
def test_hits_are_those_of_one_process(
    directory: Path, servers: ShardServers, stage: FirstStage
) -> None:
    """BM25, RM3, several fields and tf-idf: the same documents and scores, bit for bit."""
    here = Searcher(directory, (), stage)
    there = Searcher(directory, (), stage, remote=servers)
    for query in QUERIES:
        assert there.search(query, top=40, budget=30) == here.search(query, top=40)
        assert there.facets(query) == here.facets(query)


def test_evidence_is_that_of_one_process(
    directory: Path, servers: ShardServers, bert: Callable[..., Path]
) -> None:
    """The candidates of the shards are read here."""
    ranker = Ranker(load_scorer(bert(labels=1)), depth=8)
    here = Searcher(directory, ranker, loaded=LoadedModels())
    there = Searcher(directory, ranker, loaded=LoadedModels(), remote=servers)
    for query in QUERIES:
        expected, found = here.search(query), there.search(query)
        assert found.hits == expected.hits
        assert found.stats.exact


def test_a_lost_shard_is_named_and_comes_back(directory: Path, servers: ShardServers) -> None:
    """Meanwhile, each search answers in time, from the other shard, with unchanged scores."""
    searcher = Searcher(directory, (), remote=servers)
    whole = searcher.search("red car", top=60, budget=30)
    assert whole.stats.exact and not whole.stats.missing_shards
    os.kill(process_of(servers, "shard-01"), signal.SIGKILL)
    start, partial = time.monotonic(), searcher.search("red car", top=60, budget=2)
    assert time.monotonic() - start < 2
    assert partial.stats.missing_shards == ("shard-01",)
    assert not partial.stats.exact
    scores = {hit.document.doc_id: hit.score for hit in whole.hits}
    found = {hit.document.doc_id: hit.score for hit in partial.hits}
    assert found.items() < scores.items()
    assert found
    assert until_exact(searcher) == whole


def test_a_short_deadline_loses_no_shard(directory: Path, servers: ShardServers) -> None:
    """One search in a hurry says nothing about the nodes; others are answered by all shards."""
    searcher = Searcher(directory, (), remote=servers)
    whole = searcher.search("red car", top=60, budget=30)
    for _ in range(5):
        searcher.search("red car", top=60, budget=1e-4)
        assert searcher.search("red car", top=60, budget=30) == whole


def until_exact(searcher: Searcher) -> Answer:
    """Return the first answer of all shards, within a minute."""
    for _ in range(120):
        answer = searcher.search("red car", top=60, budget=2)
        if answer.stats.exact:
            return answer
        assert answer.stats.missing_shards == ("shard-01",)
        time.sleep(0.5)
    raise AssertionError("the shard did not come back")


def test_changed_documents_are_seen(tmp_path: Path, servers: ShardServers) -> None:
    """Shards open a new state of their documents, and do not rank for another one."""
    directory = build_index(DOCUMENTS[:20], tmp_path / "i", Schema("plain"), shards=1).directory
    before = Index(directory)
    own = ShardServers(ray, {"shard-00": directory / "shard-00"}, Resources(0))  # no CPU is left
    searcher = Searcher(directory, (), remote=own)
    assert searcher.search("purple").hits == ()
    searcher.add([Document("new", {"text": "purple"})])
    answer = searcher.search("purple")
    assert [hit.document.doc_id for hit in answer.hits] == ["new"]
    assert answer.stats.exact
    search = own.search(lambda: 5.0)
    engine = IndexEngine(before).ranking_by(search)
    assert len(engine.rank("red", 5)) == 0
    assert search.missing == {"shard-00"}
    own.close()


def test_what_cannot_be_served_is_refused(
    nodes: Any, tmp_path: Path, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index in one piece, a folder, and a cluster that is too small for all processes."""
    one = build_index(DOCUMENTS[:3], tmp_path / "one", Schema("plain")).directory
    (tmp_path / "notes").mkdir()
    for given in (one, tmp_path / "notes"):
        with pytest.raises(InputError, match=r"not divided into shards.*--shards N"):
            group.main(["cluster", "serve", str(given)], standalone_mode=False)
    assert not (tmp_path / "notes.index").exists()
    for option in ("--shards", "--gpus"):
        with pytest.raises(InputError, match="not for serve"):
            group.main(["cluster", option, "1", "serve", str(directory)], standalone_mode=False)
    monkeypatch.setattr(serving, "connection", lambda *_: nullcontext())  # the fixture's is used
    with (
        pytest.raises(InputError, match=r"too few CPUs.*6: 1 for each of 2 shards and 4 scorers"),
        serving_processes(directory, Resources(1), scorers=4, address=nodes.address),
    ):
        pass


def test_the_service_answers_while_a_node_is_lost(nodes: Any, directory: Path) -> None:
    """HTTP gives no errors and names the missing shard, which is back when there is a node."""
    both = [nodes.add_node(num_cpus=2, object_store_memory=80_000_000) for _ in range(2)]
    nodes.wait_for_nodes()
    options = ["--address", nodes.address, "--cpus", "2", "serve", str(directory)]
    serve = ["cluster", *options]
    with running("--model", "none", cwd=directory.parent, verb=serve) as (port, _):
        whole = ask(port)
        assert whole["exact"] and whole["missing_shards"] == []
        assert len(whole["hits"]) == 24
        nodes.remove_node(both.pop())
        partial = ask(port)
        assert not partial["exact"]
        assert len(partial["missing_shards"]) == 1
        assert 0 < len(partial["hits"]) < 24
        start = time.monotonic()
        for _ in range(5):
            assert ask(port)["missing_shards"] == partial["missing_shards"]
        assert time.monotonic() - start < 5 * BUDGET
        both.append(nodes.add_node(num_cpus=2, object_store_memory=80_000_000))
        for _ in range(120):
            if (again := ask(port))["exact"]:
                break
            time.sleep(0.5)
        assert [hit["doc_id"] for hit in again["hits"]] == [hit["doc_id"] for hit in whole["hits"]]


def ask(port: int) -> dict[str, Any]:
    """Search over HTTP; no answer may be late or an error."""
    body = {"query": "red car", "top": 40, "budget_ms": 1000 * BUDGET}
    start = time.monotonic()
    status, answer = send(port, "POST", "/search", body)
    assert status == 200
    assert time.monotonic() - start < BUDGET + 1
    found: dict[str, Any] = json.loads(answer)
    return found
