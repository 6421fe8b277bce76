"""How is PARADE a model of a study of evidence?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_parade import write_parade

from birchbark.collection.documents import read_collection
from birchbark.collection.parsing.intake import Intake
from birchbark.combine.interpolate import Interpolation
from birchbark.errors import InputError
from birchbark.index.build_index import Schema, build_index
from birchbark.pipeline.rerank import rerank
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.records import Query
from birchbark.retrieve.engine import IndexEngine
from birchbark.score.load_scorer import load_scorer
from birchbark.segment.windows import Windows
from birchbark_studies.experiments.recipe_file import read_recipe
from birchbark_studies.run import run_study
from conftest import WORDS, write_bert

pytest.importorskip("torch", reason="torch is not installed")


def test_parade_in_a_study(tmp_path: Path) -> None:
    """Its rows are separate from another model's aggregations; its runs equal those of rerank."""
    model, _ = write_parade(tmp_path / "m", "max")
    mono = write_bert(tmp_path / "mono", labels=1)
    lines = [json.dumps({"id": f"d{n}", "text": " ".join(WORDS[n : n + 7])}) for n in range(9)]
    (tmp_path / "docs.jsonl").write_text("\n".join(lines))
    (tmp_path / "q.tsv").write_text(f"1\t{WORDS[3]} {WORDS[5]}\n2\t{WORDS[6]}\n")
    (tmp_path / "qrels.txt").write_text("1 0 d3 1\n2 0 d4 1\n")
    (tmp_path / "r.toml").write_text(
        f"""
        kind = "evidence"
        title = "PARADE"
        measures = ["AP"]
        [evidence]
        models = {{ mono = "{mono}", parade = "{model}" }}
        aggregations = ["max", "mean"]
        against = "mono"
        segments = "windows:3/1"
        rm3 = false
        depth = 6
        folds = 2
        [[collections]]
        name = "C"
        documents = "docs.jsonl"
        queries = "q.tsv"
        qrels = "qrels.txt"
        """
    )
    outcome = run_study(read_recipe(tmp_path / "r.toml"), tmp_path, tmp_path / "out")
    shown = {table.name: [row.name for row in table.groups[0].rows] for table in outcome.tables}
    mixed = ["mono, max", "mono, mean", "mono, max, alone", "mono, mean, alone"]
    assert shown["evidence"] == ["BM25", *mixed, "parade", "parade, alone"]
    assert shown["against"] == ["mono, max", "parade", "mono, max, alone", "parade, alone"]
    index = build_index(
        read_collection(str(tmp_path / "docs.jsonl"), Intake()), tmp_path / "ix", Schema("english")
    )
    queries = [Query("1", f"{WORDS[3]} {WORDS[5]}"), Query("2", WORDS[6])]
    ranker = Ranker(load_scorer(model), Windows(3, 1), interpolation=Interpolation(0.0), depth=6)
    alone = rerank(IndexEngine(index), outcome.runs["C.BM25"], queries, ranker)
    for query_id, ranking in outcome.runs["C.parade, alone"].rankings.items():
        assert ranking.doc_ids == alone.rankings[query_id].doc_ids
    recipe = (tmp_path / "r.toml").read_text().replace('against = "mono"', "pruned = true")
    (tmp_path / "r.toml").write_text(recipe)
    with pytest.raises(
        InputError, match="parade scores whole documents: segments cannot be pruned"
    ):
        run_study(read_recipe(tmp_path / "r.toml"), tmp_path, tmp_path / "out2")
