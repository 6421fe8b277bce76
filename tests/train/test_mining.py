"""Are the negatives that the model finds hardest mined, and does everything else stay as it was?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_trainings import prepare

from birchbark.checkpoint.checkpoint import open_any_head
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.errors import ArtifactError, InputError
from birchbark.pairs.pair_table import PairTable
from birchbark.text.analyzer import analyzer
from birchbark.train.dataset import load_datasets
from birchbark.train.distributed import ProcessGroup
from birchbark.train.initialise import open_network
from birchbark.train.learner import Learner
from birchbark.train.mining import (
    _keys,
    mine,
    read_negatives,
    with_negatives,
    write_negatives,
)
from birchbark.train.sampler import Sampler
from birchbark.train.training import train
from birchbark.train.validation import score_pairs

torch = pytest.importorskip("torch", reason="torch is not installed")

SETTINGS: dict[str, Any] = {
    "lists": {"each": "positive", "texts": 3},
    "objective": {"kind": "softmax"},
    "data__validation": 0.3,
    "mining": {"every": 2, "start": 0, "depth": 20, "keep": 3, "margin": 0.02},
}


def learner_of(folder: Path, **changes: Any) -> tuple[Any, Any, Any, Any]:
    """Return a learner, its data set and sampler, and the settings of mining."""
    training = prepare(folder, **SETTINGS | changes)
    base = open_any_head(Path(training.base), "tiny")
    datasets = load_datasets(
        training, folder, CheckpointTokenizer(base), lambda text: None, folder / "tokens"
    )
    network = open_network(base, training.initialisation, training.seed, "cpu")
    sampler = Sampler(datasets, training.schedule, training.seed, 1)
    learner = Learner(network, datasets, sampler, ProcessGroup())
    return learner, datasets[0], sampler, training.mining


@pytest.mark.parametrize("margin", [-100.0, 0.02, 100.0])
@pytest.mark.parametrize("pooling", [None, "mean"])
def test_the_hardest_texts_are_mined(tmp_path: Path, margin: float, pooling: str | None) -> None:
    """They are those of grade 0, and candidates that score below the best relevant text."""
    learner, dataset, sampler, settings = learner_of(tmp_path, model__pooling=pooling)
    settings = replace(settings, margin=margin, depth=4 if pooling else 99)
    logged: list[str] = []
    (mined,) = mine(learner, [dataset], sampler, range(1, 3), settings, logged.append)
    inputs = dataset.training_pairs
    pairs = inputs.pairs
    used = {int(pairs.query[own[0]]) for step in (1, 2) for _, own in sampler.lists_at(step)}
    assert set(mined[:, 0].tolist()) == used

    queries, texts = len(pairs.queries), sorted(set(pairs.text.tolist()))
    grid = PairTable(
        pairs.queries,
        pairs.texts,
        np.repeat(np.arange(queries), len(texts)),
        np.tile(texts, queries),
        np.arange(queries * len(texts) + 1),
        np.zeros(queries * len(texts), np.float32),
        (),
    )
    scores = score_pairs(learner, replace(inputs, pairs=grid)).reshape(queries, -1)
    terms = analyzer("english").terms
    is_new = 0
    for query in used:
        grades = {int(pairs.text[n]): pairs.grades[n] for n in pairs.by_query[query]}
        score = dict(zip(texts, scores[query], strict=True))
        best = max(score[text] for text, grade in grades.items() if grade > 0)
        if pooling:
            found = sorted(texts, key=lambda text: -score[text])[: settings.depth]
        else:
            words = set(terms(pairs.queries[query]))
            found = [text for text in texts if words & set(terms(pairs.texts[text]))]
        usable = [t for t in found if t not in grades and score[t] <= best - margin]
        wanted = [text for text, grade in grades.items() if not grade] + usable
        hardest = sorted(wanted, key=lambda text: -score[text])[:3]
        actual = mined[mined[:, 0] == query, 1].tolist()
        np.testing.assert_allclose(
            [score[text] for text in actual], [score[text] for text in hardest], atol=1e-5
        )
        is_new += len(set(actual) - set(grades))
    if margin < 0:
        assert is_new > 0
    if margin == 100:
        assert is_new == 0
    assert f"{is_new} of {len(mined)} negatives of {len(used)} queries are mined" in logged[0]


def test_keys_order_texts_by_similarity() -> None:
    """Of equal similarities, also 0 and −0, the text with the lower number comes first."""
    similarities = np.array([[-0.5, 0.0, 1.5, -0.0, -2.0, 1.5, 1e-40]], np.float32)
    texts = np.array([3, 4, 8, 9, 2**31 - 1, 2**31, 2**32 - 1])
    keys = np.sort(_keys(similarities, texts)[0])
    wanted = texts[np.argsort(-similarities[0], kind="stable")]
    assert (keys & np.uint64(2**32 - 1)).tolist() == wanted.tolist()


def test_by_default_twice_as_many_are_kept_as_a_list_has(tmp_path: Path) -> None:
    """A list of three texts has two negatives, so each query keeps the hardest four."""
    settings_of = {key: value for key, value in SETTINGS["mining"].items() if key != "keep"}
    mining = settings_of | {"margin": -100.0}
    learner, dataset, sampler, settings = learner_of(tmp_path, mining=mining)
    (mined,) = mine(learner, [dataset], sampler, range(2), settings, lambda text: None)
    assert set(np.unique(mined[:, 0], return_counts=True)[1].tolist()) == {4}


def test_the_queries_of_the_next_steps_are_mined(tmp_path: Path) -> None:
    """They are those that the training's seed samples for them."""
    changes = {"seed": 1, "data__validation": None, "schedule__batch": 2}
    train(prepare(tmp_path, **SETTINGS | changes), tmp_path, tmp_path / "out")
    (folder,) = (tmp_path / "out" / "mined").iterdir()
    (mined,) = read_negatives(folder, 1)
    _, dataset, sampler, settings = learner_of(tmp_path, **changes)
    steps = range(int(folder.name), int(folder.name) + settings.every)
    query = dataset.training_pairs.pairs.query
    used = {int(query[own[0]]) for step in steps for _, own in sampler.lists_at(step)}
    assert set(mined[:, 0].tolist()) == used
    assert len(used) < len(dataset.training_pairs.pairs.queries)


