"""Are TinyBERT's losses on hidden states computed as defined, and can students be trained?"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tiny_trainings import prepare, some_pairs, write_pairs
from zoo import FAMILIES, give_tokenizer, write_family

from birchbark.checkpoint.architecture import Architecture
from birchbark.checkpoint.checkpoint import Checkpoint, open_any_head
from birchbark.checkpoint.heads import layers_of
from birchbark.checkpoint.model_card import card_kind, render_card
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.errors import BirchbarkError, InputError
from birchbark.score.load_scorer import load_scorer
from birchbark.score.session import OnnxSession
from birchbark.train.config import TrainingConfig
from birchbark.train.dataset import load_datasets
from birchbark.train.distributed import ProcessGroup
from birchbark.train.export import export
from birchbark.train.hidden_state_distillation import HiddenStateDistillation, HiddenStateSettings
from birchbark.train.initialise import Initialisation, open_network
from birchbark.train.learner import Learner
from birchbark.train.network import Network
from birchbark.train.packed_inputs import PackedInputs, Spans
from birchbark.train.sampler import Sampler
from birchbark.train.teacher_scores import TeacherScores, with_teacher_targets
from birchbark.train.training import train
from birchbark.train.training_folder import LOG, MODEL, STATE
from birchbark.train.training_log import read_log
from birchbark.train.training_run import ProgressReporter
from birchbark.train.transformer_layer import HiddenStates
from conftest import write_bert

torch = pytest.importorskip("torch", reason="torch is not installed")

RANDOM = np.random.default_rng(3)
IDS = [RANDOM.integers(5, 25, n) for n in (7, 3, 9, 3)]
TYPES = [np.repeat([0, 1], [2, len(i) - 2]) for i in IDS]
DATA: dict[str, Any] = {
    "name": "x",
    "licence": "none",
    "learnt": {"queries": 1, "pairs": 1},
    "held": {"queries": 0, "pairs": 0},
}
INPUTS = PackedInputs.of(list(zip(IDS, TYPES, strict=True)), "cpu")


def network_of(directory: Path, **settings: Any) -> Network:
    base = open_any_head(directory, "tiny")
    return open_network(base, Initialisation(**{"dropout": 0.0, **settings}), 0, "cpu")


def losses(
    student: Network, settings: HiddenStateSettings, base: Path, inputs: PackedInputs = INPUTS
) -> Any:
    distillation = HiddenStateDistillation(
        settings, student, CheckpointTokenizer(Checkpoint.open(base)), 16, 0
    )
    states = HiddenStates()
    student.training_logits(inputs, states)
    return distillation.losses(inputs, states)


@pytest.fixture
def teacher(tmp_path: Path) -> Path:
    return write_bert(tmp_path / "teacher", labels=1, layers=4, seed=5)


def test_a_student_equal_to_its_teacher_has_no_loss(teacher: Path) -> None:
    """All its losses are 0; a different student has a loss of each kind for each input."""
    same = network_of(teacher)
    assert losses(same, HiddenStateSettings(str(teacher)), teacher).abs().max() == 0
    with torch.no_grad():
        same.weights["embeddings.word_embeddings.weight"].mul_(1.5)
    for kind in ("embeddings", "hidden", "attention"):
        others = dict.fromkeys({"embeddings", "hidden", "attention"} - {kind}, 0.0)
        assert (losses(same, HiddenStateSettings(str(teacher), **others), teacher) > 1e-4).all()


def test_tokens_outside_a_window_are_not_compared(tmp_path: Path) -> None:
    """Windows make the attention loss neither infinite nor undefined, also beside whole layers."""
    teacher = write_family(tmp_path / "teacher", "modernbert", 1)
    same = network_of(teacher)
    settings = HiddenStateSettings(str(teacher), embeddings=0.0, hidden=0.0)
    assert losses(same, settings, teacher).abs().max() == 0
    with torch.no_grad():
        for name, weights in same.weights.items():
            if "Wqkv" in name or "query" in name:
                weights.mul_(1.5)
    found = losses(same, settings, teacher)
    assert found.isfinite().all()
    assert (found > 0).all()


@pytest.mark.parametrize("heads", [4, 2])
def test_losses_do_not_depend_on_padding(tmp_path: Path, teacher: Path, heads: int) -> None:
    """In the padded blocks of a GPU they are those of blocks without padding."""
    student = network_of(
        write_bert(tmp_path / "other", labels=1, layers=2, seed=6), heads=heads, hidden=4 * heads
    )
    spans = Spans.of(sorted(map(len, IDS)), "cpu", pads=True)
    assert [block.padding is not None for block in spans.blocks] == [True]
    padded = replace(INPUTS, spans=spans)
    for kind in ("embeddings", "hidden", "attention"):
        others = dict.fromkeys({"embeddings", "hidden", "attention"} - {kind}, 0.0)
        settings = HiddenStateSettings(str(teacher), **others)
        found = losses(student, settings, teacher, padded)
        torch.testing.assert_close(found, losses(student, settings, teacher))
        assert (found > 0).all()
    torch.testing.assert_close(student.score(padded), student.score(INPUTS))


def test_attention_scores_that_are_not_compared_are_not_kept(teacher: Path) -> None:
    """Attention is then computed by the fused kernel; losses and logits stay the same."""
    student, settings = (
        network_of(teacher, layers=2),
        HiddenStateSettings(str(teacher), attention=0),
    )
    distillation = HiddenStateDistillation(
        settings, student, CheckpointTokenizer(Checkpoint.open(teacher)), 16, 0
    )
    states = HiddenStates(distillation.keeps_attention)
    logits = student.training_logits(INPUTS, states)
    assert states.attention == []
    torch.testing.assert_close(logits, student.training_logits(INPUTS, HiddenStates()))
    expected = losses(student, settings, teacher)
    torch.testing.assert_close(distillation.losses(INPUTS, states), expected)


def test_hidden_states_equal_those_of_transformers(teacher: Path) -> None:
    """Embeddings and attention equal them too; recording them does not change logits."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(
        teacher, attn_implementation="eager", num_labels=1
    ).eval()
    network = network_of(teacher)
    ours = network.hidden_states(INPUTS)
    ends = np.cumsum([count * length for count, length in INPUTS.spans.groups])
    start = 0
    for group, (count, length) in enumerate(INPUTS.spans.groups):
        own = [i for i in INPUTS.order.tolist() if len(IDS[i]) == length]
        expected = theirs(
            input_ids=torch.tensor(np.stack([IDS[i] for i in own])),
            token_type_ids=torch.tensor(np.stack([TYPES[i] for i in own])),
            output_hidden_states=True,
            output_attentions=True,
        )
        states = [ours.embedded, *ours.hidden]
        for state, other in zip(states, expected.hidden_states, strict=True):
            rows = state[start : ends[group]].view(count, length, -1)
            torch.testing.assert_close(rows, other, rtol=0, atol=1e-5)
        for scores, other in zip(ours.attention, expected.attentions, strict=True):
            torch.testing.assert_close(scores[group].softmax(-1), other, rtol=0, atol=1e-5)
        start = int(ends[group])
    torch.testing.assert_close(
        network.training_logits(INPUTS, HiddenStates()), network.training_logits(INPUTS)
    )


