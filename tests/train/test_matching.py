"""Does a student see all that its teacher computes, and learn from nothing else of it?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from tiny_trainings import prepare
from zoo import FAMILIES, give_tokenizer, write_family

from birchbark.checkpoint.reader import Checkpoint, open_any
from birchbark.checkpoint.tokenizer import Pieces
from birchbark.errors import BirchbarkError, InputError
from birchbark.score.model import load_scorer
from birchbark.score.session import Session
from birchbark.train.card import card, kind_of
from birchbark.train.config import Training
from birchbark.train.course import Course
from birchbark.train.curve import read_curve
from birchbark.train.export import export
from birchbark.train.folder import CURVE, MODEL, STATE
from birchbark.train.loop import Learner
from birchbark.train.matching import Matcher, Matching
from birchbark.train.material import load_material
from birchbark.train.network import Form, Inputs, Network, States
from birchbark.train.shaping import Shaping, open_network
from birchbark.train.teaching import Teachers, teach
from birchbark.train.training import Talk, train
from birchbark.train.world import World
from conftest import write_bert

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to learn with")

RANDOM = np.random.default_rng(3)
IDS = [RANDOM.integers(5, 25, n) for n in (7, 3, 9, 3)]
TYPES = [np.repeat([0, 1], [2, len(i) - 2]) for i in IDS]
DATA: dict[str, Any] = {
    "name": "x",
    "licence": "none",
    "learnt": {"queries": 1, "pairs": 1},
    "held": {"queries": 0, "pairs": 0},
}
INPUTS = Inputs.of(list(zip(IDS, TYPES, strict=True)), "cpu")


def network_of(directory: Path, **shaping: Any) -> Network:
    base = open_any(directory, "tiny")
    return open_network(base, Shaping(**{"dropout": 0.0, **shaping}), 0, "cpu")


def losses(student: Network, matching: Matching, base: Path) -> Any:
    matcher = Matcher(matching, student, Pieces(Checkpoint.open(base)), 16, 0)
    states = States()
    student.learn(INPUTS, states)
    return matcher.losses(INPUTS, states)


@pytest.fixture
def teacher(tmp_path: Path) -> Path:
    return write_bert(tmp_path / "teacher", labels=1, layers=4, seed=5)


def test_a_student_equal_to_its_teacher_has_no_loss(teacher: Path) -> None:
    """Of any kind; another one has some, of each kind and for each input."""
    same = network_of(teacher)
    assert losses(same, Matching(str(teacher)), teacher).abs().max() == 0
    with torch.no_grad():
        same.weights["embeddings.word_embeddings.weight"].mul_(1.5)
    for part in ("embeddings", "hidden", "attention"):
        others = dict.fromkeys({"embeddings", "hidden", "attention"} - {part}, 0.0)
        assert (losses(same, Matching(str(teacher), **others), teacher) > 1e-4).all()


def test_what_is_shown_is_what_transformers_computes(teacher: Path) -> None:
    """Embeddings, hidden states and attention; watching changes no logit."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(
        teacher, attn_implementation="eager", num_labels=1
    ).eval()
    network = network_of(teacher)
    shown = network.show(INPUTS)
    ends = np.cumsum([count * length for count, length in INPUTS.groups])
    at = 0
    for place, (count, length) in enumerate(INPUTS.groups):
        own = [i for i in INPUTS.order.tolist() if len(IDS[i]) == length]
        wanted = theirs(
            input_ids=torch.tensor(np.stack([IDS[i] for i in own])),
            token_type_ids=torch.tensor(np.stack([TYPES[i] for i in own])),
            output_hidden_states=True,
            output_attentions=True,
        )
        found = [shown.embedded, *shown.hidden]
        for one, other in zip(found, wanted.hidden_states, strict=True):
            rows = one[at : ends[place]].view(count, length, -1)
            torch.testing.assert_close(rows, other, rtol=0, atol=1e-5)
        for one, other in zip(shown.attention, wanted.attentions, strict=True):
            torch.testing.assert_close(one[place].softmax(-1), other, rtol=0, atol=1e-5)
        at = int(ends[place])
    torch.testing.assert_close(network.learn(INPUTS, States()), network.learn(INPUTS))


