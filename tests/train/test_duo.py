"""Are two texts compared as they should be, in training and by the engine?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_trainings import prepare, some_pairs, write_pairs

from birchbark.checkpoint.reader import open_any
from birchbark.checkpoint.tokenizer import Pieces
from birchbark.errors import CheckpointError, InputError
from birchbark.score.duo import DuoScorer, load_duo
from birchbark.score.model import load_scorer
from birchbark.train.course import Course
from birchbark.train.folder import MODEL
from birchbark.train.loop import Learner
from birchbark.train.material import load_material
from birchbark.train.network import Inputs
from birchbark.train.shaping import Shaping, open_network
from birchbark.train.training import train
from birchbark.train.world import World
from conftest import write_bert, write_duo

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to learn with")

LISTS: dict[str, Any] = {
    "objective": {"kind": "duo"},
    "lists": {"each": "positive", "texts": 3},
}


def test_an_input_is_query_text_and_other(tmp_path: Path) -> None:
    """[CLS] q [SEP] text [SEP] other [SEP], and what BERT says of it: a chance."""
    scorer = load_duo(write_duo(tmp_path / "duo"), threads=1)
    one, other = scorer.encode(["birch bark", "canoe"])
    joined = scorer.joined(one, other)
    assert joined.tolist() == [*one.tolist(), 3, *other.tolist()]
    base = open_any(tmp_path / "duo", "duo")
    network = open_network(base, Shaping(dropout=0.0, duo=True), 0, "cpu")
    (query,) = scorer.encode(["bee"])
    ids = np.array([2, *query, 3, *joined, 3], np.int32)
    types = np.repeat([0, 1], [len(query) + 2, len(joined) + 1]).astype(np.int32)
    logit = float(network.score(Inputs.of([(ids, types)], "cpu"))[0])
    assert float(scorer.score("bee", [joined])[0]) == pytest.approx(1 / (1 + np.exp(-logit)))
    with pytest.raises(InputError, match="no room for two texts beside the query"):
        load_duo(write_duo(tmp_path / "short", positions=7)).side_room("bee")
    room = scorer.side_room("bee")
    full = scorer.joined(*scorer.encode(["birch " * room] * 2))
    assert len(scorer.score("bee", [full])) == 1


def test_the_loss_is_that_of_the_paper(tmp_path: Path) -> None:
    """Equation 3.3 over ordered pairs of unequal grades, mean of a list, mean over lists."""
    training = prepare(tmp_path, **LISTS, schedule__batch=3)
    base = open_any(Path(training.base), "tiny")
    materials = list(load_material(training, tmp_path, Pieces(base), lambda text: None))
    assert training.shaping.duo
    network = open_network(base, training.shaping, 0, "cpu")
    course = Course(materials, training.schedule, 0, 1)
    learner = Learner(network, materials, course, World())
    learnt, grades = materials[0].learnt, materials[0].learnt.pairs.grades
    losses = []
    for _, one in course.tasks(0):
        found = []
        for i in one:
            for j in one:
                if grades[i] != grades[j]:
                    inputs = Inputs.of([learnt.comparison(i, j)], "cpu")
                    p = 1 / (1 + np.exp(-float(network.score(inputs)[0])))
                    found.append(-np.log(p if grades[i] > grades[j] else 1 - p))
        losses.append(np.mean(found))
    assert learner.step(0, 0) == pytest.approx(np.mean(losses), rel=1e-5)


def test_duo_learns_and_says_what_it_is(tmp_path: Path) -> None:
    """Its model ranks by --duo alone, is measured while it learns, and is cut aloud."""
    told: list[str] = []
    from birchbark.train.training import Talk

    training = prepare(tmp_path, **LISTS, **{"schedule.steps": 30, "max_length": 16})
    write_pairs(tmp_path / "pairs.tsv", some_pairs(10, texts=12))
    progress = train(training, tmp_path, tmp_path / "out", talk=Talk(told.append))
    assert any("are left out: at most 10 of a query are compared" in line for line in told)
    assert progress.measures["words"]["queries"] > 0
    assert any("lose their end at 16 tokens" in line for line in told)
    model = tmp_path / "out" / MODEL
    assert isinstance(load_duo(model), DuoScorer)
    with pytest.raises(CheckpointError, match=r"compares two texts.*--duo"):
        load_scorer(model)
    with pytest.raises(CheckpointError, match="does not compare two texts"):
        load_duo(write_bert(tmp_path / "mono", labels=1))
    assert "A comparison of two texts" in (model / "README.md").read_text()


def test_duo_stands_alone(tmp_path: Path) -> None:
    """Beside no other objective, with lists to compare, and not for documents of passages."""
    with pytest.raises(InputError, match="objective duo compares texts of one query"):
        prepare(tmp_path / "a", objective={"kind": "duo"})
    two = [{"kind": "duo"}, {"kind": "softmax"}]
    with pytest.raises(InputError, match=r"objective duo stands alone.*found duo, softmax"):
        prepare(tmp_path / "b", **{**LISTS, "objective": two})
    with pytest.raises(InputError, match="objective duo stands alone"):
        prepare(tmp_path / "c", **LISTS, **{"model.parade": "avg"})
