"""How is a model's tokeniser loaded, and which are refused?"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.json_files import read_object
from birchbark.checkpoint.known_words import KnownWords
from birchbark.checkpoint.transformer_module import read_tokenizer_config, read_transformer_module
from birchbark.errors import CheckpointError, InputError

if TYPE_CHECKING:
    from pathlib import Path

    from tokenizers import Tokenizer

COMPLETE, REMEMBERED = "tokenizer.json", 4  # tokenisers
MOST_BYTES = 100_000_000  # of a file; vocabularies of 260,000 tokens have 35 million
MAX_UNUSED_ROWS = 1000  # embedding rows may lack a token: so many, or 2 % of all if that is more
MAX_GROWTH = 1000  # times its length that a normaliser may make a text


def load_tokenizer(checkpoint: Checkpoint) -> KnownWords:
    """Load the tokeniser of `checkpoint`, without truncation and padding.

    Raises CheckpointError if there is none, or if it is damaged or not supported.
    """
    markers, complete = checkpoint.prompts.markers, checkpoint.directory / COMPLETE
    with convert_errors(str(checkpoint.directory)):
        if complete.exists() and not markers:
            known = _parsed(_content(complete, checkpoint))
        else:
            tokenizer = _read(checkpoint)
            _register_markers(tokenizer, markers)
            known = KnownWords(tokenizer)
    _check_case(known.tokenizer, checkpoint)
    return known


@lru_cache(REMEMBERED)
def _parsed(content: str) -> KnownWords:
    """Return the tokeniser of a tokenizer.json; models with the same one share it.

    It must not be changed: other threads may be encoding with it.
    """
    from tokenizers import Tokenizer

    return KnownWords(_unlimited(Tokenizer.from_str(content)))


def _content(complete: Path, checkpoint: Checkpoint) -> str:
    """Return what a tokenizer.json holds; CheckpointError if parsing or using it is a trap."""
    _check_bytes(complete)
    values = read_object(complete)
    _check_growth(values.get("normalizer"), complete)
    model = values.get("model")
    _check_ids(model.get("vocab") if isinstance(model, dict) else None, checkpoint)
    return complete.read_text(encoding="utf-8")


def _check_bytes(path: Path) -> None:
    """Raise CheckpointError for a file whose parsing would take long."""
    if (size := path.stat().st_size) > MOST_BYTES:
        raise CheckpointError(
            "the tokeniser is too large",
            where=str(path),
            wanted=f"at most {MOST_BYTES:,} bytes",
            found=f"{size:,}",
        )


def _check_ids(vocabulary: Any, checkpoint: Checkpoint) -> None:
    """Raise CheckpointError if there are fewer embeddings than tokens.

    Before the library parses it, which counts up to the highest id to write a tokeniser.

    vocabulary: token → id, or a list of tokens; anything else is left to the library.
    """
    if isinstance(vocabulary, dict):
        size = max((i for i in vocabulary.values() if isinstance(i, int)), default=-1) + 1
    else:
        size = len(vocabulary) if isinstance(vocabulary, list) else 0
    if size > checkpoint.config.vocabulary:
        check_vocabulary_size(size, checkpoint)


def check_vocabulary_size(size: int, checkpoint: Checkpoint) -> None:
    """Raise CheckpointError if the numbers of tokens and of token embeddings do not match.

    There may be slightly fewer tokens, since embeddings are often padded to a round number. size:
    the highest id plus 1.
    """
    rows = checkpoint.config.vocabulary
    min_size = rows - max(MAX_UNUSED_ROWS, rows // 50)
    if not min_size <= size <= rows:
        raise CheckpointError(
            "vocabulary and weights do not match",
            where=str(checkpoint.directory),
            wanted=f"at most {rows} tokens, as in config.json"
            + (f", and at least {min_size}" if size < min_size else ""),
            found=str(size),
        )


def _unlimited(tokenizer: Tokenizer) -> Tokenizer:
    """Return the tokeniser without truncation and padding."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _read(checkpoint: Checkpoint) -> Tokenizer:
    """Read tokenizer.json, else BERT's vocab.txt, else RoBERTa's vocab.json and merges.txt."""
    from tokenizers import Tokenizer
    from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer

    complete, wordpieces, vocabulary, merges = (
        checkpoint.directory / name for name in (COMPLETE, "vocab.txt", "vocab.json", "merges.txt")
    )
    settings = read_tokenizer_config(checkpoint.directory)
    with convert_errors(str(checkpoint.directory)):
        if complete.exists():
            return _unlimited(Tokenizer.from_str(_content(complete, checkpoint)))
        if wordpieces.exists() and not checkpoint.family.offset:
            case = {
                "lowercase": settings.get("do_lower_case", True),
                "strip_accents": settings.get("strip_accents"),
            }
            _check_bytes(wordpieces)
            _check_ids(wordpieces.read_bytes().removesuffix(b"\n").split(b"\n"), checkpoint)
            return _unlimited(BertWordPieceTokenizer(str(wordpieces), **case)._tokenizer)
        if vocabulary.exists() and merges.exists():
            _check_bytes(vocabulary)
            _check_bytes(merges)
            _check_ids(read_object(vocabulary), checkpoint)
            spaced = bool(settings.get("add_prefix_space"))
            return _unlimited(_byte_level(str(vocabulary), str(merges), spaced))
    raise CheckpointError(
        "no tokeniser that fits this model",
        where=str(checkpoint.directory),
        wanted="tokenizer.json, or vocab.txt of WordPieces, or vocab.json and merges.txt",
        remedy="save_pretrained of transformers' fast tokeniser writes tokenizer.json",
    )


