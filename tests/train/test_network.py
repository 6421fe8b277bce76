"""Does the torch network compute the logits of score/, with correct gradients?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from zoo import FAMILIES, LAYERS, PREFIXES, FamilyReference, write_family, write_table

from birchbark.checkpoint.checkpoint import Checkpoint, open_any_head
from birchbark.errors import CheckpointError, InputError
from birchbark.score.session import OnnxSession
from birchbark.train.initialise import Initialisation, network_shape, open_network
from birchbark.train.network import Network
from birchbark.train.packed_inputs import PackedInputs
from conftest import write_bert

torch = pytest.importorskip("torch", reason="torch is not installed")

RANDOM = np.random.default_rng(7)
IDS = [RANDOM.integers(5, 25, n) for n in (31, 3, 9, 9, 17, 4, 32, 9, 31)]
TYPES = [np.repeat([0, 1], [len(i) // 2, len(i) - len(i) // 2]) for i in IDS]
PAIRS = list(zip(IDS, TYPES, strict=True))


def network_of(directory: Path, **settings: Any) -> Network:
    return open_network(open_any_head(directory, "tiny"), Initialisation(**settings), 0, "cpu")


def scored(network: Network, pairs: list[Any]) -> Any:
    return network.score(PackedInputs.of(pairs, "cpu")).numpy()


@pytest.mark.parametrize("logits", [1, 2])
@pytest.mark.parametrize("family", FAMILIES)
def test_logits_equal_those_of_the_onnx_graph(family: str, logits: int, tmp_path: Path) -> None:
    """Inputs have any length and order; two logits are reduced to their difference."""
    directory = write_family(tmp_path / family, family, logits)
    expected = OnnxSession(Checkpoint.open(directory), 1).run(IDS, TYPES)
    network = network_of(directory)
    for order in (range(9), range(8, -1, -1), RANDOM.permutation(9)):
        found = scored(network, [PAIRS[i] for i in order])
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected[list(order)], rtol=0, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_other_inputs_have_no_effect(family: str, tmp_path: Path) -> None:
    """A single input has the same logit as in a batch."""
    network = network_of(write_family(tmp_path / family, family, 1))
    merged = scored(network, PAIRS)
    alone = np.concatenate([scored(network, [pair]) for pair in PAIRS])
    np.testing.assert_allclose(alone, merged, rtol=0, atol=1e-6)


@pytest.mark.parametrize("count", range(1, LAYERS + 1))
def test_the_first_layers_are_used(count: int, tmp_path: Path) -> None:
    """The head is applied to the last of them."""
    directory = write_family(tmp_path / "bert", "bert", 1)
    found = scored(network_of(directory, layers=count), PAIRS)
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps(config | {"num_hidden_layers": count}))
    tensors = load_file(directory / "model.safetensors")
    dropped = tuple(f"bert.encoder.layer.{i}." for i in range(count, LAYERS))
    fewer = {name: value for name, value in tensors.items() if not name.startswith(dropped)}
    save_file(fewer, directory / "model.safetensors")
    expected = OnnxSession(Checkpoint.open(directory), 1).run(IDS, TYPES)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_a_student_begins_with_part_of_its_base(tmp_path: Path) -> None:
    """It copies chosen layers, and the first heads, hidden and intermediate dimensions."""
    directory = write_family(tmp_path / "bert", "bert", 1)
    full = network_of(directory)
    config, names = full.config, full.family.names
    small = network_of(
        directory,
        from_layers=(1, 3),
        hidden=config.hidden // 2,
        heads=config.heads // 2,
        intermediate=5,
    )
    half = slice(config.hidden // 2)
    for own, source in ((0, 0), (1, 2)):
        for part, region in (
            (names.query, (half, half)),
            (names.inner, (slice(5), half)),
            (names.outer, (half, slice(5))),
        ):
            wide = full.weights[f"{part.format(i=source)}.weight"]
            assert torch.equal(small.weights[f"{part.format(i=own)}.weight"], wide[region])
    words = f"{names.words}.weight"
    assert torch.equal(small.weights[words], full.weights[words][:, half])
    assert scored(small, PAIRS).shape == (len(PAIRS),)
    for wrong, message in (
        ({"from_layers": (1, 9)}, "1 to 3, found 9"),
        ({"hidden": 4 * config.hidden}, "hidden exceeds that of the base"),
        ({"heads": 1}, "the width of an attention head cannot change"),
    ):
        with pytest.raises(InputError, match=message):
            network_of(directory, **wrong)


@pytest.mark.parametrize("bias", [False, True])
def test_a_student_begins_with_part_of_each_packed_matrix(bias: bool, tmp_path: Path) -> None:
    """Of ModernBERT's queries, keys and values, and of both halves of its feed-forward layer."""
    directory = write_family(tmp_path / "modern", "modernbert", 1)
    tensors = load_file(directory / "model.safetensors")
    names = [f"layers.1.{part}.weight" for part in ("attn.Wqkv", "mlp.Wi")]
    if bias:
        for name in names:
            rows = len(tensors[f"model.{name}"])
            tensors[f"model.{name.replace('weight', 'bias')}"] = np.arange(rows, dtype=np.float32)
        save_file(tensors, directory / "model.safetensors")
    small = network_of(directory, hidden=8, heads=2, intermediate=5)
    fused, inner = (tensors[f"model.{name}"] for name in names)
    rows = {names[0]: [*range(8), *range(16, 24), *range(32, 40)]}
    rows[names[1]] = [*range(5), *range(24, 29)]
    for name, whole in zip(names, (fused, inner), strict=True):
        found = small.weights[name].detach().numpy()
        np.testing.assert_array_equal(found, whole[rows[name]][:, :8])
        if bias:
            found = small.weights[name.replace("weight", "bias")].detach().numpy()
            np.testing.assert_array_equal(found, np.array(rows[name], np.float32))
    assert scored(small, PAIRS).shape == (len(PAIRS),)


