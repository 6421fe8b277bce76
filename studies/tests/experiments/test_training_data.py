"""Does a study of training data count what training reads?"""

from __future__ import annotations

from pathlib import Path

import pytest

from birchbark.errors import InputError
from birchbark_studies.run import run_study
from birchbark_studies.staleness import stale_because
from small_study import SmallStudy

RECIPE = """
kind = "training-data"
title = "Training data"
[training-data]
configs = ["whole.toml", "parts.toml"]
"""
CONFIG = """
title = "TITLE"
base = "all-MiniLM-L6-v2"
max_length = 64
objective = { kind = "pointwise" }
[[data]]
name = "Tiny"
files = ["pairs.tsv"]
skip_bad = true
validation = 0.5
MORE
[schedule]
epochs = 1
batch = 2
learning_rate = 1e-4
"""
PAIRS = """qid\tquery\tdocid\ttext\tlabel
1\tbirch bark canoe\ta\tone two three four five\t1
1\tbirch bark canoe\tb\tone\t0
2\tbees\ta\tone two\t0
3\tbridge\tc\tone two three\t1
3\tbridge\td\t\t0
2\tbees\ta\tone two\t0
"""


@pytest.fixture
def study(tmp_path: Path) -> SmallStudy:
    (tmp_path / "pairs.tsv").write_text(PAIRS)
    for name, more in (("whole", ""), ("parts", "chunk = 2")):
        text = CONFIG.replace("TITLE", name).replace("MORE", more)
        (tmp_path / f"{name}.toml").write_text(text)
    (tmp_path / "study.toml").write_text(RECIPE)
    return SmallStudy(tmp_path / "study.toml")


def test_pairs_are_counted_by_their_part(study: SmallStudy) -> None:
    """Held-out queries are in another row; only texts to train on are in parts.

    By the hashes of their texts “birch bark canoe” and “bees” are trained on.
    """
    [table] = study.run().tables
    figures = {
        f"{group.name}: {row.name}": [cell.value for cell in row.cells]
        for group in table.groups
        for row in group.rows
    }
    assert figures == {
        "Tiny: training": [2, 4, 1 / 4, 2.0, 10 / 4],
        "Tiny: validation": [1, 1, 1.0, 1.0, 3.0],
        "Tiny, in parts of 2 words: training": [2, 6, 3 / 6, 2.0, 10 / 6],
        "Tiny, in parts of 2 words: validation": [1, 1, 1.0, 1.0, 3.0],
    }
    assert "1 bad records of Tiny are left out." in table.note
    repeated = "text repeated for its query, with the same relevance (1 times)"
    assert f"Tiny: {repeated}" in table.note
    assert f"Tiny, in parts of 2 words: {repeated}" in table.note
    page = (study.root / "out" / "README.md").read_text()
    assert "BM25" not in page
    report = (study.root / "out" / "report.html").read_text()
    assert "<dt>seed</dt><dd>0</dd>" in report
    assert "BM25" not in report


def test_another_configuration_makes_results_stale(study: SmallStudy) -> None:
    """So do other settings in its file, which is not the recipe, and other pairs."""
    run_study(study.read(), study.root, study.root / "out")
    assert stale_because(study.read(), study.root / "out", study.root) == []
    path = study.root / "whole.toml"
    path.write_text(path.read_text().replace("batch = 2", "batch = 3"))
    assert stale_because(study.read(), study.root / "out", study.root) == [
        "the training of whole.toml has changed"
    ]
    (study.root / "pairs.tsv").write_text(PAIRS.replace("bees", "wasps"))
    assert "pairs.tsv has changed" in stale_because(study.read(), study.root / "out", study.root)


def test_what_cannot_be_counted(study: SmallStudy) -> None:
    """Two data sets of one name, and documents without queries."""
    (study.root / "again.toml").write_text((study.root / "whole.toml").read_text())
    study.replace('"parts.toml"', '"again.toml"')
    with pytest.raises(InputError, match="two data sets share a name"):
        study.read()
    (study.root / "texts.toml").write_text(
        CONFIG.replace("TITLE", "texts")
        .replace('files = ["pairs.tsv"]', 'documents = "docs.jsonl"')
        .replace('objective = { kind = "pointwise" }', "")
        .replace("[[data]]", "[masked]\nshare = 0.15\n[[data]]")
        .replace("MORE", "")
    )
    study.replace('"whole.toml", "again.toml"', '"texts.toml"')
    with pytest.raises(InputError, match="data sets without queries have no pairs"):
        study.read()
