"""Are tokens hidden as they should be, and learnt as transformers' masked models say they are?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from safetensors.numpy import load_file
from tiny_trainings import one_thread, prepare, settings, some_pairs, toml, write_pairs
from zoo import FAMILIES, give_tokenizer, write_family

from birchbark.checkpoint.heads import Pooling
from birchbark.checkpoint.reader import Checkpoint, open_any
from birchbark.checkpoint.tokenizer import Pieces
from birchbark.cli import group
from birchbark.errors import InputError
from birchbark.records import Pair
from birchbark.score.masked import MaskedModel
from birchbark.score.model import load_scorer
from birchbark.segment.sentences import sentences
from birchbark.train.config import read_training
from birchbark.train.curve import read_curve
from birchbark.train.examples import Pairs
from birchbark.train.masking import Hider, Masking
from birchbark.train.material import PairInputs, Reads
from birchbark.train.network import Inputs
from birchbark.train.shaping import Shaping, open_network
from birchbark.train.training import Talk, train
from conftest import DOCUMENTS, VOCABULARY, write_bert

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to learn with")

MASK = VOCABULARY.index("[MASK]")


def documents(folder: Path, count: int = 40) -> Path:
    """A collection of texts of random words, one of them longer than an input."""
    texts = [f"{pair.query} {pair.text}" for pair in some_pairs(count // 5)]
    texts.append(" ".join(texts))
    rows = [json.dumps({"id": f"t{n}", "text": text}) for n, text in enumerate(texts)]
    (folder / "texts.jsonl").write_text("\n".join(rows))
    return folder / "texts.jsonl"


def adapting(folder: Path, **changes: Any) -> Any:
    """A training on texts alone. changes: as `prepare` takes them."""
    folder.mkdir(exist_ok=True)
    if not (folder / "base").exists():
        write_bert(folder / "base")
        documents(folder)
    dotted = {key.replace("__", "."): value for key, value in changes.items()}
    data = [{"name": "texts", "documents": "texts.jsonl", "validation": 0.3}]
    changed = {"data": data, "masked": {"share": 0.3}} | dotted
    usual = settings(folder / "base")
    values = settings(folder / "base", {k: v for k, v in changed.items() if v or k in usual})
    return read_training(values, folder / "adapt.toml")


def inputs_of(folder: Path, *, alone: bool, length: int = 32) -> tuple[PairInputs, Pieces]:
    pieces = Pieces(Checkpoint.open(write_bert(folder / "bert")))
    pairs = some_pairs(30)
    if alone:
        pairs = [Pair(p.doc_id, p.doc_id, p.doc_id, p.text, 1) for p in pairs]
    return PairInputs.of(
        Pairs.of(pairs), pieces, length, reads=Reads.TEXT if alone else Reads.PAIR
    ), pieces


@pytest.mark.parametrize("query", [None, 0.0, 1.0, 0.8])
def test_what_is_hidden(tmp_path: Path, query: float | None) -> None:
    """Tokens of one side, none of them special; 80 % masks, 10 % others, 10 % as they were."""
    inputs, pieces = inputs_of(tmp_path, alone=query is None)
    hider = Hider.of(Masking(0.4, query), pieces)
    fates, sides, special = np.zeros(3), np.zeros(2), pieces.special
    for number in range(len(inputs.pairs)):
        [(ids, types)] = inputs[number]
        parts = inputs.sides(number)
        for round_ in range(20):
            hidden = hider.hide(ids, types, parts, np.random.default_rng((round_, number)))
            assert not {int(i) for i in hidden.answers} & special
            inside = [(a <= hidden.places) & (hidden.places < b) for a, b in parts]
            of = [bool(side.all()) for side in inside]
            assert sum(of) == 1
            sides[of.index(True)] += 1
            start, end = parts[of.index(True)]
            assert len(hidden.places) == max(1, round(0.4 * (end - start)))
            assert (ids[hidden.places] == hidden.answers).all()
            others = np.setdiff1d(np.arange(len(ids)), hidden.places)
            assert (hidden.ids[others] == ids[others]).all()
            shown = hidden.ids[hidden.places]
            fates += [(shown == MASK).sum(), 0, (shown == hidden.answers).sum()]
            fates[1] += ((shown != MASK) & (shown != hidden.answers)).sum()
    shares = fates / fates.sum()
    assert abs(shares[0] - 0.8) < 0.02
    assert abs(shares[1] - 0.1 * (1 - 1 / 25)) < 0.02
    expected = 1.0 if query is None else query
    assert abs(sides[0] / sides.sum() - expected) < 0.03


def test_an_answer_is_never_visible(tmp_path: Path) -> None:
    """What stood where a mask stands changes no prediction: another input, the same scores."""
    inputs, pieces = inputs_of(tmp_path, alone=True)
    base = open_any(write_bert(tmp_path / "base"), "tiny")
    network = open_network(base, Shaping(masked=True), 0, "cpu")
    hider = Hider.of(Masking(0.3), pieces)
    [(ids, types)] = inputs[3]
    chance = np.random.default_rng(4)
    hidden = hider.hide(ids, types, inputs.sides(3), chance)
    masked = hidden.places[hidden.ids[hidden.places] == MASK]
    assert len(masked)
    changed = ids.copy()
    changed[masked] = 7
    again = hider.hide(changed, types, inputs.sides(3), np.random.default_rng(4))
    scores = [
        network.predict(Inputs.of([(one.ids, types)], "cpu"), torch.tensor(masked), learns=False)
        for one in (hidden, again)
    ]
    assert torch.equal(*scores)


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_are_those_of_transformers(family: str, tmp_path: Path) -> None:
    """What is exported says the same of every token in transformers' own masked model."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    from birchbark.train.export import export

    directory = write_family(tmp_path / family, family, 1)
    give_tokenizer(directory, family)
    base = open_any(directory, "tiny")
    network = open_network(base, Shaping(masked=True, dropout=0.0), 3, "cpu")
    lineage = {
        "base": "tiny",
        "trainings": [{"title": "t", "data": [], "seed": 0, "steps": 1, "ended": "so"}],
    }
    with torch.no_grad():
        for weight in network.weights.values():
            weight += 0.1 * torch.randn(weight.shape)
    export(tmp_path / "out", network, base, Pieces(base), lineage)
    theirs, told = transformers.AutoModelForMaskedLM.from_pretrained(
        tmp_path / "out", output_loading_info=True
    )
    assert not told["missing_keys"]
    assert not told["unexpected_keys"]
    ids = np.array([5, 9, 12, 7, 6], np.int32)
    types = np.zeros_like(ids)
    found = network.predict(Inputs.of([(ids, types)], "cpu"), torch.arange(5), learns=False)
    with torch.no_grad():
        expected = theirs.eval()(input_ids=torch.tensor(ids[None].astype(np.int64))).logits[0]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)
    lean = MaskedModel(tmp_path / "out")  # without torch
    hidden = np.array([9, lean.mask, 7], np.int32)
    whole = torch.tensor(lean.pieces.single(hidden)[None].astype(np.int64))
    [(start, _)] = lean.pieces.sides(None, 3)
    with torch.no_grad():
        expected = theirs(input_ids=whole).logits[0, start + 1].softmax(0)
    found = lean.expected(np.array([9, 12, 7], np.int32), 1)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_texts_are_learnt(tmp_path: Path) -> None:
    """The likelihood rises; long documents lose nothing; what was an embedding stays one."""
    told: list[str] = []
    training = adapting(tmp_path, schedule={"steps": 60, "batch": 8, "learning_rate": 1e-2},
                        validation={"every": 20})  # fmt: skip
    ended = train(training, tmp_path, tmp_path / "out", talk=Talk(told.append))
    lines = [line for line in read_curve(tmp_path / "out" / "curve.jsonl") if "values" in line]
    values = [line["values"]["texts"] for line in lines]
    assert lines[0]["measure"] == "log-likelihood"
    assert values[-1] > values[0] + 0.05
    assert ended.best == max(values)
    assert not [line for line in told if "lose their end" in line]
    model = tmp_path / "out" / "model"
    assert Checkpoint.open(model).head == Pooling("mean", 2)
    assert "fill-mask" in (model / "README.md").read_text()
    weights = load_file(model / "model.safetensors")
    assert weights["cls.predictions.bias"].shape == (len(VOCABULARY),)
    scorer = load_scorer(model)
    assert scorer.kind == "embedding"


