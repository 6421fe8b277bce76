"""Does a training step minimise the mean loss of its lists, in batches of any size?"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_trainings import prepare, some_pairs, write_pairs

from birchbark.checkpoint.checkpoint import open_any_head
from birchbark.checkpoint.json_files import read_object
from birchbark.checkpoint.model_card import LINEAGE
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.errors import InputError, TrainingError
from birchbark.score.precision import Precision
from birchbark.train import training as training_module
from birchbark.train.config import Teacher
from birchbark.train.dataset import load_datasets
from birchbark.train.distributed import ProcessGroup
from birchbark.train.initialise import open_network
from birchbark.train.learner import Learner
from birchbark.train.packed_inputs import PackedInputs
from birchbark.train.sampler import Sampler
from birchbark.train.teacher_scores import check_precisions
from birchbark.train.training import train
from birchbark.train.training_run import ProgressReporter
from birchbark.train.validation import score_pairs, validate

torch = pytest.importorskip("torch", reason="torch is not installed")

POSITIVE = {"each": "positive", "texts": 3}


def learner_of(folder: Path, **changes: Any) -> Learner:
    training = prepare(folder, **changes)
    base = open_any_head(Path(training.base), "tiny")
    datasets = load_datasets(
        training, folder, CheckpointTokenizer(base), lambda text: None, folder / "tokens"
    )
    network = open_network(base, training.initialisation, training.seed, "cpu")
    sampler = Sampler(datasets, training.schedule, training.seed, 1)
    return Learner(network, datasets, sampler, ProcessGroup())


def trained(learner: Learner, steps: int = 4) -> dict[str, Any]:
    """Return the weights after some steps."""
    for number in range(steps):
        learner.step(number, 0)
    return {name: weight.detach().clone() for name, weight in learner.network.weights.items()}


@pytest.mark.parametrize("lists", [None, POSITIVE])
def test_accumulated_batches_equal_one_large_batch(lists: Any, tmp_path: Path) -> None:
    """They do at the short last step of an epoch, too.

    Biases of keys are excepted: they do not affect softmax, so Adam follows rounding errors.
    """
    kind: dict[str, Any] = {"lists": lists or {}, "schedule__learning_rate": 1e-3}
    one = trained(learner_of(tmp_path, schedule__batch=8, **kind), 6)
    for k in (2, 4):
        several = {"schedule__batch": 8 // k, "schedule__accumulate": k}
        parts = trained(learner_of(tmp_path, **several, **kind), 6)
        for name, weight in one.items():
            if not name.endswith("key.bias"):
                torch.testing.assert_close(parts[name], weight, rtol=0, atol=2e-4)  # a rate of .01


def test_recomputed_layers_give_the_same_weights(tmp_path: Path) -> None:
    """Dropout is the same in both computations."""
    kind: dict[str, Any] = {"schedule__batch": 8, "model__dropout": 0.2}
    kept = trained(learner_of(tmp_path, **kind))
    recomputed = trained(learner_of(tmp_path, **kind, schedule__recompute=True))
    for name, weight in kept.items():
        torch.testing.assert_close(recomputed[name], weight, rtol=0, atol=0)


def test_large_batches_are_computed_in_micro_batches(tmp_path: Path) -> None:
    """Loss and weights are equal; a micro-batch is within the token limit, or has a single list."""
    kind: dict[str, Any] = {
        "schedule__batch": 8,
        "lists": POSITIVE,
        "schedule__learning_rate": 1e-3,
    }
    learner = learner_of(tmp_path, **kind)
    lists = learner._sampler.lists_at(0)
    (batch,) = learner._micro_batches(lists)
    assert len(batch) == len(lists)
    sizes = [sum(len(ids) for inputs in own.inputs for ids, _ in inputs) for own in batch]
    assert len(set(sizes)) > 1
    loss = learner.step(0, 0)
    for limit in (2 * max(sizes), 1):
        other = learner_of(tmp_path, **kind, schedule__batch_tokens=limit)
        counts = [len(part) for part in other._micro_batches(lists)]
        assert sum(counts) == len(lists)
        assert len(counts) > 1
        if limit == 1:
            assert set(counts) == {1}
        starts = np.cumsum([0, *counts])
        tokens = [sum(sizes[a:b]) for a, b in pairwise(starts)]
        assert all(n <= limit or count == 1 for n, count in zip(tokens, counts, strict=True))
        assert other.step(0, 0) == pytest.approx(loss, rel=1e-5)
        for name, weight in learner.network.weights.items():
            if not name.endswith("key.bias"):
                torch.testing.assert_close(other.network.weights[name], weight, rtol=0, atol=2e-4)


def test_the_loss_is_the_mean_over_lists(tmp_path: Path) -> None:
    """It uses the scores before the step, and is multiplied by the weight of the data set."""
    learner = learner_of(tmp_path)
    dataset, lists = learner._datasets[0], learner._sampler.lists_at(0)
    numbers = [number for _, (number,) in lists]
    inputs = PackedInputs.of([pair for n in numbers for pair in dataset.training_pairs[n]], "cpu")
    logits = learner.network.score(inputs).double().numpy()
    relevant = dataset.targets[0][numbers] > 0
    expected = np.log1p(np.exp(np.where(relevant, -logits, logits))).mean()
    assert learner.step(0, 0) == pytest.approx(expected, rel=1e-5)
    double = learner_of(tmp_path, data__weight=2.0)
    assert double.step(0, 0) == pytest.approx(2 * expected, rel=1e-5)


def test_each_data_set_has_its_weight_and_targets(tmp_path: Path) -> None:
    """A step takes the mean over the lists of both data sets."""
    prepare(tmp_path)
    write_pairs(tmp_path / "other.tsv", some_pairs(10, seed=1))
    weights = {"pairs.tsv": 2.0, "other.tsv": 0.5}
    data = [{"name": file, "files": [file], "weight": w} for file, w in weights.items()]
    learner = learner_of(tmp_path, data=data, schedule__batch=16)
    lists = [(of, number) for of, (number,) in learner._sampler.lists_at(0)]
    datasets = [learner._datasets[of] for of, _ in lists]
    assert {dataset.config.name for dataset in datasets} == weights.keys()
    pairs = [d.training_pairs[n] for d, (_, n) in zip(datasets, lists, strict=True)]
    inputs = PackedInputs.of([pair for of_list in pairs for pair in of_list], "cpu")
    logits = learner.network.score(inputs).double().numpy()
    grades = np.array([d.targets[0][n] for d, (_, n) in zip(datasets, lists, strict=True)])
    losses = np.log1p(np.exp(np.where(grades > 0, -logits, logits)))
    expected = np.mean([d.config.weight for d in datasets] * losses)
    assert learner.step(0, 0) == pytest.approx(expected, rel=1e-5)


def test_a_step_is_one_of_adamw(tmp_path: Path) -> None:
    """Clipped gradients, moments and weight decay are computed by hand."""
    rate, decay, clip = 1e-2, 0.5, 0.05
    changes = {"schedule__weight_decay": decay, "schedule__clip": clip, "schedule__warmup": 0}
    learner = learner_of(tmp_path, **changes)
    before = {n: w.detach().double().numpy() for n, w in learner.network.weights.items()}
    plain = learner_of(tmp_path, **changes)
    lists = plain._sampler.lists_at(0)
    (plain._loss([plain._inputs(*own) for own in lists]) / len(lists)).backward()
    gradients = {
        n: w.grad.double().numpy() if w.grad is not None else np.zeros(w.shape)
        for n, w in plain.trainable.items()
    }
    norm = np.sqrt(sum((g**2).sum() for g in gradients.values()))
    assert norm > clip
    after = trained(learner, 1)
    for name, old in before.items():
        g = gradients[name] * clip / (norm + 1e-6)
        m, v = 0.1 * g / (1 - 0.9), 0.001 * g**2 / (1 - 0.999)
        decayed = old * (1 - rate * decay) if old.ndim > 1 else old
        expected = decayed - rate * m / (np.sqrt(v) + 1e-8)
        sure = np.abs(g) > 1e-6  # elsewhere Adam follows rounding errors
        np.testing.assert_allclose(after[name].numpy()[sure], expected[sure], rtol=0, atol=1e-5)
        np.testing.assert_allclose(after[name].numpy()[g == 0], decayed[g == 0], rtol=0, atol=1e-7)


def test_each_step_has_its_learning_rate(tmp_path: Path) -> None:
    """Adam's first step, the first of the warm-up, changes weights by the rate."""
    learner = learner_of(tmp_path, schedule__warmup=3, schedule__weight_decay=0.0)
    before = learner.network.weights["classifier.weight"].detach().clone()
    after = trained(learner, 1)["classifier.weight"]
    rate = learner._sampler.learning_rate(0)
    assert rate == pytest.approx(1e-2 / 4)
    torch.testing.assert_close((after - before).abs(), torch.full_like(before, rate))


