"""Are tokens masked as configured, and are predictions equal to those of transformers?"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from prepared import inputs_of
from safetensors.numpy import load_file
from tiny_trainings import one_thread, prepare, settings, some_pairs, toml, write_pairs
from zoo import FAMILIES, give_tokenizer, write_family

from birchbark.checkpoint.checkpoint import Checkpoint, open_any_head
from birchbark.checkpoint.heads import Pooling, UnknownHeadError
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.cli import group
from birchbark.errors import CheckpointError, InputError
from birchbark.records import Pair
from birchbark.score.load_scorer import load_scorer
from birchbark.score.masked_lm import MaskedLanguageModel
from birchbark.segment.sentences import sentences
from birchbark.train.initialise import Initialisation, network_shape, open_network
from birchbark.train.masked_lm import MaskedLearner
from birchbark.train.masking import MaskedInput, Masker, Masking
from birchbark.train.packed_inputs import PackedInputs
from birchbark.train.pair_inputs import InputLayout, PairInputs
from birchbark.train.read_config import read_training
from birchbark.train.training import train
from birchbark.train.training_log import read_log
from birchbark.train.training_run import ProgressReporter
from conftest import DOCUMENTS, VOCABULARY, write_bert

torch = pytest.importorskip("torch", reason="torch is not installed")

MASK = VOCABULARY.index("[MASK]")
LINEAGE = {
    "base": "tiny",
    "trainings": [{"title": "t", "data": [], "seed": 0, "steps": 1, "ended": "so"}],
}


def documents(folder: Path, count: int = 40) -> Path:
    """Write a collection of texts of random words; one is longer than an input."""
    texts = [f"{pair.query} {pair.text}" for pair in some_pairs(count // 5)]
    texts.append(" ".join(texts))
    rows = [json.dumps({"id": f"t{n}", "text": text}) for n, text in enumerate(texts)]
    (folder / "texts.jsonl").write_text("\n".join(rows))
    return folder / "texts.jsonl"


def adapting(folder: Path, **changes: Any) -> Any:
    """A training on texts alone. changes: as those of `prepare`."""
    folder.mkdir(exist_ok=True)
    if not (folder / "base").exists():
        write_bert(folder / "base")
        documents(folder)
    dotted = {key.replace("__", "."): value for key, value in changes.items()}
    data = [{"name": "texts", "documents": "texts.jsonl", "validation": 0.3}]
    changed = {"data": data, "masked": {"share": 0.3}} | dotted
    default = settings(folder / "base")
    values = settings(folder / "base", {k: v for k, v in changed.items() if v or k in default})
    return read_training(values, folder / "adapt.toml")


def masked_inputs(
    folder: Path, *, texts_only: bool, length: int = 32
) -> tuple[PairInputs, CheckpointTokenizer]:
    tokenizer = CheckpointTokenizer(Checkpoint.open(write_bert(folder / "bert")))
    pairs = some_pairs(30)
    if texts_only:
        pairs = [Pair(p.doc_id, p.doc_id, p.doc_id, p.text, 1) for p in pairs]
    return inputs_of(
        pairs,
        tokenizer,
        length,
        layout=InputLayout.TEXT if texts_only else InputLayout.PAIR,
    ), tokenizer


@pytest.mark.parametrize("query", [None, 0.0, 1.0, 0.8])
def test_which_tokens_are_masked(tmp_path: Path, query: float | None) -> None:
    """They are ordinary tokens of one side; 80 % become masks, 10 % random, 10 % stay the same."""
    inputs, tokenizer = masked_inputs(tmp_path, texts_only=query is None)
    masker = Masker.of(Masking(0.4, query), tokenizer)
    replacements, sides, special = np.zeros(3), np.zeros(2), tokenizer.special_ids
    for number in range(len(inputs.pairs)):
        [(ids, types)] = inputs[number]
        ranges = inputs.text_ranges(number)
        for round_ in range(20):
            masked = masker.mask_tokens(ids, types, ranges, np.random.default_rng((round_, number)))
            assert not {int(i) for i in masked.labels} & special
            inside = [(a <= masked.positions) & (masked.positions < b) for a, b in ranges]
            on_side = [bool(side.all()) for side in inside]
            assert sum(on_side) == 1
            sides[on_side.index(True)] += 1
            start, end = ranges[on_side.index(True)]
            assert len(masked.positions) == max(1, round(0.4 * (end - start)))
            assert (ids[masked.positions] == masked.labels).all()
            others = np.setdiff1d(np.arange(len(ids)), masked.positions)
            assert (masked.ids[others] == ids[others]).all()
            visible = masked.ids[masked.positions]
            replacements += [(visible == MASK).sum(), 0, (visible == masked.labels).sum()]
            replacements[1] += ((visible != MASK) & (visible != masked.labels)).sum()
    shares = replacements / replacements.sum()
    assert abs(shares[0] - 0.8) < 0.02
    assert abs(shares[1] - 0.1 * (1 - 1 / 25)) < 0.02
    expected = 1.0 if query is None else query
    assert abs(sides[0] / sides.sum() - expected) < 0.03


def test_a_masked_token_has_no_effect(tmp_path: Path) -> None:
    """Inputs that differ only in masked tokens have equal predictions."""
    inputs, tokenizer = masked_inputs(tmp_path, texts_only=True)
    base = open_any_head(write_bert(tmp_path / "base"), "tiny")
    network = open_network(base, Initialisation(masked=True), 0, "cpu")
    masker = Masker.of(Masking(0.3), tokenizer)
    [(ids, types)] = inputs[3]
    rng = np.random.default_rng(4)
    first = masker.mask_tokens(ids, types, inputs.text_ranges(3), rng)
    masked = first.positions[first.ids[first.positions] == MASK]
    assert len(masked)
    changed = ids.copy()
    changed[masked] = 7
    second = masker.mask_tokens(changed, types, inputs.text_ranges(3), np.random.default_rng(4))
    scores = [
        network.token_logits(
            PackedInputs.of([(own.ids, types)], "cpu"), torch.tensor(masked), training=False
        )
        for own in (first, second)
    ]
    assert torch.equal(*scores)


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_equal_those_of_transformers(family: str, tmp_path: Path) -> None:
    """This holds for every token of an exported model, and for a model loaded without torch."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    from birchbark.train.export import export

    directory = write_family(tmp_path / family, family, 1)
    give_tokenizer(directory, family)
    base = open_any_head(directory, "tiny")
    network = open_network(base, Initialisation(masked=True, dropout=0.0), 3, "cpu")
    with torch.no_grad():
        for weight in network.weights.values():
            weight += 0.1 * torch.randn(weight.shape)
    export(tmp_path / "out", network, base, CheckpointTokenizer(base), LINEAGE)
    theirs, report = transformers.AutoModelForMaskedLM.from_pretrained(
        tmp_path / "out", output_loading_info=True
    )
    assert not report["missing_keys"]
    kept = {name for name, weight in network.weights.items() if not weight.requires_grad}
    unexpected = {key.removeprefix(base.family.prefix) for key in report["unexpected_keys"]}
    assert unexpected == kept  # the classifier's, for a later training
    ids = np.array([5, 9, 12, 7, 6], np.int32)
    types = np.zeros_like(ids)
    found = network.token_logits(
        PackedInputs.of([(ids, types)], "cpu"), torch.arange(5), training=False
    )
    with torch.no_grad():
        expected = theirs.eval()(input_ids=torch.tensor(ids[None].astype(np.int64))).logits[0]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)
    lean = MaskedLanguageModel(tmp_path / "out")  # without torch
    masked = np.array([9, lean.mask, 7], np.int32)
    ids = torch.tensor(lean.tokenizer.single_input(masked)[None].astype(np.int64))
    [(start, _)] = lean.tokenizer.text_ranges(None, 3)
    with torch.no_grad():
        expected = theirs(input_ids=ids).logits[0, start + 1].softmax(0)
    found = lean.predict(np.array([9, 12, 7], np.int32), 1)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_training_on_texts(tmp_path: Path) -> None:
    """The likelihood rises; long documents are split; an embedding model remains one."""
    logged: list[str] = []
    training = adapting(tmp_path, schedule={"steps": 60, "batch": 8, "learning_rate": 1e-2},
                        validation={"every": 20})  # fmt: skip
    ended = train(training, tmp_path, tmp_path / "out", reporter=ProgressReporter(logged.append))
    lines = [line for line in read_log(tmp_path / "out" / "curve.jsonl") if "values" in line]
    values = [line["values"]["texts"] for line in lines]
    assert lines[0]["measure"] == "log-likelihood"
    assert values[-1] > values[0] + 0.05
    assert ended.best == max(values)
    assert not [line for line in logged if "are truncated" in line]
    model = tmp_path / "out" / "model"
    assert Checkpoint.open(model).head == Pooling("mean", 2)
    assert "fill-mask" in (model / "README.md").read_text()
    weights = load_file(model / "model.safetensors")
    assert weights["cls.predictions.bias"].shape == (len(VOCABULARY),)
    scorer = load_scorer(model)
    assert scorer.kind == "embedding"