def test_losses_equal_their_definition(teacher: Path) -> None:
    """They match layers 2 and 4 of the teacher; each kind has its weight."""
    student = network_of(teacher, layers=2)
    ours, theirs = student.hidden_states(INPUTS), network_of(teacher).hidden_states(INPUTS)
    found = losses(student, HiddenStateSettings(str(teacher), 0.5, 2.0, 3.0), teacher).tolist()
    for row, number in enumerate(INPUTS.order.tolist()):
        length = len(IDS[number])
        start = int(INPUTS.spans.starts[row])
        rows = slice(start, start + length)
        group = next(i for i, (_, size) in enumerate(INPUTS.spans.groups) if size == length)
        inner = row - sum(count for count, size in INPUTS.spans.groups if size < length)
        expected = 0.0  # the embeddings are equal
        for layer, above in ((0, 1), (1, 3)):
            difference = ours.hidden[layer][rows] - theirs.hidden[above][rows]
            expected += 2.0 * float((difference**2).mean())
            difference = ours.attention[layer][group][inner] - theirs.attention[above][group][inner]
            expected += 3.0 * float((difference**2).mean())
        assert found[number] == pytest.approx(expected, rel=1e-5)


def training_of(folder: Path, teacher: Path, **changes: Any) -> TrainingConfig:
    default: dict[str, Any] = {
        "model": {"dropout": 0.0, "from_layers": [1, 2], "hidden": 8, "heads": 2},
        "match": {"teacher": str(teacher)},
        "objective": [
            {"kind": "pointwise"},
            {"kind": "soft-labels", "teacher": str(teacher), "temperature": 2},
        ],
        "schedule.steps": 8,
    }
    return prepare(folder, **{**default, **changes})