def test_losses_by_hand(teacher: Path) -> None:
    """Two layers with the teacher's second and fourth; each kind's weight; by input."""
    student = network_of(teacher, layers=2)
    own, wanted = student.show(INPUTS), network_of(teacher).show(INPUTS)
    found = losses(student, Matching(str(teacher), 0.5, 2.0, 3.0), teacher).tolist()
    for place, number in enumerate(INPUTS.order.tolist()):
        length = len(IDS[number])
        start = int(INPUTS.starts[place])
        rows = slice(start, start + length)
        group = next(i for i, (_, size) in enumerate(INPUTS.groups) if size == length)
        inner = place - sum(count for count, size in INPUTS.groups if size < length)
        expected = 0.0  # embeddings are the same ones
        for layer, above in ((0, 1), (1, 3)):
            apart = own.hidden[layer][rows] - wanted.hidden[above][rows]
            expected += 2.0 * float((apart**2).mean())
            seen = own.attention[layer][group][inner] - wanted.attention[above][group][inner]
            expected += 3.0 * float((seen**2).mean())
        assert found[number] == pytest.approx(expected, rel=1e-5)


def training_of(folder: Path, teacher: Path, **changes: Any) -> Training:
    kept: dict[str, Any] = {
        "model": {"dropout": 0.0, "from_layers": [1, 2], "hidden": 8, "heads": 2},
        "match": {"teacher": str(teacher)},
        "objective": [
            {"kind": "pointwise"},
            {"kind": "soft-labels", "teacher": str(teacher), "temperature": 2},
        ],
        "schedule.steps": 8,
    }
    return prepare(folder, **{**kept, **changes})


def test_a_narrower_student_learns_and_travels(tmp_path: Path, teacher: Path) -> None:
    """Simplified TinyBERT: projections learn but are not written; the engine ranks with it."""
    training = training_of(tmp_path, teacher)
    train(training, tmp_path, tmp_path / "out")
    checkpoint = Checkpoint.open(tmp_path / "out" / MODEL)
    assert (checkpoint.shape.hidden, checkpoint.shape.heads, checkpoint.shape.layers) == (8, 2, 2)
    assert not any("match" in name for name in checkpoint.tensors())
    network = network_of(tmp_path / "out" / MODEL)
    found = Session(checkpoint, 1).run(IDS, TYPES)
    np.testing.assert_allclose(found, network.score(INPUTS).numpy(), rtol=0, atol=1e-5)
    steps = [line["loss"] for line in read_curve(tmp_path / "out" / CURVE) if "loss" in line]
    assert steps[-1] < steps[0]
    card = json.loads((tmp_path / "out" / MODEL / "birchbark.json").read_text())
    assert card["trainings"][0]["settings"]["match"] == {"teacher": str(teacher)}
    written = (tmp_path / "out" / MODEL / "README.md").read_text()
    assert f"Taught by what {teacher} computes on the way." in written