def test_validation_masks_a_batch_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All held-out texts at once would need much memory."""
    masked, losses = MaskedLearner._masked, MaskedLearner._losses
    waiting: list[MaskedInput] = []
    batches: list[int] = []

    def mask(learner: MaskedLearner, *args: Any) -> MaskedInput:
        waiting.append(masked(learner, *args))
        return waiting[-1]

    def count(learner: MaskedLearner, batch: Sequence[MaskedInput], *, training: bool) -> Any:
        if not training:
            batches.append(len(batch))
            assert len(waiting) == len(batch)
        waiting.clear()
        return losses(learner, batch, training=training)

    monkeypatch.setattr(MaskedLearner, "_masked", mask)
    monkeypatch.setattr(MaskedLearner, "_losses", count)
    schedule = {"steps": 1, "batch": 4, "learning_rate": 1e-3, "batch_tokens": 128}
    train(adapting(tmp_path, schedule=schedule), tmp_path, tmp_path / "out")
    assert len(batches) > 1


def test_a_base_without_head_gets_no_pooling(tmp_path: Path) -> None:
    """The adapted model is refused for ranking, as its base is."""
    training = adapting(tmp_path, schedule={"steps": 2, "batch": 8, "learning_rate": 1e-3})
    shutil.rmtree(tmp_path / "base" / "1_Pooling")
    train(training, tmp_path, tmp_path / "out", reporter=ProgressReporter(lambda line: None))
    for model in (tmp_path / "base", tmp_path / "out" / "model"):
        with pytest.raises(UnknownHeadError):
            Checkpoint.open(model)


@pytest.mark.parametrize("query", [None, 0.8])
def test_texts_without_tokens_are_left_out(tmp_path: Path, query: float | None) -> None:
    """Zero-width characters are neither white space nor tokens; this is reported."""
    logged: list[str] = []
    if query is None:
        training = adapting(tmp_path, schedule={"steps": 2, "batch": 8})
        with (tmp_path / "texts.jsonl").open("a") as out:
            out.write("\n" + json.dumps({"id": "empty", "text": "\u200b\u200b"}))
        expected = "texts: text without a token, left out (1 time"
    else:
        masked = {"query": query, "share": 0.2}
        training = prepare(tmp_path, masked=masked, query_length=4, data__validation=0.0)
        with (tmp_path / "pairs.tsv").open("a") as out:
            out.write("e\t\u200b\te\tstone\t1\n")
        expected = "words: pair whose query or text has no token, left out (1 time"
    train(training, tmp_path, tmp_path / "out", reporter=ProgressReporter(logged.append))
    assert [line for line in logged if line.startswith(expected)], logged


def test_a_trained_model_is_a_base(tmp_path: Path) -> None:
    """A second run starts with the head of the first; a ranker can be trained from it."""
    train(adapting(tmp_path, schedule__steps=3), tmp_path, tmp_path / "one")
    first = tmp_path / "one" / "model"
    stored = load_file(first / "model.safetensors")
    network = open_network(open_any_head(first, "one"), Initialisation(masked=True), 9, "cpu")
    head = "cls.predictions.transform.dense.weight"
    np.testing.assert_array_equal(network.weights[head].detach().numpy(), stored[head])
    write_pairs(tmp_path / "pairs.tsv", some_pairs(10))
    ranker = read_training(settings(first), tmp_path / "rank.toml")
    train(ranker, tmp_path, tmp_path / "ranker")
    assert load_scorer(tmp_path / "ranker" / "model").kind == "cross-encoder"


@pytest.mark.parametrize("kind", [{"masked": True}, {"pooling": "mean"}])
def test_a_head_outlives_a_training_without_it(tmp_path: Path, kind: dict[str, Any]) -> None:
    """What a base has before its logit is neither trained nor lost."""
    from birchbark.train.export import export

    base = open_any_head(write_bert(tmp_path / "base", labels=1), "base")
    network = open_network(base, Initialisation(**kind), 3, "cpu")
    assert not network.weights["pooler.dense.weight"].requires_grad
    export(tmp_path / "out", network, base, CheckpointTokenizer(base), LINEAGE)
    later = open_network(open_any_head(tmp_path / "out", "out"), Initialisation(), 4, "cpu")
    for name in ("pooler.dense.weight", "pooler.dense.bias"):
        np.testing.assert_array_equal(later.weights[name].detach(), base.tensors()[name])


@pytest.mark.parametrize("query", [None, 0.8])
def test_a_resumed_training_has_the_same_bytes(tmp_path: Path, query: float | None) -> None:
    """Masked tokens depend on seed and step alone, for texts and for pairs."""
    adapting(tmp_path)
    write_pairs(tmp_path / "pairs.tsv", some_pairs(10))
    pairs = {"masked": {"query": query}, "data": [{"name": "pairs", "files": ["pairs.tsv"]}]}
    changes = {} if query is None else pairs
    with one_thread():
        for name, stops in (("whole", ()), ("parts", (3, 5))):
            for stop in (*stops, 0):
                training = adapting(
                    tmp_path, schedule={"steps": 8, "batch": 4, "learning_rate": 1e-2,
                                        "save_every": 1}, **changes)  # fmt: skip

                def on_step(step: int, steps: int, loss: float, stop: int = stop) -> None:
                    if step == stop + 1 and stop:
                        raise KeyboardInterrupt

                try:
                    train(
                        training,
                        tmp_path,
                        tmp_path / name,
                        reporter=ProgressReporter(on_step=on_step),
                    )
                except KeyboardInterrupt:
                    assert stop
    whole, parts = ((tmp_path / n / "model" / "model.safetensors") for n in ("whole", "parts"))
    assert whole.read_bytes() == parts.read_bytes()


def test_only_relevant_pairs_are_trained_on(tmp_path: Path) -> None:
    """RelEmb: texts that are not relevant do not predict the query."""
    logged: list[str] = []
    training = prepare(
        tmp_path, masked={"query": 0.8, "share": 0.2}, query_length=4, data__validation=0.0
    )
    train(training, tmp_path, tmp_path / "out", reporter=ProgressReporter(logged.append))
    relevant = sum(pair.relevance > 0 for pair in some_pairs(10))
    assert any(f"words: {relevant} pairs of 10 queries to train on" in line for line in logged)
    others = len(some_pairs(10)) - relevant
    assert f"words: pair that is not relevant, left out ({others:,} times)" in logged


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"masked": {"share": 1.0}}, "share is out of range"),
        ({"masked": {"query": 2.0}}, "query is out of range"),
        ({"masked": {"query": 0.5}}, "documents without queries"),
        ({"masked": None}, "documents without queries"),
        ({"objective": {"kind": "pointwise"}}, r"\[masked\] cannot be combined"),
        ({"lists": {"each": "positive"}}, r"\[masked\] cannot be combined"),
        ({"validation.measure": "AP"}, "unsuitable measure: expected log-likelihood"),
        ({"model": {"parade": "avg"}}, r"\[masked\] cannot be combined"),
        ({"model": {"learns": "output"}}, r"\[masked\] cannot be combined with learns"),
        ({"model": {"head": "new output"}}, r"model\.head: \[masked\] cannot .* the embeddings"),
        ({"query_length": 4}, "query_length: query_length has no effect on documents"),
        ({"held_out": {"queries": "q.tsv"}}, "held_out: held_out has no effect on documents"),
    ],
)
def test_contradicting_settings(tmp_path: Path, changes: Mapping[str, Any], message: str) -> None:
    """They raise an error when the configuration is read."""
    with pytest.raises(InputError, match=message):
        adapting(tmp_path, **{key.replace(".", "__"): value for key, value in changes.items()})


def test_an_output_with_weights_of_its_own_is_refused(tmp_path: Path) -> None:
    """Neither training nor predictions would use them; training to rank has no need of them."""
    base = write_bert(tmp_path / "base", labels=1, masked=True)
    config = json.loads((base / "config.json").read_text())
    for tied in (None, True, False):
        stated = {} if tied is None else {"tie_word_embeddings": tied}
        (base / "config.json").write_text(json.dumps(config | stated))
        opened = open_any_head(base, "tiny")
        assert network_shape(opened, Initialisation()) == opened.config
        if tied is not False:
            assert network_shape(opened, Initialisation(masked=True)) == opened.config
            assert MaskedLanguageModel(base).mask == MASK
            continue
        with pytest.raises(InputError, match=r"tiny: \[masked\] predicts .* by their embeddings"):
            network_shape(opened, Initialisation(masked=True))
        with pytest.raises(CheckpointError, match=r"output has weights of its own.*tie_word"):
            MaskedLanguageModel(base)


def test_a_base_without_a_mask_token(tmp_path: Path) -> None:
    """It cannot be trained to predict masked tokens."""
    training = adapting(tmp_path)
    vocabulary = tmp_path / "base" / "vocab.txt"
    vocabulary.write_text(vocabulary.read_text().replace("[MASK]", "mask"))
    with pytest.raises(InputError, match="base model's tokeniser has no mask token"):
        train(training, tmp_path, tmp_path / "out")


def test_documents_can_be_segmented(tmp_path: Path) -> None:
    """They can be segmented into sentences of title and text."""
    rows = [json.dumps({"id": d.doc_id, **d.fields}) for d in DOCUMENTS]
    adapting(tmp_path)
    (tmp_path / "texts.jsonl").write_text("\n".join(rows))
    logged: list[str] = []
    data = [{"name": "texts", "documents": "texts.jsonl", "segments": "sentences"}]
    train(
        adapting(tmp_path, data=data),
        tmp_path,
        tmp_path / "out",
        reporter=ProgressReporter(logged.append),
    )
    count = sum(len(sentences(document)) for document in DOCUMENTS)
    assert f"texts: {count} texts of 5 documents to train on" in logged


@pytest.mark.parametrize(
    ("kind", "query", "message"),
    [
        ("adaptation", None, ""),
        ("adaptation", 0.5, "no adaptation: expected a table .* or kind = 'relemb'"),
        ("relemb", 0.5, ""),
        ("relemb", None, "no relemb: expected masked.query, .* or kind = 'adaptation'"),
    ],
)
def test_kinds(tmp_path: Path, kind: str, query: float | None, message: str) -> None:
    """A configuration that states another kind than its own is refused."""
    adapting(tmp_path)
    write_pairs(tmp_path / "pairs.tsv", some_pairs(10))
    masked = {"share": 0.3} if query is None else {"query": query}
    texts = {"name": "texts", "documents": "texts.jsonl"}
    data = texts if query is None else {"name": "pairs", "files": ["pairs.tsv"]}
    (tmp_path / "c.toml").write_text(
        toml(settings(tmp_path / "base", {"kind": kind, "masked": masked, "data": [data]}))
    )
    arguments = ["train", str(tmp_path / "c.toml"), "--data", str(tmp_path), "--output"]
    arguments.append(str(tmp_path / "out"))
    if message:
        with pytest.raises(InputError, match=message):
            CliRunner().invoke(group, arguments, catch_exceptions=False)
    else:
        CliRunner().invoke(group, arguments, catch_exceptions=False)
        assert (tmp_path / "out" / "model" / "model.safetensors").exists()
