"""How is a model directory written, so that other libraries can load it?

It has the layout of transformers: config.json, model.safetensors and the tokeniser, together with a
model card and the lineage. sentence-transformers (CrossEncoder or SentenceTransformer) and score/
load it without conversion.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from birchbark.artifact import new_directory, write_json
from birchbark.checkpoint.architecture import POOLER, Architecture
from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.encoder_config import EncoderConfig
from birchbark.checkpoint.heads import (
    HEAD_KEY,
    POOLING_KEYS,
    POOLING_MODES,
    READS_PASSAGES,
    READS_TWO_TEXTS,
    Pooling,
)
from birchbark.checkpoint.json_files import read_object
from birchbark.checkpoint.model_card import card_kind, write_card
from birchbark.checkpoint.prompts import Prompts
from birchbark.checkpoint.settings import SETTINGS
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.checkpoint.transformer_module import TOKENIZER_CONFIG, read_tokenizer_config

DROPPED_KEYS = (  # describe the base only; the last two make other libraries apply a sigmoid
    *("problem_type", "_name_or_path", "quantization_config"),
    *("sentence_transformers", "sbert_ce_default_activation_function"),
)
VOCABULARIES = ("vocab.txt", "vocab.json", "merges.txt", "special_tokens_map.json")


@dataclass(frozen=True, slots=True, eq=False)
class TrainedModel:
    """A trained model, ready to be written.

    Attributes:
        base: The model that it was trained from.
        tokenizer: Its tokeniser.
        config: Sizes of its encoder.
        architecture: The kind of model.
        max_length: Maximum number of tokens in an input, which it states; scoring honours it.
        weights: Contents of model.safetensors.
    """

    base: Checkpoint
    tokenizer: CheckpointTokenizer
    config: EncoderConfig
    architecture: Architecture
    max_length: int
    weights: bytes

    def write(self, target: Path, lineage: Mapping[str, Any]) -> None:
        """Write the directory `target`, replacing an existing one. lineage: see model_card.py."""
        base = self.base
        with new_directory(target, replace=True) as scratch:
            (scratch / "model.safetensors").write_bytes(self.weights)
            write_json(scratch / "config.json", self._config())
            self.tokenizer.save(scratch / "tokenizer.json")
            write_json(scratch / TOKENIZER_CONFIG, _tokenizer_config(base, self.max_length))
            for name in VOCABULARIES:
                if (base.directory / name).exists():
                    shutil.copyfile(base.directory / name, scratch / name)
            mode = self.architecture.pooling
            if self.architecture.masked and isinstance(base.head, Pooling) and not base.pooling:
                mode = base.head.mode  # an adapted embedding model remains an embedding model
                write_prompts(scratch, base.prompts)
            if mode:
                write_pooling(scratch, mode, self.config.hidden, self.max_length)
            write_card(scratch, lineage, card_kind(self.architecture))

    def _config(self) -> dict[str, Any]:
        """Return config.json: the base's, with this model's sizes and head."""
        base, shape, keys = self.base, self.config, self.base.family.keys
        config = read_object(base.directory / "config.json")
        for key in (*DROPPED_KEYS, HEAD_KEY, "id2label", "label2id"):
            config.pop(key, None)
        sizes = {
            "num_hidden_layers": shape.layers,
            "hidden_size": shape.hidden,
            "num_attention_heads": shape.heads,
            "intermediate_size": shape.intermediate,
        }
        if base.family.names.widen:
            sizes["embedding_size"] = shape.embedding
        if "{group}" in base.family.names.query:
            sizes["num_hidden_groups"] = shape.groups
        if shape.rotary:
            config["layer_types"] = shape.rotary.kinds
        return (
            config
            | _head_config(self.architecture)
            | {
                "architectures": [base.family.classes + _class_suffix(self.architecture)],
                **{keys.get(key, key): size for key, size in sizes.items()},
                "torch_dtype": "float32",
            }
        )


def write_pooling(folder: Path, mode: str, hidden: int, max_length: int) -> None:
    """Write the files that make `folder` an embedding model of sentence-transformers."""
    package = "sentence_transformers.models"
    modules = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    listed = [
        {"idx": n, "name": str(n), "path": path, "type": f"{package}.{name}"}
        for n, (path, name) in enumerate(modules)
    ]
    pooling: dict[str, Any] = {k: m == mode for k, m in POOLING_KEYS.items() if m in POOLING_MODES}
    pooling["word_embedding_dimension"] = hidden
    pooling["pooling_mode_mean_sqrt_len_tokens"] = False
    limits = {"max_seq_length": max_length, "do_lower_case": False}
    (folder / "1_Pooling").mkdir(exist_ok=True)
    write_json(folder / "modules.json", listed)
    write_json(folder / "sentence_bert_config.json", limits)
    write_json(folder / "1_Pooling" / "config.json", pooling)


def write_prompts(folder: Path, prompts: Prompts) -> None:
    """Write the file from which sentence-transformers reads prompts, unless there are none."""
    if prompts:
        named = {"query": prompts.query, "document": prompts.document}
        write_json(folder / SETTINGS, {"prompts": named, "default_prompt_name": None})


def _head_config(architecture: Architecture) -> dict[str, Any]:
    """Return the keys of config.json that describe the head."""
    if architecture.pooling or architecture.masked:
        return {}
    head: dict[str, Any] = {}
    if architecture.parade:
        kind = {"reads": READS_PASSAGES, "aggregation": architecture.parade}
        if architecture.passage_vectors != POOLER:
            kind["vectors"] = architecture.passage_vectors
        head = {HEAD_KEY: kind}
    if architecture.duo:
        head = {HEAD_KEY: {"reads": READS_TWO_TEXTS}}
    return head | {"id2label": {"0": "relevance"}, "label2id": {"relevance": 0}}


def _class_suffix(architecture: Architecture) -> str:
    """Return the suffix of the class that transformers loads the model with."""
    if architecture.masked:
        return "ForMaskedLM"
    plain = architecture.parade or architecture.pooling
    return "Model" if plain else "ForSequenceClassification"


def _tokenizer_config(base: Checkpoint, max_length: int) -> dict[str, Any]:
    config = read_tokenizer_config(base.directory)
    for key in ("max_length", "name_or_path", "stride", "truncation_side", "truncation_strategy"):
        config.pop(key, None)
    return config | {"model_max_length": max_length}
