"""Do models on the nodes of a ray cluster score as those of one process, also if one is lost?"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.heads import Pooling
from birchbark.cluster import scorer_servers
from birchbark.cluster.on_ray import Resources, connection
from birchbark.cluster.scorer_servers import ScorerServers
from birchbark.errors import InputError
from birchbark.score.precision import Precision
from birchbark.score.session import OnnxSession
from ray_nodes import ray_nodes

ray = pytest.importorskip("ray")
pytest.importorskip("ray.cluster_utils")

pytestmark = pytest.mark.filterwarnings("default")  # ray's own

RANDOM = np.random.default_rng(5)
IDS = [RANDOM.integers(5, 25, n) for n in (3, 30, 9, 17, 31, 12, 9, 31)]
TYPES = [np.repeat([0, 1], [len(i) // 2, len(i) - len(i) // 2]) for i in IDS]


@pytest.fixture(scope="module")
def servers() -> Iterator[ScorerServers]:
    with ray_nodes() as nodes, connection(ray, nodes.address):
        yield ScorerServers(ray, 2, Resources(1))


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.INT8])
@pytest.mark.parametrize("count", [0, 1, 2, len(IDS)])
def test_scores_are_those_of_one_process(
    servers: ScorerServers, bert: Callable[..., Path], precision: Precision, count: int
) -> None:
    """Bit for bit, in the order given, for any number of inputs."""
    checkpoint = Checkpoint.open(bert(labels=1))
    here = OnnxSession(checkpoint, precision=precision)
    there = servers.session(checkpoint, precision=precision)
    expected = here.run(IDS[:count], TYPES[:count])
    assert there.run(IDS[:count], TYPES[:count]).tobytes() == expected.tobytes()
    assert there.fingerprint("x") == here.fingerprint("x")


@pytest.mark.parametrize("mode", ["mean", "tokens"])
def test_vectors_are_those_of_one_process(
    servers: ScorerServers, bert: Callable[..., Path], mode: str
) -> None:
    """This holds for vectors of texts, and for those of tokens, whose rows follow one another."""
    checkpoint = Checkpoint.open(bert(), pooling=Pooling(mode))
    expected = OnnxSession(checkpoint).run(IDS)
    np.testing.assert_array_equal(servers.session(checkpoint).run(IDS), expected)


def test_what_a_lost_process_should_compute_is_computed_here(
    servers: ScorerServers, bert: Callable[..., Path]
) -> None:
    """Nothing is missing; later requests do without it, and use it again when it is back."""
    checkpoint = Checkpoint.open(bert(labels=1))
    session, expected = servers.session(checkpoint), OnnxSession(checkpoint).run(IDS, TYPES)
    os.kill(process_of(servers._actors[1]), signal.SIGKILL)
    for _ in range(3):
        np.testing.assert_array_equal(session.run(IDS, TYPES), expected)
    assert 1 in servers._lost
    end = time.monotonic() + 60
    while 1 in servers._lost and time.monotonic() < end:
        time.sleep(0.2)
    np.testing.assert_array_equal(session.run(IDS, TYPES), expected)
    assert 1 not in servers._lost


def process_of(actor: Any) -> int:
    found: int = ray.get(actor.__ray_call__.remote(lambda server: os.getpid()))
    return found


def test_another_model_on_a_node_is_refused(
    servers: ScorerServers, bert: Callable[..., Path], tmp_path: Path
) -> None:
    """Its scores would be cached as those of the service's model."""
    checkpoint = Checkpoint.open(bert(labels=1))
    model = ("another", checkpoint, Precision.FP32)
    with pytest.raises(Exception, match="another version of the model on this node"):
        ray.get(servers._actors[0].load.remote([model]))


def test_unlike_processors_are_refused(
    servers: ScorerServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scores could differ in the last bits; the user can say that this does not matter."""
    monkeypatch.setattr(scorer_servers, "processor", lambda: "another kind")
    with pytest.raises(InputError, match=r"unlike processors.*another kind.*--unlike-processors"):
        ScorerServers(ray, 1, Resources(0))
