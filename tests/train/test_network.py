"""Does the network that learns compute what score/ computes, and have transformers' gradients?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from zoo import FAMILIES, LAYERS, FamilyReference, write_family

from birchbark.checkpoint.reader import Checkpoint, open_any
from birchbark.errors import CheckpointError, InputError
from birchbark.score.session import Session
from birchbark.train.network import Inputs, Network
from birchbark.train.shaping import Shaping, open_network
from conftest import write_bert

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to learn with")

RANDOM = np.random.default_rng(7)
IDS = [RANDOM.integers(5, 25, n) for n in (31, 3, 9, 9, 17, 4, 32, 9, 31)]
TYPES = [np.repeat([0, 1], [len(i) // 2, len(i) - len(i) // 2]) for i in IDS]
PAIRS = list(zip(IDS, TYPES, strict=True))


def network_of(directory: Path, **shaping: Any) -> Network:
    return open_network(open_any(directory, "tiny"), Shaping(**shaping), 0, "cpu")


def judged(network: Network, pairs: list[Any]) -> Any:
    return network.score(Inputs.of(pairs, "cpu")).numpy()


@pytest.mark.parametrize("logits", [1, 2])
@pytest.mark.parametrize("family", FAMILIES)
def test_logits_are_those_of_the_engine(family: str, logits: int, tmp_path: Path) -> None:
    """For inputs of any lengths in any order; of two logits, their difference."""
    directory = write_family(tmp_path / family, family, logits)
    expected = Session(Checkpoint.open(directory), 1).run(IDS, TYPES)
    network = network_of(directory)
    for order in (range(9), range(8, -1, -1), RANDOM.permutation(9)):
        found = judged(network, [PAIRS[i] for i in order])
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected[list(order)], rtol=0, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_company_changes_nothing(family: str, tmp_path: Path) -> None:
    """An input alone has the logit that it has among others."""
    network = network_of(write_family(tmp_path / family, family, 1))
    together = judged(network, PAIRS)
    alone = np.concatenate([judged(network, [pair]) for pair in PAIRS])
    np.testing.assert_allclose(alone, together, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kept", range(1, LAYERS + 1))
def test_the_first_layers_are_kept(kept: int, tmp_path: Path) -> None:
    """And the head stands on the last of them."""
    directory = write_family(tmp_path / "bert", "bert", 1)
    found = judged(network_of(directory, layers=kept), PAIRS)
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps(config | {"num_hidden_layers": kept}))
    tensors = load_file(directory / "model.safetensors")
    gone = tuple(f"bert.encoder.layer.{i}." for i in range(kept, LAYERS))
    fewer = {name: value for name, value in tensors.items() if not name.startswith(gone)}
    save_file(fewer, directory / "model.safetensors")
    expected = Session(Checkpoint.open(directory), 1).run(IDS, TYPES)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_chosen_layers_and_the_first_of_all_else(tmp_path: Path) -> None:
    """A student begins with what its base has there."""
    directory = write_family(tmp_path / "bert", "bert", 1)
    whole = network_of(directory)
    shape, names = whole.shape, whole.family.names
    small = network_of(
        directory,
        from_layers=(1, 3),
        hidden=shape.hidden // 2,
        heads=shape.heads // 2,
        intermediate=5,
    )
    half = slice(shape.hidden // 2)
    for own, source in ((0, 0), (1, 2)):
        for part, kept in (
            (names.query, (half, half)),
            (names.inner, (slice(5), half)),
            (names.outer, (half, slice(5))),
        ):
            wide = whole.weights[f"{part.format(i=source)}.weight"]
            assert torch.equal(small.weights[f"{part.format(i=own)}.weight"], wide[kept])
    words = f"{names.words}.weight"
    assert torch.equal(small.weights[words], whole.weights[words][:, half])
    assert judged(small, PAIRS).shape == (len(PAIRS),)
    for wrong, message in (
        ({"from_layers": (1, 9)}, "1 to 3, found 9"),
        ({"hidden": 4 * shape.hidden}, "hidden is more than the base has"),
        ({"heads": 1}, "heads must stay as wide as they are"),
    ):
        with pytest.raises(InputError, match=message):
            network_of(directory, **wrong)


def test_layers_that_there_are_not(tmp_path: Path) -> None:
    """More than there are, or a part of those that share weights."""
    with pytest.raises(InputError, match="no such number of layers: expected 1 to 3, found 4"):
        network_of(write_family(tmp_path / "bert", "bert", 1), layers=4)
    with pytest.raises(InputError, match=r"share weights.*expected 3 layers, found 2"):
        network_of(write_family(tmp_path / "albert", "albert", 1), layers=2)


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_are_those_of_differences(family: str, tmp_path: Path) -> None:
    """Along a random direction, against the plain numpy model in float64."""
    directory = write_family(tmp_path / family, family, 1)
    network, reference = network_of(directory, dropout=0.0), FamilyReference(directory, family)
    pairs = [PAIRS[i] for i in (1, 2, 5)]
    network.learn(Inputs.of(pairs, "cpu")).sum().backward()
    prefix = f"{family}."
    along = 0.0
    step, moves = 1e-6, {}
    for name, weight in network.weights.items():
        stored = name if name in reference.w else prefix + name
        moves[stored] = RANDOM.normal(0, 1, weight.shape)
        if weight.grad is not None:
            along += float((weight.grad.double().numpy() * moves[stored]).sum())

    def total(sign: int) -> float:
        moved = FamilyReference(directory, family)
        moved.w = {n: w + sign * step * moves.get(n, 0) for n, w in moved.w.items()}
        return sum(float(moved.logits(i.tolist(), t.tolist())[0]) for i, t in pairs)

    assert moves.keys() == reference.w.keys()
    np.testing.assert_allclose(along, (total(1) - total(-1)) / (2 * step), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("learns", "still"),
    [("all", ()), ("encoder", ("embeddings.word",)), ("head", ("embeddings", "encoder"))],
)
def test_only_what_learns_has_gradients(
    learns: str, still: tuple[str, ...], tmp_path: Path
) -> None:
    """Word embeddings, or the whole encoder, can stand still."""
    network = network_of(write_bert(tmp_path / "bert", labels=1), learns=learns)
    network.learn(Inputs.of(PAIRS, "cpu")).sum().backward()
    for name, weight in network.weights.items():
        assert (weight.grad is None) == name.startswith(still or "no name")


def test_dropout_is_for_learning_alone(tmp_path: Path) -> None:
    """It changes what is learnt from, by torch's seed; judgements stay."""
    directory = write_bert(tmp_path / "bert", labels=1)
    network, plain = network_of(directory, dropout=0.3), network_of(directory, dropout=0.0)
    inputs = Inputs.of(PAIRS, "cpu")
    np.testing.assert_array_equal(plain.score(inputs), plain.learn(inputs).detach())
    torch.manual_seed(1)
    first = network.learn(inputs).detach()
    assert not torch.equal(first, network.learn(inputs).detach())
    torch.manual_seed(1)
    assert torch.equal(first, network.learn(inputs).detach())
    assert torch.equal(network.score(inputs), plain.score(inputs))


