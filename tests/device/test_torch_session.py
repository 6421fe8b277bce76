"""Does torch compute the same outputs as ONNX Runtime, for every family and head?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from zoo import FAMILIES, LAYERS, write_family

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.heads import Pooling
from birchbark.device.operators import read_steps
from birchbark.device.torch_session import TorchSession, torch_session_factory
from birchbark.errors import BirchbarkError, CheckpointError, InputError
from birchbark.score.load_scorer import load_scorer
from birchbark.score.precision import Precision
from birchbark.score.scorer import score_texts
from birchbark.score.session import OnnxSession

torch = pytest.importorskip("torch", reason="torch is not installed: nothing runs the graph")

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
    """Logits agree and are in input order, for any batch size."""
    checkpoint = Checkpoint.open(write_family(tmp_path / family, family, logits))
    expected = OnnxSession(checkpoint, 1).run(IDS, TYPES)
    for tokens in (1, 40, 10_000):
        scores = TorchSession(checkpoint, None, tokens, device=device).run(IDS, TYPES)
        assert scores.dtype == np.float32
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("mode", ["cls", "mean", "max", "tokens"])
@pytest.mark.parametrize("family", FAMILIES)
def test_embeddings_agree(family: str, mode: str, device: str, tmp_path: Path) -> None:
    """Embeddings of every layer agree."""
    directory = write_family(tmp_path / family, family, 1)
    for layer in range(LAYERS + 1):
        checkpoint = Checkpoint.open(directory, pooling=Pooling(mode, layer))
        found = TorchSession(checkpoint, device=device).run(IDS)
        np.testing.assert_allclose(found, OnnxSession(checkpoint, 1).run(IDS), rtol=0, atol=1e-5)


@pytest.mark.parametrize("activation", ["gelu_pytorch_tanh", "relu"])
def test_activations_agree(activation: str, device: str, tmp_path: Path) -> None:
    """All supported activations agree, even those that no family in zoo.py uses."""
    opened = Checkpoint.open(write_family(tmp_path / "bert", "bert", 1))
    checkpoint = replace(opened, config=replace(opened.config, activation=activation))
    found = TorchSession(checkpoint, device=device).run(IDS, TYPES)
    np.testing.assert_allclose(found, OnnxSession(checkpoint, 1).run(IDS, TYPES), rtol=0, atol=1e-5)


def test_real_weights_agree(device: str) -> None:
    """Vectors of all-MiniLM-L6-v2 agree to 1e-5."""
    from birchbark.checkpoint.locate import locate

    checkpoint = Checkpoint.open(locate("all-MiniLM-L6-v2"))
    ids = [RANDOM.integers(1000, 30_000, n) for n in (5, 20, 20, 100)]
    found = TorchSession(checkpoint, device=device).run(ids)
    np.testing.assert_allclose(found, OnnxSession(checkpoint).run(ids), rtol=0, atol=1e-5)


@pytest.mark.parametrize(("precision", "digits"), [(Precision.BF16, 8), (Precision.FP16, 11)])
@pytest.mark.parametrize("family", FAMILIES)
def test_sixteen_bits(
    family: str, precision: Precision, digits: int, device: str, tmp_path: Path
) -> None:
    """Logits are as close as 8 or 11 binary digits allow, and float32; stores keep them apart."""
    checkpoint = Checkpoint.open(write_family(tmp_path / family, family, 1))
    exact = TorchSession(checkpoint, device=device)
    session = TorchSession(checkpoint, precision=precision, device=device)
    expected, found = exact.run(IDS, TYPES), session.run(IDS, TYPES)
    assert found.dtype == np.float32
    assert 0 < np.abs(found - expected).max() < 2.0 ** (4 - digits) * np.abs(expected).max()
    assert len({s.fingerprint("") for s in (exact, session)}) == 2


def test_int8_runs_on_the_cpu_only(tmp_path: Path) -> None:
    """16 bits run on a GPU only, since they would not be faster on a CPU."""
    checkpoint = Checkpoint.open(write_family(tmp_path / "bert", "bert", 1))
    with pytest.raises(InputError, match="int8 arithmetic runs on the CPU only"):
        TorchSession(checkpoint, precision=Precision.INT8, device="cpu")
    for precision in (Precision.BF16, Precision.FP16):
        with pytest.raises(InputError, match=r"is computed by GPUs only.*--device cuda"):
            OnnxSession(checkpoint, precision=precision)


def test_no_inputs_give_no_outputs(tmp_path: Path) -> None:
    """No inputs give an empty result, as in OnnxSession."""
    checkpoint = Checkpoint.open(write_family(tmp_path / "bert", "bert", 1))
    assert TorchSession(checkpoint, device="cpu").run([], []).shape == (0,)


def test_scorers_run_on_torch(device: str, tmp_path: Path) -> None:
    """Scores agree, but the fingerprint differs, so a score store never mixes them."""
    directory = write_family(tmp_path / "bert", "bert", 1)
    ours = load_scorer(directory)
    by_torch = load_scorer(directory, session=torch_session_factory(device))
    scores, expected = (
        score_texts(s, "bees", ["the birch canoe", "bees dance"]) for s in (by_torch, ours)
    )
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-5)
    assert (ours.name, ours.kind) == (by_torch.name, by_torch.kind)
    assert ours.fingerprint != by_torch.fingerprint


def test_scores_that_are_not_finite(tmp_path: Path) -> None:
    """Scores that are not finite raise an error, as in OnnxSession."""
    from safetensors.numpy import load_file, save_file

    weights = write_family(tmp_path / "bert", "bert", None) / "model.safetensors"
    save_file({n: w * np.float32(1e30) for n, w in load_file(weights).items()}, weights)
    checkpoint = Checkpoint.open(weights.parent, pooling=Pooling())
    with pytest.raises(CheckpointError, match="the model's output is not finite"):
        TorchSession(checkpoint, device="cpu").run(IDS)


def test_precision_is_full_and_settings_are_restored(tmp_path: Path) -> None:
    """TF32 is off while the graph runs, and restored afterwards."""
    checkpoint = Checkpoint.open(write_family(tmp_path / "bert", "bert", 1))
    session = TorchSession(checkpoint, device="cpu")
    seen = []
    step = session._encoder[0]
    recording = replace(
        step,
        compute=lambda *a: (seen.append(torch.get_float32_matmul_precision()), step.compute(*a))[1],
    )
    session._encoder[0] = recording
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
        (RuntimeError("CUDA error: no kernel image\nmore"), "cannot run.*image.*--device cpu"),
    ],
)
def test_device_errors_are_told(error: Exception, message: str, tmp_path: Path) -> None:
    """The message contains torch's first line."""

    def fail(*values: object) -> None:
        raise error

    session = TorchSession(
        Checkpoint.open(write_family(tmp_path / "bert", "bert", 1)), device="cpu"
    )
    session._encoder[0] = replace(session._encoder[0], compute=fail)
    with pytest.raises(BirchbarkError, match=message) as told:
        session.run(IDS, TYPES)
    assert told.value.exit_code == 1


def test_results_are_freed_after_their_last_use(tmp_path: Path) -> None:
    """GPU memory holds the results of one layer, not of the entire graph."""
    from birchbark.score.graph import build_graph

    checkpoint = Checkpoint.open(write_family(tmp_path / "bert", "bert", 1))
    steps, _, _ = read_steps(build_graph(checkpoint)[0])
    freed = [name for step in steps for name in step.last_reads]
    results = {name for step in steps for name in step.outputs}
    assert len(freed) == len(set(freed))
    assert set(freed) == results - {"out"}


def test_unsupported_operators_are_rejected() -> None:
    """The error is raised before anything is computed."""
    from onnx import helper

    node = helper.make_node("MatMulInteger", ["ids", "ids"], ["out"])
    model = helper.make_model(helper.make_graph([node], "g", [], []))
    with pytest.raises(
        CheckpointError, match=r"operator MatMulInteger is not supported.*--device cpu"
    ):
        read_steps(model.SerializeToString())


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_without_a_gpu() -> None:
    """The error names torch's version and a remedy."""
    with pytest.raises(InputError, match=r"torch finds no GPU.*torch .*--device cpu"):
        torch_session_factory("cuda")
