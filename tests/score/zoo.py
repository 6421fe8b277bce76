"""How is a tiny model of any family and head written, and computed in plain numpy?

The names are those of the papers and of transformers, independent of Birchbark's own table.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from reference import erf
from safetensors.numpy import load_file, save_file

from conftest import VOCABULARY

Array = NDArray[np.float64]

BERT = {
    "q": "encoder.layer.{}.attention.self.query",
    "k": "encoder.layer.{}.attention.self.key",
    "v": "encoder.layer.{}.attention.self.value",
    "o": "encoder.layer.{}.attention.output.dense",
    "n1": "encoder.layer.{}.attention.output.LayerNorm",
    "up": "encoder.layer.{}.intermediate.dense",
    "down": "encoder.layer.{}.output.dense",
    "n2": "encoder.layer.{}.output.LayerNorm",
}
DISTILBERT = {
    "q": "transformer.layer.{}.attention.q_lin",
    "k": "transformer.layer.{}.attention.k_lin",
    "v": "transformer.layer.{}.attention.v_lin",
    "o": "transformer.layer.{}.attention.out_lin",
    "n1": "transformer.layer.{}.sa_layer_norm",
    "up": "transformer.layer.{}.ffn.lin1",
    "down": "transformer.layer.{}.ffn.lin2",
    "n2": "transformer.layer.{}.output_layer_norm",
}
ONE = "encoder.albert_layer_groups.0.albert_layers.0"
ALBERT = {
    "q": f"{ONE}.attention.query",
    "k": f"{ONE}.attention.key",
    "v": f"{ONE}.attention.value",
    "o": f"{ONE}.attention.dense",
    "n1": f"{ONE}.attention.LayerNorm",
    "up": f"{ONE}.ffn",
    "down": f"{ONE}.ffn_output",
    "n2": f"{ONE}.full_layer_layer_norm",
}
HIDDEN, INNER, LAYERS, HEADS, NARROW, POSITIONS = 16, 24, 3, 4, 8, 34
# family: layers, widening layer, token types, first position, activation, layer and activation of
# the head, its output layer
FAMILIES: dict[str, tuple[dict[str, str], str, int, int, str, tuple[str, str], str]] = {
    "bert": (BERT, "", 2, 0, "gelu", ("bert.pooler.dense", "tanh"), "classifier"),
    "roberta": (BERT, "", 1, 2, "gelu", ("classifier.dense", "tanh"), "classifier.out_proj"),
    "distilbert": (DISTILBERT, "", 0, 0, "gelu", ("pre_classifier", "relu"), "classifier"),
    "electra": (
        *(BERT, "embeddings_project", 2, 0, "gelu"),
        *(("classifier.dense", "gelu"), "classifier.out_proj"),
    ),
    "albert": (
        *(ALBERT, "encoder.embedding_hidden_mapping_in", 2, 0, "gelu_new"),
        *(("albert.pooler", "tanh"), "classifier"),
    ),
}
ACTIVATIONS = {
    "gelu": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))),
    "gelu_new": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
}


def write_family(directory: Path, family: str, logits: int | None, output: str = "") -> Path:
    """Write a model of `family`. logits: of its classifier, None for the encoder alone.

    output: name of the classifier's output layer, by default the family's own.
    """
    names, widen, types, _, activation, (middle, _), classifier = FAMILIES[family]
    directory.mkdir(parents=True)
    config: dict[str, Any] = {"model_type": family, "vocab_size": len(VOCABULARY)}
    config |= {"max_position_embeddings": POSITIONS, "pad_token_id": 1}
    if family == "distilbert":
        config |= {"dim": HIDDEN, "n_layers": LAYERS, "n_heads": HEADS, "hidden_dim": INNER}
        config |= {"activation": activation}
    else:
        config |= {"hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "hidden_act": activation}
        config |= {"num_attention_heads": HEADS, "intermediate_size": INNER}
        config |= {"type_vocab_size": types, "embedding_size": NARROW, "layer_norm_eps": 1e-12}
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    random = np.random.default_rng(5)
    width = NARROW if widen else HIDDEN
    tensors: dict[str, NDArray[np.float32]] = {}

    def put(name: str, *shape: int, centre: float = 0, bias: bool = True) -> None:
        tensors[f"{name}.weight"] = random.normal(centre, 0.3, shape).astype(np.float32)
        if bias:
            tensors[f"{name}.bias"] = random.normal(0, 0.3, shape[0]).astype(np.float32)

    embeddings = f"{family}.embeddings"
    put(f"{embeddings}.word_embeddings", len(VOCABULARY), width, bias=False)
    put(f"{embeddings}.position_embeddings", POSITIONS, width, bias=False)
    if types:
        put(f"{embeddings}.token_type_embeddings", types, width, bias=False)
    put(f"{embeddings}.LayerNorm", width, centre=1)
    if widen:
        put(f"{family}.{widen}", HIDDEN, width)
    for layer in range(LAYERS):
        for part, name in names.items():
            shape = {"up": (INNER, HIDDEN), "down": (HIDDEN, INNER)}.get(part, (HIDDEN, HIDDEN))
            shape = (HIDDEN,) if part in ("n1", "n2") else shape
            put(f"{family}.{name.format(layer)}", *shape, centre=len(shape) == 1)
    if logits is not None:
        put(middle, HIDDEN, HIDDEN)
        put(output or classifier, logits, HIDDEN)
    save_file(tensors, directory / "model.safetensors")
    return directory


class FamilyReference:
    """A model of any family, computed in float64, one input at a time."""

    def __init__(self, directory: Path, family: str) -> None:
        self.family = family
        loaded = load_file(directory / "model.safetensors")
        self.w = {name: value.astype(np.float64) for name, value in loaded.items()}

    def linear(self, x: Array, name: str) -> Array:
        return x @ self.w[f"{name}.weight"].T + self.w[f"{name}.bias"]

    def norm(self, x: Array, name: str) -> Array:
        scaled = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
        return scaled * self.w[f"{name}.weight"] + self.w[f"{name}.bias"]

    def states(self, ids: list[int], types: list[int]) -> list[Array]:
        """Return token vectors (S, H) after the embeddings and after each layer."""
        names, widen, kinds, offset, activation, _, _ = FAMILIES[self.family]
        embeddings = f"{self.family}.embeddings"
        x = self.w[f"{embeddings}.word_embeddings.weight"][ids]
        x = x + self.w[f"{embeddings}.position_embeddings.weight"][offset : offset + len(ids)]
        if kinds:
            used = types if kinds > 1 else [0] * len(ids)
            x = x + self.w[f"{embeddings}.token_type_embeddings.weight"][used]
        x = self.norm(x, f"{embeddings}.LayerNorm")
        states = [self.linear(x, f"{self.family}.{widen}") if widen else x]
        for layer in range(LAYERS):
            at = {part: f"{self.family}.{name.format(layer)}" for part, name in names.items()}
            states.append(self.layer(states[-1], at, activation))
        return states

    def layer(self, x: Array, at: dict[str, str], activation: str) -> Array:
        size = HIDDEN // HEADS
        q, k, v = (self.linear(x, at[part]).reshape(-1, HEADS, size) for part in "qkv")
        scores = np.exp(np.einsum("qhd,khd->hqk", q, k) / math.sqrt(size))
        mixed = np.einsum("hqk,khd->qhd", scores / scores.sum(-1, keepdims=True), v)
        x = self.norm(x + self.linear(mixed.reshape(-1, HIDDEN), at["o"]), at["n1"])
        inner = ACTIVATIONS[activation](self.linear(x, at["up"]))
        return self.norm(x + self.linear(inner, at["down"]), at["n2"])

    def logits(self, ids: list[int], types: list[int], output: str = "") -> Array:
        _, _, _, _, _, (middle, activation), classifier = FAMILIES[self.family]
        first = self.linear(self.states(ids, types)[-1][0], middle)
        return self.linear(ACTIVATIONS[activation](first), output or classifier)


def give_tokenizer(directory: Path, family: str) -> None:
    """Replace vocab.txt by tokenizer.json, with RoBERTa's special tokens for that family."""
    from tokenizers.implementations import BertWordPieceTokenizer
    from tokenizers.processors import RobertaProcessing

    tokenizer = BertWordPieceTokenizer(str(directory / "vocab.txt"))._tokenizer
    if family == "roberta":
        tokenizer.post_processor = RobertaProcessing(("[SEP]", 3), ("[CLS]", 2), False, False)
    tokenizer.save(str(directory / "tokenizer.json"))
    (directory / "vocab.txt").unlink()
    stated: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]"}
    stated |= {"model_max_length": 512}
    if family == "albert":
        stated |= {"model_input_names": ["input_ids", "token_type_ids", "attention_mask"]}
    (directory / "tokenizer_config.json").write_text(json.dumps(stated))
