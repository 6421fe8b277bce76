"""Are data sets read, split and tokenised as configured, and are teacher scores their targets?"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prepared import inputs_of, table_of
from tiny_trainings import prepare, settings, some_pairs, write_pairs

from birchbark.checkpoint.checkpoint import Checkpoint, open_any_head
from birchbark.checkpoint.heads import Pooling
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.errors import InputError
from birchbark.pairs.holdout import held_out_queries
from birchbark.pairs.sources import split_into_chunks
from birchbark.records import Pair
from birchbark.score.cross_encoder import CrossEncoderScorer
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.load_scorer import load_scorer
from birchbark.train import teacher_scores as module
from birchbark.train.config import Teacher, TrainingConfig
from birchbark.train.dataset import TokenisedDataSet, load_datasets
from birchbark.train.read_config import read_training
from birchbark.train.sampler import Sampler
from birchbark.train.teacher_scores import (
    TeacherScores,
    teacher_scores,
    with_teacher_targets,
    without_false_negatives,
)
from conftest import WORDS, write_bert


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> CheckpointTokenizer:
    return CheckpointTokenizer(
        Checkpoint.open(write_bert(tmp_path_factory.mktemp("tiny") / "b", labels=1))
    )


TOKENS = st.lists(st.sampled_from(["birch", "canoe", "bee", "stone"]), min_size=1, max_size=30)


@given(TOKENS, TOKENS, st.integers(8, 32))
def test_inputs_fit_the_maximum_length(
    tokenizer: CheckpointTokenizer, query: list[str], text: list[str], max_length: int
) -> None:
    """Short texts are complete; in long inputs, the query has at most half of the tokens."""
    pairs = [Pair("q", " ".join(query), "d", " ".join(text), 1)]
    inputs = inputs_of(pairs, tokenizer, max_length)
    ((ids, types),) = inputs[0]
    actual = len(types) - int(types.sum()) - 2, int(types.sum()) - 1
    token_budget = max_length - 3
    query_tokens = min(len(query), token_budget // 2)
    assert actual == (query_tokens, min(len(text), token_budget - query_tokens))
    assert len(ids) == len(types) <= max_length
    assert inputs.truncated == (actual != (len(query), len(text)))
    complete, _ = tokenizer.pair_input(*tokenizer.encode([" ".join(query), " ".join(text)]))
    assert inputs.truncated or np.array_equal(ids, complete)


def loaded(folder: Path, **changes: Any) -> Any:
    training = prepare(folder, **changes)
    tiny = CheckpointTokenizer(Checkpoint.open(folder / "base"))
    (dataset,) = load_datasets(training, folder, tiny, lambda text: None, folder / "tokens")
    return dataset


def test_queries_are_held_out(tmp_path: Path) -> None:
    """A share of them is held out, and counted in the model card; training uses the others."""
    dataset = loaded(tmp_path)
    assert not set(dataset.training_pairs.pairs.queries) & set(dataset.heldout_pairs.pairs.queries)
    held_out = held_out_queries({pair.query for pair in some_pairs(10)}, 0.3)
    assert set(dataset.heldout_pairs.pairs.queries) == set(held_out)
    count = len(held_out)
    assert dataset.facts["learnt"] == {"queries": 10 - count, "pairs": 50 - 5 * count, "cut": 0}
    assert dataset.facts["held"] == {"queries": count, "pairs": 5 * count, "cut": 0}
    np.testing.assert_array_equal(dataset.targets[0], dataset.training_pairs.pairs.grades)


def test_a_score_equal_to_the_shift_has_the_target_0() -> None:
    """The other targets are their distances from it, scaled."""
    teacher = Teacher(("big",), scale=20.0, shift=0.4)
    targets = teacher.targets(np.array([0.4, 0.5, 0.0], np.float32))
    np.testing.assert_allclose(targets, [0.0, 2.0, -8.0], atol=1e-5)


def judged(folder: Path, grade: int) -> dict[str, Any]:
    """Return the settings for a data set from a collection of two judged documents."""
    (folder / "c.jsonl").write_text(
        '{"id": "a", "title": "Birch", "text": "bark stone"}\n{"id": "b", "text": "canoe bee"}\n'
    )
    (folder / "q.tsv").write_text("1\tbirch bark\n")
    (folder / "qrels.txt").write_text(f"1 0 a {grade}\n1 0 b 0\n")
    files = {"documents": "c.jsonl", "queries": "q.tsv", "qrels": "qrels.txt"}
    other = {"files": None, "validation": None, "highest": 2}
    return {f"data.{key}": value for key, value in {**files, **other}.items()}


def test_a_judged_collection_is_a_data_set(tmp_path: Path) -> None:
    """Each judged document, title and text, becomes a pair; the model card names the files."""
    dataset = loaded(tmp_path, **judged(tmp_path, 2))
    assert sorted(dataset.training_pairs.pairs.texts) == ["Birch\nbark stone", "canoe bee"]
    assert sorted(dataset.targets[0].tolist()) == [0, 2]
    assert [file["name"] for file in dataset.facts["files"]] == ["c.jsonl", "q.tsv", "qrels.txt"]
    with pytest.raises(InputError, match=r"too high.*0 to 2.*3"):
        loaded(tmp_path, **judged(tmp_path, 3))


def test_judged_queries_are_drawn(tmp_path: Path) -> None:
    """With all of their judgments, in any order of the files; `limit` may exceed their number."""
    settings_of = judged(tmp_path, 2)
    lines = [f"{number} 0 {doc} {number % 2}\n" for number in range(20) for doc in "ab"]
    (tmp_path / "q.tsv").write_text("".join(f"{n}\tbirch {n}\n" for n in range(25)))

    def drawn(limit: int, qrels: list[str]) -> list[tuple[str, str, float]]:
        (tmp_path / "qrels.txt").write_text("".join(qrels))
        table = loaded(tmp_path, **settings_of, **{"data.limit": limit}).training_pairs.pairs
        queries = [table.queries[n] for n in table.query]
        return sorted(zip(queries, table.doc_ids, table.grades.tolist(), strict=True))

    few = drawn(3, lines)
    assert drawn(3, lines[::-1]) == few
    queries = {query for query, _, _ in few}
    assert len(queries) == 3
    every = drawn(100, lines)
    assert len(every) == 40
    assert few == [pair for pair in every if pair[0] in queries]
    (tmp_path / "q.tsv").write_text("other\tbirch\n")
    with pytest.raises(InputError, match="no judgment belongs to one of these queries"):
        drawn(3, lines)
    without = dict.fromkeys(("data.queries", "data.qrels", "data.highest"))
    with pytest.raises(InputError, match="limit: unknown key"):
        loaded(tmp_path, **{**settings_of, **without, "data.limit": 1})


def test_triples_are_a_data_set(tmp_path: Path) -> None:
    """Triples of texts and of ids give the same pairs, two each; `limit` reads only the first."""
    (tmp_path / "texts.tsv").write_text("birch bark\tbirch stone\tcanoe bee\nbee\tbee\tstone\n")
    (tmp_path / "ids.tsv").write_text("1\ta\tb\n2\tc\td\n")
    documents = {"a": "birch stone", "b": "canoe bee", "c": "bee", "d": "stone"}
    rows = [f"{doc_id}\t{text}\n" for doc_id, text in documents.items()]
    (tmp_path / "d.tsv").write_text("".join(rows))
    (tmp_path / "q.tsv").write_text("1\tbirch bark\n2\tbee\n")
    changes = {"data.files": None, "data.validation": None}
    by_text = changes | {"data.triples": "texts.tsv"}
    by_id = changes | {
        "data.triples": "ids.tsv",
        "data.documents": "d.tsv",
        "data.queries": "q.tsv",
    }
    for settings_of in (by_text, by_id):
        inputs = loaded(tmp_path, **settings_of).training_pairs
        table = inputs.pairs
        texts = [table.texts[n] for n in table.text]
        assert texts == list(documents.values())
        assert [table.queries[n] for n in table.query] == ["birch bark"] * 2 + ["bee"] * 2
        assert table.grades.tolist() == [1, 0, 1, 0]
        shorter = loaded(tmp_path, **settings_of, **{"data.limit": 1}).training_pairs.pairs
        assert [shorter.texts[n] for n in shorter.text] == texts[:2]
        with pytest.raises(InputError, match="highest: unknown key"):
            loaded(tmp_path, **settings_of, **{"data.highest": 2})


@pytest.mark.parametrize("key", ["columns", "unjudged", "files"])
def test_a_judged_collection_refuses_settings_of_pair_files(tmp_path: Path, key: str) -> None:
    """Such settings would have no effect."""
    value = {"columns": {"text": "body"}, "unjudged": 0, "files": ["pairs.tsv"]}[key]
    with pytest.raises(InputError, match=f"{key}: unknown key"):
        loaded(tmp_path, **{**judged(tmp_path, 2), f"data.{key}": value})


def test_long_texts_are_split_into_chunks(tmp_path: Path) -> None:
    """Each chunk has the grade of its text, and no word is lost. Held-out texts are not split."""
    pairs = some_pairs(5)
    chunks = list(split_into_chunks(pairs, 4))
    for pair in pairs:
        own = [c for c in chunks if c.doc_id == pair.doc_id]
        assert " ".join(c.text for c in own) == pair.text
        assert {(c.query, c.relevance) for c in own} == {(pair.query, pair.relevance)}
        assert max(len(c.text.split()) for c in own) <= 4
    assert list(split_into_chunks(pairs, None)) == pairs
    held_out = [
        [pairs.texts[text] for text in pairs.text]
        for pairs in (
            loaded(tmp_path, **changes).heldout_pairs.pairs
            for changes in ({"data__chunk": 4}, dict[str, Any]())
        )
    ]
    assert held_out[0] == held_out[1] != []


def test_teacher_scores(tmp_path: Path) -> None:
    """Scores are log-odds, cosines or MaxSim; stored ones are reused."""
    pairs = some_pairs(4)
    for labels, kind in ((1, "cross-encoder"), (None, "embedding"), (None, "tokens")):
        directory = write_bert(tmp_path / kind, labels=labels)
        inputs = inputs_of(pairs, CheckpointTokenizer(open_any_head(directory)), 64)
        scorer = load_scorer(directory, 1, Pooling(kind) if kind == "tokens" else None)
        values = [scorer.score(pair.query, scorer.encode([pair.text]))[0] for pair in pairs]
        expected = np.array(values, np.float64)
        if labels:
            expected = np.log(expected / (1 - expected))
        stored = TeacherScores(tmp_path / "stored")
        every = np.arange(len(pairs))
        for scores in (stored, stored, replace(stored, write=False)):
            found, truncated = teacher_scores(inputs, every, scorer, scores)
            assert found.dtype == np.float32
            assert truncated == 0
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_targets_of_an_embedding_may_be_negative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A score below 0 is 0, whatever the scale; a target is the cosine."""
    teacher = str(write_bert(tmp_path / "teacher"))
    objective = {"kind": "soft-margin", "teacher": teacher, "pooling": "mean"}
    training = prepare(tmp_path, objective=objective, lists={"each": "query", "texts": 3})
    products = EmbeddingScorer._products
    monkeypatch.setattr(EmbeddingScorer, "_products", lambda *given: -products(*given))
    dataset, _ = scored_by_teachers(training, tmp_path)
    scorer, pairs = load_scorer(teacher, pooling=Pooling("mean")), dataset.training_pairs.pairs
    (found,) = dataset.targets
    sampled = np.flatnonzero(~np.isnan(found))
    assert (found[sampled] < 0).any()
    for pair in sampled.tolist():
        text = scorer.encode([pairs.texts[pairs.text[pair]]])
        expected = scorer.outputs(pairs.queries[pairs.query[pair]], text)
        assert found[pair] == pytest.approx(expected[0], abs=1e-6)


