"""Does a study of rewordings rank by the query and by what a model makes of it?"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from birchbark.collection.runs import read_run
from birchbark.errors import InputError
from birchbark.index.build import build_index
from birchbark.records import Ranking
from birchbark.retrieve.first_stage import rank_query
from birchbark.retrieve.query import reworded_terms
from birchbark.score.masked import MaskedModel
from birchbark.score.rewording import reword
from birchbark.study.recipe_file import read_recipe
from birchbark.study.run import run_study
from conftest import DOCUMENTS, QUERIES, write_collection

RECIPE = """
kind = "rewording"
title = "Other words"
measures = ["AP"]
[rewording]
models = { tiny = "MODEL" }
counts = [1, 2]
shares = [0.5, 1]
[[collections]]
name = "Tiny"
documents = "docs.jsonl"
queries = "q.tsv"
qrels = "qrels.txt"
"""


@pytest.fixture
def recipe(tmp_path: Path, bert: Callable[..., Path]) -> Path:
    """A recipe beside a collection of a few documents."""
    write_collection(tmp_path)
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE.replace("MODEL", str(bert(masked=True))))
    return path


def test_every_count_with_every_share(recipe: Path, tmp_path: Path) -> None:
    """Beside BM25 and RM3; a row is the weighted query, ranked."""
    outcome = run_study(read_recipe(recipe), tmp_path, tmp_path / "out")
    [table] = outcome.tables
    rows = [row.name for row in table.groups[0].rows]
    assert rows == ["BM25", "BM25+RM3", *(f"tiny, {n} × {s}" for n in (1, 2) for s in (0.5, 1))]
    index = build_index(DOCUMENTS, tmp_path / "index")
    model = MaskedModel(next(p for p in tmp_path.iterdir() if p.name.startswith("bert")))
    run = read_run(tmp_path / "out" / "runs" / "Tiny.tiny-2-0.5.run")
    for query_id, text in QUERIES.items():
        others = reword(model, text, index.analyzer.terms, 2)
        weights = reworded_terms(index.analyzer, text, others, 0.5)
        expected = rank_query(index, weights)
        assert run.rankings[query_id].doc_ids == expected.doc_ids
    assert any(
        isinstance(found := run.rankings[q], Ranking) and len(found) > len(rank_query(index, text))
        for q, text in QUERIES.items()
    )


def test_a_model_of_nothing_but_a_masked_head(recipe: Path, tmp_path: Path) -> None:
    """As transformers save one: no pooling, no logit."""
    model = next(path for path in tmp_path.iterdir() if path.name.startswith("bert"))
    shutil.rmtree(model / "1_Pooling")
    outcome = run_study(read_recipe(recipe), tmp_path, tmp_path / "out")
    assert list(outcome.models) == ["tiny"]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("shares = [0.5, 1]", "shares = [1, 0.5]", "numbers that rise"),
        ("shares = [0.5, 1]", "shares = [0.0, 1]", "above 0"),
        ("shares = [0.5, 1]", 'shares = ["1"]', "numbers"),
        ("counts = [1, 2]", "counts = [0, 2]", "whole numbers of 1 or more"),
        ('models = { tiny = "', 'modes = { tiny = "', "models: key is missing"),
    ],
)
def test_faults(recipe: Path, old: str, new: str, told: str) -> None:
    """Told before any work."""
    recipe.write_text(recipe.read_text().replace(old, new))
    with pytest.raises(InputError, match=told):
        read_recipe(recipe)


def test_a_run_of_others_cannot_be_reworded(recipe: Path, tmp_path: Path) -> None:
    """Told before anything is trained."""
    (tmp_path / "a.run").write_text("1 Q0 canoe 1 1 x\n")
    recipe.write_text(recipe.read_text() + 'run = "a.run"\n')
    with pytest.raises(InputError, match="first stage of ours"):
        run_study(read_recipe(recipe), tmp_path, tmp_path / "out")
