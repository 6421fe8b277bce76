"""Does an embedding learn from queries and texts that it reads apart?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_trainings import prepare, settings
from zoo import FAMILIES, give_tokenizer, write_family

from birchbark.checkpoint.heads import MODES
from birchbark.checkpoint.reader import Checkpoint, open_any
from birchbark.checkpoint.tokenizer import Pieces
from birchbark.errors import InputError
from birchbark.records import Pair
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.model import load_scorer
from birchbark.train.config import read_training
from birchbark.train.curve import read_curve
from birchbark.train.examples import Pairs
from birchbark.train.export import export
from birchbark.train.material import PairInputs, Reads
from birchbark.train.network import SCALE, Inputs
from birchbark.train.shaping import Shaping, open_network
from birchbark.train.training import train
from conftest import write_bert

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to learn with")

pytestmark = pytest.mark.filterwarnings("default")
LINEAGE: dict[str, Any] = {
    "base": "tiny",
    "trainings": [{"title": "t", "data": [], "seed": 0, "steps": 1, "ended": "all steps"}],
}
QUERIES = ["birch river", "a bee"]
TEXTS = ["a canoe , birch bark .", "bee dance", "the iron bridge river " * 3]


def exported(folder: Path, mode: str, family: str) -> tuple[Path, Any]:
    """A bi-encoder whose weights have moved away from its base, and its network."""
    directory = write_family(folder / "base", family, 1)
    if family in ("roberta", "albert"):
        give_tokenizer(directory, family)
    base = open_any(directory, "tiny")
    network = open_network(base, Shaping(dropout=0.0, pooling=mode), 0, "cpu")
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in network.weights.values():
            weight.add_(torch.randn_like(weight) * 0.2)
    export(folder / "model", network, base, Pieces(base), LINEAGE)
    return folder / "model", network


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_engine_computes_what_torch_does(family: str, mode: str, tmp_path: Path) -> None:
    """Cosines of vectors without torch are the logits that were learnt, by SCALE."""
    model, network = exported(tmp_path, mode, family)
    scorer = load_scorer(model)
    assert isinstance(scorer, EmbeddingScorer)
    assert Checkpoint.open(model).max_length == open_any(tmp_path / "base", "tiny").max_length
    pieces = Pieces(open_any(model, "tiny"))
    read = [
        (ids, np.zeros_like(ids))
        for query in QUERIES
        for text in TEXTS
        for ids in map(pieces.single, pieces.encode([query, text]))
    ]
    found = network.score(Inputs.of(read, "cpu", [2] * 6)).numpy().reshape(2, 3)
    asked, texts = scorer.embed(scorer.encode(QUERIES)), scorer.embed(scorer.encode(TEXTS))
    np.testing.assert_allclose(found / SCALE, asked @ texts.T, atol=1e-5)


def test_sentence_transformers_reads_it(tmp_path: Path) -> None:
    """The same vectors."""
    theirs = pytest.importorskip("sentence_transformers", reason="not installed: a peer")
    model, _ = exported(tmp_path, "mean", "bert")
    scorer = load_scorer(model)
    assert isinstance(scorer, EmbeddingScorer)
    expected = theirs.SentenceTransformer(str(model), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(scorer.embed(scorer.encode(TEXTS)), expected, atol=1e-5)


def training(folder: Path, **changes: Any) -> dict[str, Any]:
    """Settings of a tiny one, whose pairs lie in `folder`."""
    prepare(folder)
    return settings(
        folder / "base",
        {
            "model.pooling": "mean",
            "objective": {"kind": "softmax"},
            "lists": {"each": "positive", "texts": 3},
            **changes,
        },
    )


def test_it_learns(tmp_path: Path) -> None:
    """The loss falls; what comes out is an embedding that says so, and can be trained on."""
    values = training(tmp_path, **{"schedule.steps": 40, "schedule.learning_rate": 3e-3})
    told = read_training(values, tmp_path / "t.toml")
    ended = train(told, tmp_path, tmp_path / "out")
    assert ended.ended == "all steps"
    losses = [
        line["loss"] for line in read_curve(tmp_path / "out" / "curve.jsonl") if "loss" in line
    ]
    assert np.mean(losses[-5:]) < 0.8 * np.mean(losses[:5])
    model = tmp_path / "out" / "model"
    assert isinstance(load_scorer(model), EmbeddingScorer)
    assert "sentence-similarity" in (model / "README.md").read_text()
    again = read_training({**values, "base": str(model)}, tmp_path / "t.toml")
    train(again, tmp_path, tmp_path / "again")
    assert isinstance(load_scorer(tmp_path / "again" / "model"), EmbeddingScorer)


def test_query_and_text_have_inputs_of_their_own(tmp_path: Path) -> None:
    """Each as long as it may be; what is cut is counted."""
    pieces = Pieces(open_any(write_bert(tmp_path / "b"), "tiny"))
    pairs = [
        Pair("1", "birch " * 20, "a", "river", 1),
        Pair("2", "river", "b", "birch " * 20, 1),
        Pair("3", "river", "c", "birch " * 14, 0),
    ]
    inputs = PairInputs.of(Pairs.of(pairs), pieces, 16, 8, reads=Reads.APART)
    assert [[len(ids) for ids, _ in inputs[n]] for n in range(3)] == [[10, 3], [3, 16], [3, 16]]
    assert inputs.cut == 2
    assert inputs.lengths.tolist() == [9, 15, 15]
    whole = PairInputs.of(Pairs.of(pairs), pieces, 16, reads=Reads.APART)
    assert [len(ids) for ids, _ in whole[0]] == [16, 3]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"model.pooling": "sum"}, "unknown pooling 'sum'"),
        (
            {"objective": {"kind": "pointwise"}, "lists": {"each": "pair"}},
            "texts that are compared",
        ),
        ({"model.learns": "head"}, "has no head"),
        ({"model.parade": "avg"}, "no passages"),
        ({"match": {"teacher": "all-MiniLM-L6-v2"}}, "stands alone"),
    ],
)
def test_faults(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    """Refused before anything is read."""
    with pytest.raises(InputError, match=told):
        read_training(training(tmp_path, **changes), tmp_path / "t.toml")