def test_a_teacher_reads_no_more_than_the_student(tmp_path: Path) -> None:
    """The rest of a text changes nothing, and the truncated texts are counted."""
    directory = write_bert(tmp_path / "teacher", labels=1)
    tokenizer = CheckpointTokenizer(open_any_head(directory))
    scorer, scores = load_scorer(directory, 1), TeacherScores(tmp_path / "stored")
    texts = ("stone " * 6, "stone " * 9, "stone " * 30)
    pairs = [Pair("q", "stone", f"{i}", text, 1) for i, text in enumerate(texts)]
    inputs = inputs_of(pairs, tokenizer, 13)  # query, nine tokens, and three special tokens
    found, truncated = teacher_scores(inputs, np.arange(3), scorer, scores)
    values = dict(
        zip((inputs.pairs.texts[i] for i in inputs.pairs.text), found.tolist(), strict=True)
    )
    assert truncated == 1
    assert values[texts[2]] == values[texts[1]] != values[texts[0]]


def test_a_teacher_fills_its_input(tmp_path: Path) -> None:
    """A cross-encoder of 32 tokens reads 28 of a text beside a query of one token."""
    directory = write_bert(tmp_path / "teacher", labels=1)
    tokenizer = CheckpointTokenizer(open_any_head(directory))
    scorer, scores = load_scorer(directory, 1), TeacherScores(tmp_path / "stored")
    assert isinstance(scorer, CrossEncoderScorer)
    assert (scorer.max_text_tokens("stone"), scorer.max_text_tokens("stone arch")) == (28, 27)
    texts = [" ".join(["bark"] * (n - 1) + ["bee"]) for n in (24, 28, 32)]
    pairs = [Pair("q", "stone", f"{n}", text, 1) for n, text in enumerate(texts)]
    inputs = inputs_of(pairs, tokenizer, 64)
    found, truncated = teacher_scores(inputs, np.arange(3), scorer, scores)
    assert truncated == 1
    read = [ids[:28] for ids in scorer.encode([inputs.pairs.texts[i] for i in inputs.pairs.text])]
    np.testing.assert_allclose(found, scorer.outputs("stone", read), rtol=0, atol=1e-5)


