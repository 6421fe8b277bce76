"""How does text become the token ids that a checkpoint was trained on?"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from birchbark.checkpoint.heads import Pooling
from birchbark.checkpoint.model_json import read_object
from birchbark.checkpoint.reader import Checkpoint
from birchbark.errors import CheckpointError, InputError
from birchbark.records import Ids

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

SPARE = 1000  # rows of the embeddings that no token of the vocabulary may stand for


class Pieces:
    """A checkpoint's own tokeniser, with truncation and padding off: nothing is ever cut here.

    Which special tokens and types surround one text or two is asked of the tokeniser once, and the
    pieces of texts are put between them. extra_single and extra_pair count special tokens.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Load the vocabulary (see `_load`); CheckpointError if it does not fit the weights."""
        self._where = where = str(checkpoint.directory)
        self._tokenizer = _load(checkpoint)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        _check_size(self._tokenizer, checkpoint)
        with _damage(where):
            self._single = _frame(self._tokenizer.encode("a"), 1, where)
            self._pair = _frame(self._tokenizer.encode("a", "a"), 2, where)
        _check_frames([*self._single, *self._pair], checkpoint)
        self.extra_single, self.extra_pair = (
            sum(len(ids) for ids, _ in frame[::2]) for frame in (self._single, self._pair)
        )
        self._check_room(checkpoint)

    def _check_room(self, checkpoint: Checkpoint) -> None:
        """Refuse a model that can read nothing beside its special tokens."""
        single = isinstance(checkpoint.head, Pooling)
        least = self.extra_single + 1 if single else self.extra_pair + 2
        if checkpoint.max_length < least:
            raise CheckpointError(
                "the model has no room for texts",
                where=str(checkpoint.directory),
                wanted=f"{least} tokens at least, special tokens included",
                found=str(checkpoint.max_length),
            )

    @cached_property
    def fingerprint(self) -> str:
        """Equal for tokenisers that are set up alike."""
        return hashlib.sha256(self._tokenizer.to_str().encode("utf-8", "surrogatepass")).hexdigest()

    def reads_as(self, other: Pieces) -> bool:
        """Whether both make the same tokens of any text, and put the same ones around them."""
        mine, theirs = (json.loads(p._tokenizer.to_str()) for p in (self, other))
        return (
            self._tokenizer.get_vocab() == other._tokenizer.get_vocab()
            and (self._single, self._pair) == (other._single, other._pair)
            and all(mine[part] == theirs[part] for part in ("normalizer", "pre_tokenizer"))
        )

    @property
    def size(self) -> int:
        """One more than the highest id."""
        return max(self._tokenizer.get_vocab().values()) + 1

    def vocabulary(self) -> list[str]:
        """All pieces, in the order of their ids."""
        ids = self._tokenizer.get_vocab()
        return sorted(ids, key=ids.__getitem__)

    def names(self) -> dict[int, str]:
        """Id → piece."""
        return {number: piece for piece, number in self._tokenizer.get_vocab().items()}

    def words(self, text: str) -> list[str]:
        """The words of `text` before they become pieces, as the tokeniser spells them."""
        with _damage(self._where):
            normaliser, splitter = self._tokenizer.normalizer, self._tokenizer.pre_tokenizer
            spelt = normaliser.normalize_str(text) if normaliser else text
            return [word for word, _ in splitter.pre_tokenize_str(spelt)] if splitter else [spelt]

    @property
    def kind(self) -> str:
        """How the tokeniser makes pieces of words: WordPiece, BPE, Unigram."""
        return str(json.loads(self._tokenizer.to_str())["model"].get("type"))

    def with_words(self, words: Sequence[str]) -> Tokenizer:
        """This tokeniser with further pieces, whose ids follow on; InputError if it cannot be."""
        from tokenizers import Tokenizer

        whole = json.loads(self._tokenizer.to_str())
        known = self._tokenizer.get_vocab()
        if self.kind != "WordPiece":
            raise InputError("words cannot be added", wanted="WordPiece", found=self.kind)
        if twice := [w for w in words if w in known] or len(set(words)) < len(words):
            raise InputError("words cannot be added", found=f"known before: {twice}")
        whole["model"]["vocab"] |= {word: self.size + n for n, word in enumerate(words)}
        return Tokenizer.from_str(json.dumps(whole))

    def save(self, path: Path) -> None:
        """Write the tokeniser to `path`, as tokenizer.json."""
        self._tokenizer.save(str(path))

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        """Token ids of each text, without special tokens."""
        with _damage(self._where):
            encoded = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [np.array(e.ids, np.int32) for e in encoded]

    def single(self, text: Ids) -> Ids:
        """One text's ids between the special tokens."""
        (before, _), _, (after, _) = self._single
        return _joined(before, text, after)

    def pair(self, query: Ids, text: Ids) -> tuple[Ids, Ids]:
        """Ids and types of query and text among the special tokens."""
        (start, kinds), (_, a), (middle, others), (_, b), (end, last) = self._pair
        types = [*kinds, *a * len(query), *others, *b * len(text), *last]
        return _joined(start, query, middle, text, end), np.array(types, np.int32)

    @property
    def special(self) -> set[int]:
        """Ids that stand around texts."""
        return {
            int(n) for frame in (self._single, self._pair) for ids, _ in frame[::2] for n in ids
        }

    def sides(self, query: int | None, text: int) -> list[tuple[int, int]]:
        """Where texts of so many tokens stand in an input: first place and last + 1 of each.

        query: None for one text alone.
        """
        if query is None:
            start = len(self._single[0][0])
            return [(start, start + text)]
        start = len(self._pair[0][0])
        middle = start + query + len(self._pair[2][0])
        return [(start, start + query), (middle, middle + text)]

    def joined(self, text: Ids, other: Ids) -> Ids:
        """Two texts' ids as one, with what stands between query and text between them."""
        return _joined(text, self._pair[2][0], other)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Start and end of each token in `text`, in characters."""
        with _damage(self._where):
            encoded = self._tokenizer.encode(text, add_special_tokens=False)
        spans: list[tuple[int, int]] = encoded.offsets
        return spans


def _joined(*parts: Sequence[int] | Ids) -> Ids:
    return np.concatenate([np.asarray(part, np.int32) for part in parts])


def _frame(probe: Encoding, texts: int, where: str) -> list[tuple[list[int], list[int]]]:
    """Ids and types of special tokens, text, special tokens, text…: 2 · texts + 1 parts."""
    parts: list[tuple[list[int], list[int]]] = [([], []) for _ in range(2 * texts + 1)]
    at = 0
    for number, kind, text in zip(probe.ids, probe.type_ids, probe.sequence_ids, strict=True):
        at = 2 * text + 1 if text is not None else at + at % 2
        parts[at][0].append(number)
        parts[at][1].append(kind)
    if not all(ids for ids, _ in parts):
        raise CheckpointError(
            "tokeniser puts no special tokens before, between and after texts",
            where=where,
            remedy="tokenizer.json needs a post_processor, as transformers saves it",
        )
    for text in range(1, 2 * texts, 2):  # all tokens of a text have one type
        parts[text] = parts[text][0], parts[text][1][:1]
    return parts


def _check_size(tokenizer: Tokenizer, checkpoint: Checkpoint) -> None:
    """Refuse a vocabulary of more tokens than rows of the embeddings, or far fewer.

    Somewhat fewer is usual: tables are filled up to a round number, and some rows are never used.
    """
    rows = checkpoint.shape.vocabulary
    size = max(tokenizer.get_vocab().values(), default=-1) + 1
    least = rows - max(SPARE, rows // 50)
    if not least <= size <= rows:
        raise CheckpointError(
            "vocabulary and weights do not fit",
            where=str(checkpoint.directory),
            wanted=f"at most {rows} tokens, as in config.json"
            + (f", and at least {least}" if size < least else ""),
            found=str(size),
        )


def _check_frames(parts: Sequence[tuple[list[int], list[int]]], checkpoint: Checkpoint) -> None:
    """Refuse special tokens and types that the weights have no rows for."""
    rows, kinds = checkpoint.shape.vocabulary, max(2, checkpoint.shape.types)
    for ids, types in parts:
        if max(ids) >= rows or max(types) >= kinds:
            raise CheckpointError(
                "special tokens and weights do not fit",
                where=str(checkpoint.directory),
                wanted=f"numbers below {rows}, and types below {kinds}",
                found=f"{max(ids)} of type {max(types)}",
            )


@contextmanager
def _damage(where: str) -> Iterator[None]:
    """What tokenizers raises for a damaged file: anything, a panic of Rust included."""
    try:
        yield
    except (CheckpointError, KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as broken:
        if re.match("Text(Encode)?Input", str(broken)):
            raise InputError("a text is no Unicode: it holds half a surrogate pair") from broken
        raise CheckpointError(f"damaged tokeniser: {broken}", where=where) from broken


def _load(checkpoint: Checkpoint) -> Tokenizer:
    """From tokenizer.json; else BERT's layout from vocab.txt, RoBERTa's from its two files."""
    from tokenizers import Tokenizer
    from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer

    whole, vocabulary, pairs, merges = (
        checkpoint.directory / name
        for name in ("tokenizer.json", "vocab.txt", "vocab.json", "merges.txt")
    )
    stated = _stated(checkpoint)
    with _damage(str(checkpoint.directory)):
        if whole.exists():
            return Tokenizer.from_file(str(whole))
        if vocabulary.exists() and not checkpoint.family.offset:
            case = {
                "lowercase": stated.get("do_lower_case", True),
                "strip_accents": stated.get("strip_accents"),
            }
            return BertWordPieceTokenizer(str(vocabulary), **case)._tokenizer
        if pairs.exists() and merges.exists():
            return _byte_level(str(pairs), str(merges), bool(stated.get("add_prefix_space")))
    raise CheckpointError(
        "no tokenizer.json and no vocab.txt",
        where=str(checkpoint.directory),
        wanted="tokenizer.json; or vocab.txt of WordPieces; or vocab.json and merges.txt",
        remedy="save_pretrained of transformers' fast tokeniser writes tokenizer.json",
    )


def _byte_level(pairs: str, merges: str, add_prefix_space: bool) -> Tokenizer:
    """RoBERTa's tokeniser: <s> query </s></s> text </s>, all of type 0."""
    from tokenizers import AddedToken
    from tokenizers.implementations.byte_level_bpe import ByteLevelBPETokenizer
    from tokenizers.processors import RobertaProcessing

    tokenizer = ByteLevelBPETokenizer(pairs, merges, add_prefix_space=add_prefix_space)._tokenizer
    start, end = (tokenizer.token_to_id(token) for token in ("<s>", "</s>"))
    if start is None or end is None:
        raise ValueError("vocab.json has no <s> or no </s>")
    others = [t for t in ("<pad>", "<unk>") if tokenizer.token_to_id(t) is not None]
    tokenizer.add_special_tokens(["<s>", "</s>", *others])
    if tokenizer.token_to_id("<mask>") is not None:
        tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    tokenizer.post_processor = RobertaProcessing(
        ("</s>", end), ("<s>", start), add_prefix_space=add_prefix_space
    )
    return tokenizer


def _stated(checkpoint: Checkpoint) -> dict[str, Any]:
    """What tokenizer_config.json says (case, accents, spaces); empty if there is none."""
    path = checkpoint.directory / "tokenizer_config.json"
    return read_object(path) if path.exists() else {}
