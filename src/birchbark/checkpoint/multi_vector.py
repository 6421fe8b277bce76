"""What of queries and texts does a model with a vector per token read and compare?

Such models (ColBERT, Khattab & Zaharia 2020) are saved by sentence-transformers' MultiVectorEncoder
and by PyLate. PyLate keeps in config_sentence_transformers.json what the former keeps with its
modules, and names fewer modules.
"""

from __future__ import annotations

import hashlib
import json
import string
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from birchbark.checkpoint.encoder_config import EncoderConfig, check_size
from birchbark.checkpoint.families import RELATIVE, Family
from birchbark.checkpoint.json_files import read_object
from birchbark.checkpoint.layers import TOKEN_VECTORS, Layer, UnitLength, read_layers
from birchbark.checkpoint.modules import DENSE, DROPOUT, MASK, NORMALIZE, check_values, read_module
from birchbark.checkpoint.prompts import PREFIXES
from birchbark.checkpoint.settings import SETTINGS, read_settings
from birchbark.checkpoint.transformer_module import INPUT_KEYS, max_length, read_transformer_module
from birchbark.errors import CheckpointError

MULTI_VECTOR, PYLATE = "MultiVectorEncoder", "ColBERT"  # values of model_type
EXPANSION_LENGTH = 32  # of PyLate's queries
SIDES = ("query", "document")
PYLATE_KEYS = (
    *PREFIXES.values(),
    *INPUT_KEYS,
    *("do_query_expansion", "attend_to_expansion_tokens", "attend_to_mask_tokens"),
    "skiplist_words",
)


@dataclass(frozen=True, slots=True)
class MultiVector:
    """What is read and compared beside the tokens of a text itself.

    Attributes:
        query_length: Maximum number of tokens in a query's input, special tokens included.
        document_length: The same for texts.
        expanded: Number of tokens to which the inputs of shorter queries are extended; 0 for none.
        expansion_token: The token that extends them.
        is_attended: Whether tokens attend to those that extend the query.
        skipped: Tokens whose vectors are not compared.
        skipped_in: Whether they are skipped in a "query", a "document", or both.
    """

    query_length: int
    document_length: int
    expanded: int = 0
    expansion_token: str = ""
    is_attended: bool = True
    skipped: tuple[str, ...] = ()
    skipped_in: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """A hash that is equal only for equal values."""
        return hashlib.sha256(json.dumps(asdict(self)).encode()).hexdigest()[:16]


def is_multi_vector(root: Path) -> bool:
    """Whether the settings in the model directory `root` are those of such a model."""
    settings = read_settings(root)
    return settings.get("model_type") in (MULTI_VECTOR, PYLATE) or any(
        key in settings for key in PREFIXES.values()
    )


def read_token_layers(
    root: Path, modules: Sequence[tuple[str, str]], width: int
) -> tuple[Layer, ...]:
    """Return the layers that are applied to each token's vector before its length becomes 1.

    modules: type and folder of the modules after the encoder. width: of the encoder's vectors.
    Raises CheckpointError unless the model normalises the vectors last, as those of PyLate do.
    """
    kinds = [kind for kind, _ in modules]
    wanted = {DENSE, NORMALIZE, MASK, DROPOUT}
    kind = read_settings(root).get("model_type")
    native = kind == MULTI_VECTOR
    complete = NORMALIZE in kinds if native else kind == PYLATE or DENSE in kinds
    if not wanted.issuperset(kinds) or not complete or kinds.count(MASK) != native:
        raise CheckpointError(
            "unsupported modules of a model with a vector per token",
            where=str(root),
            wanted=f"{DENSE}, {MASK} and {NORMALIZE}",
            found=", ".join(kinds) or "none",
        )
    listed = [module for module in modules if module[0] != MASK]
    layers, _ = read_layers(root, listed, width, TOKEN_VECTORS)
    if native and not isinstance(layers[-1], UnitLength):
        raise CheckpointError(
            "unsupported modules of a model with a vector per token",
            where=str(root),
            wanted=f"{NORMALIZE} at the end",
            found=", ".join(kinds),
        )
    return layers[:-1] if layers and isinstance(layers[-1], UnitLength) else layers


def read_multi_vector(
    root: Path,
    home: Path,
    modules: Sequence[tuple[str, str]],
    family: Family,
    config: EncoderConfig,
) -> MultiVector:
    """Return what such a model reads and compares.

    root, home: the directories of the model and of its encoder. modules: see `read_token_layers`.
    Raises CheckpointError for invalid or unsupported settings.
    """
    settings = read_settings(root)
    check_values(
        root / SETTINGS,
        {"model_type": settings.get("model_type")},
        {"model_type": (None, MULTI_VECTOR, PYLATE, "SentenceTransformer")},
    )
    path, module = read_transformer_module(home)
    stated = _pylate_inputs(settings) | {key: module[key] for key in INPUT_KEYS if key in module}
    query_length, document_length = (
        _length(stated.get(key), key, home, config) for key in ("query_length", "document_length")
    )
    skipped, skipped_in = _skipped(root, dict(modules), settings)
    expansion = stated.get("query_expansion")
    if expansion is None:
        return MultiVector(query_length, document_length, skipped=skipped, skipped_in=skipped_in)
    expanded = _expanded(expansion, config, path)
    attended = expansion.get("attend", False)
    if not attended:
        _check_unattended(expanded, family, config, path)
    return MultiVector(
        expanded if expansion["strategy"] == "fixed" else max(query_length, expanded),
        document_length,
        expanded,
        expansion.get("token") or _mask_token(home),
        attended,
        skipped,
        skipped_in,
    )


