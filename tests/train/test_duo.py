"""Is duoBERT trained on comparisons of two texts, with equal scores in torch and ONNX Runtime?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from prepared import inputs_of
from tiny_trainings import prepare, some_pairs, write_pairs

from birchbark.checkpoint.checkpoint import open_any_head
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.errors import CheckpointError, InputError
from birchbark.records import Pair
from birchbark.score.duo import DuoScorer, load_duo_scorer
from birchbark.score.load_scorer import load_scorer
from birchbark.train.dataset import load_datasets
from birchbark.train.distributed import ProcessGroup
from birchbark.train.initialise import Initialisation, open_network
from birchbark.train.learner import Learner
from birchbark.train.packed_inputs import PackedInputs
from birchbark.train.pair_inputs import InputLayout, PairInputs
from birchbark.train.sampler import Sampler
from birchbark.train.training import train
from birchbark.train.training_folder import MODEL
from birchbark.train.validation import compare_pairs
from conftest import write_bert, write_duo

torch = pytest.importorskip("torch", reason="torch is not installed")

LISTS: dict[str, Any] = {
    "objective": {"kind": "duo"},
    "lists": {"each": "positive", "texts": 3},
}


def test_an_input_holds_query_and_two_texts(tmp_path: Path) -> None:
    """The score of [CLS] query [SEP] text [SEP] other [SEP] is a probability."""
    scorer = load_duo_scorer(write_duo(tmp_path / "duo"), threads=1)
    first, second = scorer.encode(["birch bark", "canoe"])
    joined = scorer.join(first, second)
    assert joined.tolist() == [*first.tolist(), 3, *second.tolist()]
    base = open_any_head(tmp_path / "duo", "duo")
    network = open_network(base, Initialisation(dropout=0.0, duo=True), 0, "cpu")
    (query,) = scorer.encode(["bee"])
    ids = np.array([2, *query, 3, *joined, 3], np.int32)
    types = np.repeat([0, 1], [len(query) + 2, len(joined) + 1]).astype(np.int32)
    logit = float(network.score(PackedInputs.of([(ids, types)], "cpu"))[0])
    assert float(scorer.score("bee", [joined])[0]) == pytest.approx(1 / (1 + np.exp(-logit)))
    with pytest.raises(InputError, match="leaves no room for two texts in an input of short"):
        load_duo_scorer(write_duo(tmp_path / "short", positions=6)).side_token_budget("bee")
    token_budget = scorer.side_token_budget("bee")
    full = scorer.join(*scorer.encode(["birch " * token_budget] * 2))
    assert len(scorer.score("bee", [full])) == 1


@pytest.mark.parametrize("query_length", [None, 1, 26, 27, 28, 40])
@pytest.mark.parametrize("max_length", [8, 16, 32])
def test_a_long_query_leaves_room_for_both_texts(
    max_length: int, query_length: int | None, tmp_path: Path
) -> None:
    """An input has at most `max_length` tokens, of which each text has one or more."""
    tokenizer = CheckpointTokenizer(open_any_head(write_bert(tmp_path / "base", labels=1), "tiny"))
    pairs = [Pair("q", "birch " * 90, f"d{n}", "stone " * 90, n) for n in range(2)]
    layout = InputLayout.TWO_TEXTS
    inputs = inputs_of(pairs, tokenizer, max_length, query_length, layout=layout)
    ids, types = inputs.comparison(0, 1)
    assert len(ids) <= max_length
    stone = tokenizer.encode(["stone"])[0][0]
    each = (ids == stone).sum() // 2
    assert each >= 1
    assert (ids == stone).sum() == 2 * each
    assert int((types == 0).sum()) - 2 == min(
        query_length or (max_length - 3) // 2, max_length - 3 - 3
    )


def test_the_loss_is_equation_3_3_of_the_paper(tmp_path: Path) -> None:
    """It is the mean over ordered pairs of unequal grades in a list, then over lists."""
    training = prepare(tmp_path, **LISTS, schedule__batch=3)
    base = open_any_head(Path(training.base), "tiny")
    datasets = load_datasets(
        training, tmp_path, CheckpointTokenizer(base), lambda text: None, tmp_path / "tokens"
    )
    assert training.initialisation.duo
    network = open_network(base, training.initialisation, 0, "cpu")
    sampler = Sampler(datasets, training.schedule, 0, 1)
    learner = Learner(network, datasets, sampler, ProcessGroup())
    pairs, grades = datasets[0].training_pairs, datasets[0].training_pairs.pairs.grades
    losses = []
    for _, pair_list in sampler.lists_at(0):
        of_list = []
        for i in pair_list:
            for j in pair_list:
                if grades[i] != grades[j]:
                    inputs = PackedInputs.of([pairs.comparison(i, j)], "cpu")
                    p = 1 / (1 + np.exp(-float(network.score(inputs)[0])))
                    of_list.append(-np.log(p if grades[i] > grades[j] else 1 - p))
        losses.append(np.mean(of_list))
    assert learner.step(0, 0) == pytest.approx(np.mean(losses), rel=1e-5)


def test_duo_is_trained_validated_and_exported(tmp_path: Path) -> None:
    """Its model works as duo alone; truncated and uncompared texts are reported."""
    logged: list[str] = []
    from birchbark.train.training_run import ProgressReporter

    training = prepare(tmp_path, **LISTS, **{"schedule.steps": 30, "max_length": 16})
    write_pairs(tmp_path / "pairs.tsv", some_pairs(10, texts=12))
    progress = train(training, tmp_path, tmp_path / "out", reporter=ProgressReporter(logged.append))
    assert any(
        "are ignored in validation: at most 10 texts per query are compared" in line
        for line in logged
    )
    assert progress.measures["words"]["queries"] > 0
    agreement = progress.measures["words"]["agreement"]
    assert any(f"words: {agreement:.0%} of comparisons agree in both" in line for line in logged)
    assert any("are truncated at 16 tokens" in line for line in logged)
    model = tmp_path / "out" / MODEL
    assert isinstance(load_duo_scorer(model), DuoScorer)
    with pytest.raises(CheckpointError, match=r"compares two texts.*--set duo="):
        load_scorer(model)
    with pytest.raises(CheckpointError, match="does not compare two texts"):
        load_duo_scorer(write_bert(tmp_path / "mono", labels=1))
    card = (model / "README.md").read_text()
    assert "A pairwise model (duoBERT)" in card
    assert f"words: {agreement:.0%} of comparisons give the same order" in card


def test_agreement_counts_pairs_in_both_orders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is 1 if p_ij + p_ji = 1, and 0 for a model that always prefers the first text."""
    training = prepare(tmp_path, **LISTS)
    write_pairs(tmp_path / "pairs.tsv", some_pairs(10, texts=6))
    base = open_any_head(Path(training.base), "tiny")
    datasets = load_datasets(
        training, tmp_path, CheckpointTokenizer(base), lambda text: None, tmp_path / "tokens"
    )
    network = open_network(base, training.initialisation, 0, "cpu")
    learner = Learner(network, datasets, Sampler(datasets, training.schedule, 0, 1), ProcessGroup())

    def encode(_: PairInputs, i: int, j: int) -> tuple[Any, Any]:
        return np.array([i, j]), np.array([0, 1])

    monkeypatch.setattr(PairInputs, "comparison", encode)

    def consistent(_: object, packed: PackedInputs) -> Any:
        return (packed.ids[::2] - packed.ids[1::2]).float()

    def always_first(_: object, packed: PackedInputs) -> Any:
        return torch.ones(len(packed.order))

    for score, expected in ((consistent, 1.0), (always_first, 0.0)):
        monkeypatch.setattr(type(network), "score", score)
        assert compare_pairs(learner, datasets[0].training_pairs)[1] == expected


def test_duo_cannot_be_combined(tmp_path: Path) -> None:
    """It raises an error with another objective, none, lists of single pairs, or PARADE."""
    with pytest.raises(InputError, match="objective duo compares texts of one query"):
        prepare(tmp_path / "a", objective={"kind": "duo"})
    two = [{"kind": "duo"}, {"kind": "softmax"}]
    with pytest.raises(InputError, match=r"objective duo cannot be combined.*found duo, softmax"):
        prepare(tmp_path / "b", **{**LISTS, "objective": two})
    with pytest.raises(InputError, match=r"objective duo cannot be combined.*found duo, duo"):
        prepare(tmp_path / "b", **{**LISTS, "objective": [{"kind": "duo"}] * 2})
    with pytest.raises(InputError, match="objective duo cannot be combined"):
        prepare(tmp_path / "c", **LISTS, **{"model.parade": "avg"})
    sets = [{"name": "a", "files": ["a"]}, {"name": "b", "files": ["b"], "objective": []}]
    with pytest.raises(InputError, match=r"objective duo cannot be combined.*found duo, none"):
        prepare(tmp_path / "d", **LISTS, match={"teacher": "x"}, data=sets)
