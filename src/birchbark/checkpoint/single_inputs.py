"""How does a text become an input of its own, after the prompt of its side?

A bi-encoder reads [CLS] prompt text [SEP], where the prompt is that of queries or of documents.
sentence-transformers encodes prompt and text together, and some tokenisers encode a word after a
space differently from one at the beginning. Texts are therefore encoded after their prompt. The
prompt's own tokens are added when the input is assembled: token ids, spans and token budgets are
those of the text alone.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from itertools import takewhile
from typing import Literal

import numpy as np

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.errors import CheckpointError, InputError
from birchbark.records import Ids

# Beginnings of texts, some of which may become one token with the end of a prompt
PROBES = ("a", "", " a", "A", *"0é日", *string.punctuation)


class SingleInputs:
    """Encodes the texts of one side, and assembles their inputs.

    Attributes:
        token_budget: The maximum number of tokens of a text.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        tokenizer: CheckpointTokenizer,
        side: Literal["query", "document"],
    ) -> None:
        """Encode the prompt of `side`. tokenizer: that of `checkpoint`.

        Raises CheckpointError if the prompt leaves no room for a text.
        """
        prompts, multi_vector = checkpoint.prompts, checkpoint.multi_vector
        prompt = prompts.query if side == "query" else prompts.document
        max_length = checkpoint.max_length
        if multi_vector:
            lengths = multi_vector.query_length, multi_vector.document_length
            max_length = lengths[side == "document"]
        self._tokenizer, self._prompt = tokenizer, prompt
        self._prompt_ids = self._encoded_prompt() if prompt else np.empty(0, np.int32)
        available = max_length - tokenizer.single_overhead
        self.token_budget = available - len(self._prompt_ids)
        if self.token_budget < 1:
            raise CheckpointError(
                f"the prompt {prompt[:40]!r} leaves no room for a text",
                where=str(checkpoint.root),
                wanted=f"fewer than {available} tokens",
                found=str(len(self._prompt_ids)),
            )

    def _encoded_prompt(self) -> Ids:
        """Return the tokens of the prompt that do not depend on the text after it."""
        encoded = self._tokenizer.encode([self._prompt + probe for probe in PROBES])
        common = takewhile(lambda tokens: len(set(tokens)) == 1, zip(*encoded, strict=False))
        spans = self._tokenizer.spans(self._prompt + PROBES[0])
        inside = takewhile(lambda span: span[1] <= len(self._prompt), spans)
        return encoded[0][: min(len(list(common)), len(list(inside)))]

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        """Return the token ids of each text, without special tokens and the prompt's.

        Raises InputError for a text whose beginning becomes one token with the end of the prompt.
        """
        count = len(self._prompt_ids)
        encoded = self._tokenizer.encode([self._prompt + text for text in texts])
        for text, ids in zip(texts, encoded, strict=True):
            if not np.array_equal(ids[:count], self._prompt_ids):
                raise InputError(
                    "the beginning of a text and the end of the model's prompt are one token",
                    found=repr(f"{self._prompt}{text}"[: len(self._prompt) + 20]),
                    remedy="let the prompt end with a space",
                )
        return [ids[count:] for ids in encoded]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the start and end offset in `text` of each of its tokens, in characters.

        Both are 0 for a token of the space between prompt and text.
        """
        spans = self._tokenizer.spans(self._prompt + text)[len(self._prompt_ids) :]
        shift = len(self._prompt)
        return [(max(0, start - shift), max(0, end - shift)) for start, end in spans]

    def input(self, text: Ids) -> Ids:
        """Return the input of an encoded text: prompt and text between special tokens."""
        return self._tokenizer.single_input(np.concatenate([self._prompt_ids, text]))

    def text_range(self, length: int) -> tuple[int, int]:
        """Return the start and end in an input of a text of `length` tokens."""
        ((start, end),) = self._tokenizer.text_ranges(None, length)
        return start + len(self._prompt_ids), end + len(self._prompt_ids)