@pytest.mark.parametrize("query", [None, 0.8])
def test_a_text_without_a_token_is_left_out(tmp_path: Path, query: float | None) -> None:
    """Zero-width characters are no blank, and no token either; it is told."""
    told: list[str] = []
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
        expected = "words: pair of which a side has no token, left out (1 time"
    train(training, tmp_path, tmp_path / "out", talk=Talk(told.append))
    assert [line for line in told if line.startswith(expected)], told


def test_it_goes_on_from_the_model_it_wrote(tmp_path: Path) -> None:
    """A second training has the head of the first; a ranker can be trained from it."""
    train(adapting(tmp_path, schedule__steps=3), tmp_path, tmp_path / "one")
    first = tmp_path / "one" / "model"
    stored = load_file(first / "model.safetensors")
    network = open_network(open_any(first, "one"), Shaping(masked=True), 9, "cpu")
    head = "cls.predictions.transform.dense.weight"
    np.testing.assert_array_equal(network.weights[head].detach().numpy(), stored[head])
    write_pairs(tmp_path / "pairs.tsv", some_pairs(10))
    ranker = read_training(settings(first), tmp_path / "rank.toml")
    train(ranker, tmp_path, tmp_path / "ranker")
    assert load_scorer(tmp_path / "ranker" / "model").kind == "cross-encoder"


