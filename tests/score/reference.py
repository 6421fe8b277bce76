"""What must the graph compute? BERT in plain numpy, in float64, one input at a time."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from conftest import VOCABULARY, WORDS

Array = NDArray[np.float64]
erf = np.vectorize(math.erf)
Bert = Callable[..., Path]
SENTENCES = [" ".join(random.Random(i).choices(WORDS, k=1 + i % 12)) for i in range(60)]
QUERY = "birch canoe"


class Reference:
    """The encoder and both heads, following Devlin et al. 2019 step by step."""

    def __init__(self, directory: Path) -> None:
        self.config = json.loads((directory / "config.json").read_text())
        loaded = load_file(directory / "model.safetensors")
        self.w = {k.removeprefix("bert."): v.astype(np.float64) for k, v in loaded.items()}

    def linear(self, x: Array, name: str) -> Array:
        return x @ self.w[f"{name}.weight"].T + self.w[f"{name}.bias"]

    def norm(self, x: Array, name: str) -> Array:
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        scaled = (x - mean) / np.sqrt(variance + self.config["layer_norm_eps"])
        return scaled * self.w[f"{name}.weight"] + self.w[f"{name}.bias"]

    def encode(self, ids: list[int], types: list[int]) -> Array:
        """Return token vectors of the last layer: (S, H)."""
        x = self.w["embeddings.word_embeddings.weight"][ids]
        x = x + self.w["embeddings.position_embeddings.weight"][: len(ids)]
        x = x + self.w["embeddings.token_type_embeddings.weight"][types]
        x = self.norm(x, "embeddings.LayerNorm")
        for i in range(self.config["num_hidden_layers"]):
            x = self.layer(x, f"encoder.layer.{i}")
        return x

    def layer(self, x: Array, name: str) -> Array:
        heads = self.config["num_attention_heads"]
        size = x.shape[1] // heads
        q, k, v = (self.linear(x, f"{name}.attention.self.{p}") for p in ("query", "key", "value"))
        outs = []
        for h in range(heads):
            part = slice(h * size, (h + 1) * size)
            scores = np.exp(q[:, part] @ k[:, part].T / math.sqrt(size))
            outs.append(scores / scores.sum(-1, keepdims=True) @ v[:, part])
        attended = self.linear(np.concatenate(outs, -1), f"{name}.attention.output.dense")
        x = self.norm(x + attended, f"{name}.attention.output.LayerNorm")
        inner = self.linear(x, f"{name}.intermediate.dense")
        inner = inner * 0.5 * (1 + erf(inner / math.sqrt(2)))
        return self.norm(x + self.linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")

    def embedding(self, ids: list[int]) -> Array:
        mean = self.encode(ids, [0] * len(ids)).mean(0)
        return mean / np.linalg.norm(mean)

    def logits(self, ids: list[int], types: list[int]) -> Array:
        pooled = np.tanh(self.linear(self.encode(ids, types)[0], "pooler.dense"))
        return self.linear(pooled, "classifier")


def ids(text: str) -> list[int]:
    """Return token ids; every word is a token of the tiny vocabulary."""
    return [VOCABULARY.index(word) for word in text.split()]