def test_only_negatives_change(tmp_path: Path) -> None:
    """The same relevant texts are learnt in each step; queries that are not mined keep theirs."""
    learner, dataset, sampler, settings = learner_of(tmp_path)
    (mined,) = mine(learner, [dataset], sampler, range(1), settings, lambda text: None)
    other = with_negatives(dataset, mined)
    before, after = dataset.training_pairs.pairs, other.training_pairs.pairs

    def rows(pairs: PairTable, chosen: Any) -> list[tuple[int, int, str]]:
        return [(int(pairs.query[n]), int(pairs.text[n]), pairs.doc_ids[n]) for n in chosen]

    relevant = [np.flatnonzero(pairs.grades > 0) for pairs in (before, after)]
    assert rows(before, relevant[0]) == rows(after, relevant[1])
    for query in range(len(before.queries)):
        zero = [np.flatnonzero((p.query == query) & (p.grades == 0)) for p in (before, after)]
        if query in mined[:, 0]:
            texts = mined[mined[:, 0] == query, 1].tolist()
            assert [text for _, text, _ in rows(after, zero[1])] == texts
        else:
            assert rows(before, zero[0]) == rows(after, zero[1])
    resampled = Sampler([other], sampler.schedule, 0, 1)
    for step in range(sampler.steps):
        firsts = [
            [(int(pairs.query[own[0]]), int(pairs.text[own[0]])) for _, own in of.lists_at(step)]
            for of, pairs in ((sampler, before), (resampled, after))
        ]
        assert firsts[0] == firsts[1]
    np.testing.assert_array_equal(other.targets[0], after.grades)


def test_training_uses_what_is_mined(tmp_path: Path) -> None:
    """Lists have mined texts from the first search on; a teacher scores them, too."""
    teacher = str(tmp_path / "base")
    objectives = [{"kind": "softmax"}, {"kind": "soft-margin", "teacher": teacher}]
    mining = SETTINGS["mining"] | {"start": 1, "margin": -100.0}
    changes = SETTINGS | {"objective": objectives, "mining": mining, "data__validation": None}
    train(prepare(tmp_path, **changes), tmp_path, tmp_path / "mined")
    assert [folder.name for folder in (tmp_path / "mined" / "mined").iterdir()] == ["3"]
    train(prepare(tmp_path, **changes | {"mining": None}), tmp_path, tmp_path / "plain")
    curves = [
        (tmp_path / name / "curve.jsonl").read_text().split("\n") for name in ("mined", "plain")
    ]
    assert curves[0][0] == curves[1][0]
    assert curves[0][1] != curves[1][1]


def test_damaged_negatives_are_told(tmp_path: Path) -> None:
    """They are stored as they are; a truncated file is an error."""
    mined = [np.array([[1, 2], [3, 4]], np.int32), np.zeros((0, 2), np.int32)]
    write_negatives(tmp_path / "n", mined)
    for stored, own in zip(read_negatives(tmp_path / "n", 2), mined, strict=True):
        np.testing.assert_array_equal(stored, own)
    path = tmp_path / "n" / "negatives-0.npy"
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ArtifactError, match=r"negatives-0.npy: damaged negatives"):
        read_negatives(tmp_path / "n", 2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lists": {}, "objective": {}}, "mining: mining finds negatives.*found other lists"),
        ({"model__parade": "avg"}, "mining: mining cannot be combined with masked, parade or duo"),
        ({"mining": {}}, "mining.every: key is missing"),
        ({"mining": {"every": 2, "deep": 1}}, "mining.deep: unknown key"),
    ],
)
def test_faults_of_mining(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        prepare(tmp_path, **SETTINGS | changes)
