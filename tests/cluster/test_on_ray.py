"""Does a ray cluster give the files of a single process, also if a node is lost meanwhile?"""

from __future__ import annotations

import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from birchbark.cli import group
from birchbark.cli.cluster import ShardCommand
from birchbark.cluster.on_ray import Resources, connection, run_on_ray
from birchbark.cluster.shard import Shard
from birchbark.errors import InputError
from birchbark.index.build_index import Schema, build_index
from birchbark.records import Document
from birchbark.score_cache.store_folder import locked
from ray_nodes import ray_nodes

ray = pytest.importorskip("ray")
pytest.importorskip("ray.cluster_utils")

DOCS = Path(__file__).parents[2] / "docs" / "how-to" / "divide-work.md"
TEXTS = ["red car", "blue car", "red bus", "green bus. Red car.", "blue bicycle", "red red"]
QUERIES = ["red", "car", "bus", "nothing", "blue", "green car", "bicycle"]

pytestmark = pytest.mark.filterwarnings("default")  # ray's own


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """Start a cluster of a head without CPUs and two nodes with one each."""
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with ray_nodes() as cluster:
        yield cluster


@pytest.fixture
def work(tmp_path: Path, bert: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a command's arguments but its output: seven queries, re-ranked by random weights."""
    monkeypatch.chdir(tmp_path)
    documents = [Document(f"d{n}", {"text": text}) for n, text in enumerate(TEXTS)]
    build_index(documents, tmp_path / "i", Schema("plain"))
    Path("q.tsv").write_text("".join(f"q{n}\t{text}\n" for n, text in enumerate(QUERIES)))
    birchbark("retrieve", "i", "--queries", "q.tsv", "--output", "bm25.run")
    model = str(bert(labels=1))
    inputs = ["i", "--run", "bm25.run", "--queries", "q.tsv", "--model", model]
    return ["rerank", *inputs, "--embedding", "none"]


def birchbark(*arguments: str) -> str:
    """Run a command; return what it says. Raises its error."""
    result = CliRunner().invoke(group, arguments)
    if result.exception:
        raise result.exception
    return result.output


def cluster(nodes: Any, shards: int, *arguments: str) -> str:
    """Run a command in shards."""
    return birchbark("cluster", "--address", nodes.address, "--shards", str(shards), *arguments)


def test_a_signal_ends_a_cluster_command_as_any_other(nodes: Any) -> None:
    """Ray's own handler, which would exit with another status, does not take its place."""
    before = signal.getsignal(signal.SIGTERM)

    def handler(number: int, frame: object) -> None:
        raise AssertionError

    signal.signal(signal.SIGTERM, handler)
    try:
        with connection(ray, nodes.address):
            assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("shards", [5])
def test_the_files_are_those_of_a_single_process(
    nodes: Any, work: list[str], tmp_path: Path, shards: int
) -> None:
    """Run, report, evidence and stored scores; also with more shards than queries."""
    files = ["--report", "r.tsv", "--evidence", "e.jsonl"]
    birchbark(*work, "--output", "bert.run", *files, "--scores", "scores")
    names = ("bert.run", "r.tsv", "e.jsonl")
    expected = {name: Path(name).read_bytes() for name in names}
    for name in names:
        Path(name).unlink()
    before = sorted(path.name for path in tmp_path.iterdir())
    said = cluster(nodes, shards, *work, "--output", "bert.run", *files, "--scores", "other")
    assert {name: Path(name).read_bytes() for name in names} == expected
    assert birchbark("scores", "other").split("\n")[:-2] == [
        *birchbark("scores", "scores").split("\n")[:-2]
    ]
    left = {path.name for path in tmp_path.iterdir()} - set(before)
    assert left == {*names, "other"}
    assert f"[{shards}/{shards}] " in said


def test_finished_shards_are_not_done_again(nodes: Any, work: list[str]) -> None:
    """What an earlier attempt has finished is kept, and scores of the store are used."""
    birchbark(*work, "--output", "expected.run", "--scores", "scores")
    arguments = ("--output", "bert.run", "--scores", "scores")
    birchbark(*work, *arguments, "--shard", "2/3")
    said = cluster(nodes, 3, *work, *arguments)
    assert "[2/3] shard 2/3 was finished before" in said
    assert len(re.findall(r"\b0 pairs scored", said)) == 2
    assert Path("bert.run").read_bytes() == Path("expected.run").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["search", "i", "red"], "expected retrieve, rerank, study run or serve, found search"),
        (["rerank", "i"], "Missing option"),
        (["retrieve", "i", "--queries", "none", "--output", "x.run"], "none"),
        (["retrieve", "i", "--queries", "q.tsv", "--output", "x", "--shard", "1/2"], "--shard"),
    ],
)
def test_a_command_that_fails(
    nodes: Any, work: list[str], arguments: list[str], message: str
) -> None:
    """Its own message arrives; wrong arguments are refused before anything is started."""
    result = CliRunner().invoke(
        group, ["cluster", "--address", nodes.address, "--shards", "2", *arguments]
    )
    assert result.exit_code
    assert message in result.output + str(result.exception)


def test_another_division_and_impossible_resources_are_refused(nodes: Any, work: list[str]) -> None:
    birchbark(*work, "--output", "bert.run", "--shard", "1/2")
    with pytest.raises(InputError, match="shards of another division"):
        cluster(nodes, 3, *work, "--output", "bert.run")
    with pytest.raises(InputError, match="no node of the cluster has what a shard needs"):
        birchbark("cluster", "--address", nodes.address, "--shards=2", "--cpus=64", *work,
                  "--output", "bert.run")  # fmt: skip
    with pytest.raises(InputError, match="no ray cluster"):
        birchbark("cluster", "--address", "127.0.0.1:1", "--shards=2", *work, "--output", "x.run")


@dataclass(frozen=True)
class Interrupted:
    """Does a shard; that with number 2 then waits, the first time, and holds its score store."""

    command: ShardCommand
    folder: Path

    def __call__(self, shard: Shard) -> str:
        said = self.command(shard)
        started = self.folder / "started"
        if shard.number == 2 and not started.exists():
            Path("bert.run.2-of-4.json").unlink()  # as if it had not been finished
            with locked(Path("scores.2-of-4")):
                started.write_text(ray.get_runtime_context().get_node_id())
                time.sleep(600)
        return said


def test_a_node_that_is_lost(nodes: Any, work: list[str], tmp_path: Path) -> None:
    """Its shard is done by another node with the scores stored so far; the bytes are the same."""
    birchbark(*work, "--output", "expected.run", "--scores", "all")
    arguments = (*work, "--output", "bert.run", "--scores", "scores")
    work_of_shard = Interrupted(ShardCommand(arguments, str(tmp_path), 1), tmp_path)
    nodes.add_node(num_cpus=1, object_store_memory=100_000_000)  # so that two are left

    def lose_node() -> None:
        while not (started := tmp_path / "started").exists() or not started.read_text():
            time.sleep(0.1)
        (lost,) = (n for n in nodes.list_all_nodes() if n.node_id == started.read_text())
        nodes.remove_node(lost, allow_graceful=False)

    losing = threading.Thread(target=lose_node)
    losing.start()
    said = {
        shard.number: text
        for shard, text in run_on_ray(work_of_shard, 4, Resources(1), nodes.address)
    }
    losing.join()
    assert re.search(r"\b0 pairs scored", said[2])
    birchbark("merge", "bert.run", "--delete-shards")
    assert Path("bert.run").read_bytes() == Path("expected.run").read_bytes()
    assert birchbark("scores", "scores") == birchbark("scores", "all").replace("all", "scores")