def test_a_narrower_student_is_trained_and_exported(tmp_path: Path, teacher: Path) -> None:
    """Simplified TinyBERT: projections are not exported; score/ loads the model."""
    training = training_of(tmp_path, teacher)
    train(training, tmp_path, tmp_path / "out")
    checkpoint = Checkpoint.open(tmp_path / "out" / MODEL)
    assert (checkpoint.config.hidden, checkpoint.config.heads, checkpoint.config.layers) == (
        8,
        2,
        2,
    )
    assert not any("match" in name for name in checkpoint.tensors())
    network = network_of(tmp_path / "out" / MODEL)
    found = OnnxSession(checkpoint, 1).run(IDS, TYPES)
    np.testing.assert_allclose(found, network.score(INPUTS).numpy(), rtol=0, atol=1e-5)
    steps = [line["loss"] for line in read_log(tmp_path / "out" / LOG) if "loss" in line]
    assert steps[-1] < steps[0]
    lineage = json.loads((tmp_path / "out" / MODEL / "birchbark.json").read_text())
    assert lineage["trainings"][0]["settings"]["match"] == {"teacher": str(teacher)}
    model_card = (tmp_path / "out" / MODEL / "README.md").read_text()
    assert f"Distilled from the hidden states of {teacher}." in model_card