def _check_growth(normaliser: Any, path: Path) -> None:
    """Raise CheckpointError if replacements could fill the memory, as forty times "a" by "aa"."""
    if (growth := _growth(normaliser)) > MAX_GROWTH:
        raise CheckpointError(
            "the normaliser makes texts too long",
            where=str(path),
            wanted=f"at most {MAX_GROWTH:,} times their length",
            found=f"{growth:.3g} times",
        )


def _growth(normaliser: Any) -> float:
    """Return how many times longer the replacements of a normaliser can make a text, at most."""
    if not isinstance(normaliser, dict):
        return 1.0
    if isinstance(members := normaliser.get("normalizers"), list):
        return math.prod(map(_growth, members))
    if isinstance(first := normaliser.get("prepend"), str):
        return len(first) + 1
    pattern, content = normaliser.get("pattern"), normaliser.get("content")
    if not isinstance(pattern, dict) or not isinstance(content, str):
        return 1.0
    literal = pattern.get("String")  # a regular expression may match nothing, before each character
    return max(1.0, len(content) / max(1, len(literal)) if literal else len(content) + 1)


def _byte_level(vocabulary: str, merges: str, add_prefix_space: bool) -> Tokenizer:
    """Build RoBERTa's tokeniser: <s> query </s></s> text </s>, all of type 0."""
    from tokenizers import AddedToken
    from tokenizers.implementations.byte_level_bpe import ByteLevelBPETokenizer
    from tokenizers.processors import RobertaProcessing

    bpe = ByteLevelBPETokenizer(vocabulary, merges, add_prefix_space=add_prefix_space)
    tokenizer = bpe._tokenizer
    start, end = (tokenizer.token_to_id(token) for token in ("<s>", "</s>"))
    if start is None or end is None:
        raise ValueError("vocab.json lacks <s> or </s>")
    others = [t for t in ("<pad>", "<unk>") if tokenizer.token_to_id(t) is not None]
    tokenizer.add_special_tokens(["<s>", "</s>", *others])
    if tokenizer.token_to_id("<mask>") is not None:
        tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    tokenizer.post_processor = RobertaProcessing(
        ("</s>", end), ("<s>", start), add_prefix_space=add_prefix_space
    )
    return tokenizer


def _register_markers(tokenizer: Tokenizer, markers: Sequence[str]) -> None:
    """Have each marker of a prompt, or its first word, become a single token, if it is one.

    A model that was trained with [unused0] before queries would otherwise read [, unused, ##0, ].
    """
    from tokenizers import AddedToken

    vocabulary = tokenizer.get_vocab()
    for marker in markers:
        token = next((t for t in (marker, marker.split()[0]) if t in vocabulary), None)
        if token and tokenizer.encode(token, add_special_tokens=False).tokens != [token]:
            tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True)])


def _check_case(tokenizer: Tokenizer, checkpoint: Checkpoint) -> None:
    """Raise CheckpointError if texts would be lowercased by sentence-transformers alone."""
    path, module = read_transformer_module(checkpoint.directory)
    with convert_errors(str(checkpoint.directory)):
        keeps_case = not tokenizer.normalizer or tokenizer.normalizer.normalize_str("A") != "a"
    if module.get("do_lower_case") and keeps_case:
        raise CheckpointError(
            "unsupported do_lower_case",
            where=str(path),
            wanted="false, or a tokeniser that lowercases texts",
            found=repr(module["do_lower_case"])[:40],
        )


@contextmanager
def convert_errors(where: str) -> Iterator[None]:
    """Convert whatever tokenizers raises, Rust panics included, into our own errors.

    It becomes InputError for a text that is not valid Unicode, otherwise CheckpointError.
    """
    try:
        yield
    except (CheckpointError, KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as broken:
        if re.match("Text(Encode)?Input", str(broken)):
            raise InputError(
                "a text is not valid Unicode: it contains half a surrogate pair"
            ) from broken
        raise CheckpointError(f"damaged tokeniser: {broken}", where=where) from broken