@pytest.mark.parametrize("labels", [1, None])
def test_a_teacher_reads_the_beginning_of_a_long_query(labels: int | None, tmp_path: Path) -> None:
    """Its pairs count as truncated; the student, whose input is longer, reads more of it."""
    teacher = write_bert(tmp_path / "teacher", labels=labels)
    tokenizer = CheckpointTokenizer(open_any_head(teacher))
    scorer, scores = load_scorer(teacher, 1), TeacherScores(tmp_path / "stored")
    longest = scorer.max_query_tokens
    assert longest == (14 if labels else 30)
    queries = ["stone " * n for n in (longest, longest + 9)]
    pairs = [Pair(q, q, f"{n}", text, 1) for n, q in enumerate(queries) for text in ("bee", "bark")]
    inputs = inputs_of(pairs, tokenizer, 99)
    found, truncated = teacher_scores(inputs, np.arange(4), scorer, scores)
    assert truncated == 2
    np.testing.assert_array_equal(found[:2], found[2:])


def scored_by_teachers(
    training: TrainingConfig, folder: Path
) -> tuple[TokenisedDataSet, list[str]]:
    """Return the one data set of a training run with its teachers' scores, and the log."""
    logged: list[str] = []
    tokenizer = CheckpointTokenizer(Checkpoint.open(folder / "base"))
    datasets = load_datasets(training, folder, tokenizer, logged.append, folder / "tokens")
    sampler = Sampler(datasets, training.schedule, training.seed, 1)
    scores = TeacherScores(folder / "stored")
    (dataset,) = with_teacher_targets(
        datasets, sampler, range(sampler.steps), scores, logged.append
    )
    return dataset, logged