@pytest.mark.parametrize("query", [None, 0.8])
def test_a_stopped_training_goes_on_with_the_same_bytes(
    tmp_path: Path, query: float | None
) -> None:
    """The same tokens are hidden in each step, whatever came before it; of texts and of pairs."""
    adapting(tmp_path)
    write_pairs(tmp_path / "pairs.tsv", some_pairs(10))
    pairs = {"masked": {"query": query}, "data": [{"name": "pairs", "files": ["pairs.tsv"]}]}
    changes = {} if query is None else pairs
    with one_thread():
        for name, stops in (("whole", ()), ("parts", (3, 5))):
            for stop in (*stops, 0):
                training = adapting(
                    tmp_path, schedule={"steps": 8, "batch": 4, "learning_rate": 1e-2,
                                        "checkpoint": 1}, **changes)  # fmt: skip

                def stopped(step: int, steps: int, loss: float, stop: int = stop) -> None:
                    if step == stop + 1 and stop:
                        raise KeyboardInterrupt

                try:
                    train(training, tmp_path, tmp_path / name, talk=Talk(stepped=stopped))
                except KeyboardInterrupt:
                    assert stop
    whole, parts = ((tmp_path / n / "model" / "model.safetensors") for n in ("whole", "parts"))
    assert whole.read_bytes() == parts.read_bytes()


def test_relevant_pairs_alone_are_learnt_from(tmp_path: Path) -> None:
    """RelEmb: what was judged not relevant tells nothing of the query."""
    told: list[str] = []
    training = prepare(
        tmp_path, masked={"query": 0.8, "share": 0.2}, query_length=4, data__validation=0.0
    )
    train(training, tmp_path, tmp_path / "out", talk=Talk(told.append))
    relevant = sum(pair.relevance > 0 for pair in some_pairs(10))
    assert any(f"words: {relevant} pairs of 10 queries to learn from" in line for line in told)
    left = len(some_pairs(10)) - relevant
    assert f"words: pair that is not relevant, left out ({left:,} times)" in told


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"masked": {"share": 1.0}}, "share is out of range"),
        ({"masked": {"query": 2.0}}, "query is out of range"),
        ({"masked": {"query": 0.5}}, "nothing is asked of these documents"),
        ({"masked": None}, "nothing is asked of these documents"),
        ({"objective": {"kind": "pointwise"}}, r"\[masked\] stands alone"),
        ({"lists": {"each": "positive"}}, r"\[masked\] stands alone"),
        ({"validation.measure": "AP"}, "what is hidden is measured otherwise"),
        ({"model": {"parade": "avg"}}, r"\[masked\] stands alone"),
    ],
)
def test_settings_that_contradict(tmp_path: Path, changes: Mapping[str, Any], told: str) -> None:
    """Told before anything is learnt."""
    with pytest.raises(InputError, match=told):
        adapting(tmp_path, **{key.replace(".", "__"): value for key, value in changes.items()})


def test_a_base_without_a_mask(tmp_path: Path) -> None:
    """Cannot be asked what is behind it."""
    training = adapting(tmp_path)
    vocabulary = tmp_path / "base" / "vocab.txt"
    vocabulary.write_text(vocabulary.read_text().replace("[MASK]", "mask"))
    with pytest.raises(InputError, match="tokeniser has no mask"):
        train(training, tmp_path, tmp_path / "out")


def test_real_texts(tmp_path: Path) -> None:
    """Titles and texts of documents, by segments that are named."""
    rows = [json.dumps({"id": d.doc_id, **d.fields}) for d in DOCUMENTS]
    adapting(tmp_path)
    (tmp_path / "texts.jsonl").write_text("\n".join(rows))
    told: list[str] = []
    data = [{"name": "texts", "documents": "texts.jsonl", "segments": "sentences"}]
    train(adapting(tmp_path, data=data), tmp_path, tmp_path / "out", talk=Talk(told.append))
    count = sum(len(sentences(document)) for document in DOCUMENTS)
    assert f"texts: {count} texts of 5 documents to learn from" in told


@pytest.mark.parametrize(
    ("verb", "query", "told"),
    [
        (["adapt"], None, ""),
        (["adapt"], 0.5, "no texts to adapt to"),
        (["pretrain", "relemb"], 0.5, ""),
        (["pretrain", "relemb"], None, "no side of a pair is hidden"),
    ],
)
def test_verbs(tmp_path: Path, verb: list[str], query: float | None, told: str) -> None:
    """Each takes its own configurations, and no other."""
    adapting(tmp_path)
    write_pairs(tmp_path / "pairs.tsv", some_pairs(10))
    masked = {"share": 0.3} if query is None else {"query": query}
    texts = {"name": "texts", "documents": "texts.jsonl"}
    data = texts if query is None else {"name": "pairs", "files": ["pairs.tsv"]}
    (tmp_path / "c.toml").write_text(
        toml(settings(tmp_path / "base", {"masked": masked, "data": [data]}))
    )
    command = [*verb, str(tmp_path / "c.toml"), "--data", str(tmp_path), "--output"]
    command.append(str(tmp_path / "out"))
    if told:
        with pytest.raises(InputError, match=told):
            CliRunner().invoke(group, command, catch_exceptions=False)
    else:
        CliRunner().invoke(group, command, catch_exceptions=False)
        assert (tmp_path / "out" / "model" / "model.safetensors").exists()