def test_a_killed_distillation_ends_as_if_it_were_not(
    tmp_path: Path, teacher: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the projections, which are kept with the state."""
    from birchbark.train import training as module

    whole = training_of(tmp_path, teacher, **{"schedule.checkpoint": 2})
    train(whole, tmp_path, tmp_path / "whole")
    step = module._Running._step
    taken: list[int] = []

    def killed(self: Any, curve: Any) -> None:
        taken.append(1)
        if len(taken) == 6:
            raise KeyboardInterrupt
        step(self, curve)

    with monkeypatch.context() as patch:
        patch.setattr(module._Running, "_step", killed)
        with pytest.raises(KeyboardInterrupt):
            train(whole, tmp_path, tmp_path / "killed")
    train(whole, tmp_path, tmp_path / "killed")
    files = [tmp_path / name / MODEL / "model.safetensors" for name in ("whole", "killed")]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_matching_alone(tmp_path: Path, teacher: Path) -> None:
    """TinyBERT's first stage: no objective; the head has no gradient, and stays."""
    training = training_of(tmp_path, teacher, objective=[])
    train(training, tmp_path, tmp_path / "out")
    base = open_any(Path(training.base), "tiny")
    before = open_network(base, training.shaping, 0, "cpu").weights
    after = network_of(tmp_path / "out" / MODEL).weights
    assert torch.equal(before["classifier.bias"], after["classifier.bias"])
    name = "encoder.layer.0.output.dense.bias"
    assert not torch.equal(before[name], after[name])


def test_teachers_that_do_not_fit(tmp_path: Path, teacher: Path) -> None:
    """Other tokens, shorter inputs, layers that there are not."""
    student = network_of(teacher, layers=3)
    other = write_bert(tmp_path / "other", labels=1)
    vocabulary = (other / "vocab.txt").read_text().split("\n")
    vocabulary[6], vocabulary[7] = vocabulary[7], vocabulary[6]
    (other / "vocab.txt").write_text("\n".join(vocabulary))
    with pytest.raises(InputError, match="reads other tokens than the student"):
        losses(student, Matching(str(other)), teacher)
    short = write_bert(tmp_path / "short", labels=1, positions=12)
    with pytest.raises(InputError, match=r"reads less.*at most 12, found 16"):
        losses(student, Matching(str(short)), teacher)
    for layers in ((1, 2), (1, 2, 5)):
        with pytest.raises(InputError, match="3 of its layers, 1 to 4"):
            losses(student, Matching(str(teacher), layers=layers), teacher)


def test_each_kind_has_its_weight_and_heads_are_averaged(tmp_path: Path, teacher: Path) -> None:
    """A student of half the heads looks at what the teacher's look at on average."""
    student = network_of(teacher, from_layers=(1, 2, 3, 4), hidden=8, heads=2)
    same = network_of(teacher)
    with torch.no_grad():
        same.weights["embeddings.LayerNorm.weight"].mul_(1.3)
    one, seven = (
        losses(same, Matching(str(teacher), weight, 0.0, 0.0), teacher) for weight in (1.0, 7.0)
    )
    torch.testing.assert_close(seven, 7 * one)
    found = losses(student, Matching(str(teacher), 0.0, 0.0, 1.0), teacher).tolist()
    own, wanted = student.show(INPUTS), network_of(teacher).show(INPUTS)
    for place, number in enumerate(INPUTS.order.tolist()):
        length = len(IDS[number])
        group = next(i for i, (_, size) in enumerate(INPUTS.groups) if size == length)
        inner = place - sum(count for count, size in INPUTS.groups if size < length)
        expected = sum(
            float(((a[group][inner].mean(0) - b[group][inner].mean(0)) ** 2).mean())
            for a, b in zip(own.attention, wanted.attention, strict=True)
        )
        assert found[number] == pytest.approx(expected, rel=1e-4)


def test_projections_learn_and_are_kept(tmp_path: Path, teacher: Path) -> None:
    """With moments of their own, in the state."""
    training = training_of(tmp_path, teacher)
    train(training, tmp_path, tmp_path / "out")
    kept = load_file(tmp_path / "out" / STATE / "weights.safetensors")
    base = open_any(Path(training.base), "tiny")
    student = open_network(base, training.shaping, 0, "cpu")
    begun = Matcher(Matching(str(teacher)), student, Pieces(base), 32, training.seed).projections
    assert begun.keys() == {"match.embeddings", "match.hidden"}
    for name, weight in begun.items():
        assert not np.array_equal(kept[name], weight.detach().numpy())
    moments = load_file(tmp_path / "out" / STATE / "moments.safetensors")
    assert moments["match.hidden.exp_avg"].any()


def test_losses_are_added_up_with_their_weights(tmp_path: Path, teacher: Path) -> None:
    """Labels, what two teachers say on average, and what one shows, of one step."""
    other = write_bert(tmp_path / "other", labels=1, layers=2, seed=7)
    soft = {"kind": "soft", "teacher": [str(teacher), str(other)], "weight": 0.25}
    changes: dict[str, Any] = {
        "model": {"dropout": 0.0},
        "objective": [{"kind": "pointwise"}, soft],
        "match": {"teacher": str(teacher), "layers": [2, 4]},
        "data.weight": 2.0,
    }
    training = prepare(tmp_path, **changes)
    base = open_any(Path(training.base), "tiny")
    pieces = Pieces(base)
    materials = list(load_material(training, tmp_path, pieces, lambda text: None))
    course = Course(materials, training.schedule, 0, 1)
    kept = Teachers(tmp_path / "kept")
    materials = teach(materials, course, kept, lambda text: None)
    network = open_network(base, training.shaping, 0, "cpu")
    matcher = Matcher(training.matching, network, pieces, 32, 0)  # type: ignore[arg-type]
    learner = Learner(network, materials, course, World(), matcher)
    numbers = [number for _, (number,) in course.tasks(0)]
    inputs = Inputs.of([pair for n in numbers for pair in materials[0].learnt[n]], "cpu")
    states = States()
    logits = network.learn(inputs, states).detach().double().numpy()
    shown = matcher.losses(inputs, states).detach().numpy()
    pairs = materials[0].learnt.pairs
    said = []
    for model in (teacher, other):
        scorer = load_scorer(model)
        for n in numbers:
            text = scorer.encode([pairs.texts[pairs.passages(n)[0]]])
            p = float(scorer.score(pairs.queries[pairs.query[n]], text)[0])
            said.append(np.log(p / (1 - p)))
    targets = np.array(said).reshape(2, -1).mean(0)
    hard = np.log1p(np.exp(np.where(pairs.grades[numbers] > 0, -logits, logits)))
    expected = 2.0 * (hard + 0.25 * (logits - targets) ** 2 + shown).mean()
    assert learner.step(0, 0) == pytest.approx(expected, rel=1e-4)


def test_a_teacher_of_the_same_tokens_by_other_files(tmp_path: Path, teacher: Path) -> None:
    """vocab.txt and tokenizer.json may say the same."""
    other = write_bert(tmp_path / "other", labels=1, seed=2)
    Pieces(Checkpoint.open(other)).save(other / "tokenizer.json")
    whole = json.loads((other / "tokenizer.json").read_text())
    whole["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
        ],
        "pair": [
            {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
            {"Sequence": {"id": "B", "type_id": 1}},
            {"SpecialToken": {"id": "[SEP]", "type_id": 1}},
        ],
        "special_tokens": {
            token: {"id": token, "ids": [number], "tokens": [token]}
            for token, number in (("[CLS]", 2), ("[SEP]", 3))
        },
    }
    (other / "tokenizer.json").write_text(json.dumps(whole))
    (other / "vocab.txt").unlink()
    student = network_of(teacher, layers=2)
    assert losses(student, Matching(str(other)), teacher).shape == (len(IDS),)


def test_faults_come_to_light_before_a_teacher_is_asked(tmp_path: Path, teacher: Path) -> None:
    """Nor is anything written."""
    for change in ({"model.heads": 3}, {"match.layers": [1, 9]}, {"match.teacher": "gone"}):
        told: list[str] = []
        training = training_of(tmp_path, teacher, **change)
        with pytest.raises(BirchbarkError):
            train(training, tmp_path, tmp_path / "out", talk=Talk(told.append))
        assert not any("scores" in line for line in told)


@pytest.mark.parametrize("family", FAMILIES)
def test_narrow_students_of_every_family_can_be_opened(family: str, tmp_path: Path) -> None:
    """By the engine, with the network's own scores."""
    directory = write_family(tmp_path / family, family, 1)
    if family in ("roberta", "albert"):
        give_tokenizer(directory, family)
    base = open_any(directory, "tiny")
    half = Shaping(dropout=0.0, hidden=base.shape.hidden // 2, heads=base.shape.heads // 2)
    network = open_network(base, half, 0, "cpu")
    lineage = {"title": "t", "data": [], "seed": 0, "steps": 1, "ended": "so"}
    known = {"base": "tiny", "trainings": [lineage]}
    export(tmp_path / "model", network, base, Pieces(base), known)
    found = Session(Checkpoint.open(tmp_path / "model"), 1).run(IDS, TYPES)
    np.testing.assert_allclose(found, network.score(INPUTS).numpy(), rtol=0, atol=1e-5)


def test_matching_alone_keeps_the_last_model(tmp_path: Path, teacher: Path) -> None:
    """Its head does not learn, so no measure may choose; nor may it end by one."""
    training = training_of(tmp_path, teacher, objective=[], **{"validation.every": 2})
    assert train(training, tmp_path, tmp_path / "out").best_step == 8
    with pytest.raises(InputError, match="patience needs an objective"):
        training_of(tmp_path, teacher, objective=[], **{"validation.patience": 2})


def test_a_lineage_of_the_first_releases(tmp_path: Path, teacher: Path) -> None:
    """Which names one teacher of a data set, or none."""
    data = [{**DATA, "teacher": None}, {**DATA, "teacher": {"model": "old"}}]
    done = {"title": "t", "data": data, "seed": 0, "steps": 1, "ended": "so"}
    text = card({"base": "b", "trainings": [done]}, kind_of(Form()))
    assert "Taught by the scores of another model: x by old." in text
