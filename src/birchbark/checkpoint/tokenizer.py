"""How does a model's tokeniser turn texts into token ids and model inputs?"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.heads import Pooling
from birchbark.checkpoint.load_tokenizer import (
    check_vocabulary_size,
    convert_errors,
    load_tokenizer,
)
from birchbark.errors import CheckpointError, InputError
from birchbark.records import Ids
from birchbark.text.normal_form import usual_letters
from birchbark.text.words import pieces

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

STEP = 16_384  # characters that are encoded at once: while they are, no other thread runs
REACH = STEP  # in which a step ends at a blank
_BEFORE_BLANK = re.compile(r"(?<=\S) ")  # a tokeniser reads what follows as it does in the text


class CheckpointTokenizer:
    """A model's own tokeniser, without truncation or padding.

    The special tokens and token types around one or two texts are determined once, when the
    tokeniser is loaded. Inputs are then assembled from encoded texts.

    Attributes:
        single_overhead: Number of special tokens in an input of one text.
        pair_overhead: Number of special tokens in an input of two texts.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Load the tokeniser; CheckpointError if it is damaged or does not fit the weights."""
        self._where = where = str(checkpoint.directory)
        self._known_words = load_tokenizer(checkpoint)
        self._tokenizer = self._known_words.tokenizer
        check_vocabulary_size(self.size, checkpoint)
        if checkpoint.family.static:
            self._single, self._pair = _bare_frame(1), _bare_frame(2)
        else:
            with convert_errors(where):
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
        return max(self._tokenizer.get_vocab().values(), default=-1) + 1

    def vocabulary(self) -> list[str]:
        """Return all tokens in the order of their ids."""
        ids = self._tokenizer.get_vocab()
        return sorted(ids, key=ids.__getitem__)

    def id_to_token(self) -> dict[int, str]:
        """Return token id → token."""
        return {number: token for token, number in self._tokenizer.get_vocab().items()}

    def token_id(self, token: str) -> int | None:
        """Return the id of a token; None if there is no such token."""
        number: int | None = self._tokenizer.token_to_id(token)
        return number

    def pretokenize(self, text: str) -> list[str]:
        """Return the normalised words of `text`, before they are split into tokens."""
        with convert_errors(self._where):
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
        """Return the token ids of each text in its `usual_letters`, without special tokens."""
        steps = [[*_steps(text)] for text in texts]
        with convert_errors(self._where):
            encoded = self._known_words.encode([usual_letters(s) for text in steps for s in text])
        if len(encoded) == len(texts):
            return encoded
        remaining = iter(encoded)
        return [_joined(*(next(remaining) for _ in text)) for text in steps]

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
        spans, done = list[tuple[int, int]](), 0
        for step in _steps(text):
            spans += [(done + begin, done + end) for begin, end in self._spans(step)]
            done += len(step)
        return spans

    def _spans(self, text: str) -> list[tuple[int, int]]:
        with convert_errors(self._where):
            encoded = self._tokenizer.encode(usual_letters(text), add_special_tokens=False)
        spans: list[tuple[int, int]] = encoded.offsets
        if usual_letters(text) == text:
            return spans
        origins = [n for n, character in enumerate(text) for _ in usual_letters(character)]
        begins, ends = [*origins, len(text)], [0, *(n + 1 for n in origins)]
        return [(begins[begin], ends[end]) for begin, end in spans]


def _steps(text: str) -> Iterator[str]:
    """Yield `text` in pieces whose tokens are together its own; they end at blanks if possible."""
    return pieces(text, STEP, REACH, _BEFORE_BLANK)


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


def _bare_frame(texts: int) -> list[tuple[list[int], list[int]]]:
    """Return the parts of an input of `texts` texts without special tokens; see `_frame`."""
    return [([], [0] if part % 2 else []) for part in range(2 * texts + 1)]


def _check_frames(parts: Sequence[tuple[list[int], list[int]]], checkpoint: Checkpoint) -> None:
    """Raise CheckpointError for special tokens or token types that have no embedding."""
    rows, type_rows = checkpoint.config.vocabulary, max(2, checkpoint.config.types)
    for ids, types in parts:
        if max(ids, default=0) >= rows or max(types, default=0) >= type_rows:
            raise CheckpointError(
                "special tokens and weights do not match",
                where=str(checkpoint.directory),
                wanted=f"ids below {rows}, and types below {type_rows}",
                found=f"{max(ids)} of type {max(types)}",
            )
