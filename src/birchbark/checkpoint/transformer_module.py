"""What does the configuration of sentence-transformers' Transformer module state about inputs?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from birchbark.checkpoint.encoder_config import EncoderConfig, check_size
from birchbark.checkpoint.json_files import read_object
from birchbark.checkpoint.modules import check_values
from birchbark.errors import CheckpointError

ENCODER_MODULE = "sentence_bert_config.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
INPUT_KEYS = ("query_length", "document_length", "query_expansion")  # of multi-vector models
TASKS = ("feature-extraction", "sequence-classification")
ARGUMENTS = ("config_args", "config_kwargs", "tokenizer_args", "processor_kwargs")
LENGTHS = {"max_length", "truncation", "padding"}  # which texts are not truncated to here
METHODS = (  # of transformers' models, and which of their outputs is read
    {"method": "forward", "method_output_name": "last_hidden_state"},
    {"method": "forward", "method_output_name": "logits"},
)


def read_transformer_module(home: Path) -> tuple[Path, dict[str, Any]]:
    """Return the configuration of the module in `home`, after its path; empty if there is none."""
    path = home / ENCODER_MODULE
    return path, read_object(path) if path.exists() else {}


def read_tokenizer_config(home: Path) -> dict[str, Any]:
    """Return what tokenizer_config.json in `home` states; empty if there is none."""
    path = home / TOKENIZER_CONFIG
    return read_object(path) if path.exists() else {}


def check_transformer_module(home: Path) -> None:
    """Raise CheckpointError for settings that would change scores and are not supported."""
    path, module = read_transformer_module(home)
    supported: dict[str, tuple[object, ...]] = {
        "transformer_task": (None, *TASKS),
        "module_output_name": (None, "token_embeddings", "scores"),
    }
    supported |= {key: (None, {}) for key in ARGUMENTS}
    check_values(path, module, supported)
    processing = module.get("processing_kwargs") or {}
    modalities = module.get("modality_config") or {}
    for key, values, wanted in (
        ("processing_kwargs", processing, LENGTHS),
        ("modality_config", modalities, {"text"}),
    ):
        if not isinstance(values, dict) or not wanted.issuperset(_names(key, values)):
            raise CheckpointError(
                f"unsupported {key}",
                where=str(path),
                wanted=f"nothing but {', '.join(sorted(wanted))}",
                found=str(values)[:80],
            )
    check_values(path, modalities, {"text": (None, *METHODS)})


def _names(key: str, values: dict[str, Any]) -> set[str]:
    """Return the settings under `key`: of texts and in common, or the modalities themselves."""
    if key == "modality_config":
        return set(values)
    return {
        name if kind in ("text", "common") else kind
        for kind, settings in values.items()
        for name in (settings if isinstance(settings, dict) else [kind])
    }


def check_one_length(home: Path) -> None:
    """Raise CheckpointError if queries and documents are to be read in different lengths."""
    path, module = read_transformer_module(home)
    check_values(path, module, dict.fromkeys(INPUT_KEYS, (None,)))


def max_length(home: Path, config: EncoderConfig) -> int:
    """Return the maximum number of tokens in an input, special tokens included.

    As for sentence-transformers, the module states it, else the tokeniser, else the encoder.
    """
    path, module = read_transformer_module(home)
    stated = module.get("max_seq_length")
    if stated is not None:
        return min(check_size(stated, "max_seq_length", path), config.max_positions)
    stated = read_tokenizer_config(home).get("model_max_length")
    if type(stated) is int and stated > 0:  # 10³⁰ where transformers knows none
        return min(stated, config.max_positions)
    return config.max_positions


def tokenizer_states_length(home: Path, config: EncoderConfig) -> bool:
    """Tell whether tokenizer_config.json is what makes `max_length` less than the encoder's."""
    stated = read_transformer_module(home)[1].get("max_seq_length")
    return stated is None and max_length(home, config) < config.max_positions