def test_decay_is_on_matrices_alone(tmp_path: Path) -> None:
    """Biases and layer norms have none; each trained weight is in exactly one group."""
    learner = learner_of(tmp_path)
    decaying, others = learner.optimiser.param_groups
    assert (decaying["weight_decay"], others["weight_decay"]) == (0.01, 0)
    names = {id(weight): name for name, weight in learner.trainable.items()}
    for weight in others["params"]:
        assert "LayerNorm" in names[id(weight)] or names[id(weight)].endswith(".bias")
    for weight in decaying["params"]:
        assert "LayerNorm" not in names[id(weight)]
        assert names[id(weight)].endswith(".weight")
    assert len(decaying["params"]) + len(others["params"]) == len(names)


@pytest.mark.parametrize(
    ("trainable", "frozen"),
    [("head", ("embeddings", "encoder")), ("encoder", ("embeddings.word_embeddings",))],
)
def test_frozen_weights_do_not_change(
    trainable: str, frozen: tuple[str, ...], tmp_path: Path
) -> None:
    """Weight decay does not change them either; all other weights change."""
    learner = learner_of(tmp_path, model__learns=trainable, schedule__weight_decay=0.5)
    before = {n: w.detach().clone() for n, w in learner.network.weights.items()}
    for name, weight in trained(learner).items():
        if name.startswith(frozen):
            assert torch.equal(weight, before[name])
        elif not name.endswith("key.bias"):  # they do not affect softmax
            assert not torch.equal(weight, before[name])


