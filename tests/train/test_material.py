"""Do pairs become the inputs and targets that were asked for?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_trainings import prepare, settings, some_pairs, write_pairs

from birchbark.checkpoint.heads import Pooling
from birchbark.checkpoint.reader import Checkpoint, open_any
from birchbark.checkpoint.tokenizer import Pieces
from birchbark.collection.apart import held_apart
from birchbark.errors import InputError
from birchbark.records import Pair
from birchbark.score.model import load_scorer
from birchbark.train import teaching
from birchbark.train.config import Teacher, read_training
from birchbark.train.course import Course
from birchbark.train.examples import Pairs
from birchbark.train.material import PairInputs, _chunks, load_material
from birchbark.train.teaching import Teachers, taught, teach
from conftest import write_bert


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Pieces:
    return Pieces(Checkpoint.open(write_bert(tmp_path_factory.mktemp("tiny") / "b", labels=1)))


SOME_WORDS = st.lists(st.sampled_from(["birch", "canoe", "bee", "stone"]), min_size=1, max_size=30)


@given(SOME_WORDS, SOME_WORDS, st.integers(8, 32))
def test_inputs_fit(pieces: Pieces, query: list[str], text: list[str], longest: int) -> None:
    """What fits is whole; else the query has half of the room at most, the text all the rest."""
    pairs = Pairs.of([Pair("q", " ".join(query), "d", " ".join(text), 1)])
    inputs = PairInputs.of(pairs, pieces, longest)
    ((ids, types),) = inputs[0]
    kept = len(types) - int(types.sum()) - 2, int(types.sum()) - 1
    room = longest - 3
    first = min(len(query), room // 2)
    assert kept == (first, min(len(text), room - first))
    assert len(ids) == len(types) <= longest
    assert inputs.cut == (kept != (len(query), len(text)))
    whole, _ = pieces.pair(*pieces.encode([" ".join(query), " ".join(text)]))
    assert inputs.cut or np.array_equal(ids, whole)


def loaded(folder: Path, **changes: Any) -> Any:
    training = prepare(folder, **changes)
    tiny = Pieces(Checkpoint.open(folder / "base"))
    (one,) = load_material(training, folder, tiny, lambda text: None)
    return one


def test_queries_are_kept_apart(tmp_path: Path) -> None:
    """A share of them, counted in the card's facts; all else is learnt from."""
    found = loaded(tmp_path)
    assert not set(found.learnt.pairs.queries) & set(found.held.pairs.queries)
    apart = held_apart({pair.query for pair in some_pairs(10)}, 0.3)
    assert set(found.held.pairs.queries) == set(apart)
    count = len(apart)
    assert found.facts["learnt"] == {"queries": 10 - count, "pairs": 50 - 5 * count, "cut": 0}
    assert found.facts["held"] == {"queries": count, "pairs": 5 * count, "cut": 0}
    np.testing.assert_array_equal(found.targets[0], found.learnt.pairs.grades)


def judged(folder: Path, grade: int) -> dict[str, Any]:
    """A data set of two judged documents, changed from that of files."""
    (folder / "c.jsonl").write_text(
        '{"id": "a", "title": "Birch", "text": "bark stone"}\n{"id": "b", "text": "canoe bee"}\n'
    )
    (folder / "q.tsv").write_text("1\tbirch bark\n")
    (folder / "qrels.txt").write_text(f"1 0 a {grade}\n1 0 b 0\n")
    files = {"documents": "c.jsonl", "queries": "q.tsv", "qrels": "qrels.txt"}
    kept = {"files": None, "validation": None, "highest": 2}
    return {f"data.{key}": value for key, value in {**files, **kept}.items()}


def test_a_judged_collection_is_learnt_from(tmp_path: Path) -> None:
    """Each judged document, title and text, is a pair; its files are in the card."""
    one = loaded(tmp_path, **judged(tmp_path, 2))
    assert sorted(one.learnt.pairs.texts) == ["Birch\nbark stone", "canoe bee"]
    assert sorted(one.targets[0].tolist()) == [0, 2]
    assert [file["name"] for file in one.facts["files"]] == ["c.jsonl", "q.tsv", "qrels.txt"]
    with pytest.raises(InputError, match=r"too high.*0 to 2.*3"):
        loaded(tmp_path, **judged(tmp_path, 3))


@pytest.mark.parametrize("key", ["columns", "unjudged", "files"])
def test_a_judged_collection_has_no_settings_of_files(tmp_path: Path, key: str) -> None:
    """What would be passed over is refused."""
    value = {"columns": {"text": "body"}, "unjudged": 0, "files": ["pairs.tsv"]}[key]
    with pytest.raises(InputError, match=f"{key}: unknown key"):
        loaded(tmp_path, **{**judged(tmp_path, 2), f"data.{key}": value})


def test_long_texts_are_cut_into_pieces(tmp_path: Path) -> None:
    """Each with the grade of the whole, no word lost; those kept apart stay whole."""
    pairs = some_pairs(5)
    chunks = list(_chunks(pairs, 4))
    for pair in pairs:
        own = [c for c in chunks if c.doc_id == pair.doc_id]
        assert " ".join(c.text for c in own) == pair.text
        assert {(c.query, c.relevance) for c in own} == {(pair.query, pair.relevance)}
        assert max(len(c.text.split()) for c in own) <= 4
    assert list(_chunks(pairs, None)) == pairs
    assert loaded(tmp_path, data__chunk=4).held.pairs.texts == loaded(tmp_path).held.pairs.texts