def test_a_head_is_drawn_where_there_is_none(tmp_path: Path) -> None:
    """By the seed; the encoder is the base's own."""
    directory = write_bert(tmp_path / "bert", labels=None)
    one, same, other = (
        open_network(open_any(directory, "tiny"), Shaping(), seed, "cpu") for seed in (1, 1, 2)
    )
    stored = load_file(directory / "model.safetensors")
    for name, weight in one.weights.items():
        assert torch.equal(weight, same.weights[name])
        assert torch.equal(weight, other.weights[name]) == (name in stored or name.endswith("bias"))
    assert torch.isfinite(one.score(Inputs.of(PAIRS, "cpu"))).all()


def test_a_next_sentence_head_is_one_logit(tmp_path: Path) -> None:
    """Is next minus is not."""
    directory = write_family(tmp_path / "bert", "bert", 2, "cls.seq_relationship")
    expected = Session(Checkpoint.open(directory), 1).run(IDS, TYPES)
    np.testing.assert_allclose(judged(network_of(directory), PAIRS), expected, rtol=0, atol=1e-5)


def damaged(directory: Path, change: Mapping[str, Any]) -> Path:
    tensors = load_file(directory / "model.safetensors") | dict(change)
    kept = {name: value for name, value in tensors.items() if value is not None}
    save_file(kept, directory / "model.safetensors")
    return directory


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, r"weights encoder.layer.1.output.dense.weight do not fit .*, found none"),
        (
            np.full((16, 24), np.nan, np.float32),
            r"dense.weight are not all numbers: found NaN or infinity \(fetch",
        ),
        (np.zeros((16, 23), np.float32), r"expected shape \(16, 24\), found shape \(16, 23\)"),
    ],
)
def test_damaged_weights_are_told(value: Any, message: str, tmp_path: Path) -> None:
    """Before anything is learnt from them."""
    directory = write_bert(tmp_path / "bert", labels=1)
    damaged(directory, {"bert.encoder.layer.1.output.dense.weight": value})
    with pytest.raises(CheckpointError, match=message):
        network_of(directory)


def test_shapings_that_are_none() -> None:
    """Are refused."""
    with pytest.raises(InputError, match=r"unknown part 'tail'.*all, encoder, head"):
        Shaping(learns="tail")
    for dropout in (-0.1, 1.0, float("nan")):
        with pytest.raises(InputError, match="dropout is out of range"):
            Shaping(dropout=dropout)


def test_sixteen_bits_leave_logits_apart(tmp_path: Path) -> None:
    """Products in bf16 make no more logits equal than float32: the head is computed in it."""
    base = Checkpoint.open(write_bert(tmp_path / "base", labels=1))
    network = open_network(base, Shaping(dropout=0.0), 0, "cpu")
    random = np.random.default_rng(2)
    pairs = [(random.integers(5, 25, 12), np.repeat([0, 1], 6)) for _ in range(400)]
    inputs = Inputs.of(pairs, "cpu")
    exact = network.score(inputs).numpy()
    with torch.autocast("cpu", torch.bfloat16):
        coarse = network.score(inputs).numpy()
    assert coarse.dtype == np.float32
    assert len(np.unique(coarse)) > 0.98 * len(np.unique(exact))
    assert not np.array_equal(coarse, exact)
