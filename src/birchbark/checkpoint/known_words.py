"""How are texts encoded without splitting the same words into WordPieces again and again?

BERT's tokeniser splits a text at white space and around punctuation, and then each word by itself.
So the tokens of a text are those of its parts between blanks, one after the other, and the tokens
of a part that has occurred before are looked up, which is several times as fast. In plain ASCII,
punctuation is split off, too, so that there are fewer different parts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from birchbark.records import Ids

if TYPE_CHECKING:
    from tokenizers import Tokenizer

AT_ONCE = 2_000  # words in one call, during which no other thread may run
MOST_WORDS, LONGEST = 200_000, 30  # remembered at a time, and their characters: about 40 MB
_PARTS = re.compile(r"[^ \t\n\r]+")
_WORDS = re.compile(r"[a-z0-9]+|[^a-z0-9\s]")
_NOT_PLAIN = re.compile(r"[^\t\n\r -Z\\-~]")  # beyond ASCII, control characters, and [ of [SEP]


class KnownWords:
    """Encodes texts as a tokeniser does, and remembers the token ids of words.

    Threads may share it.

    Attributes:
        tokenizer: The tokeniser.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Remember nothing yet; a tokeniser that works in another way encodes everything itself."""
        self.tokenizer = tokenizer
        self._words: dict[str, list[int]] = {}
        self._usable = splits_as_bert(json.loads(tokenizer.to_str()))

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        """Return the token ids of each text, without special tokens."""
        if not self._usable:
            return self._encoded(texts)
        split = [
            _PARTS.findall(text) if _NOT_PLAIN.search(text) else _WORDS.findall(text.lower())
            for text in texts
        ]
        words = self._words if len(self._words) < MOST_WORDS else {}
        distinct = {part for parts in split for part in parts}
        new = [part for part in distinct if part not in words]
        encoded: dict[str, list[int]] = {}
        for begin in range(0, len(new), AT_ONCE):
            some = new[begin : begin + AT_ONCE]
            encoded.update(zip(some, map(np.ndarray.tolist, self._encoded(some)), strict=True))
        words.update((part, ids) for part, ids in encoded.items() if len(part) <= LONGEST)
        self._words = words
        return [
            np.array(
                [i for part in parts for i in (words[part] if part in words else encoded[part])],
                np.int32,
            )
            for parts in split
        ]

    def _encoded(self, texts: Sequence[str]) -> list[Ids]:
        encoded = self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [np.array(one.ids, np.int32) for one in encoded]


def splits_as_bert(settings: dict[str, Any]) -> bool:
    """Whether a tokeniser splits texts as described above, given its tokenizer.json.

    It is lowercased WordPiece, and all added tokens begin with a bracket and contain no blank.
    """
    normaliser, splitter = settings.get("normalizer") or {}, settings.get("pre_tokenizer") or {}
    added = [token.get("content", "") for token in settings.get("added_tokens") or []]
    return (
        normaliser.get("type") == "BertNormalizer"
        and normaliser.get("lowercase") is True
        and normaliser.get("clean_text") is True
        and splitter.get("type") == "BertPreTokenizer"
        and settings["model"].get("type") == "WordPiece"
        and all(token.startswith("[") and token.split() == [token] for token in added)
    )
