"""How are models written, changed and opened that a test damages?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.heads import Pooling
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.score.load_scorer import load_scorer
from birchbark.score.session import OnnxSession

Bert = Callable[..., Path]
SETTINGS, INPUTS = "config_sentence_transformers.json", "sentence_bert_config.json"
MULTI = "Transformer Dense MultiVectorMask Normalize"
IDS, TYPES = [np.array([2, 5, 6, 3, 7, 3])], [np.array([0, 0, 0, 0, 1, 1])]


def load(directory: Path, pooling: Pooling | None = None) -> float:
    """Open everything that ranking opens, and compute one score."""
    load_scorer(directory, threads=1, pooling=pooling)
    checkpoint = Checkpoint.open(directory, None, pooling)
    CheckpointTokenizer(checkpoint).encode(["bees dance 日", "zeppelin", ""])
    return float(OnnxSession(checkpoint, 1).run(IDS, TYPES).flat[0])


def tokenised(directory: Path) -> Path:
    """Write the directory's tokenizer.json from its vocab.txt."""
    from tokenizers.implementations import BertWordPieceTokenizer

    path = directory / "tokenizer.json"
    BertWordPieceTokenizer(str(directory / "vocab.txt")).save(str(path))
    return path


def changed(path: Path, **values: Any) -> Path:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    return path


def write_modules(directory: Path, kinds: str, **settings: Any) -> Path:
    """Write modules.json of these kinds, with weights of 16 dimensions, and the settings."""
    modules = []
    for number, kind in enumerate(kinds.split()):
        name = f"{number}_{kind}" if number else ""
        modules.append({"path": name, "type": f"sentence_transformers.models.{kind}"})
        if number and not (directory / name).exists():
            (directory / name).mkdir()
            (directory / name / "config.json").write_text("{}")
        values = {
            "Dense": {"linear.weight": np.eye(16), "linear.bias": np.ones(16)},
            "LayerNorm": {"norm.weight": np.ones(16), "norm.bias": np.zeros(16)},
        }.get(kind)
        if values:
            tensors = {key: value.astype(np.float32) for key, value in values.items()}
            save_file(tensors, directory / name / "model.safetensors")
    (directory / "modules.json").write_text(json.dumps(modules))
    (directory / SETTINGS).write_text(json.dumps(settings))
    return directory


def multi_vector(directory: Path, **settings: Any) -> Path:
    write_modules(directory, MULTI, **{"model_type": "MultiVectorEncoder"} | settings)
    changed(directory / "1_Dense" / "config.json", module_input_name="token_embeddings")
    changed(directory / "3_Normalize" / "config.json", module_input_name="token_embeddings")
    return directory