def test_what_a_teacher_says(tmp_path: Path) -> None:
    """A cross-encoder's log-odds, a cosine, MaxSim; scaled and shifted; asked once."""
    pairs = Pairs.of(some_pairs(4))
    for labels, kind in ((1, "cross-encoder"), (None, "embedding"), (None, "tokens")):
        directory = write_bert(tmp_path / kind, labels=labels)
        scorer = load_scorer(directory, 1, Pooling(kind) if kind == "tokens" else None)
        texts = scorer.encode(pairs.texts)
        said = [
            scorer.score(pairs.queries[q], [texts[t]])[0]
            for q, t in zip(pairs.query, pairs.text, strict=True)
        ]
        scores = np.array(said, np.float64)
        if labels:
            scores = np.log(scores / (1 - scores))
        kept = Teachers(tmp_path / "kept")
        every = np.arange(len(pairs))
        found, cut = taught(pairs, every, Teacher((str(directory),), 3.0, 0.25), scorer, kept)
        assert found.dtype == np.float32
        assert cut == 0
        np.testing.assert_allclose(found, 3 * (scores - 0.25), rtol=1e-4, atol=1e-4)
        for write in (True, False):
            kept = replace(kept, write=write)
            again, _ = taught(pairs, every, Teacher((str(directory),)), scorer, kept)
            np.testing.assert_allclose(3 * (again - 0.25), found, rtol=1e-5, atol=1e-5)


def test_a_teacher_is_asked_for_what_is_learnt_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of lists that are drawn, in all epochs; other targets are none. It says how far it is."""
    monkeypatch.setattr(teaching, "TOGETHER", 60)
    teacher = write_bert(tmp_path / "teacher")
    values: dict[str, Any] = {
        "objective": {"kind": "soft", "teacher": str(teacher)},
        "lists": {"take": 4},
        "schedule__batch": 2,
        "schedule__steps": 3,
    }
    training = prepare(tmp_path, **values)
    pieces = Pieces(Checkpoint.open(tmp_path / "base"))
    told: list[str] = []
    heard: list[tuple[int, int]] = []
    materials = list(load_material(training, tmp_path, pieces, told.append))
    course = Course(materials, training.schedule, training.seed, 1)
    kept = Teachers(tmp_path / "kept", asked=lambda *done: heard.append(done))
    (one,) = teach(materials, course, kept, told.append)
    (targets,) = one.targets
    drawn = {
        number for step in range(course.steps) for _, some in course.tasks(step) for number in some
    }
    assert course.epoch == 2
    assert 4 < len(drawn) <= 6
    assert set(np.flatnonzero(~np.isnan(targets)).tolist()) == drawn
    assert heard[-1] == (len(drawn), len(drawn))
    assert f"scores {len(drawn)} of {len(targets)} pairs" in told[-1]
    assert one.facts["teachers"][0]["cut"] == 0


def test_one_teacher_of_two_losses_is_asked_once(tmp_path: Path) -> None:
    """And named once."""
    teacher = str(write_bert(tmp_path / "teacher"))
    losses = [
        {"kind": kind, "teacher": teacher, "pooling": "tokens"} for kind in ("soft", "soft-margin")
    ]
    training = prepare(tmp_path, objective=losses, lists={"each": "query", "texts": 3})
    told: list[str] = []
    pieces = Pieces(Checkpoint.open(tmp_path / "base"))
    materials = list(load_material(training, tmp_path, pieces, told.append))
    course = Course(materials, training.schedule, training.seed, 1)
    (one,) = teach(materials, course, Teachers(tmp_path / "kept"), told.append)
    assert sum(" scores " in line for line in told) == 1
    assert [facts["pooling"] for facts in one.facts["teachers"]] == ["tokens"]
    assert one.targets[0] is one.targets[1]


def test_what_one_set_keeps_apart_no_other_learns(tmp_path: Path) -> None:
    """Nor does it matter which seed; of those kept apart, so many are validated on as are asked."""
    write_pairs(tmp_path / "pairs.tsv", some_pairs(40))
    write_pairs(tmp_path / "more.tsv", some_pairs(40))
    base = write_bert(tmp_path / "base", labels=1)
    seen = []
    for seed in (0, 1):
        values = settings(base, {"seed": seed, "data.validation_queries": 2})
        values["data"].append({"name": "more", "files": ["more.tsv"]})
        training = read_training(values, tmp_path / "tiny.toml")
        pieces = Pieces(open_any(base, "base"))
        told: list[str] = []
        one, other = load_material(training, tmp_path, pieces, told.append)
        assert len(one.held.pairs.queries) == 2
        apart = set(held_apart({pair.query for pair in some_pairs(40)}, 0.3))
        assert set(one.held.pairs.queries) <= apart
        assert not apart & {*one.learnt.pairs.queries, *other.learnt.pairs.queries}
        assert any("queries are kept apart, and not validated on" in line for line in told)
        seen.append(one.held.pairs.queries)
    assert seen[0] == seen[1]