def _length(stated: Any, key: str, home: Path, config: EncoderConfig) -> int:
    """Return the maximum length of an input; None stands for that of the model."""
    if stated is None:
        return max_length(home, config)
    return min(check_size(stated, key, read_transformer_module(home)[0]), config.max_positions)


def _pylate_inputs(settings: dict[str, Any]) -> dict[str, Any]:
    """Return what PyLate states of inputs, as the Transformer module states it today."""
    stated = {
        key: settings[key]
        for key in INPUT_KEYS
        if settings.get(key) is not None or (key == "query_expansion" and key in settings)
    }
    if "query_expansion" in stated or not any(key in settings for key in PYLATE_KEYS):
        return stated
    if settings.get("do_query_expansion") is False:
        return stated | {"query_expansion": None}
    attended = settings.get(
        "attend_to_expansion_tokens", settings.get("attend_to_mask_tokens", False)
    )
    length = stated.pop("query_length", None) or EXPANSION_LENGTH
    expansion = {"strategy": "fixed", "attend": bool(attended), "length": length}
    return stated | {"query_expansion": expansion}


def _expanded(expansion: Any, config: EncoderConfig, path: Path) -> int:
    """Return the number of tokens to which queries are extended.

    Raises CheckpointError unless the settings of the expansion are complete and known.
    """
    known = {"strategy", "attend", "token", "length"}
    if not isinstance(expansion, dict) or not known.issuperset(expansion):
        raise CheckpointError(
            "unsupported query_expansion",
            where=str(path),
            wanted=f"an object of {', '.join(sorted(known))}",
            found=str(expansion)[:80],
        )
    check_values(
        path,
        {**expansion, "attend": expansion.get("attend", False)},
        {"strategy": ("fixed", "min"), "attend": (False, True)},
    )
    token = expansion.get("token")
    if token is not None and not isinstance(token, str):
        raise CheckpointError(
            "unsupported token of query_expansion", where=str(path), found=repr(token)[:40]
        )
    length = check_size(expansion.get("length"), "length of query_expansion", path)
    if not 0 < length <= config.max_positions:
        raise CheckpointError(
            "unsupported length of query_expansion",
            where=str(path),
            wanted=f"1 to {config.max_positions}",
            found=str(length),
        )
    return length


def _check_unattended(expanded: int, family: Family, config: EncoderConfig, path: Path) -> None:
    """Raise CheckpointError if tokens that no token attends to would see nothing themselves."""
    windows = [window for window in config.rotary.windows if window] if config.rotary else []
    if family.positions == RELATIVE or (windows and expanded - 2 > min(windows)):
        raise CheckpointError(
            "unsupported query_expansion: tokens that are not attended to",
            where=str(path),
            wanted='"attend": true, or an encoder in which all of them see the query',
            found=f"{expanded} tokens, windows of {min(windows)}" if windows else family.classes,
        )


def _mask_token(home: Path) -> str:
    """Return the mask token that the tokeniser's settings state."""
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        values = read_object(home / name) if (home / name).exists() else {}
        token = values.get("mask_token")
        token = token.get("content") if isinstance(token, dict) else token
        if isinstance(token, str):
            return token
    raise CheckpointError(
        "unsupported query_expansion",
        where=str(home),
        wanted="a token, or mask_token in tokenizer_config.json",
        found="none",
    )


def _skipped(
    root: Path, modules: dict[str, str], settings: dict[str, Any]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the tokens that are skipped, and in which of the two sides."""
    if MASK in modules:
        path, config = read_module(root, modules[MASK])
        words, sides = config.get("skiplist_words") or [], config.get("skiplist_tasks")
        known = {"skiplist_words", "skiplist_tasks", "keep_only_token_ids"}
        if unknown := set(config) - known:
            raise CheckpointError(f"unsupported {', '.join(sorted(unknown))}", where=str(path))
        check_values(path, config, {"keep_only_token_ids": (None,)})
    else:
        path, words, sides = root / SETTINGS, settings.get("skiplist_words"), None
        words = list(string.punctuation) if words is None else words
    sides = [sides] if isinstance(sides, str) else ["document"] if sides is None else sides
    for key, values, wanted in (
        ("skiplist_words", words, "a list of tokens"),
        ("skiplist_tasks", sides, "query, document or both"),
    ):
        texts = isinstance(values, list) and all(isinstance(value, str) for value in values)
        if not texts or (key == "skiplist_tasks" and not set(SIDES).issuperset(values)):
            raise CheckpointError(
                f"unsupported {key}", where=str(path), wanted=wanted, found=str(values)[:80]
            )
    return tuple(words), tuple(side for side in SIDES if side in sides)
