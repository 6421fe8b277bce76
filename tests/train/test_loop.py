"""Does a step follow the gradient of its lists' mean loss, however they are dealt out?"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_trainings import prepare

from birchbark.checkpoint.reader import open_any
from birchbark.checkpoint.tokenizer import Pieces
from birchbark.errors import TrainingError
from birchbark.train import loop
from birchbark.train.course import Course
from birchbark.train.loop import Learner, in_batches
from birchbark.train.material import load_material
from birchbark.train.network import Inputs
from birchbark.train.shaping import open_network
from birchbark.train.world import World

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to learn with")

POSITIVE = {"each": "positive", "texts": 3}


def learner_of(folder: Path, **changes: Any) -> Learner:
    training = prepare(folder, **changes)
    base = open_any(Path(training.base), "tiny")
    materials = list(load_material(training, folder, Pieces(base), lambda text: None))
    network = open_network(base, training.shaping, training.seed, "cpu")
    course = Course(materials, training.schedule, training.seed, 1)
    return Learner(network, materials, course, World())


def learnt(learner: Learner, steps: int = 4) -> dict[str, Any]:
    for number in range(steps):
        learner.step(number, 0)
    return {name: weight.detach().clone() for name, weight in learner.network.weights.items()}


@pytest.mark.parametrize("lists", [None, POSITIVE])
def test_accumulated_batches_are_one(lists: Any, tmp_path: Path) -> None:
    """Two or four of them give the weights of one that is as large, the epoch's short end too.

    But for the keys' biases: softmax makes nothing of them, so Adam follows their rounding errors.
    """
    kind: dict[str, Any] = {"lists": lists or {}, "schedule__learning_rate": 1e-3}
    one = learnt(learner_of(tmp_path, schedule__batch=8, **kind), 6)
    for k in (2, 4):
        several = {"schedule__batch": 8 // k, "schedule__accumulate": k}
        parts = learnt(learner_of(tmp_path, **several, **kind), 6)
        for name, weight in one.items():
            if not name.endswith("key.bias"):
                torch.testing.assert_close(parts[name], weight, rtol=0, atol=2e-4)  # a rate of .01


def test_what_memory_cannot_hold_is_computed_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same loss and the same weights; parts hold no more tokens than they may, or one list."""
    kind: dict[str, Any] = {
        "schedule__batch": 8,
        "lists": POSITIVE,
        "schedule__learning_rate": 1e-3,
    }
    learner = learner_of(tmp_path, **kind)
    tasks = learner._course.tasks(0)
    ((whole, read),) = learner._parts(tasks)
    assert list(whole) == list(tasks)
    sizes = [sum(len(ids) for units in own[0] for ids, _ in units) for own in read]
    assert len(set(sizes)) > 1
    loss = learner.step(0, 0)
    for most in (2 * max(sizes), 1):
        monkeypatch.setattr(loop, "TOKENS", most)
        other = learner_of(tmp_path, **kind)
        parts = [len(some) for some, _ in other._parts(tasks)]
        assert sum(parts) == len(tasks)
        assert len(parts) > 1
        if most == 1:
            assert set(parts) == {1}
        starts = np.cumsum([0, *parts])
        held = [sum(sizes[a:b]) for a, b in pairwise(starts)]
        assert all(size <= most or part == 1 for size, part in zip(held, parts, strict=True))
        assert other.step(0, 0) == pytest.approx(loss, rel=1e-5)
        for name, weight in learner.network.weights.items():
            if not name.endswith("key.bias"):
                torch.testing.assert_close(other.network.weights[name], weight, rtol=0, atol=2e-4)


def test_the_loss_is_the_mean_of_lists(tmp_path: Path) -> None:
    """As the network judges their texts before the step; a data set's weight counts."""
    learner = learner_of(tmp_path)
    material, tasks = learner._materials[0], learner._course.tasks(0)
    numbers = [number for _, (number,) in tasks]
    inputs = Inputs.of([pair for n in numbers for pair in material.learnt[n]], "cpu")
    logits = learner.network.score(inputs).double().numpy()
    relevant = material.targets[0][numbers] > 0
    expected = np.log1p(np.exp(np.where(relevant, -logits, logits))).mean()
    assert learner.step(0, 0) == pytest.approx(expected, rel=1e-5)
    double = learner_of(tmp_path, data__weight=2.0)
    assert double.step(0, 0) == pytest.approx(2 * expected, rel=1e-5)


def test_a_step_is_adam_s(tmp_path: Path) -> None:
    """Clipped gradients, by hand: m and v of one step, decay on matrices alone."""
    rate, decay, clip = 1e-2, 0.5, 0.05
    changes = {"schedule__weight_decay": decay, "schedule__clip": clip, "schedule__warmup": 0}
    learner = learner_of(tmp_path, **changes)
    before = {n: w.detach().double().numpy() for n, w in learner.network.weights.items()}
    plain = learner_of(tmp_path, **changes)
    tasks = plain._course.tasks(0)
    (plain._loss(tasks, [plain._read(*task) for task in tasks]) / len(tasks)).backward()
    gradients = {
        n: w.grad.double().numpy() if w.grad is not None else np.zeros(w.shape)
        for n, w in plain.learning.items()
    }
    norm = np.sqrt(sum((g**2).sum() for g in gradients.values()))
    assert norm > clip
    after = learnt(learner, 1)
    for name, old in before.items():
        g = gradients[name] * clip / (norm + 1e-6)
        m, v = 0.1 * g / (1 - 0.9), 0.001 * g**2 / (1 - 0.999)
        kept = old * (1 - rate * decay) if old.ndim > 1 else old
        expected = kept - rate * m / (np.sqrt(v) + 1e-8)
        sure = np.abs(g) > 1e-6  # where Adam's direction is more than rounding
        np.testing.assert_allclose(after[name].numpy()[sure], expected[sure], rtol=0, atol=1e-5)
        np.testing.assert_allclose(after[name].numpy()[g == 0], kept[g == 0], rtol=0, atol=1e-7)


