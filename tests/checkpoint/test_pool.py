"""Does a pooled model give the vectors of a layer of the original?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from damaged_models import Bert, multi_vector, write_modules
from zoo import write_family

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.heads import POOLING_MODES, Pooling
from birchbark.checkpoint.pool import pool_model
from birchbark.checkpoint.prompts import Prompts
from birchbark.cli import group
from birchbark.errors import InputError
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.load_scorer import load_scorer

TEXTS = ["birch bark", "the river bridge", "bees dance, iron"]


def vectors(model: Path, pooling: Pooling | None = None) -> np.ndarray:
    """Return the vectors of TEXTS, (texts, hidden)."""
    scorer = load_scorer(model, threads=1, pooling=pooling)
    assert isinstance(scorer, EmbeddingScorer)
    return scorer.embed(scorer.encode(TEXTS))


def test_an_embedding_model_is_pooled_otherwise(bert: Callable[..., Path], tmp_path: Path) -> None:
    """Its own pooling is replaced."""
    model = bert(layers=2)
    pool_model(model, Pooling("max", 1), tmp_path / "pooled")
    np.testing.assert_array_equal(vectors(tmp_path / "pooled"), vectors(model, Pooling("max", 1)))


@pytest.mark.parametrize("mode", POOLING_MODES)
@pytest.mark.parametrize("layer", [1, 2, 3, None])
def test_vectors_are_those_of_the_layer(
    bert: Callable[..., Path], mode: str, layer: int | None, tmp_path: Path
) -> None:
    """They are equal bit for bit; what other layers and heads need is left out."""
    model = bert(labels=1, layers=3)
    (model / "README.md").write_text(
        "---\nlicense: mit\npipeline_tag: text-ranking\n---\n# Original\n"
    )
    pool_model(model, Pooling(mode, layer), tmp_path / "pooled")
    expected = vectors(model, Pooling(mode, layer))
    np.testing.assert_array_equal(vectors(tmp_path / "pooled"), expected)
    names = Checkpoint.open(tmp_path / "pooled").tensors()
    assert not any(name.startswith(("classifier", "pooler")) for name in names)
    assert any(f"layer.{(layer or 3) - 1}." in name for name in names)
    assert not any(f"layer.{layer or 3}." in name for name in names)
    config = json.loads((tmp_path / "pooled" / "config.json").read_text())
    assert config["num_hidden_layers"] == (layer or 3)
    card = (tmp_path / "pooled" / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: sentence-transformers\n")
    assert "license: mit" in card
    assert "text-ranking" not in card
    assert f"The first {layer or 3} layers" in card
    assert "# Original" in card


def test_what_cannot_be_pooled(bert: Callable[..., Path], tmp_path: Path) -> None:
    """Layers that do not exist, token vectors, and an existing target without overwriting."""
    model, target = bert(labels=1, layers=2), tmp_path / "pooled"
    for layer in (0, 3):
        with pytest.raises(InputError, match="no such layer: expected 1 to 2"):
            pool_model(model, Pooling("mean", layer), target)
    with pytest.raises(InputError, match="gives no text vector"):
        pool_model(model, Pooling("tokens"), target)
    pool_model(model, Pooling("mean", 1), target)
    with pytest.raises(InputError, match="exists"):
        pool_model(model, Pooling("mean", 2), target)
    pool_model(model, Pooling("mean", 2), target, overwrite=True)
    assert Checkpoint.open(target).config.layers == 2


def test_a_pooled_model_searches(
    bert: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its vectors are stored, and found by a search that names it."""
    model = bert(labels=1, layers=2)
    monkeypatch.chdir(tmp_path)
    Path("d.jsonl").write_text(
        '{"id": "canoe", "text": "A birch canoe."}\n{"id": "bees", "text": "The bees dance."}\n'
    )
    pool_model(model, Pooling("max", 1), Path("pooled"))
    for command in (
        "index d.jsonl --to d.index",
        "index attach d.index --vectors pooled",
        "search d.index canoe --set first_stage.model=dense --model none --json",
    ):
        result = CliRunner().invoke(group, command.split())
        assert result.exit_code == 0, result.output
    assert json.loads(result.stdout.splitlines()[0])["doc_id"] == "canoe"


def test_a_family_that_normalises_its_last_layer_once_more_keeps_all_layers(tmp_path: Path) -> None:
    """A pooled model would normalise a layer that the original does not."""
    model = write_family(tmp_path / "model", "modernbert", None)
    with pytest.raises(InputError, match="normalises the output of its last layer only"):
        pool_model(model, Pooling("mean", 2), tmp_path / "pooled")
    pool_model(model, Pooling("mean", 3), tmp_path / "pooled")
    np.testing.assert_array_equal(vectors(tmp_path / "pooled"), vectors(model, Pooling("mean", 3)))


def test_pooled_models_are_embedding_models(bert: Bert, tmp_path: Path) -> None:
    """A pooled copy keeps the prompts, and nothing of the model's own modules."""
    directory = multi_vector(bert(), prompts={"query": "river "})
    pool_model(directory, Pooling("mean"), tmp_path / "pooled")
    pooled = Checkpoint.open(tmp_path / "pooled")
    assert pooled.head == Pooling("mean", 2)
    assert pooled.prompts == Prompts("river ", "")
    pylate = {"model_type": "ColBERT", "query_prefix": "[Q] ", "do_query_expansion": False}
    marked = write_modules(bert(), "Transformer Dense", **pylate)
    with pytest.raises(InputError, match="prompts are tokens of a model with a vector per token"):
        pool_model(marked, Pooling("mean"), tmp_path / "other")
