"""Is a damaged or malicious model directory rejected with a CheckpointError?"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from damaged_models import Bert, load, tokenised
from hypothesis import given
from hypothesis import strategies as st

from fuzzing import broken, broken_tree, fuzz, is_read

CONFIGURED = {  # beside the config.json of a BERT
    "tokenizer_config.json": {"do_lower_case": True, "model_max_length": 32, "strip_accents": None},
    "modules.json": [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {
            "idx": 1,
            "name": "1",
            "path": "1_Pooling",
            "type": "sentence_transformers.models.Pooling",
        },
        {"idx": 2, "name": "2", "path": "2", "type": "sentence_transformers.models.Normalize"},
    ],
    "1_Pooling/config.json": {"word_embedding_dimension": 16, "pooling_mode_mean_tokens": True},
    "sentence_bert_config.json": {"max_seq_length": 32, "do_lower_case": False},
    "config_sentence_transformers.json": {"prompts": {"query": "q: "}, "default_prompt_name": None},
    "special_tokens_map.json": {"cls_token": "[CLS]", "sep_token": {"content": "[SEP]"}},
}


@pytest.fixture
def model(bert: Bert) -> Path:
    """An embedding model with all files that one may have."""
    directory = bert()
    tokenised(directory)
    for name, values in CONFIGURED.items():
        (directory / name).write_text(json.dumps(values))
    assert np.isfinite(load(directory))
    return directory


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", *CONFIGURED])
@fuzz(10)
@given(data=st.data())
def test_changed_values(name: str, data: st.DataObject, model: Path) -> None:
    """Whatever values of a file change, the model is rejected or gives a finite score."""
    original = (model / name).read_text()
    (model / name).write_text(json.dumps(data.draw(broken_tree([json.loads(original)]))))
    try:
        score = is_read(lambda: load(model), model)
    finally:  # the next example begins with the original
        (model / name).write_text(original)
    assert score is None or np.isfinite(score)


@pytest.mark.parametrize(
    "name", ["config.json", "tokenizer.json", "vocab.txt", "model.safetensors"]
)
@fuzz(10)
@given(data=st.data())
def test_changed_bytes(name: str, data: st.DataObject, model: Path) -> None:
    """The same, whatever bytes change; of the weights, those of the header."""
    if name == "vocab.txt":
        (model / "tokenizer.json").unlink(missing_ok=True)
    content = (model / name).read_bytes()
    end = len(content)
    if name == "model.safetensors":
        end = 8 + int.from_bytes(content[:8], "little")
    (model / name).write_bytes(data.draw(broken([content[:end]])) + content[end:])
    score = is_read(lambda: load(model), model)
    (model / name).write_bytes(content)
    assert score is None or np.isfinite(score)
