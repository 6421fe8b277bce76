"""Is the scorer of a model loaded by its name or its directory?"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from zoo import write_family

from birchbark import defaults
from birchbark.checkpoint.heads import Pooling
from birchbark.errors import CheckpointError
from birchbark.score.load_scorer import load_scorer
from birchbark.score.scorer import score_texts


@pytest.mark.parametrize("model", [defaults.MODEL, defaults.EMBEDDING_BASE])
def test_the_named_models_rank_by_meaning(model: str) -> None:
    """A paraphrase without common words scores higher than a sentence with some."""
    scorer = load_scorer(model)
    paraphrase, other = score_texts(
        scorer,
        "How do I get rid of a folder?",
        ["Delete an entire directory tree.", "How do I get to the railway station?"],
    )
    assert paraphrase > other + 0.2


@pytest.mark.parametrize("mode", ["cls", "mean", "max"])
def test_sentence_transformers_directories(mode: str, tmp_path: Path) -> None:
    """An encoder in a subfolder scores like the encoder alone."""
    home = write_family(tmp_path / "model" / "0_Transformer", "distilbert", None)
    key = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens"}[mode]
    types = {"0_Transformer": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [
        {"path": path, "type": f"sentence_transformers.models.{kind}"}
        for path, kind in types.items()
    ]
    (tmp_path / "model" / "modules.json").write_text(json.dumps(modules))
    (tmp_path / "model" / "1_Pooling").mkdir()
    pooling = tmp_path / "model" / "1_Pooling" / "config.json"
    pooling.write_text(json.dumps({f"pooling_mode_{key}": True}))
    texts = ["bees dance", "the birch canoe"]
    scorer, encoder = load_scorer(tmp_path / "model"), load_scorer(home, pooling=Pooling(mode))
    assert np.array_equal(score_texts(scorer, "bee", texts), score_texts(encoder, "bee", texts))
    assert scorer.fingerprint == encoder.fingerprint
    pooling.write_text('{"pooling_mode": "lasttoken"}')
    with pytest.raises(CheckpointError, match=r"unsupported pooling.*found lasttoken"):
        load_scorer(tmp_path / "model")