def test_dropout_depends_on_the_seed_alone(tmp_path: Path) -> None:
    """Equal seeds give equal steps, whatever torch has drawn before; different seeds do not."""
    losses = []
    for seed in (1, 1, 2):
        learner = learner_of(tmp_path, model__dropout=0.5)
        torch.rand(len(losses))
        losses.append([learner.step(number, seed) for number in range(3)])
    assert losses[0] == losses[1] != losses[2]


def test_dropout_differs_between_steps_and_processes(tmp_path: Path) -> None:
    """Torch draws with another seed in each."""
    learner = learner_of(tmp_path, model__dropout=0.5)
    seeds = []
    for rank in range(2):
        learner._processes = ProcessGroup(rank)
        for number in range(3):
            learner.step(number, 0)
            seeds.append(torch.initial_seed())
    assert len(set(seeds)) == 6


def test_the_held_out_loss_is_the_mean_over_lists(tmp_path: Path) -> None:
    """Of queries with 2 to 9 texts, each text counts the same; a query's value is its own mean."""
    prepare(tmp_path)
    pairs = [p for n in range(2, 10) for p in some_pairs(10, n, seed=n) if p.query_id == f"q{n}"]
    write_pairs(tmp_path / "pairs.tsv", pairs)
    learner = learner_of(tmp_path, data__validation=0.5)
    (dataset,) = learner._datasets
    held_out = dataset.heldout_pairs
    logits = score_pairs(learner, held_out).astype(float)
    losses = np.log1p(np.exp(np.where(held_out.pairs.grades > 0, -logits, logits)))
    counts = [len(of_query) for of_query in held_out.pairs.by_query]
    assert len(set(counts)) == len(counts) > 1
    result = validate(learner, [dataset], "loss", 0)["words"]
    assert result.loss == pytest.approx(losses.mean(), rel=1e-5)
    of_queries = [losses[of_query].mean() for of_query in held_out.pairs.by_query]
    assert result.values == pytest.approx(of_queries, rel=1e-5)
    assert result.mean == pytest.approx(np.mean(of_queries), rel=1e-5)


def test_the_held_out_loss_has_the_weights_of_its_terms(tmp_path: Path) -> None:
    """It is the weighted sum over them."""
    losses = []
    for weights in ([1.0], [0.25], [0.25, 0.5]):
        terms = [{"kind": "pointwise", "weight": weight} for weight in weights]
        learner = learner_of(tmp_path, objective=terms)
        losses.append(validate(learner, learner._datasets, "loss", 0)["words"].loss)
    assert losses[1:] == pytest.approx([0.25 * losses[0], 0.75 * losses[0]])


def test_bf16_gives_similar_losses(tmp_path: Path) -> None:
    """Weights stay in float32."""
    exact, rough = (learner_of(tmp_path, schedule__precision=p) for p in ("fp32", "bf16"))
    for number in range(4):
        loss = exact.step(number, 0)
        assert rough.step(number, 0) == pytest.approx(loss, abs=0.05)
    assert {w.dtype for w in rough.network.weights.values()} == {torch.float32}


