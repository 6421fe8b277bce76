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

from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.load_scorer import load_scorer
from conftest import VOCABULARY, write_static

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
DEBERTA = BERT | {
    part: f"encoder.layer.{{}}.attention.self.{name}"
    for part, name in (("q", "query_proj"), ("k", "key_proj"), ("v", "value_proj"))
}
MODERNBERT = {
    "qkv": "layers.{}.attn.Wqkv",
    "o": "layers.{}.attn.Wo",
    "n1": "layers.{}.attn_norm",
    "up": "layers.{}.mlp.Wi",
    "down": "layers.{}.mlp.Wo",
    "n2": "layers.{}.mlp_norm",
}
PREFIXES = {"deberta-v2": "deberta", "modernbert": "model"}
BUCKETS, WINDOW, BASES = 8, 4, (160_000.0, 10_000.0)  # of DeBERTa and ModernBERT
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
    "deberta-v2": (DEBERTA, "", 0, 0, "gelu", ("pooler.dense", "gelu"), "classifier"),
    "modernbert": (MODERNBERT, "", 0, 0, "gelu", ("head.dense", "gelu"), "classifier"),
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
        config |= {"type_vocab_size": types, "layer_norm_eps": 1e-12}
        config |= {"embedding_size": NARROW if widen else HIDDEN}
    if family == "deberta-v2":
        config |= {"relative_attention": True, "position_buckets": BUCKETS, "share_att_key": True}
        config |= {"pos_att_type": "p2c|c2p", "norm_rel_ebd": "layer_norm"}
        config |= {"position_biased_input": False}
    if family == "modernbert":
        config |= {
            "hidden_activation": activation,
            "norm_eps": 1e-12,
            "local_attention": 2 * WINDOW,
        }
        config |= {"global_attn_every_n_layers": 2, "classifier_pooling": "mean"}
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    random = np.random.default_rng(5)
    width = NARROW if widen else HIDDEN
    tensors: dict[str, NDArray[np.float32]] = {}

    def put(name: str, *shape: int, centre: float = 0, bias: bool = True) -> None:
        tensors[f"{name}.weight"] = random.normal(centre, 0.3, shape).astype(np.float32)
        if bias:
            tensors[f"{name}.bias"] = random.normal(0, 0.3, shape[0]).astype(np.float32)

    prefix, modern = PREFIXES.get(family, family), family == "modernbert"
    embeddings = f"{prefix}.embeddings"
    words = "tok_embeddings" if modern else "word_embeddings"
    put(f"{embeddings}.{words}", len(VOCABULARY), width, bias=False)
    if family not in PREFIXES:
        put(f"{embeddings}.position_embeddings", POSITIONS, width, bias=False)
    if types:
        put(f"{embeddings}.token_type_embeddings", types, width, bias=False)
    put(f"{embeddings}.{'norm' if modern else 'LayerNorm'}", width, centre=1, bias=not modern)
    if widen:
        put(f"{prefix}.{widen}", HIDDEN, width)
    if family == "deberta-v2":
        put(f"{prefix}.encoder.rel_embeddings", 2 * BUCKETS, HIDDEN, bias=False)
        put(f"{prefix}.encoder.LayerNorm", HIDDEN, centre=1)
    sizes = {"up": (INNER, HIDDEN), "down": (HIDDEN, INNER), "qkv": (3 * HIDDEN, HIDDEN)}
    sizes |= {"n1": (HIDDEN,), "n2": (HIDDEN,)} | ({"up": (2 * INNER, HIDDEN)} if modern else {})
    for layer in range(LAYERS):
        for part, name in names.items():
            if modern and (layer, part) == (0, "n1"):
                continue
            shape = sizes.get(part, (HIDDEN, HIDDEN))
            put(f"{prefix}.{name.format(layer)}", *shape, centre=len(shape) == 1, bias=not modern)
    if modern:
        put(f"{prefix}.final_norm", HIDDEN, centre=1, bias=False)
    if logits is not None:
        put(middle, HIDDEN, HIDDEN, bias=not modern)
        if modern:
            put("head.norm", HIDDEN, centre=1, bias=False)
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
        return x @ self.w[f"{name}.weight"].T + self.w.get(f"{name}.bias", 0)

    def norm(self, x: Array, name: str) -> Array:
        scaled = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
        return scaled * self.w[f"{name}.weight"] + self.w.get(f"{name}.bias", 0)

    def states(self, ids: list[int], types: list[int]) -> list[Array]:
        """Return token vectors (S, H) after the embeddings and after each layer."""
        names, widen, kinds, offset, activation, _, _ = FAMILIES[self.family]
        prefix = PREFIXES.get(self.family, self.family)
        embeddings = f"{prefix}.embeddings"
        if self.family == "modernbert":
            x = self.norm(self.w[f"{embeddings}.tok_embeddings.weight"][ids], f"{embeddings}.norm")
            states = [x]
            for layer in range(LAYERS):
                at = {part: f"{prefix}.{name.format(layer)}" for part, name in names.items()}
                states.append(self.modern_layer(states[-1], at, layer))
            return [*states[:-1], self.norm(states[-1], f"{prefix}.final_norm")]
        x = self.w[f"{embeddings}.word_embeddings.weight"][ids]
        if self.family not in PREFIXES:
            x = x + self.w[f"{embeddings}.position_embeddings.weight"][offset : offset + len(ids)]
        if kinds:
            used = types if kinds > 1 else [0] * len(ids)
            x = x + self.w[f"{embeddings}.token_type_embeddings.weight"][used]
        x = self.norm(x, f"{embeddings}.LayerNorm")
        states = [self.linear(x, f"{prefix}.{widen}") if widen else x]
        for layer in range(LAYERS):
            at = {part: f"{prefix}.{name.format(layer)}" for part, name in names.items()}
            states.append(self.layer(states[-1], at, activation))
        return states

    def layer(self, x: Array, at: dict[str, str], activation: str) -> Array:
        q, k, v = (self.heads(self.linear(x, at[part])) for part in "qkv")
        scores = np.einsum("qhd,khd->hqk", q, k) / math.sqrt(q.shape[2])
        if self.family == "deberta-v2":
            scores = (scores + self.distance_scores(q, k, at)) / math.sqrt(3)
        x = self.norm(x + self.attended(scores, v, at), at["n1"])
        inner = ACTIVATIONS[activation](self.linear(x, at["up"]))
        return self.norm(x + self.linear(inner, at["down"]), at["n2"])

    def modern_layer(self, x: Array, at: dict[str, str], layer: int) -> Array:
        """A layer of ModernBERT; every second one sees only a window of tokens."""
        read = self.norm(x, at["n1"]) if layer else x
        q, k, v = (self.heads(part) for part in np.split(self.linear(read, at["qkv"]), 3, 1))
        local, size, places = layer % 2, q.shape[2], np.arange(len(x))
        angles = places[:, None] / BASES[local] ** (np.arange(0, size, 2) / size)
        turned = np.exp(1j * angles)[:, None]  # dimension d and d + D / 2 as a complex number
        q, k = ((y[..., : size // 2] + 1j * y[..., size // 2 :]) * turned for y in (q, k))
        scores = np.einsum("qhd,khd->hqk", q, k.conj()).real / math.sqrt(size)
        if local:
            scores[:, np.abs(places[:, None] - places) > WINDOW] = -np.inf
        x = x + self.attended(scores, v, at)
        inner, gate = np.split(self.linear(self.norm(x, at["n2"]), at["up"]), 2, 1)
        return x + self.linear(ACTIVATIONS["gelu"](inner) * gate, at["down"])

    def distance_scores(self, q: Array, k: Array, at: dict[str, str]) -> Array:
        """DeBERTa's products of queries and keys with embeddings of distances."""
        table = self.w["deberta.encoder.rel_embeddings.weight"]
        table = self.norm(table, "deberta.encoder.LayerNorm")
        queries, keys = (self.heads(self.linear(table, at[part])) for part in "qk")
        scores = np.zeros((HEADS, len(q), len(q)))
        for i, j in np.ndindex(len(q), len(q)):
            far = abs(i - j)
            if far > BUCKETS // 2:
                steps = math.log(2 * far / BUCKETS) / math.log(2 * (POSITIONS - 1) / BUCKETS)
                far = BUCKETS // 2 + math.ceil(steps * (BUCKETS // 2 - 1))
            row = BUCKETS + (far if i > j else -far)
            by_query, by_key = (q[i] * keys[row]).sum(1), (k[j] * queries[row]).sum(1)
            scores[:, i, j] = (by_query + by_key) / math.sqrt(q.shape[2])
        return scores

    def heads(self, x: Array) -> Array:
        return x.reshape(-1, HEADS, HIDDEN // HEADS)

    def attended(self, scores: Array, v: Array, at: dict[str, str]) -> Array:
        weights = np.exp(scores)
        mixed = np.einsum("hqk,khd->qhd", weights / weights.sum(-1, keepdims=True), v)
        return self.linear(mixed.reshape(-1, HIDDEN), at["o"])

    def logits(self, ids: list[int], types: list[int], output: str = "") -> Array:
        _, _, _, _, _, (middle, activation), classifier = FAMILIES[self.family]
        tokens = self.states(ids, types)[-1]
        modern = self.family == "modernbert"
        first = ACTIVATIONS[activation](
            self.linear(tokens.mean(0) if modern else tokens[0], middle)
        )
        first = self.norm(first, "head.norm") if modern else first
        return self.linear(first, output or classifier)


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


# Inputs for the models of `write_family`: token ids and types.
RANDOM = np.random.default_rng(7)
IDS = [RANDOM.integers(5, 25, n).tolist() for n in (3, 9, 9, 17, 31, 32, 9, 31)]
TYPES = [[0] * (len(i) // 2) + [1] * (len(i) - len(i) // 2) for i in IDS]

# A static embedding.
TABLE = np.random.default_rng(3).normal(size=(len(VOCABULARY), 8)).astype(np.float32)
TEXTS = ["the birch bark canoe", "bees dance . dance !", "unknown river", "stone", ""]


def write_table(folder: Path, name: str = "embedding.weight") -> Path:
    return write_static(folder, TABLE, name)


def load_table(folder: Path) -> EmbeddingScorer:
    scorer = load_scorer(folder)
    assert isinstance(scorer, EmbeddingScorer)
    return scorer
