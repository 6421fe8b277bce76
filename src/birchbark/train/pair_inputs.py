"""How do queries and texts become inputs of BERT?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.pairs.pair_table import Indices, PairTable, Selected
from birchbark.records import Ids
from birchbark.train.prepared_pairs import PreparedPairs

BLOCK = 1 << 18  # pairs whose lengths are computed together


class InputLayout(Enum):
    """What one input of BERT contains."""

    PAIR = "a query and a text, or a query and one passage of a document"
    TWO_TEXTS = "a query and two texts"
    TEXT = "a text"
    SEPARATE = "a query or a text: two inputs per pair"


@dataclass(frozen=True, slots=True, eq=False)
class PairInputs:
    """Inputs of BERT for pairs, built from token ids on access.

    queries, texts: the token ids of the table's distinct queries and texts; `query_lengths` and
    `text_lengths`: their numbers of tokens, (queries,) and (texts,).
    max_tokens: the maximum number of tokens of query and text together, or of each with SEPARATE.
    max_query_tokens: the maximum number of tokens of a query.
    max_passages: the number of passages per document that are read, counted from the first.

    Token ids and token counts exclude special tokens, unless stated otherwise.
    """

    pairs: PairTable
    queries: Sequence[Ids]
    texts: Sequence[Ids]
    query_lengths: NDArray[np.int64]
    text_lengths: NDArray[np.int64]
    tokenizer: CheckpointTokenizer
    max_tokens: int
    max_query_tokens: int
    max_passages: int = 1
    layout: InputLayout = InputLayout.PAIR

    @classmethod
    def of(
        cls,
        pairs: PreparedPairs,
        tokenizer: CheckpointTokenizer,
        max_length: int,
        query_length: int | None = None,
        *,
        chosen: NDArray[np.bool_] | None = None,
        max_passages: int = 1,
        layout: InputLayout = InputLayout.PAIR,
    ) -> PairInputs:
        """Return the inputs of pairs that were prepared with this tokeniser.

        max_length: the maximum number of tokens per input, including special tokens.
        chosen: whether to use the pairs of each query, (queries,); None for all pairs.
        query_length: the maximum number of tokens per query; None for half an input, or a whole
        input with SEPARATE.
        """
        separate = layout is InputLayout.SEPARATE
        single = separate or layout is InputLayout.TEXT
        max_tokens = max_length - (tokenizer.single_overhead if single else tokenizer.pair_overhead)
        default, limit = (max_tokens,) * 2 if separate else (max_tokens // 2, max_tokens - 1)
        if layout is InputLayout.TWO_TEXTS:  # a token of each text is left
            limit = max_tokens - _separators(tokenizer) - 2
            default = min(default, limit)
        table, queries, lengths = pairs.table, pairs.query_ids, pairs.query_ids.lengths
        if chosen is None:
            chosen = np.ones(len(queries), bool)
        return cls(
            table.of_queries(chosen),
            Selected(queries, np.flatnonzero(chosen)),
            pairs.text_ids,
            lengths[chosen],
            pairs.text_ids.lengths,
            tokenizer,
            max_tokens,
            0 if layout is InputLayout.TEXT else min(query_length or default, limit),
            max_passages,
            layout,
        )

    def __getitem__(self, pair: int) -> list[tuple[Ids, Ids]]:
        """Return the inputs of a pair, each as ids (including special tokens) and types.

        With PAIR there is one input per passage, with TEXT one, and with SEPARATE two: query and
        text. With PAIR, texts are truncated to the tokens that the query leaves.
        """
        query, text = self._query(pair), self._first_text(pair)
        if self.layout is InputLayout.TEXT:
            return [self._single(text[: self.max_tokens])]
        if self.layout is InputLayout.SEPARATE:
            return [self._single(query), self._single(text[: self.max_tokens])]
        budget = self.text_budget(pair)
        return [
            self.tokenizer.pair_input(query, self.texts[passage][:budget])
            for passage in self.passages(pair)
        ]

    def passages(self, pair: int) -> NDArray[np.int32]:
        """Return the indices of the passages of a pair that are read, one or more, in `texts`."""
        return self.pairs.passages(pair)[: self.max_passages]

    def text_budget(self, pair: int) -> int:
        """Return the maximum number of tokens of a pair's text, or of each of its passages."""
        if self.layout in (InputLayout.SEPARATE, InputLayout.TEXT):
            return self.max_tokens
        return self.max_tokens - len(self._query(pair))

    def comparison(self, pair: int, other: int) -> tuple[Ids, Ids]:
        """Return ids and types of the input that compares the texts of two pairs of one query.

        Each text is truncated to half of the tokens that the query leaves.
        """
        query, first, second = self._query(pair), self._first_text(pair), self._first_text(other)
        half = (self.max_tokens - len(query) - _separators(self.tokenizer)) // 2
        return self.tokenizer.pair_input(query, self.tokenizer.join(first[:half], second[:half]))

    def text_ranges(self, pair: int) -> list[tuple[int, int]]:
        """Return where query and text are in a pair's input: start and end of their tokens.

        With TEXT, the result is the range of the text alone. See `CheckpointTokenizer.text_ranges`.
        """
        text = len(self._first_text(pair))
        if self.layout is InputLayout.TEXT:
            return self.tokenizer.text_ranges(None, min(text, self.max_tokens))
        query = len(self._query(pair))
        return self.tokenizer.text_ranges(query, min(text, self.max_tokens - query))

    def _single(self, ids: Ids) -> tuple[Ids, Ids]:
        with_special = self.tokenizer.single_input(ids)
        return with_special, np.zeros_like(with_special)

    def _query(self, pair: int) -> Ids:
        query: Ids = self.queries[self.pairs.query[pair]]
        return query[: self.max_query_tokens]

    def _first_text(self, pair: int) -> Ids:
        text: Ids = self.texts[self.pairs.passages(pair)[0]]
        return text

    @property
    def has_documents(self) -> bool:
        """Whether some pair has several passages."""
        return len(self.pairs.text) > len(self.pairs)

    @property
    def text_tokens(self) -> Indices:
        """The number of tokens of each pair's passages that are read, (pairs,), untruncated."""
        return self._per_pair(np.add, lambda query, text: text)

    @property
    def lengths(self) -> Indices:
        """The number of tokens of each pair after truncation, (pairs,)."""
        if self.layout is InputLayout.SEPARATE:
            query_limit, limit = self.max_query_tokens, self.max_tokens
            return self._per_pair(
                np.add, lambda q, t: np.minimum(q, query_limit) + np.minimum(t, limit)
            )
        return self._per_pair(np.add, lambda q, t: np.minimum(q + t, self.max_tokens))

    @property
    def truncated(self) -> int:
        """The number of pairs whose query is truncated, or a passage that is read."""

        def is_truncated(query: Indices, text: Indices) -> NDArray[np.bool_]:
            query_budget = np.minimum(query, self.max_query_tokens)
            budget = self.max_tokens - (0 if self.layout is InputLayout.SEPARATE else query_budget)
            if self.layout is InputLayout.TWO_TEXTS:
                budget = (budget - _separators(self.tokenizer)) // 2
            return (query > query_budget) | (text > budget)

        return int(self._per_pair(np.logical_or, is_truncated).sum())

    @property
    def shortened(self) -> int:
        """The number of pairs with more than `max_passages` passages."""
        return int((np.diff(self.pairs.starts) > self.max_passages).sum())

    @property
    def counts(self) -> dict[str, int]:
        """The counts that the model card states, by their keys in its lineage."""
        pairs = self.pairs
        counts = {"queries": len(pairs.queries), "pairs": len(pairs), "cut": self.truncated}
        if self.has_documents:
            counts |= {"passages": len(pairs.text), "shortened": self.shortened}
        return counts

    def _per_pair(
        self, combine: np.ufunc, of_passage: Callable[[Indices, Indices], NDArray[Any]]
    ) -> Indices:
        """Combine a value of each passage that is read into one of each pair, (pairs,).

        of_passage: from the untruncated tokens of queries and of passages, (passages,) each. Called
        with BLOCK pairs at a time, so that memory does not grow with the passages.
        """
        pairs, values = self.pairs, np.empty(len(self.pairs), np.int32)
        for start in range(0, len(pairs), BLOCK):
            starts = pairs.starts[start : start + BLOCK + 1]
            counts, first, firsts = np.diff(starts), starts[0], starts[:-1] - starts[0]
            query = self.query_lengths[pairs.query[start : start + BLOCK]]
            query = query * (self.layout is not InputLayout.TEXT)
            text = self.text_lengths[pairs.text[first : starts[-1]]]
            is_read = np.arange(len(text)) - np.repeat(firsts, counts) < self.max_passages
            of_block = np.where(is_read, of_passage(np.repeat(query, counts), text), 0)
            values[start : start + BLOCK] = combine.reduceat(of_block, firsts)
        return values


def _separators(tokenizer: CheckpointTokenizer) -> int:
    """Return the number of special tokens between two texts that are compared."""
    empty = np.empty(0, np.int32)
    return len(tokenizer.join(empty, empty))