def test_only_sampled_pairs_get_teacher_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are the pairs of all epochs; other targets are NaN. Progress is reported."""
    monkeypatch.setattr(module, "TOKENS_PER_WRITE", 60)
    teacher = write_bert(tmp_path / "teacher")
    values: dict[str, Any] = {
        "objective": {"kind": "soft", "teacher": str(teacher)},
        "lists": {"take": 4},
        "schedule__batch": 2,
        "schedule__steps": 3,
    }
    training = prepare(tmp_path, **values)
    tokenizer = CheckpointTokenizer(Checkpoint.open(tmp_path / "base"))
    logged: list[str] = []
    reported: list[tuple[int, int]] = []
    datasets = load_datasets(training, tmp_path, tokenizer, logged.append, tmp_path / "tokens")
    sampler = Sampler(datasets, training.schedule, training.seed, 1)
    scores = TeacherScores(tmp_path / "stored", on_progress=lambda *done: reported.append(done))
    (dataset,) = with_teacher_targets(
        datasets, sampler, range(sampler.steps), scores, logged.append
    )
    (targets,) = dataset.targets
    sampled = {
        pair
        for step in range(sampler.steps)
        for _, pair_list in sampler.lists_at(step)
        for pair in pair_list
    }
    assert sampler.steps_per_epoch == 2
    assert 4 < len(sampled) <= 6
    assert set(np.flatnonzero(~np.isnan(targets)).tolist()) == sampled
    assert reported[-1] == (len(sampled), len(sampled))
    assert f"scores {len(sampled)} of {len(targets)} pairs" in logged[-1]
    assert dataset.facts["teachers"][0]["cut"] == 0


def test_two_losses_with_one_teacher_share_its_scores(tmp_path: Path) -> None:
    """The model card names the teacher once."""
    teacher = str(write_bert(tmp_path / "teacher"))
    common = {"teacher": teacher, "pooling": "tokens", "precision": "int8"}
    losses = [{"kind": "soft", **common}, {"kind": "soft-margin", "scale": 10, **common}]
    training = prepare(tmp_path, objective=losses, lists={"each": "query", "texts": 3})
    dataset, logged = scored_by_teachers(training, tmp_path)
    assert sum(" scores " in line for line in logged) == 1
    (facts,) = dataset.facts["teachers"]
    assert (facts["pooling"], facts["precision"]) == ("tokens", "int8")
    np.testing.assert_allclose(10 * dataset.targets[0], dataset.targets[1], rtol=1e-5)


def test_texts_that_the_teacher_prefers_are_no_negatives() -> None:
    """A negative counts unless it has a higher score than every relevant text of its query."""
    rows = [("a", 0, 0.9), ("a", 1, 0.5), ("a", 0, 0.5), ("a", 2, 0.1), ("a", 0, 0.2)]
    rows += [("b", 0, 0.9), ("b", 0, 0.1)]  # has no relevant text
    rows += [("c", 1, math.nan), ("c", 0, 0.9)]  # the relevant text is not in a list
    pairs = [Pair(q, q, f"{i}", f"text {i}", grade) for i, (q, grade, _) in enumerate(rows)]
    table, scores = table_of(pairs), {f"text {i}": row[2] for i, row in enumerate(rows)}
    texts = [table.texts[text] for text in table.text[table.starts[:-1]]]
    found = without_false_negatives(table, np.array([scores[t] for t in texts], np.float32))
    left_out = [text for text, grade in zip(texts, found, strict=True) if np.isnan(grade)]
    assert left_out == ["text 0"]
    assert np.nansum(found) == 4


def test_a_teacher_of_judged_lists_leaves_texts_out(tmp_path: Path) -> None:
    """They are counted in the log and in the facts for the model card."""
    teacher = str(write_bert(tmp_path / "teacher"))
    objective = {"kind": "softmax", "teacher": [teacher]}
    training = prepare(tmp_path, objective=objective, lists={"each": "positive", "texts": 3})
    dataset, logged = scored_by_teachers(training, tmp_path)
    ((targets,), grades) = dataset.targets, dataset.training_pairs.pairs.grades
    count = int(np.isnan(targets).sum())
    assert 0 < count < (grades == 0).sum()
    np.testing.assert_array_equal(targets[~np.isnan(targets)], grades[~np.isnan(targets)])
    assert f"{count:,} probably relevant texts are left out" in logged[-1]
    (left_out,) = dataset.facts["left_out"]
    assert left_out["texts"] == count
    assert [facts["model"] for facts in left_out["teachers"]] == [teacher]
    assert dataset.facts["teachers"] == []


def test_relevant_texts_that_no_list_has_are_read_for_false_negatives(tmp_path: Path) -> None:
    """What counts as one does not depend on which lists are sampled."""
    objective = {"kind": "softmax", "teacher": [str(write_bert(tmp_path / "teacher"))]}
    found = []
    for steps in (1, 100):
        training = prepare(
            tmp_path,
            objective=objective,
            lists={"each": "positive", "texts": 3},
            schedule__steps=steps,
            data__validation=None,
        )
        rng = np.random.default_rng(3)
        texts = [" ".join(rng.choice(WORDS, 5)) for _ in range(60)]
        pairs = [
            Pair(f"{n % 6}", WORDS[n % 6], f"{n}", t, int(n < 18)) for n, t in enumerate(texts)
        ]
        write_pairs(tmp_path / "pairs.tsv", pairs)
        dataset, _ = scored_by_teachers(training, tmp_path)
        found.append(set(np.flatnonzero(np.isnan(dataset.targets[0])).tolist()))
    assert found[0] < found[1]


def test_a_query_held_out_of_one_set_is_trained_on_in_none(tmp_path: Path) -> None:
    """This holds for any seed; `validation_queries` limits the queries used for validation."""
    write_pairs(tmp_path / "pairs.tsv", some_pairs(40))
    write_pairs(tmp_path / "more.tsv", some_pairs(40))
    base = write_bert(tmp_path / "base", labels=1)
    seen = []
    for seed in (0, 1):
        values = settings(base, {"seed": seed, "data.validation_queries": 2})
        values["data"].append({"name": "more", "files": ["more.tsv"]})
        training = read_training(values, tmp_path / "tiny.toml")
        tokenizer = CheckpointTokenizer(open_any_head(base, "base"))
        logged: list[str] = []
        one, other = load_datasets(
            training, tmp_path, tokenizer, logged.append, tmp_path / "tokens"
        )
        assert len(one.heldout_pairs.pairs.queries) == 2
        held_out = set(held_out_queries({pair.query for pair in some_pairs(40)}, 0.3))
        assert set(one.heldout_pairs.pairs.queries) <= held_out
        assert not held_out & {
            *one.training_pairs.pairs.queries,
            *other.training_pairs.pairs.queries,
        }
        assert any("queries are held out, but not used for validation" in line for line in logged)
        seen.append(list(one.heldout_pairs.pairs.queries))
    assert seen[0] == seen[1]


def test_held_out_queries_are_used_by_no_data_set(tmp_path: Path) -> None:
    """All of a file, or those of one fold; a file that is not there is told before any work."""
    pairs = some_pairs(12)
    write_pairs(tmp_path / "pairs.tsv", pairs)
    texts = list(dict.fromkeys(pair.query for pair in pairs))
    lines = [f"q{number}\t{text}\n" for number, text in enumerate(texts[:6])]
    (tmp_path / "test.tsv").write_text("".join(lines))
    (tmp_path / "folds.json").write_text('[["q0", "q1"], ["q2", "q3", "q4", "q5"]]')
    base = write_bert(tmp_path / "base", labels=1)
    tokenizer = CheckpointTokenizer(open_any_head(base, "base"))

    def used(held_out: dict[str, object] | None) -> set[str]:
        values = settings(base, {"data.validation": 0.3})
        values |= {"held_out": held_out} if held_out else {}
        training = read_training(values, tmp_path / "tiny.toml")
        [data] = load_datasets(training, tmp_path, tokenizer, print, tmp_path / "tokens")
        assert [facts["name"] for facts in data.facts.get("held_out", ())] == list(
            training.held_out.files if training.held_out else ()
        )
        return {*data.training_pairs.pairs.queries, *data.heldout_pairs.pairs.queries}

    assert used(None) == set(texts)
    assert used({"queries": "test.tsv"}) == set(texts[6:])
    fold = {"queries": "test.tsv", "folds": "folds.json", "fold": 2}
    assert used(fold) == {*texts[:2], *texts[6:]}
    with pytest.raises(InputError, match=r"held_out.fold: .*wanted 1 to 2.*found 3|no such fold"):
        used({**fold, "fold": 3})
    with pytest.raises(InputError, match="fold"):
        used({"queries": "test.tsv", "folds": "folds.json"})
    lines = (tmp_path / "test.tsv").read_text().splitlines(keepends=True)
    (tmp_path / "test.tsv").write_text("".join(lines[:-1]))
    with pytest.raises(InputError, match=r"test\.tsv: queries of fold \d are missing: found no"):
        for number in (1, 2):
            used({**fold, "fold": number})
    with pytest.raises(InputError, match=r"absent.tsv"):
        used({"queries": "absent.tsv"})
    others = "".join(f"q{number}\tother {number}\n" for number in range(6))
    (tmp_path / "others.tsv").write_text(others)
    assert used({"queries": "others.tsv"}) == set(texts)
    with pytest.raises(InputError, match="no query of the fold that is held out is in the data"):
        used({**fold, "queries": "others.tsv"})


def test_files_are_known_by_their_names_as_well(tmp_path: Path) -> None:
    """Of a folder, they are the ids of documents: tokens of other files are not used."""
    files = judged(tmp_path, 2)
    (tmp_path / "qrels.txt").write_text("1 0 a.txt 1\n1 0 bb.txt 1\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("birch bark")
    (tmp_path / "docs" / "b.txt").write_text("canoe bee")
    files["data.documents"] = "docs"
    assert [*loaded(tmp_path, **files).training_pairs.pairs.texts] == ["birch bark"]
    for name in "ab":
        (tmp_path / "docs" / f"{name}.txt").rename(tmp_path / "docs" / f"{name}{name}.txt")
    assert [*loaded(tmp_path, **files).training_pairs.pairs.texts] == ["canoe bee"]


def test_grades_of_unjudged_pairs_are_in_range(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="grade of unjudged pairs is out of range: expected 0 to"):
        loaded(tmp_path, **{"data.unjudged": 7})
