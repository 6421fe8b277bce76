"""Do the recipes for CORD-19 and TREC-COVID run on files as they are distributed?"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from birchbark.checkpoint.heads import POOLING_MODES
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.load_scorer import load_scorer
from birchbark_studies.experiments.recipe_file import read_recipe
from birchbark_studies.outcome import Outcome
from birchbark_studies.recipe_folder import RECIPES
from birchbark_studies.roc import auc
from birchbark_studies.run import run_study
from conftest import DOCUMENTS
from original_formats import COVID_JUDGMENTS, COVID_QUERIES, write_cord19
from small_study import table_of

MODELS = re.compile(r'\[?"\.\./training[^\n]*|"all-Mini[^"]*"|"(birchbark|bert)-[^"]*"')


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A data root with CORD-19."""
    write_cord19(tmp_path)
    return tmp_path


def study(root: Path, name: str, model: str = "") -> Outcome:
    """Run a recipe with a tiny model in place of the models that it names or trains."""
    text = (RECIPES / f"{name}.toml").read_text()
    text = MODELS.sub(f'"{model}"', text)
    path = root / f"{name}.toml"
    path.write_text(text.replace("layer = 11", "layer = 1"))
    return run_study(read_recipe(path), root, root / name)


def test_fields(root: Path) -> None:
    """The study gives tables 4.1 and 4.2 and counts of fields, for queries and for questions."""
    outcome = study(root, "covid-fields")
    groups = [g for g in table_of(outcome, "fields").groups if not g.published]
    assert [group.name for group in groups] == ["query", "question"]
    rows = {row.name: row.cells for row in table_of(outcome, "presence").groups[0].rows}
    counts = {name: cells[0].value for name, cells in rows.items()}
    assert counts == {"title": 4, "text": 5, "body": 4}
    assert rows["body"][2].value == pytest.approx(4 / 5)  # of the judged, which are all
    sources, years = table_of(outcome, "values").groups[:2]
    assert [(row.name, row.cells[0].value) for row in sources.rows] == [("PMC", 5), ("Medline", 1)]
    assert [(row.name, row.cells[0].value) for row in years.rows] == [("2020", 5)]
    assert sources.rows[1].cells[2].value == pytest.approx(1 / 5)
    judgments = {
        r.name: [c.value for c in r.cells] for r in table_of(outcome, "judgments").groups[0].rows
    }
    assert judgments["1"] == [3, 2, 1]
    assert judgments["2"] == [2, 1, 1]
    [ratio] = {
        r.cells[0].value for r in table_of(outcome, "match").groups[0].rows if "and" in r.name
    }
    assert 0 < ratio < 1  # type: ignore[operator]


@pytest.mark.slow
def test_bi_encoders(root: Path, bert: Callable[..., Path]) -> None:
    """The study gives tables 4.3 to 4.5 and ignores unjudged pairs."""
    model = bert()
    outcome = study(root, "covid-biencoder", str(model))
    scorer = load_scorer(model)
    assert isinstance(scorer, EmbeddingScorer)
    scores, relevant = [], []
    for line in COVID_JUDGMENTS:
        number, _, doc_id, grade = line.split()
        title = next(d.title for d in DOCUMENTS if d.doc_id == doc_id)
        if title:
            [query, document] = scorer.embed(scorer.encode([COVID_QUERIES[int(number) - 1], title]))
            scores.append(float(query @ document))
            relevant.append(int(grade) > 0)
    rows = {row.name: row for row in table_of(outcome, "auc").groups[0].rows}
    assert len(rows) == 12
    area = rows["embedding, title"].cells[POOLING_MODES.index("mean")].value
    assert area == pytest.approx(auc(np.array(scores), np.array(relevant)), abs=1e-6)
    assert len(table_of(outcome, "match").groups[0].rows) == 4


@pytest.mark.slow
def test_re_ranking(root: Path, bert: Callable[..., Path]) -> None:
    """The study gives tables 4.7 and 4.8, for two first stages and for judged documents only."""
    outcome = study(root, "covid-reranking", str(bert(labels=1)))
    groups = [g for g in table_of(outcome, "depths").groups if not g.published]
    assert len(groups) == 8  # two forms of queries, two first stages, all documents or judged ones
    for group in groups:
        assert [row.name for row in group.rows][-1] == "random"
    top = table_of(outcome, "top")
    assert [column.name for column in top.columns][:4] == [
        "unjudged",
        "grade 0",
        "grade 1",
        "grade 2",
    ]