def test_the_first_layer_of_modernbert_stays_the_first(tmp_path: Path) -> None:
    """Another would lose its norm before attention there, which layer 1 lacks elsewhere."""
    directory = write_family(tmp_path / "modern", "modernbert", 1)
    for layers, found in (((2, 3), "2, 3"), ((2, 1), "2, 1"), ((1, 1), "1, 1")):
        with pytest.raises(InputError, match=rf"no norm before attention.*begins.*found {found}"):
            network_of(directory, from_layers=layers)
    full, small = network_of(directory), network_of(directory, from_layers=(1, 3))
    for own, source in (
        ("layers.0.attn.Wo", "layers.0.attn.Wo"),
        *((f"layers.1.{part}", f"layers.2.{part}") for part in ("attn_norm", "attn.Wo")),
    ):
        assert torch.equal(small.weights[f"{own}.weight"], full.weights[f"{source}.weight"])


def test_missing_layers_are_refused(tmp_path: Path) -> None:
    """A network cannot have more layers than its base, or omit layers that share weights."""
    with pytest.raises(InputError, match="the base has fewer layers: expected 1 to 3, found 4"):
        network_of(write_family(tmp_path / "bert", "bert", 1), layers=4)
    with pytest.raises(InputError, match=r"share weights.*expected 3 layers, found 2"):
        network_of(write_family(tmp_path / "albert", "albert", 1), layers=2)


@pytest.mark.parametrize("settings", [{}, {"pooling": "mean"}, {"masked": True}])
def test_a_static_embedding_has_nothing_to_train(settings: Any, tmp_path: Path) -> None:
    """It is refused before its weights are read, whatever is to be made of it."""
    base = Checkpoint.open(write_table(tmp_path / "static"))
    with pytest.raises(InputError, match="static: a static embedding has no layers to train"):
        network_shape(base, Initialisation(**settings))


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_equal_finite_differences(family: str, tmp_path: Path) -> None:
    """They are compared in a random direction, with a numpy model in float64."""
    directory = write_family(tmp_path / family, family, 1)
    network, reference = network_of(directory, dropout=0.0), FamilyReference(directory, family)
    pairs = [PAIRS[i] for i in (1, 2, 5)]
    network.training_logits(PackedInputs.of(pairs, "cpu")).sum().backward()
    prefix = f"{PREFIXES.get(family, family)}."
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
    ("trainable", "frozen"),
    [("all", ()), ("encoder", ("embeddings.word",)), ("head", ("embeddings", "encoder"))],
)
def test_only_trainable_weights_have_gradients(
    trainable: str, frozen: tuple[str, ...], tmp_path: Path
) -> None:
    """Word embeddings, or the whole encoder, can be frozen."""
    network = network_of(write_bert(tmp_path / "bert", labels=1), trainable=trainable)
    network.training_logits(PackedInputs.of(PAIRS, "cpu")).sum().backward()
    for name, weight in network.weights.items():
        assert (weight.grad is None) == name.startswith(frozen or "no name")