def test_a_resumed_distillation_has_the_same_bytes(
    tmp_path: Path, teacher: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Projections are part of the training state."""
    from birchbark.train.training_run import TrainingRun

    training = training_of(tmp_path, teacher, **{"schedule.save_every": 2})
    train(training, tmp_path, tmp_path / "whole")
    step = TrainingRun._step
    taken: list[int] = []

    def killed(self: Any, training_log: Any) -> None:
        taken.append(1)
        if len(taken) == 6:
            raise KeyboardInterrupt
        step(self, training_log)

    with monkeypatch.context() as patch:
        patch.setattr(TrainingRun, "_step", killed)
        with pytest.raises(KeyboardInterrupt):
            train(training, tmp_path, tmp_path / "killed")
    train(training, tmp_path, tmp_path / "killed")
    files = [tmp_path / name / MODEL / "model.safetensors" for name in ("whole", "killed")]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_distillation_of_hidden_states_alone(tmp_path: Path, teacher: Path) -> None:
    """TinyBERT's first stage: without an objective the head stays unchanged."""
    training = training_of(tmp_path, teacher, objective=[])
    train(training, tmp_path, tmp_path / "out")
    base = open_any_head(Path(training.base), "tiny")
    before = open_network(base, training.initialisation, 0, "cpu").weights
    after = network_of(tmp_path / "out" / MODEL).weights
    assert torch.equal(before["classifier.bias"], after["classifier.bias"])
    name = "encoder.layer.0.output.dense.bias"
    assert not torch.equal(before[name], after[name])


def test_the_first_steps_alone_match_hidden_states(
    tmp_path: Path, teacher: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later steps learn from the objective, which is then required."""
    matched: list[int] = []
    losses = HiddenStateDistillation.losses

    def counted(self: HiddenStateDistillation, inputs: PackedInputs, student: HiddenStates) -> Any:
        matched.append(len(inputs.order))
        return losses(self, inputs, student)

    monkeypatch.setattr(HiddenStateDistillation, "losses", counted)
    changes = {"match.steps": 2, "schedule.steps": 5}
    progress = train(training_of(tmp_path, teacher, **changes), tmp_path, tmp_path / "out")
    assert (progress.step, len(matched)) == (5, 2)
    with pytest.raises(InputError, match=r"match\.steps needs an objective"):
        train(training_of(tmp_path, teacher, objective=[], **changes), tmp_path, tmp_path / "no")


def test_unsuitable_teachers_are_refused(tmp_path: Path, teacher: Path) -> None:
    """They have another vocabulary, a smaller maximum length, or lack layers."""
    student = network_of(teacher, layers=3)
    other = write_bert(tmp_path / "other", labels=1)
    vocabulary = (other / "vocab.txt").read_text().split("\n")
    vocabulary[6], vocabulary[7] = vocabulary[7], vocabulary[6]
    (other / "vocab.txt").write_text("\n".join(vocabulary))
    with pytest.raises(InputError, match="teacher and student have different tokenisers"):
        losses(student, HiddenStateSettings(str(other)), teacher)
    short = write_bert(tmp_path / "short", labels=1, positions=12)
    with pytest.raises(InputError, match=r"below the student.*at most 12, found 16"):
        losses(student, HiddenStateSettings(str(short)), teacher)
    for layers in ((1, 2), (1, 2, 5)):
        with pytest.raises(InputError, match="3 layers between 1 and 4"):
            losses(student, HiddenStateSettings(str(teacher), layers=layers), teacher)


def test_a_teacher_may_have_any_head(tmp_path: Path) -> None:
    """Only its hidden states are read, so that modules after the pooling do not matter."""
    plain = write_bert(tmp_path / "plain", layers=4, seed=5)
    modular = write_bert(tmp_path / "modular", layers=4, seed=5)
    home = modular / "2_Dense"
    home.mkdir()
    (home / "config.json").write_text('{"module_output_name": "scores"}')
    save_file({"linear.weight": np.ones((1, 16), np.float32)}, home / "model.safetensors")
    named = {"": "Transformer", "1_Pooling": "Pooling", "2_Dense": "Dense"}
    modules = [{"path": p, "type": f"sentence_transformers.models.{t}"} for p, t in named.items()]
    (modular / "modules.json").write_text(json.dumps(modules))
    stated = {"model_type": "CrossEncoder"}
    (modular / "config_sentence_transformers.json").write_text(json.dumps(stated))
    assert len(layers_of(Checkpoint.open(modular).head)) == 1
    student = network_of(plain, layers=2)
    found = losses(student, HiddenStateSettings(str(modular)), plain)
    assert torch.equal(found, losses(student, HiddenStateSettings(str(plain)), plain))
    assert (found > 1e-4).all()
    assert losses(network_of(plain), HiddenStateSettings(str(modular)), plain).abs().max() == 0


def test_weights_scale_losses_and_heads_are_averaged(tmp_path: Path, teacher: Path) -> None:
    """With half of the heads, the mean attention of all heads is compared."""
    student = network_of(teacher, from_layers=(1, 2, 3, 4), hidden=8, heads=2)
    same = network_of(teacher)
    with torch.no_grad():
        same.weights["embeddings.LayerNorm.weight"].mul_(1.3)
    one, seven = (
        losses(same, HiddenStateSettings(str(teacher), weight, 0.0, 0.0), teacher)
        for weight in (1.0, 7.0)
    )
    torch.testing.assert_close(seven, 7 * one)
    found = losses(student, HiddenStateSettings(str(teacher), 0.0, 0.0, 1.0), teacher).tolist()
    ours, theirs = student.hidden_states(INPUTS), network_of(teacher).hidden_states(INPUTS)
    for row, number in enumerate(INPUTS.order.tolist()):
        length = len(IDS[number])
        group = next(i for i, (_, size) in enumerate(INPUTS.spans.groups) if size == length)
        inner = row - sum(count for count, size in INPUTS.spans.groups if size < length)
        expected = sum(
            float(((a[group][inner].mean(0) - b[group][inner].mean(0)) ** 2).mean())
            for a, b in zip(ours.attention, theirs.attention, strict=True)
        )
        assert found[number] == pytest.approx(expected, rel=1e-4)


def test_projections_have_random_values_of_their_own(teacher: Path) -> None:
    """They differ from each other and between seeds, and are equal for equal seeds."""
    student = network_of(teacher, from_layers=(1, 2), hidden=8, heads=2)
    tokenizer, settings = CheckpointTokenizer(Checkpoint.open(teacher)), str(teacher)
    first, same, other = (
        HiddenStateDistillation(HiddenStateSettings(settings), student, tokenizer, 16, seed)
        for seed in (0, 0, 1)
    )
    values = [*first.projections.values(), *other.projections.values()]
    assert len({tuple(value.flatten().tolist()) for value in values}) == 4
    for name, value in first.projections.items():
        assert torch.equal(value, same.projections[name])


def test_projections_are_trained_and_saved(tmp_path: Path, teacher: Path) -> None:
    """The training state contains them and their moments."""
    training = training_of(tmp_path, teacher)
    train(training, tmp_path, tmp_path / "out")
    saved = load_file(tmp_path / "out" / STATE / "weights.safetensors")
    base = open_any_head(Path(training.base), "tiny")
    student = open_network(base, training.initialisation, 0, "cpu")
    projections = HiddenStateDistillation(
        HiddenStateSettings(str(teacher)), student, CheckpointTokenizer(base), 32, training.seed
    ).projections
    assert projections.keys() == {"match.embeddings", "match.hidden"}
    for name, weight in projections.items():
        assert not np.array_equal(saved[name], weight.detach().numpy())
    moments = load_file(tmp_path / "out" / STATE / "moments.safetensors")
    assert moments["match.hidden.exp_avg"].any()


def test_losses_are_summed_with_their_weights(tmp_path: Path, teacher: Path) -> None:
    """One step uses labels, mean scores of two teachers, and hidden states of one teacher."""
    other = write_bert(tmp_path / "other", labels=1, layers=2, seed=7)
    soft = {"kind": "soft", "teacher": [str(teacher), str(other)], "weight": 0.25}
    changes: dict[str, Any] = {
        "model": {"dropout": 0.0},
        "objective": [{"kind": "pointwise"}, soft],
        "match": {"teacher": str(teacher), "layers": [2, 4]},
        "data.weight": 2.0,
    }
    training = prepare(tmp_path, **changes)
    base = open_any_head(Path(training.base), "tiny")
    tokenizer = CheckpointTokenizer(base)
    datasets = load_datasets(training, tmp_path, tokenizer, lambda text: None, tmp_path / "tokens")
    sampler = Sampler(datasets, training.schedule, 0, 1)
    scores = TeacherScores(tmp_path / "stored")
    datasets = with_teacher_targets(
        datasets, sampler, range(sampler.steps), scores, lambda text: None
    )
    network = open_network(base, training.initialisation, 0, "cpu")
    distillation = HiddenStateDistillation(training.distillation, network, tokenizer, 32, 0)  # type: ignore[arg-type]
    learner = Learner(network, datasets, sampler, ProcessGroup(), distillation)
    numbers = [number for _, (number,) in sampler.lists_at(0)]
    inputs = PackedInputs.of(
        [pair for n in numbers for pair in datasets[0].training_pairs[n]], "cpu"
    )
    states = HiddenStates()
    logits = network.training_logits(inputs, states).detach().double().numpy()
    distilled = distillation.losses(inputs, states).detach().numpy()
    pairs = datasets[0].training_pairs.pairs
    log_odds = []
    for model in (teacher, other):
        scorer = load_scorer(model)
        for n in numbers:
            text = scorer.encode([pairs.texts[pairs.passages(n)[0]]])
            p = float(scorer.score(pairs.queries[pairs.query[n]], text)[0])
            log_odds.append(np.log(p / (1 - p)))
    targets = np.array(log_odds).reshape(2, -1).mean(0)
    hard = np.log1p(np.exp(np.where(pairs.grades[numbers] > 0, -logits, logits)))
    expected = 2.0 * (hard + 0.25 * (logits - targets) ** 2 + distilled).mean()
    assert learner.step(0, 0) == pytest.approx(expected, rel=1e-4)


def test_the_hidden_states_of_a_list_count_as_one(tmp_path: Path, teacher: Path) -> None:
    """The loss is the mean over lists of the mean over their texts, whatever their number."""
    pairs = some_pairs(8, 4)
    pairs = [p for p in pairs if int(p.query_id[1:]) % 2 or p.doc_id[-1] in "03"]
    changes: dict[str, Any] = {
        "model": {"dropout": 0.0},
        "objective": [],
        "match": {"teacher": str(teacher), "layers": [2, 4]},
        "lists": {"each": "positive", "texts": 4},
        "data.validation": None,
        "data.weight": 2.0,
        "schedule.batch": 16,
    }
    training = prepare(tmp_path, **changes)
    write_pairs(tmp_path / "pairs.tsv", pairs)
    base = open_any_head(Path(training.base), "tiny")
    tokenizer = CheckpointTokenizer(base)
    datasets = load_datasets(training, tmp_path, tokenizer, lambda text: None, tmp_path / "tokens")
    sampler = Sampler(datasets, training.schedule, 0, 1)
    network = open_network(base, training.initialisation, 0, "cpu")
    assert training.distillation
    distillation = HiddenStateDistillation(training.distillation, network, tokenizer, 32, 0)
    learner = Learner(network, datasets, sampler, ProcessGroup(), distillation)
    lists = [numbers for _, numbers in sampler.lists_at(0)]
    assert len(set(map(len, lists))) > 1
    means = []
    for numbers in lists:
        inputs = PackedInputs.of([p for n in numbers for p in datasets[0].training_pairs[n]], "cpu")
        states = HiddenStates()
        network.training_logits(inputs, states)
        means.append(distillation.losses(inputs, states).detach().mean().item())
    assert learner.step(0, 0) == pytest.approx(2.0 * np.mean(means), rel=1e-4)


def test_equal_tokenisers_can_have_other_files(tmp_path: Path, teacher: Path) -> None:
    """One has vocab.txt, the other an equivalent tokenizer.json."""
    other = write_bert(tmp_path / "other", labels=1, seed=2)
    CheckpointTokenizer(Checkpoint.open(other)).save(other / "tokenizer.json")
    tokenizer = json.loads((other / "tokenizer.json").read_text())
    tokenizer["post_processor"] = {
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
    (other / "tokenizer.json").write_text(json.dumps(tokenizer))
    (other / "vocab.txt").unlink()
    student = network_of(teacher, layers=2)
    assert losses(student, HiddenStateSettings(str(other)), teacher).shape == (len(IDS),)


def test_faults_are_found_before_teachers_score(tmp_path: Path, teacher: Path) -> None:
    """These are wrong heads, wrong layers, and a missing teacher."""
    for change in ({"model.heads": 3}, {"match.layers": [1, 9]}, {"match.teacher": "gone"}):
        logged: list[str] = []
        training = training_of(tmp_path, teacher, **change)
        with pytest.raises(BirchbarkError):
            train(training, tmp_path, tmp_path / "out", reporter=ProgressReporter(logged.append))
        assert not any("scores" in line for line in logged)


@pytest.mark.parametrize("family", FAMILIES)
def test_narrower_students_of_every_family_can_be_loaded(family: str, tmp_path: Path) -> None:
    """score/ computes equal scores."""
    directory = write_family(tmp_path / family, family, 1)
    if family in ("roberta", "albert"):
        give_tokenizer(directory, family)
    base = open_any_head(directory, "tiny")
    half = Initialisation(dropout=0.0, hidden=base.config.hidden // 2, heads=base.config.heads // 2)
    network = open_network(base, half, 0, "cpu")
    lineage = {"title": "t", "data": [], "seed": 0, "steps": 1, "ended": "so"}
    known = {"base": "tiny", "trainings": [lineage]}
    export(tmp_path / "model", network, base, CheckpointTokenizer(base), known)
    found = OnnxSession(Checkpoint.open(tmp_path / "model"), 1).run(IDS, TYPES)
    np.testing.assert_allclose(found, network.score(INPUTS).numpy(), rtol=0, atol=1e-5)


def test_distillation_alone_writes_the_last_model(tmp_path: Path, teacher: Path) -> None:
    """Its head is not trained, so no measure selects a model or ends the training."""
    training = training_of(tmp_path, teacher, objective=[], **{"validation.every": 2})
    assert train(training, tmp_path, tmp_path / "out").best_step == 8
    with pytest.raises(InputError, match="patience needs an objective"):
        training_of(tmp_path, teacher, objective=[], **{"validation.patience": 2})


def test_a_lineage_of_early_releases(tmp_path: Path, teacher: Path) -> None:
    """It names at most one teacher per data set."""
    data = [{**DATA, "teacher": None}, {**DATA, "teacher": {"model": "old"}}]
    done = {"title": "t", "data": data, "seed": 0, "steps": 1, "ended": "so"}
    text = render_card({"base": "b", "trainings": [done]}, card_kind(Architecture()))
    assert "Distilled from the scores of another model: x by old." in text


def test_the_card_counts_the_texts_that_a_teacher_left_out() -> None:
    """Several teachers are named together."""
    left_out = {"teachers": [{"model": "one"}, {"model": "two"}], "texts": 1234}
    done = {"title": "t", "data": [{**DATA, "left_out": [left_out]}], "seed": 0, "steps": 1}
    text = render_card(
        {"base": "b", "trainings": [done | {"ended": "so"}]}, card_kind(Architecture())
    )
    assert "x: 1,234 texts were left out, because their scores by one and two are above" in text
