"""What is in the directory of a static embedding: a vector for each token, whose mean is a text's?

The layout is that of sentence-transformers: modules.json begins with StaticEmbedding, in whose
folder are tokenizer.json and model.safetensors with `embedding.weight`, or `embeddings` as
Model2Vec writes it. There are no layers, no positions and no special tokens. For the rest of the
package it is an encoder without layers.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from birchbark.artifact import new_directory, write_json
from birchbark.checkpoint.encoder_config import EncoderConfig
from birchbark.checkpoint.heads import HEAD_KEY
from birchbark.checkpoint.modules import NORMALIZE, STATIC
from birchbark.checkpoint.score_scale import ScoreScale
from birchbark.checkpoint.weights import (
    SCALE,
    Tensors,
    find_weights,
    quantize_rows,
    read_tensor_shapes,
    validated_tensor,
)
from birchbark.errors import CheckpointError
from birchbark.records import Float32s

TABLES = ("embedding.weight", "embeddings")
MAX_TOKENS = 1 << 20  # of a text; there is no other limit


def read_static_config(home: Path) -> EncoderConfig:
    """Return the sizes of a static embedding, from the header of its weights.

    Raises CheckpointError unless there is one table, (tokens, dimensions).
    """
    where = find_weights(home)
    shapes = read_tensor_shapes(where, "")
    table = next((name for name in TABLES if name in shapes), None)
    others = {name for name in shapes if name not in (table, f"{table}{SCALE}")}
    if table is None or others or len(shapes[table]) != 2 or 0 in shapes[table]:
        raise CheckpointError(
            "unsupported static embedding",
            where=str(where),
            wanted=f"one table, {' or '.join(TABLES)}, of a row per token",
            found=", ".join(f"{name} {shape}" for name, shape in sorted(shapes.items()))[:200],
        )
    rows, width = shapes[table]
    return EncoderConfig(
        layers=0,
        hidden=width,
        heads=1,
        intermediate=1,
        vocabulary=rows,
        positions=MAX_TOKENS,
        types=0,
        epsilon=0.0,
        embedding=width,
        offset=0,
        groups=0,
        activation="gelu",
    )


def token_vectors(tensors: Tensors, config: EncoderConfig, where: str) -> Float32s:
    """Return the vectors of all tokens (vocabulary, hidden); CheckpointError if one is not finite.

    tensors: as `Checkpoint.tensors` returns them. where: the weights, for messages.
    """
    [name] = tensors
    return validated_tensor(tensors, name, (config.vocabulary, config.hidden), where)


def write_static_embedding(
    target: Path, table: Float32s, tokenizer: Path, scale: ScoreScale, card: str
) -> None:
    """Write a static embedding with its vectors in 8 bits; InputError if `target` exists.

    table: the vectors of all tokens (tokens, dimensions). tokenizer: a tokenizer.json. scale: of
    its cosines. card: the contents of README.md.
    """
    from safetensors.numpy import save_file

    values, scales = quantize_rows(np.asarray(table, np.float32))
    package = "sentence_transformers.models"
    modules: list[Mapping[str, Any]] = [
        {"idx": number, "name": str(number), "path": path, "type": f"{package}.{kind}"}
        for number, (path, kind) in enumerate((("", STATIC), ("1_Normalize", NORMALIZE)))
    ]
    with new_directory(target) as scratch:
        save_file({TABLES[0]: values, f"{TABLES[0]}{SCALE}": scales}, scratch / "model.safetensors")
        write_json(scratch / "modules.json", modules)
        write_json(scratch / "config.json", {HEAD_KEY: scale.as_config()})
        shutil.copyfile(tokenizer, scratch / "tokenizer.json")
        (scratch / "README.md").write_text(card)
