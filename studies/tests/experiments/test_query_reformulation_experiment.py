"""Does a study of query reformulation rank by the query and its weighted variants?"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from birchbark.collection.runs import read_run
from birchbark.errors import InputError
from birchbark.index.build_index import build_index
from birchbark.records import Ranking
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.first_stage import FirstStage, rank_query
from birchbark.score.masked_lm import MaskedLanguageModel
from birchbark_studies.query_variants import query_variants, terms_with_variants
from conftest import DOCUMENTS, QUERIES
from small_study import SmallStudy, write_small_study

RECIPE = """
kind = "query-reformulation"
title = "Query variants"
measures = ["AP"]
[query-reformulation]
models = { tiny = "MODEL" }
counts = [1, 2]
shares = [0.5, 1]
"""


@pytest.fixture
def study(tmp_path: Path, bert: Callable[..., Path]) -> SmallStudy:
    return write_small_study(tmp_path, RECIPE, MODEL=bert(masked=True))


def test_every_count_with_every_share(study: SmallStudy, tmp_path: Path) -> None:
    """Rows for all combinations follow BM25 and RM3; each ranks with the weighted query."""
    outcome = study.run()
    [table] = outcome.tables
    rows = [row.name for row in table.groups[0].rows]
    assert rows == ["BM25", "BM25+RM3", *(f"tiny, {n} × {s}" for n in (1, 2) for s in (0.5, 1))]
    index = build_index(DOCUMENTS, tmp_path / "index")
    model = MaskedLanguageModel(next(p for p in tmp_path.iterdir() if p.name.startswith("bert")))
    run = read_run(tmp_path / "out" / "runs" / "Tiny.tiny-2-0.5.run")
    for query_id, text in QUERIES.items():
        variants = query_variants(model, text, index.analyzer.terms, 2)
        weights = terms_with_variants(index.analyzer, text, variants, 0.5)
        expected = rank_query(index, weights)
        assert run.rankings[query_id].doc_ids == expected.doc_ids
    assert any(
        isinstance(ranking := run.rankings[q], Ranking)
        and len(ranking) > len(rank_query(index, text))
        for q, text in QUERIES.items()
    )


def test_rankings_have_the_settings_of_the_recipe(study: SmallStudy, tmp_path: Path) -> None:
    """A smaller number of variants are the best ones; BM25 and the depth are the recipe's."""
    study.replace("[query-reformulation]", "[bm25]\nk1 = 2.5\nb = 1\n[query-reformulation]")
    study.replace('title = "Query variants"', 'title = "Query variants"\ndepth = 2')
    outcome = study.run()
    index = build_index(DOCUMENTS, tmp_path / "index")
    model = MaskedLanguageModel(next(p for p in tmp_path.iterdir() if p.name.startswith("bert")))
    for query_id, text in QUERIES.items():
        variants = query_variants(model, text, index.analyzer.terms, 1)
        for share in (0.5, 1.0):
            weights = terms_with_variants(index.analyzer, text, variants, share)
            ranked = rank_query(index, weights, FirstStage(BM25(2.5, 1.0)), 2)
            assert outcome.runs[f"Tiny.tiny, 1 × {share:g}"].rankings[query_id] == ranked


def test_a_model_with_only_a_masked_head(study: SmallStudy, tmp_path: Path) -> None:
    """A masked language model saved by transformers works without pooling or classifier."""
    model = next(path for path in tmp_path.iterdir() if path.name.startswith("bert"))
    shutil.rmtree(model / "1_Pooling")
    outcome = study.run()
    assert list(outcome.models) == ["tiny"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("shares = [0.5, 1]", "shares = [1, 0.5]", "ascending numbers"),
        ("shares = [0.5, 1]", "shares = [0.0, 1]", "above 0"),
        ("shares = [0.5, 1]", 'shares = ["1"]', "numbers"),
        ("counts = [1, 2]", "counts = [0, 2]", "integers of 1 or more"),
        ('models = { tiny = "', 'modes = { tiny = "', "models: key is missing"),
    ],
)
def test_invalid_recipes(study: SmallStudy, old: str, new: str, message: str) -> None:
    """Errors are reported before any work."""
    study.replace(old, new)
    with pytest.raises(InputError, match=message):
        study.read()


@pytest.mark.parametrize("key", ["run", "folds"])
def test_keys_without_effect_are_refused(study: SmallStudy, key: str) -> None:
    """This kind of study searches itself, and tunes no weights."""
    study.append(f'{key} = "file"\n')
    with pytest.raises(InputError, match=f"collections.*{key}: studies of this kind use no {key}"):
        study.read()
