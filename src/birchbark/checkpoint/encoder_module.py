"""What does the configuration of sentence-transformers' Transformer module state about inputs?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from birchbark.checkpoint.encoder_config import EncoderConfig, check_size
from birchbark.checkpoint.json_files import read_object
from birchbark.checkpoint.modules import check_values
from birchbark.errors import CheckpointError

ENCODER_MODULE = "sentence_bert_config.json"
INPUT_KEYS = ("query_length", "document_length", "query_expansion")  # of multi-vector models
TASKS = ("feature-extraction", "sequence-classification")
METHODS = (  # of transformers' models, and which of their outputs is read
    {"method": "forward", "method_output_name": "last_hidden_state"},
    {"method": "forward", "method_output_name": "logits"},
)


def read_encoder_module(home: Path) -> tuple[Path, dict[str, Any]]:
    """Return the configuration of the module in `home`, after its path; empty if there is none."""
    path = home / ENCODER_MODULE
    return path, read_object(path) if path.exists() else {}


def check_encoder_module(home: Path) -> None:
    """Raise CheckpointError for settings that would change scores and are not supported."""
    path, module = read_encoder_module(home)
    check_values(path, module, {"transformer_task": (None, *TASKS)})
    if unsupported := module.get("processing_kwargs"):
        raise CheckpointError(
            "unsupported processing_kwargs", where=str(path), found=str(unsupported)[:80]
        )
    modalities = module.get("modality_config")
    if modalities is None:
        return
    if not isinstance(modalities, dict) or "message" in modalities:
        raise CheckpointError(
            "unsupported modality_config",
            where=str(path),
            wanted="that of texts, without a chat template",
            found=str(modalities)[:80],
        )
    check_values(path, modalities, {"text": METHODS})


def check_one_length(home: Path) -> None:
    """Raise CheckpointError if queries and documents are to be read in different lengths."""
    path, module = read_encoder_module(home)
    check_values(path, module, dict.fromkeys(INPUT_KEYS, (None,)))


def max_length(home: Path, config: EncoderConfig) -> int:
    """Return the maximum number of tokens in an input, special tokens included."""
    path, module = read_encoder_module(home)
    stated = module.get("max_seq_length")
    if stated is None:
        return config.max_positions
    return min(check_size(stated, "max_seq_length", path), config.max_positions)
