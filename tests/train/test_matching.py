"""Does a student see all that its teacher computes, and learn from nothing else of it?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_trainings import prepare

from birchbark.errors import InputError
from birchbark.score.checkpoint import Checkpoint
from birchbark.score.session import Session
from birchbark.score.tokenizer import Pieces
from birchbark.train.config import Training
from birchbark.train.curve import read_curve
from birchbark.train.folder import CURVE, MODEL
from birchbark.train.matching import Matcher, Matching
from birchbark.train.network import Inputs, Network, States
from birchbark.train.shaping import Shaping, open_base, open_network
from birchbark.train.training import train
from conftest import write_bert

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to learn with")

RANDOM = np.random.default_rng(3)
IDS = [RANDOM.integers(5, 25, n) for n in (7, 3, 9, 3)]
TYPES = [np.repeat([0, 1], [2, len(i) - 2]) for i in IDS]
INPUTS = Inputs.of(list(zip(IDS, TYPES, strict=True)), "cpu")


def network_of(directory: Path, **shaping: Any) -> Network:
    base = open_base(directory, "tiny")
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
    base = open_base(Path(training.base), "tiny")
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
