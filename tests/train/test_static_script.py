"""Does the recipe of the static embedding fit a table that embeds like its teacher?"""

from __future__ import annotations

import gzip
import importlib.util
import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from click.testing import CliRunner

from birchbark.score.load_scorer import load_scorer

pytest.importorskip("torch")
SCRIPT = Path(__file__).parents[2] / "training" / "static" / "train.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """Return the script as a module."""
    spec = importlib.util.spec_from_file_location("train_static", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_table_learns_its_targets(script: ModuleType) -> None:
    """Sums of token vectors come to point where the targets point."""
    random = np.random.default_rng(0)
    ids = [random.integers(0, 20, 5) for _ in range(200)]
    wanted = random.normal(size=(20, 8))
    targets = script.unit(np.stack([wanted[one].sum(axis=0) for one in ids]))
    start = random.normal(size=(20, 8)).astype(np.float32)

    def cosine(table: np.ndarray) -> float:
        sums = script.unit(np.stack([table[one].sum(axis=0) for one in ids]))
        return float((sums * targets).sum(axis=1).mean())

    trained = script.fit(start, ids, targets, 2_000, random)
    assert cosine(start) < 0.5 < 0.9 < cosine(trained)


def test_the_recipe_writes_a_model(script: ModuleType, tmp_path: Path) -> None:
    """A few texts and steps are enough; the next run of the same texts has their vectors."""
    folder = tmp_path / "data" / "set"
    folder.mkdir(parents=True)
    texts = [f"Parcel {i} was sent on day {i}. It has arrived." for i in range(250)]
    rows = [json.dumps({"id": str(i), "title": "", "text": text}) for i, text in enumerate(texts)]
    (folder / "passages.jsonl.gz").write_bytes(gzip.compress("\n".join(rows).encode()))
    questions = [f"q{i}\twhen did parcel {i} arrive" for i in range(30)]
    (folder / "queries.tsv").write_text("\n".join(questions))
    work, output = tmp_path / "work", tmp_path / "model"
    arguments = [str(tmp_path / "data"), "--steps", "3", "--work", str(work), "--output"]
    result = CliRunner().invoke(script.main, [*arguments, str(output)], catch_exceptions=False)
    assert result.exit_code == 0
    scorer = load_scorer(output)
    assert scorer.outputs("parcel", scorer.encode(["a parcel"]))[0] > 0
    assert "questions: 30 of 30" in result.output
    again = CliRunner().invoke(script.main, [*arguments, str(tmp_path / "again")])
    assert again.exit_code == 0
    assert "questions:" not in again.output
    (folder / "queries.tsv").write_text("\n".join([*questions[1:], "new\twhere is parcel 7"]))
    other = CliRunner().invoke(script.main, [*arguments, str(tmp_path / "other")])
    assert other.exit_code == 0
    assert "questions: 30 of 30" in other.output
    assert "tokens:" not in other.output