def test_dropout_is_for_training_alone(tmp_path: Path) -> None:
    """It changes logits in training, depending on torch's seed, but never scores."""
    directory = write_bert(tmp_path / "bert", labels=1)
    network, plain = network_of(directory, dropout=0.3), network_of(directory, dropout=0.0)
    inputs = PackedInputs.of(PAIRS, "cpu")
    np.testing.assert_array_equal(plain.score(inputs), plain.training_logits(inputs).detach())
    torch.manual_seed(1)
    first = network.training_logits(inputs).detach()
    assert not torch.equal(first, network.training_logits(inputs).detach())
    torch.manual_seed(1)
    assert torch.equal(first, network.training_logits(inputs).detach())
    assert torch.equal(network.score(inputs), plain.score(inputs))


def test_a_missing_head_is_initialised_randomly(tmp_path: Path) -> None:
    """It depends on the seed; the encoder is that of the base."""
    directory = write_bert(tmp_path / "bert", labels=None)
    first, same, other = (
        open_network(open_any_head(directory, "tiny"), Initialisation(), seed, "cpu")
        for seed in (1, 1, 2)
    )
    stored = load_file(directory / "model.safetensors")
    for name, weight in first.weights.items():
        assert torch.equal(weight, same.weights[name])
        assert torch.equal(weight, other.weights[name]) == (name in stored or name.endswith("bias"))
    assert torch.isfinite(first.score(PackedInputs.of(PAIRS, "cpu"))).all()


def test_a_new_head_ignores_that_of_the_base(tmp_path: Path) -> None:
    """Its weights are random, though the base has a head; the encoder is that of the base."""
    base = open_any_head(write_bert(tmp_path / "bert", labels=1), "tiny")
    copied, new, other = (
        open_network(base, Initialisation(head="new" if is_new else "base"), seed, "cpu").weights
        for is_new, seed in ((False, 1), (True, 1), (True, 2))
    )
    changed = {name for name in copied if not torch.equal(copied[name], new[name])}
    assert {"classifier.weight"} <= changed
    assert not any(name.startswith(("encoder", "embeddings")) for name in changed)
    assert not torch.equal(new["classifier.weight"], other["classifier.weight"])


def test_a_next_sentence_head_gives_one_logit(tmp_path: Path) -> None:
    """The logit of “is next” minus that of “is not”."""
    directory = write_family(tmp_path / "bert", "bert", 2, "cls.seq_relationship")
    expected = OnnxSession(Checkpoint.open(directory), 1).run(IDS, TYPES)
    np.testing.assert_allclose(scored(network_of(directory), PAIRS), expected, rtol=0, atol=1e-5)


def damaged(directory: Path, change: Mapping[str, Any]) -> Path:
    tensors = load_file(directory / "model.safetensors") | dict(change)
    present = {name: value for name, value in tensors.items() if value is not None}
    save_file(present, directory / "model.safetensors")
    return directory


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, r"weights encoder.layer.1.output.dense.weight do not fit .*, found none"),
        (
            np.full((16, 24), np.nan, np.float32),
            r"dense.weight are not finite: found NaN or infinity \(fetch",
        ),
        (np.zeros((16, 23), np.float32), r"expected shape \(16, 24\), found shape \(16, 23\)"),
    ],
)
def test_damaged_weights_are_refused(value: Any, message: str, tmp_path: Path) -> None:
    """The error is raised when the network is opened."""
    directory = write_bert(tmp_path / "bert", labels=1)
    damaged(directory, {"bert.encoder.layer.1.output.dense.weight": value})
    with pytest.raises(CheckpointError, match=message):
        network_of(directory)


def test_invalid_initialisations() -> None:
    """Unknown names and a dropout out of range raise an error."""
    with pytest.raises(InputError, match=r"unknown part 'tail'.*all, encoder, head"):
        Initialisation(trainable="tail")
    for dropout in (-0.1, 1.0, float("nan")):
        with pytest.raises(InputError, match="dropout is out of range"):
            Initialisation(dropout=dropout)


def test_bf16_keeps_logits_distinct(tmp_path: Path) -> None:
    """The head is computed in float32, so bf16 makes hardly any logits equal."""
    base = Checkpoint.open(write_bert(tmp_path / "base", labels=1))
    network = open_network(base, Initialisation(dropout=0.0), 0, "cpu")
    random = np.random.default_rng(2)
    pairs = [(random.integers(5, 25, 12), np.repeat([0, 1], 6)) for _ in range(400)]
    inputs = PackedInputs.of(pairs, "cpu")
    exact = network.score(inputs).numpy()
    with torch.autocast("cpu", torch.bfloat16):
        coarse = network.score(inputs).numpy()
    assert coarse.dtype == np.float32
    assert len(np.unique(coarse)) > 0.98 * len(np.unique(exact))
    assert not np.array_equal(coarse, exact)
