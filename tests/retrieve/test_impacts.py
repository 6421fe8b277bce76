"""Are documents with weighted terms ranked by the dot product, exactly?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from birchbark.cli import group
from birchbark.collection.queries import read_queries
from birchbark.errors import InputError
from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.index.layout import FieldTotals
from birchbark.index.statistics import Statistics
from birchbark.index.verify import find_damage
from birchbark.index.weighted_terms import MAX_IMPACT
from birchbark.index.writer import IndexWriter
from birchbark.records import Query, Ranking
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import FirstStage, rank_queries, rank_query
from birchbark.retrieve.impacts import Impacts
from birchbark.retrieve.match import AND
from birchbark.retrieve.rm3 import RM3

TERMS = [f"t{i}" for i in range(12)]
WEIGHTS = st.dictionaries(
    st.sampled_from(TERMS), st.floats(0, 30, allow_subnormal=False), max_size=9
)
STAGE = FirstStage(fields={"vector": 1.0})
SCHEMA = Schema(weighted={"vector": 100})


def record(number: int, weights: dict[str, float]) -> dict[str, Any]:
    return {"id": f"d{number}", "text": "bees", "vector": weights}


def dot_products(
    vectors: list[dict[str, float]], query: dict[str, float], steps: int = 100
) -> dict[str, float]:
    """Compute the scores of the documents that share a term with the query."""
    scores = {}
    for number, weights in enumerate(vectors):
        impacts = {t: round(w * steps) for t, w in weights.items() if round(w * steps)}
        if any(query.get(term) for term in impacts):
            scores[f"d{number}"] = sum(query.get(t, 0) * n / steps for t, n in impacts.items())
    return scores


@given(vectors=st.lists(WEIGHTS, min_size=1, max_size=9), query=WEIGHTS)
def test_scores_are_dot_products(
    tmp_path_factory: pytest.TempPathFactory,
    vectors: list[dict[str, float]],
    query: dict[str, float],
) -> None:
    """Equal to the last bit for any division of the index, and after documents are replaced."""
    records = [record(n, weights) for n, weights in enumerate(vectors)]
    where = tmp_path_factory.mktemp("impacts")
    single = build_index(records, where / "1", SCHEMA)
    expected = rank_query(single, query, STAGE)
    # scores are rounded to 2^-51 of the largest possible sum
    assert dict(expected) == pytest.approx(dot_products(vectors, query), rel=1e-6, abs=1e-9)
    divided = build_index(records, where / "2", SCHEMA, part_tokens=1)
    assert rank_query(divided, query, STAGE) == expected
    with IndexWriter(where / "2") as writer:
        writer.add(record(0, {"t1": 7.0}))
        writer.add(records[0])
        writer.merge()
    assert rank_query(Index(where / "2"), query, STAGE) == expected
    assert not find_damage(where / "2")


def test_the_best_of_many_documents_are_found_without_reading_all(tmp_path: Path) -> None:
    """Lists of many blocks are pruned; the result is that of a full computation."""
    random = np.random.default_rng(3)
    vectors = [
        dict(
            zip(random.choice(TERMS, 5, replace=False), random.gamma(1, 1, 5).tolist(), strict=True)
        )
        for _ in range(3000)
    ]
    vectors[17]["t3"] = 10_000.0  # an impact of the largest size
    index = build_index([record(n, v) for n, v in enumerate(vectors)], tmp_path / "i", SCHEMA)
    for query in ({"t1": 0.7, "t3": 1e-4, "t5": 2.5}, {"t3": 1.0}, dict.fromkeys(TERMS, 0.5)):
        scores = Ranking.from_pairs(dot_products(vectors, query))
        found = rank_query(index, query, STAGE, 10)
        assert found.doc_ids == scores.head(10).doc_ids
        np.testing.assert_allclose(found.scores, scores.head(10).scores, rtol=1e-6)


def test_weighted_fields_combine_with_text(tmp_path: Path) -> None:
    """Each field has its own model; filters, --match and RM3 work on weighted fields, too."""
    records = [
        {"id": "a", "text": "bees dance", "vector": {"bee": 2, "hive": 1}, "type": "x"},
        {"id": "b", "text": "a canoe", "vector": {"bee": 1, "honey": 3}, "type": "y"},
        {"id": "c", "text": "bees", "type": "x"},
    ]
    schema = Schema(weighted={"vector": 10}, keywords=("type",))
    index = build_index(records, tmp_path / "i", schema)
    assert index.fields == ("contents", "vector")
    assert index.unread_fields == ()
    both = FirstStage(fields={"contents": 1.0, "vector": 0.5})
    text = dict(rank_query(index, "bees", FirstStage()))
    scores = dict(rank_query(index, {"bee": 1.0}, both))
    assert scores == pytest.approx({"a": text["a"] + 1.0, "b": 0.5, "c": text["c"]})
    filtered = STAGE.filtered({"type": "y"})
    assert rank_query(index, {"bee": 1.0}, filtered).doc_ids == ("b",)
    both_terms = FirstStage(fields={"vector": 1.0}, match=AND)
    assert rank_query(index, {"bee": 1.0, "honey": 1.0}, both_terms).doc_ids == ("b",)
    expanded = FirstStage(fields={"vector": 1.0}, expansion=RM3(documents=1, max_df_share=1.0))
    assert rank_query(index, {"hive": 1.0}, expanded).doc_ids == ("a", "b")
    assert index.term_vectors(["b", "c"], "vector") == [{"bee": 10, "honey": 30}, {}]


def test_a_step_counts_for_its_share_of_1() -> None:
    """The largest impact limits what a term adds to a score."""
    scoring = Impacts(4).scoring({"bee": 2.0, "hive": 0.0}, Statistics(FieldTotals(1, 1), 1))
    assert scoring.weights == {"bee": 0.5, "hive": 0}
    assert scoring.limits == {"bee": 0.5 * MAX_IMPACT, "hive": 0}
    assert (scoring.saturation, scoring.floor, scoring.slope) == (0, 1, 0)
    with pytest.raises(InputError, match="steps is out of range"):
        Impacts(0)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"bee": -1}, "document 'x', field 'vector': invalid weight of term 'bee': .*found -1"),
        ({"bee": "2"}, "invalid weight of term 'bee'"),
        ({"bee": True}, "invalid weight of term 'bee'"),
        ({"bee": 10_486}, "expected a term, and a number from 0 to 10485"),
        ({"": 1.0}, "invalid weight of term ''"),
        ([1, 2], "terms have no weights: .*a JSON object"),
        ("bee", "terms have no weights"),
    ],
)
def test_invalid_weights_are_refused(weights: Any, message: str, tmp_path: Path) -> None:
    """They are refused before the document that they would replace is lost."""
    index = build_index([record(1, {"bee": 1.0}) | {"id": "x"}], tmp_path / "i", SCHEMA)
    with IndexWriter(tmp_path / "i") as writer:
        with pytest.raises(InputError, match=message):
            writer.add({"id": "x", "text": "", "vector": weights})
        assert "x" in writer
    assert not index.outdated


def test_schemas_that_contradict_themselves(tmp_path: Path) -> None:
    """A field is indexed in one way, with steps that leave room for a weight of 1."""
    for schema, message in (
        (Schema(fields={"vector": ["vector"]}, weighted={"vector": 1}), "with weights and without"),
        (Schema(keywords=("vector",), weighted={"vector": 1}), "with weights and without"),
        (Schema(weighted={"vector": 0}), "steps of field 'vector' is out of range"),
        (Schema(weighted={"vector": 2**20}), "largest weight of field 'vector'"),
    ):
        with pytest.raises(InputError, match=message):
            build_index([{"id": "x", "text": ""}], tmp_path / "i", schema)


def test_runs_from_python_have_the_tag_of_runs_from_the_shell(tmp_path: Path) -> None:
    """Fields with stored weights are scored by them, whatever the model of the others."""
    index = build_index([record(0, {"bee": 1.0})], tmp_path / "i", SCHEMA)
    for fields, tag in (({"vector": 1.0}, "impacts"), ({"vector": 1.0, "contents": 1.0}, "bm25")):
        stage = FirstStage(fields=fields)
        assert rank_queries(index, [Query("1", "bee")], stage).tag == tag
        assert IndexEngine(index, stage).name == tag


def test_the_shell(tmp_path: Path) -> None:
    """Index JSONL with vectors, in shards, and retrieve by queries with vectors."""
    vectors = [{"bee": 1.2, "hive": 0.4}, {"bee": 0.3, "honey": 2.0}, {"canoe": 1.0}]
    corpus, queries = tmp_path / "c.jsonl", tmp_path / "q.jsonl"
    corpus.write_text("".join(json.dumps(record(n, v)) + "\n" for n, v in enumerate(vectors)))
    wanted = {"1": {"bee": 1.0, "honey": 0.1}, "2": {"canoe": 0.5}}
    lines = (json.dumps({"id": name, "vector": v}) + "\n" for name, v in wanted.items())
    queries.write_text("".join(lines))
    assert read_queries(queries)[0].weights == wanted["1"]
    runs = []
    for shards in ([], ["--shards", "2"]):
        index = tmp_path / f"index{len(runs)}"
        arguments = ["index", str(corpus), "--to", str(index), "--weighted-terms", "vector=10"]
        done = CliRunner().invoke(group, [*arguments, *shards], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        run = tmp_path / f"{len(runs)}.run"
        arguments = ["retrieve", str(index), "--queries", str(queries), "--set"]
        arguments += ["first_stage.fields.vector=1"]
        done = CliRunner().invoke(group, [*arguments, "--output", str(run)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        runs.append(run.read_text())
    assert runs[0] == runs[1]
    assert runs[0].splitlines()[0].split() == ["1", "Q0", "d0", "1", "1.2", "impacts"]
    assert [line.split()[2] for line in runs[0].splitlines()] == ["d0", "d1", "d2"]
    shown = CliRunner().invoke(group, ["index", "stats", str(index)], catch_exceptions=False)
    assert "vector: steps per 1 of weight" in shown.output
    twice = ["--weighted-terms", "vector=10", "--weighted-terms", "vector=20"]
    refused = CliRunner().invoke(group, ["index", str(corpus), "--to", str(tmp_path / "x"), *twice])
    assert "--weighted-terms vector is given twice" in str(refused.exception)


@pytest.mark.parametrize("vector", [{}, {"bee": -1}, {"bee": "x"}, [1], {"": 1}])
def test_invalid_vectors_of_queries(vector: Any, tmp_path: Path) -> None:
    """They are refused with the query's id."""
    path = tmp_path / "q.jsonl"
    path.write_text(json.dumps({"id": "7", "vector": vector}))
    with pytest.raises(InputError, match=r"query 7.*(no weights|invalid weight|not a mapping)"):
        read_queries(path)
