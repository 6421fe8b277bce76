"""Does torch compute from the lean graph what ONNX Runtime computes, for every family and head?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from zoo import FAMILIES, LAYERS, write_family

from birchbark.checkpoint.heads import Pooling
from birchbark.checkpoint.reader import Checkpoint
from birchbark.device.operators import read_steps
from birchbark.device.session import TorchSession, on_device
from birchbark.errors import CheckpointError, InputError
from birchbark.score.model import load_scorer
from birchbark.score.scorer import score_texts
from birchbark.score.session import Session

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to run the graph by")

RANDOM = np.random.default_rng(7)
IDS = [RANDOM.integers(5, 25, n) for n in (3, 9, 9, 17, 31, 32, 9, 31)]
TYPES = [np.repeat([0, 1], [len(i) // 2, len(i) - len(i) // 2]) for i in IDS]
DEVICES = ["cpu", "cuda"]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU here")
    return str(request.param)


@pytest.mark.parametrize("logits", [1, 2])
@pytest.mark.parametrize("family", FAMILIES)
def test_logits_agree(family: str, logits: int, device: str, tmp_path: Path) -> None:
    """In the order given, whatever the batches."""
    checkpoint = Checkpoint.open(write_family(tmp_path / family, family, logits))
    expected = Session(checkpoint, 1).run(IDS, TYPES)
    for tokens in (1, 40, 10_000):
        found = TorchSession(checkpoint, None, tokens, device=device).run(IDS, TYPES)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("mode", ["cls", "mean", "max", "tokens"])
@pytest.mark.parametrize("family", FAMILIES)
def test_embeddings_agree(family: str, mode: str, device: str, tmp_path: Path) -> None:
    """Of every layer."""
    directory = write_family(tmp_path / family, family, 1)
    for layer in range(LAYERS + 1):
        checkpoint = Checkpoint.open(directory, pooling=Pooling(mode, layer))
        found = TorchSession(checkpoint, device=device).run(IDS)
        np.testing.assert_allclose(found, Session(checkpoint, 1).run(IDS), rtol=0, atol=1e-5)


@pytest.mark.parametrize("activation", ["gelu_pytorch_tanh", "relu"])
def test_activations_agree(activation: str, device: str, tmp_path: Path) -> None:
    """Those that no family of the zoo has by itself."""
    opened = Checkpoint.open(write_family(tmp_path / "bert", "bert", 1))
    checkpoint = replace(opened, shape=replace(opened.shape, activation=activation))
    found = TorchSession(checkpoint, device=device).run(IDS, TYPES)
    np.testing.assert_allclose(found, Session(checkpoint, 1).run(IDS, TYPES), rtol=0, atol=1e-5)


def test_real_weights_agree(device: str) -> None:
    """all-MiniLM-L6-v2: cosines to 1e-5."""
    from birchbark.checkpoint.named import locate

    checkpoint = Checkpoint.open(locate("all-MiniLM-L6-v2"))
    ids = [RANDOM.integers(1000, 30_000, n) for n in (5, 20, 20, 100)]
    found = TorchSession(checkpoint, device=device).run(ids)
    np.testing.assert_allclose(found, Session(checkpoint).run(ids), rtol=0, atol=1e-5)


def test_nothing_gives_nothing(tmp_path: Path) -> None:
    """As Session."""
    checkpoint = Checkpoint.open(write_family(tmp_path / "bert", "bert", 1))
    assert TorchSession(checkpoint, device="cpu").run([], []).shape == (0,)


def test_scorers_take_it(device: str, tmp_path: Path) -> None:
    """The same scores; with a fingerprint of its own: a store never mixes the two."""
    directory = write_family(tmp_path / "bert", "bert", 1)
    ours = load_scorer(directory)
    by_torch = load_scorer(directory, session=on_device(device))
    found, expected = (
        score_texts(s, "bees", ["the birch canoe", "bees dance"]) for s in (by_torch, ours)
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    assert (ours.name, ours.kind) == (by_torch.name, by_torch.kind)
    assert ours.fingerprint != by_torch.fingerprint


def test_scores_that_are_no_numbers(tmp_path: Path) -> None:
    """Are refused here as well."""
    from safetensors.numpy import load_file, save_file

    weights = write_family(tmp_path / "bert", "bert", None) / "model.safetensors"
    save_file({n: w * np.float32(1e30) for n, w in load_file(weights).items()}, weights)
    checkpoint = Checkpoint.open(weights.parent, pooling=Pooling())
    with pytest.raises(CheckpointError, match="computes something that is no number"):
        TorchSession(checkpoint, device="cpu").run(IDS)


def test_precision_is_full_and_settings_are_given_back(tmp_path: Path) -> None:
    """TF32 is off while the graph runs, and as it was afterwards."""
    checkpoint = Checkpoint.open(write_family(tmp_path / "bert", "bert", 1))
    session = TorchSession(checkpoint, device="cpu")
    seen = []
    step = session._steps[0]
    watching = replace(
        step,
        compute=lambda *a: (seen.append(torch.get_float32_matmul_precision()), step.compute(*a))[1],
    )
    session._steps[0] = watching
    torch.set_float32_matmul_precision("high")
    try:
        session.run(IDS, TYPES)
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision("highest")
    assert set(seen) == {"highest"}


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to"), "memory is full.*Tried to"),
        (RuntimeError("CUDA error: no kernel image\nmore"), "does not run.*image.*--device cpu"),
    ],
)
def test_what_the_device_refuses_is_told(error: Exception, message: str, tmp_path: Path) -> None:
    """Without a traceback of torch."""

    def fail(*values: object) -> None:
        raise error

    session = TorchSession(
        Checkpoint.open(write_family(tmp_path / "bert", "bert", 1)), device="cpu"
    )
    session._steps[0] = replace(session._steps[0], compute=fail)
    with pytest.raises(InputError, match=message):
        session.run(IDS, TYPES)


def test_results_are_let_go(tmp_path: Path) -> None:
    """Every result but the last is forgotten: a GPU's memory holds a layer's, not the graph's."""
    from birchbark.score.graph import build_graph

    checkpoint = Checkpoint.open(write_family(tmp_path / "bert", "bert", 1))
    steps, _, _ = read_steps(build_graph(checkpoint)[0])
    gone = [name for step in steps for name in step.last_reads]
    made = {name for step in steps for name in step.outputs}
    assert len(gone) == len(set(gone))
    assert set(gone) == made - {"out"}


def test_unknown_operators_are_refused() -> None:
    """Before anything is computed."""
    from onnx import helper

    node = helper.make_node("MatMulInteger", ["ids", "ids"], ["out"])
    model = helper.make_model(helper.make_graph([node], "g", [], []))
    with pytest.raises(CheckpointError, match=r"no operator MatMulInteger.*--device cpu"):
        read_steps(model.SerializeToString())


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_without_a_gpu() -> None:
    """Says what torch is, and the way out."""
    with pytest.raises(InputError, match=r"no GPU that torch can use.*torch .*--device cpu"):
        on_device("cuda")
