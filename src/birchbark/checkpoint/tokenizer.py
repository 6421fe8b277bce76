"""How does a model's tokeniser turn texts into token ids and model inputs?"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.encoder_module import read_encoder_module
from birchbark.checkpoint.heads import Pooling
from birchbark.checkpoint.json_files import read_object
from birchbark.errors import CheckpointError, InputError
from birchbark.records import Ids

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

MAX_GROWTH = 1000  # times its length that a normaliser may make a text
MAX_UNUSED_ROWS = 1000  # embedding rows may lack a token: so many, or 2 % of all if that is more


class CheckpointTokenizer:
    """A model's own tokeniser, without truncation or padding.

    The special tokens and token types around one or two texts are determined once, when the
    tokeniser is loaded. Inputs are then assembled from encoded texts.

    Attributes:
        single_overhead: Number of special tokens in an input of one text.
        pair_overhead: Number of special tokens in an input of two texts.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Load the tokeniser (see `_load`); CheckpointError if it does not fit the weights."""
        self._where = where = str(checkpoint.directory)
        self._tokenizer = _load(checkpoint)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        _check_case(self._tokenizer, checkpoint)
        _check_size(self._tokenizer, checkpoint)
        with _convert_errors(where):
            self._single = _frame(self._tokenizer.encode("a"), 1, where)
            self._pair = _frame(self._tokenizer.encode("a", "a"), 2, where)
        _check_frames([*self._single, *self._pair], checkpoint)
        self.single_overhead, self.pair_overhead = (
            sum(len(ids) for ids, _ in frame[::2]) for frame in (self._single, self._pair)
        )
        self._check_max_length(checkpoint)

    def _check_max_length(self, checkpoint: Checkpoint) -> None:
        """Raise CheckpointError if an input has no room for text beside the special tokens."""
        single = isinstance(checkpoint.head, Pooling)
        min_length = self.single_overhead + 1 if single else self.pair_overhead + 2
        if checkpoint.max_length < min_length:
            raise CheckpointError(
                "the model's inputs are too short for any text",
                where=str(checkpoint.directory),
                wanted=f"at least {min_length} tokens, special tokens included",
                found=str(checkpoint.max_length),
            )

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the tokeniser's complete configuration."""
        return hashlib.sha256(self._tokenizer.to_str().encode("utf-8", "surrogatepass")).hexdigest()

    def encodes_like(self, other: CheckpointTokenizer) -> bool:
        """Whether both have the same vocabulary, special tokens, normaliser and pre-tokeniser.

        Then they encode texts alike; algorithm and merges are not compared.
        """
        a, b = (json.loads(t._tokenizer.to_str()) for t in (self, other))
        return (
            self._tokenizer.get_vocab() == other._tokenizer.get_vocab()
            and (self._single, self._pair) == (other._single, other._pair)
            and all(a[stage] == b[stage] for stage in ("normalizer", "pre_tokenizer"))
        )

    @property
    def size(self) -> int:
        """The highest token id plus 1."""
        return max(self._tokenizer.get_vocab().values()) + 1

    def vocabulary(self) -> list[str]:
        """Return all tokens in the order of their ids."""
        ids = self._tokenizer.get_vocab()
        return sorted(ids, key=ids.__getitem__)

    def id_to_token(self) -> dict[int, str]:
        """Return token id → token."""
        return {number: token for token, number in self._tokenizer.get_vocab().items()}

    def pretokenize(self, text: str) -> list[str]:
        """Return the normalised words of `text`, before they are split into tokens."""
        with _convert_errors(self._where):
            normaliser, splitter = self._tokenizer.normalizer, self._tokenizer.pre_tokenizer
            text = normaliser.normalize_str(text) if normaliser else text
            return [word for word, _ in splitter.pre_tokenize_str(text)] if splitter else [text]

    @property
    def algorithm(self) -> str:
        """The algorithm that splits words into tokens: WordPiece, BPE or Unigram."""
        return str(json.loads(self._tokenizer.to_str())["model"].get("type"))

    def with_words(self, words: Sequence[str]) -> Tokenizer:
        """Return a copy of this tokeniser with new tokens, whose ids follow the existing ids.

        Raises InputError if the algorithm is not WordPiece, or if a token already exists or occurs
        twice in `words`.
        """
        from tokenizers import Tokenizer

        settings = json.loads(self._tokenizer.to_str())
        vocabulary = self._tokenizer.get_vocab()
        if self.algorithm != "WordPiece":
            raise InputError("words cannot be added", wanted="WordPiece", found=self.algorithm)
        if existing := [word for word in words if word in vocabulary]:
            raise InputError("words cannot be added", found=f"in the vocabulary: {existing}")
        if len(set(words)) < len(words):
            raise InputError("words cannot be added", found="the same word twice")
        settings["model"]["vocab"] |= {word: self.size + n for n, word in enumerate(words)}
        return Tokenizer.from_str(json.dumps(settings))

    def save(self, path: Path) -> None:
        """Write the tokeniser to `path`, in the format of tokenizer.json."""
        self._tokenizer.save(str(path))

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        """Return the token ids of each text, without special tokens."""
        with _convert_errors(self._where):
            encoded = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [np.array(e.ids, np.int32) for e in encoded]

    def single_input(self, text: Ids) -> Ids:
        """Return the input ids of one encoded text: the text between special tokens."""
        (before, _), _, (after, _) = self._single
        return _joined(before, text, after)

    def pair_input(self, query: Ids, text: Ids) -> tuple[Ids, Ids]:
        """Return the ids and token types of an input of query and text, with special tokens."""
        (start, start_types), (_, a), (middle, middle_types), (_, b), (end, end_types) = self._pair
        types = [*start_types, *a * len(query), *middle_types, *b * len(text), *end_types]
        return _joined(start, query, middle, text, end), np.array(types, np.int32)

    @property
    def special_ids(self) -> set[int]:
        """Ids of the special tokens that surround texts in inputs."""
        return {
            int(n) for frame in (self._single, self._pair) for ids, _ in frame[::2] for n in ids
        }

    def text_ranges(self, query: int | None, text: int) -> list[tuple[int, int]]:
        """Return the positions in an input, start and end, of the query and of the text.

        query, text: their lengths in tokens. query is None for an input of one text, which has only
        one range.
        """
        if query is None:
            start = len(self._single[0][0])
            return [(start, start + text)]
        start = len(self._pair[0][0])
        middle = start + query + len(self._pair[2][0])
        return [(start, start + query), (middle, middle + text)]

    def join(self, text: Ids, other: Ids) -> Ids:
        """Join two encoded texts with the special tokens that separate a query from a text."""
        return _joined(text, self._pair[2][0], other)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the start and end offset of each token in `text`, in characters."""
        with _convert_errors(self._where):
            encoded = self._tokenizer.encode(text, add_special_tokens=False)
        spans: list[tuple[int, int]] = encoded.offsets
        return spans


def _joined(*parts: Sequence[int] | Ids) -> Ids:
    return np.concatenate([np.asarray(part, np.int32) for part in parts])


def _frame(probe: Encoding, texts: int, where: str) -> list[tuple[list[int], list[int]]]:
    """Return the ids and types in each part of an input: special tokens, text, special tokens, ….

    probe: an encoded input of `texts` texts, which has 2 · texts + 1 parts. A text's part has only
    one type, that of all its tokens. Raises CheckpointError if there are no special tokens between
    texts, or before or after them.
    """
    parts: list[tuple[list[int], list[int]]] = [([], []) for _ in range(2 * texts + 1)]
    at = 0
    for number, kind, text in zip(probe.ids, probe.type_ids, probe.sequence_ids, strict=True):
        at = 2 * text + 1 if text is not None else at + at % 2
        parts[at][0].append(number)
        parts[at][1].append(kind)
    if not all(ids for ids, _ in parts):
        raise CheckpointError(
            "the tokeniser does not put special tokens before, between and after texts",
            where=where,
            remedy="tokenizer.json needs a post_processor, as transformers saves it",
        )
    for part in range(1, 2 * texts, 2):  # all tokens of a text have one type
        parts[part] = parts[part][0], parts[part][1][:1]
    return parts


def _check_case(tokenizer: Tokenizer, checkpoint: Checkpoint) -> None:
    """Raise CheckpointError if texts would be lowercased by sentence-transformers alone."""
    path, module = read_encoder_module(checkpoint.directory)
    with _convert_errors(str(checkpoint.directory)):
        keeps_case = not tokenizer.normalizer or tokenizer.normalizer.normalize_str("A") != "a"
    if module.get("do_lower_case") and keeps_case:
        raise CheckpointError(
            "unsupported do_lower_case",
            where=str(path),
            wanted="false, or a tokeniser that lowercases texts",
            found=repr(module["do_lower_case"])[:40],
        )


def _check_size(tokenizer: Tokenizer, checkpoint: Checkpoint) -> None:
    """Raise CheckpointError if the numbers of tokens and of token embeddings do not match.

    There may be slightly fewer tokens, since embeddings are often padded to a round number.
    """
    rows = checkpoint.config.vocabulary
    size = max(tokenizer.get_vocab().values(), default=-1) + 1
    min_size = rows - max(MAX_UNUSED_ROWS, rows // 50)
    if not min_size <= size <= rows:
        raise CheckpointError(
            "vocabulary and weights do not match",
            where=str(checkpoint.directory),
            wanted=f"at most {rows} tokens, as in config.json"
            + (f", and at least {min_size}" if size < min_size else ""),
            found=str(size),
        )


def _check_frames(parts: Sequence[tuple[list[int], list[int]]], checkpoint: Checkpoint) -> None:
    """Raise CheckpointError for special tokens or token types that have no embedding."""
    rows, type_rows = checkpoint.config.vocabulary, max(2, checkpoint.config.types)
    for ids, types in parts:
        if max(ids) >= rows or max(types) >= type_rows:
            raise CheckpointError(
                "special tokens and weights do not match",
                where=str(checkpoint.directory),
                wanted=f"ids below {rows}, and types below {type_rows}",
                found=f"{max(ids)} of type {max(types)}",
            )


@contextmanager
def _convert_errors(where: str) -> Iterator[None]:
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


def _load(checkpoint: Checkpoint) -> Tokenizer:
    """Load tokenizer.json, else BERT's vocab.txt, else RoBERTa's vocab.json and merges.txt."""
    from tokenizers import Tokenizer
    from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer

    complete, wordpieces, vocabulary, merges = (
        checkpoint.directory / name
        for name in ("tokenizer.json", "vocab.txt", "vocab.json", "merges.txt")
    )
    settings = _settings(checkpoint)
    with _convert_errors(str(checkpoint.directory)):
        if complete.exists():
            _check_growth(read_object(complete).get("normalizer"), complete)
            return Tokenizer.from_file(str(complete))
        if wordpieces.exists() and not checkpoint.family.offset:
            case = {
                "lowercase": settings.get("do_lower_case", True),
                "strip_accents": settings.get("strip_accents"),
            }
            return BertWordPieceTokenizer(str(wordpieces), **case)._tokenizer
        if vocabulary.exists() and merges.exists():
            return _byte_level(str(vocabulary), str(merges), bool(settings.get("add_prefix_space")))
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


def _settings(checkpoint: Checkpoint) -> dict[str, Any]:
    """Read tokenizer_config.json (case, accents, spaces); empty if there is none."""
    path = checkpoint.directory / "tokenizer_config.json"
    return read_object(path) if path.exists() else {}