def test_decay_is_on_matrices_alone(tmp_path: Path) -> None:
    """Biases and norms of layers stay out; each weight that learns is in one group."""
    learner = learner_of(tmp_path)
    decaying, others = learner.optimiser.param_groups
    assert (decaying["weight_decay"], others["weight_decay"]) == (0.01, 0)
    names = {id(weight): name for name, weight in learner.learning.items()}
    for weight in others["params"]:
        assert "LayerNorm" in names[id(weight)] or names[id(weight)].endswith(".bias")
    for weight in decaying["params"]:
        assert "LayerNorm" not in names[id(weight)]
        assert names[id(weight)].endswith(".weight")
    assert len(decaying["params"]) + len(others["params"]) == len(names)


@pytest.mark.parametrize(
    ("learns", "still"),
    [("head", ("embeddings", "encoder")), ("encoder", ("embeddings.word_embeddings",))],
)
def test_frozen_parts_keep_their_bits(learns: str, still: tuple[str, ...], tmp_path: Path) -> None:
    """Decay included; all else changes."""
    learner = learner_of(tmp_path, model__learns=learns, schedule__weight_decay=0.5)
    before = {n: w.detach().clone() for n, w in learner.network.weights.items()}
    for name, weight in learnt(learner).items():
        if name.startswith(still):
            assert torch.equal(weight, before[name])
        elif not name.endswith("key.bias"):  # softmax makes nothing of those
            assert not torch.equal(weight, before[name])


def test_dropout_is_the_seed_s(tmp_path: Path) -> None:
    """A step is the same whenever it is taken, and another with another seed."""
    losses = []
    for seed in (1, 1, 2):
        learner = learner_of(tmp_path, model__dropout=0.5)
        torch.rand(len(losses))
        losses.append([learner.step(number, seed) for number in range(3)])
    assert losses[0] == losses[1] != losses[2]


def test_bf16_learns_about_the_same(tmp_path: Path) -> None:
    """Weights and losses stay in 32 bits."""
    exact, rough = (learner_of(tmp_path, schedule__precision=p) for p in ("fp32", "bf16"))
    for number in range(4):
        loss = exact.step(number, 0)
        assert rough.step(number, 0) == pytest.approx(loss, abs=0.05)
    assert {w.dtype for w in rough.network.weights.values()} == {torch.float32}


@pytest.mark.parametrize("objective", ["ranknet", "softmax", "margin", "listnet"])
def test_every_objective_learns(objective: str, tmp_path: Path) -> None:
    """The loss falls on texts that are seen again and again."""
    changes = {"objective": {"kind": objective}, "schedule__batch": 50, "lists": POSITIVE}
    learner = learner_of(tmp_path, schedule__steps=40, **changes)
    losses = [learner.step(number, 0) for number in range(40)]
    assert losses[-1] < losses[0] - 0.1


def test_what_is_no_number_changes_no_weight(tmp_path: Path) -> None:
    """The loss, or the gradient's norm."""
    learner = learner_of(tmp_path)
    with torch.no_grad():
        learner.network.weights["classifier.bias"].fill_(float("inf"))
    before = {n: w.detach().clone() for n, w in learner.network.weights.items()}
    message = r"the loss of step 3 is (nan|inf).*expected numbers \(lower schedule.learning_rate"
    with pytest.raises(TrainingError, match=message):
        learner.step(2, 0)
    for name, weight in learner.network.weights.items():
        assert torch.equal(weight, before[name])
    assert not learner.optimiser.state


def test_batches_hold_all_shortest_first() -> None:
    """Each input once, so many tokens at a time, though one may be longer."""
    lengths = [5, 1, 9, 3, 3, 20, 2]
    batches = list(in_batches(lengths, 8))
    assert sorted(n for batch in batches for n in batch) == list(range(7))
    flat = [lengths[n] for batch in batches for n in batch]
    assert flat == sorted(lengths)
    assert all(sum(lengths[n] for n in batch) <= 8 or len(batch) == 1 for batch in batches)
    assert list(in_batches([], 8)) == []


def test_a_process_that_is_left_alone_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """In plain words; the one that died has told why."""

    def lost(*_: object) -> None:
        raise RuntimeError("Connection closed by peer\nmore")

    monkeypatch.setattr("torch.distributed.barrier", lost)
    monkeypatch.setattr("torch.distributed.all_reduce", lost)
    message = r"another process of this training has ended: found Connection closed by peer \("
    for attempt in (World(0, 2).wait, lambda: World(1, 2).add_up([torch.ones(2)])):
        with pytest.raises(TrainingError, match=message):
            attempt()
