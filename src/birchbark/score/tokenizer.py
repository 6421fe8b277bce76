"""How does text become the token ids that a checkpoint was trained on?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from birchbark.errors import CheckpointError
from birchbark.score.checkpoint import Checkpoint

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class WordPieces:
    """A checkpoint's own tokeniser, with truncation and padding off: nothing is ever cut here."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Load tokenizer.json or, failing that, vocab.txt; CheckpointError if it does not fit."""
        self._tokenizer = _load(checkpoint)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        size = self._tokenizer.get_vocab_size()
        if size > checkpoint.shape.vocabulary:
            raise CheckpointError(
                "vocabulary and weights do not fit",
                where=str(checkpoint.directory),
                wanted=f"at most {checkpoint.shape.vocabulary} tokens, as in config.json",
                found=str(size),
            )
        self.cls, self.sep = (self._special(token, checkpoint) for token in ("[CLS]", "[SEP]"))

    def vocabulary(self) -> list[str]:
        """All pieces, in the order of their ids."""
        ids = self._tokenizer.get_vocab()
        return sorted(ids, key=ids.__getitem__)

    def _special(self, token: str, checkpoint: Checkpoint) -> int:
        number = self._tokenizer.token_to_id(token)
        if number is None:
            raise CheckpointError(f"vocabulary has no {token}", where=str(checkpoint.directory))
        return int(number)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, without special tokens."""
        encoded = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [e.ids for e in encoded]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Start and end of each token in `text`, in characters."""
        spans: list[tuple[int, int]] = self._tokenizer.encode(
            text, add_special_tokens=False
        ).offsets
        return spans


def _load(checkpoint: Checkpoint) -> Tokenizer:
    from tokenizers import Tokenizer
    from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer

    whole, vocabulary = (checkpoint.directory / name for name in ("tokenizer.json", "vocab.txt"))
    try:
        if whole.exists():
            return Tokenizer.from_file(str(whole))
        if vocabulary.exists():
            return BertWordPieceTokenizer(str(vocabulary), **_case(checkpoint))._tokenizer
    except Exception as broken:  # tokenizers raises bare Exception
        raise CheckpointError(
            f"damaged tokeniser: {broken}", where=str(checkpoint.directory)
        ) from broken
    raise CheckpointError("no tokenizer.json and no vocab.txt", where=str(checkpoint.directory))


def _case(checkpoint: Checkpoint) -> dict[str, Any]:
    """Whether letters are lower-cased and lose their accents, as tokenizer_config.json has it."""
    path = checkpoint.directory / "tokenizer_config.json"
    stated = json.loads(path.read_bytes()) if path.exists() else {}
    return {
        "lowercase": stated.get("do_lower_case", True),
        "strip_accents": stated.get("strip_accents"),
    }