@pytest.mark.parametrize("objective", ["ranknet", "softmax", "margin", "listnet"])
def test_every_objective_lowers_its_loss(objective: str, tmp_path: Path) -> None:
    """The same texts are used for training repeatedly."""
    changes = {"objective": {"kind": objective}, "schedule__batch": 50, "lists": POSITIVE}
    learner = learner_of(tmp_path, schedule__steps=40, **changes)
    losses = [learner.step(number, 0) for number in range(40)]
    assert losses[-1] < losses[0] - 0.1


def test_a_loss_that_is_not_finite_changes_no_weight(tmp_path: Path) -> None:
    """Neither does a gradient norm that is not finite."""
    learner = learner_of(tmp_path)
    with torch.no_grad():
        learner.network.weights["classifier.bias"].fill_(float("inf"))
    before = {n: w.detach().clone() for n, w in learner.network.weights.items()}
    message = r"step 3 has loss (nan|inf).*expected finite numbers \(lower schedule.learning_rate"
    with pytest.raises(TrainingError, match=message):
        learner.step(2, 0)
    for name, weight in learner.network.weights.items():
        assert torch.equal(weight, before[name])
    assert not learner.optimiser.state


def test_the_end_of_another_process_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """It raises a TrainingError."""

    def lost(*_: object) -> None:
        raise RuntimeError("Connection closed by peer\nmore")

    monkeypatch.setattr("torch.distributed.barrier", lost)
    monkeypatch.setattr("torch.distributed.all_reduce", lost)
    message = r"another process of this training run has ended: found Connection closed by peer \("
    for attempt in (
        ProcessGroup(0, 2).barrier,
        lambda: ProcessGroup(1, 2).sum_over_processes([torch.ones(2)]),
    ):
        with pytest.raises(TrainingError, match=message):
            attempt()


@pytest.mark.parametrize("precision", ["fp32", "bf16", "auto"])
@pytest.mark.parametrize("is_fast", [True, False])
def test_precision_by_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, precision: str, is_fast: bool
) -> None:
    """Slow bf16 is told; `auto` chooses what is fast, and the model card records the choice."""
    monkeypatch.setattr(training_module, "has_fast_bf16", lambda device: is_fast)
    training, logged = prepare(tmp_path, schedule__precision=precision, schedule__steps=1), []
    train(training, tmp_path, tmp_path / "out", reporter=ProgressReporter(logged.append))
    assert (training_module.SLOW_BF16 in logged) == (precision == "bf16" and not is_fast)
    used = precision if precision != "auto" else "bf16" if is_fast else "fp32"
    assert (f"precision: {used}" in logged) == (precision == "auto")
    lineage = read_object(tmp_path / "out" / "model" / LINEAGE)
    assert lineage["trainings"][-1]["settings"]["schedule"]["precision"] == used


def test_tf32_needs_a_gpu(tmp_path: Path) -> None:
    """A CPU would compute something else."""
    training = prepare(tmp_path, schedule__precision="tf32")
    with pytest.raises(InputError, match=r"tiny.toml: schedule.precision: tf32 is computed by GPU"):
        train(training, tmp_path, tmp_path / "out")


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_teacher_in_16_bits_needs_a_gpu(tmp_path: Path, device: str) -> None:
    """This is found before anything is tokenised. Teachers in int8 run on the CPU anyway."""
    teachers = [Teacher(("a",), precision=precision) for precision in Precision]
    check_precisions(teachers if device == "cuda" else teachers[:2], device)
    term = {"kind": "soft", "teacher": str(tmp_path / "base"), "precision": "bf16"}
    training = prepare(tmp_path, objective=[term])
    with pytest.raises(InputError, match=r"teacher .*base: bf16 is computed by GPUs only"):
        train(training, tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_new_output_layer_keeps_the_pooler(tmp_path: Path) -> None:
    """Only the output layer is random, by the seed, and with `output` it alone is trained."""
    changes: dict[str, Any] = {"model": {"head": "new output", "learns": "output", "dropout": 0.0}}
    training = prepare(tmp_path, **changes)
    base = open_any_head(Path(training.base), "tiny")
    first, other = (
        open_network(base, training.initialisation, seed, "cpu").weights for seed in (0, 1)
    )
    stored = base.tensors()
    differing = {name for name, w in first.items() if not torch.equal(w, other[name])}
    assert differing == {"classifier.weight"}
    for name in first.keys() - {"classifier.weight", "classifier.bias"}:
        np.testing.assert_array_equal(first[name].detach().numpy(), stored[name])
    learner = learner_of(tmp_path, **changes)
    before = {name: weight.detach().clone() for name, weight in learner.network.weights.items()}
    after = trained(learner)
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {"classifier.weight", "classifier.bias"}
