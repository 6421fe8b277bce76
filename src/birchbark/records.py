"""Which records do all packages share, and how are equal scores ordered?

All of them are immutable.

This module also defines the tie rule: higher scores come first, and equal scores are in
*descending* byte order of their doc_ids, as in trec_eval. Scores are float32, as in trec_eval, so
that evaluation sees the order that is printed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from birchbark import defaults
from birchbark.errors import InputError

Float32s = NDArray[np.float32]
Ids = NDArray[np.int32]  # (n,) token ids of a text, without special tokens

# Field names for the id and the text of a document, in order of preference.
DOC_ID_NAMES = ("id", "_id", "doc_id", "docno", "docid")
TEXT_NAMES = ("text", "contents", "body")


@dataclass(frozen=True, slots=True)
class Document:
    """One unit of retrieval: an id and named text fields.

    Attributes:
        doc_id: Id that rankings, runs and qrels refer to; not empty.
        fields: Field name → text, usually `title` and `text`; further fields can be indexed, or
            used as filters.
        read_fields: The fields that models read after the title. Defaults to `("text",)`.
    """

    doc_id: str
    fields: Mapping[str, str]
    read_fields: tuple[str, ...] = defaults.READ_FIELDS

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Document:
        """Make a Document from a record such as `{"id": "d1", "title": "…", "text": "…"}`.

        Args:
            record: Field name → value. The id is the first of `id`, `_id`, `doc_id`, `docno` and
                `docid` that is not None; it must be a string or an integer. The text is the first
                of `text`, `contents` and `body` that is not None; it may be missing if there is a
                `title`. All other values become fields of the same name: strings unchanged, other
                values as JSON. Values of None are ignored.

        Raises:
            InputError: The record has no id, has neither text nor title, or contains a value that
                JSON cannot express.
        """
        values = dict(record)
        if unnamed := [name for name in values if not isinstance(name, str)]:
            raise InputError(f"field name {unnamed[0]!r} is not a string")
        doc_id = take_id(values, DOC_ID_NAMES)
        text_name = next((name for name in TEXT_NAMES if values.get(name) is not None), None)
        if text_name is None and values.get("title") is None:
            raise InputError(
                f"document {doc_id} has no text",
                wanted=f"a field named {' or '.join(TEXT_NAMES)}",
                found=", ".join(sorted(values)) or "no further field",
            )
        fields = {
            "text" if name == text_name else name: _as_text(name, value)
            for name, value in values.items()
            if value is not None
        }
        return cls(doc_id, fields)

    @property
    def fault(self) -> str:
        """Why this document cannot be indexed; empty if it can."""
        if not self.doc_id.strip():
            return "document has an empty id"
        try:
            for text in (self.doc_id, *self.fields, *self.fields.values()):
                text.encode()
        except UnicodeEncodeError:
            return "text contains a lone surrogate"
        return ""

    @property
    def title(self) -> str:
        """The field `title`, or an empty string."""
        return self.fields.get("title", "")

    @property
    def text(self) -> str:
        """What is read after the title: the texts of `read_fields`, as paragraphs."""
        return "\n\n".join(filter(None, [self.fields.get(name, "") for name in self.read_fields]))

    @property
    def contents(self) -> str:
        """Title and text, separated by a line break: the string that is split into segments.

        The offsets of a Segment count characters of this string.
        """
        return "\n".join(part for part in (self.title, self.text) if part)


def page_number(contents: str, offset: int) -> int | None:
    """Return the page, from 1, of a character of a text with form feeds between its pages.

    Returns None for a text without form feeds.
    """
    if "\f" not in contents:
        return None
    return contents.count("\f", 0, offset) + 1


def take_id(values: dict[str, Any], names: tuple[str, ...]) -> str:
    """Remove the id from `values` and return it: the first of `names` that is not None.

    Raises InputError if there is no id, or if it is neither a string nor an integer.
    """
    name = next((name for name in names if values.get(name) is not None), None)
    if name is None:
        raise InputError(
            "no id",
            wanted=f"a field named {' or '.join(names)}",
            found=", ".join(sorted(values)) or "an empty object",
        )
    value = values.pop(name)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(
            f"field {name} is not an id",
            wanted="a string or an integer",
            found=json.dumps(value, default=repr),
        )
    try:
        return str(value)
    except ValueError:
        raise InputError(f"field {name} is not an id: the number is too long") from None


def _as_text(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"field {name} cannot be stored as text: {error}",
            wanted="a string, or a value that JSON can express",
            found=type(value).__name__,
        ) from None


@dataclass(frozen=True, slots=True)
class Query:
    """A query, with the id that qrels and runs use for it.

    Attributes:
        query_id: Id of the query.
        text: Text to search for.
        weights: Index term → weight, 0 or more, to search for instead of the text's terms, as
            SPLADE computes them. Default None.
    """

    query_id: str
    text: str
    weights: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class QueryVariant:
    """A reformulation of a query.

    Attributes:
        text: Text of the variant.
        weight: Weight from 0 to 1; the original query has weight 1.
    """

    text: str
    weight: float


@dataclass(frozen=True, slots=True)
class Segment:
    """A sentence, window or other part of a document, scored as one unit.

    Attributes:
        doc_id: Id of the document.
        start: Offset of the first character in `Document.contents`, from 0.
        end: Offset after the last character in `Document.contents`.
        text: Text that the model reads: the characters from `start` to `end`, preceded by the title
            if the segmenter prepends it.
    """

    doc_id: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Pair:
    """A training example: a query, a text, and the relevance of the text to the query.

    Attributes:
        query_id: Id of the query.
        query: Text of the query.
        doc_id: Id of the document that the text comes from.
        text: Text of the document, or of a segment of it.
        relevance: Relevance grade, 0 (not relevant) or more.
    """

    query_id: str
    query: str
    doc_id: str
    text: str
    relevance: int

    @property
    def fault(self) -> str:
        """Why this pair cannot be used for training; empty if it can."""
        for name in ("query_id", "query", "doc_id", "text"):
            value: str = getattr(self, name)
            if not value.strip():
                return f"{name} is empty"
            try:
                value.encode()
            except UnicodeEncodeError:
                return f"{name} contains a lone surrogate"
        return ""


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """The ranked documents for one query, best first. Construct it with `Ranking.of`.

    Attributes:
        doc_ids: Ids of n different documents.
        scores: Their scores, a read-only float32 array (n,) in non-increasing order.
    """

    doc_ids: tuple[str, ...]
    scores: Float32s

    @classmethod
    def of(cls, doc_ids: Sequence[str], scores: ArrayLike, depth: int | None = None) -> Ranking:
        """Rank documents by their scores; equal scores are in descending byte order of doc_ids.

        Args:
            doc_ids: Ids of n different documents, in any order.
            scores: Their scores (n,), converted to float32.
            depth: Number of best documents to include. Default: all.

        Raises:
            InputError: A document occurs twice, a score is not finite in float32, or the numbers of
                ids and scores differ.
        """
        with np.errstate(over="ignore"):  # too large for float32 is infinite, and rejected below
            values = np.asarray(scores).astype(np.float32)
        if values.shape != (len(doc_ids),):
            raise InputError(
                "cannot rank", wanted=f"{len(doc_ids)} scores", found=f"shape {values.shape}"
            )
        if not np.isfinite(values).all():
            bad = doc_ids[int(np.flatnonzero(~np.isfinite(values))[0])]
            raise InputError(f"score of document {bad} is not a finite number")
        if len(set(doc_ids)) < len(doc_ids):
            seen: set[str] = set()
            twice = next(d for d in doc_ids if d in seen or seen.add(d))  # type: ignore[func-returns-value]
            raise InputError(
                f"document {twice} is ranked twice for one query",
                remedy="trec_eval refuses such runs too; remove the duplicate",
            )
        order = _order(doc_ids, values)[:depth]
        values = values[order]
        values.flags.writeable = False
        return cls(tuple(doc_ids[i] for i in order), values)

    @classmethod
    def from_pairs(
        cls, pairs: Iterable[tuple[str, float]] | Mapping[str, float], depth: int | None = None
    ) -> Ranking:
        """Rank documents given as pairs, such as `[("d1", 0.7), ("d2", 0.9)]`; see `Ranking.of`.

        Args:
            pairs: doc_id and score of each document, in any order; or doc_id → score.
            depth: Number of best documents to include. Default: all.

        Raises:
            InputError: As in `Ranking.of`.
        """
        listed = list(pairs.items() if isinstance(pairs, Mapping) else pairs)
        return cls.of([doc_id for doc_id, _ in listed], [score for _, score in listed], depth)

    def head(self, depth: int) -> Ranking:
        """Return the ranking cut to its best documents.

        Args:
            depth: Number of documents to include.
        """
        return Ranking(self.doc_ids[:depth], self.scores[:depth])

    def followed_by(self, doc_ids: Sequence[str]) -> Ranking:
        """Return the ranking with further documents below it, whose scores are lower.

        Args:
            doc_ids: Ids of documents that are not in the ranking, best first.
        """
        if not doc_ids:
            return self
        if not len(self):
            return Ranking.of(doc_ids, -np.arange(len(doc_ids), dtype=float))
        lowest = float(self.scores.min())
        below = lowest - np.arange(1, len(doc_ids) + 1) * max(1e-3, abs(lowest) * 1e-3)
        return Ranking.of([*self.doc_ids, *doc_ids], [*self.scores.tolist(), *below.tolist()])

    def __len__(self) -> int:
        return len(self.doc_ids)

    def __iter__(self) -> Iterator[tuple[str, float]]:
        """Yield (doc_id, score), best first."""
        return zip(self.doc_ids, self.scores.tolist(), strict=True)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Ranking)
            and self.doc_ids == other.doc_ids
            and np.array_equal(self.scores, other.scores)
        )

    def __hash__(self) -> int:
        return hash(self.doc_ids)


def best_first(scores: ArrayLike, count: int | None = None) -> list[int]:
    """Return the positions of the `count` highest scores (all by default), best first.

    Of equal scores the earlier one precedes.
    """
    order: list[int] = np.argsort(-np.asarray(scores), kind="stable")[:count].tolist()
    return order


def _order(doc_ids: Sequence[str], scores: Float32s) -> list[int]:
    """Return positions by decreasing score; only equal scores make it compare ids."""
    order = best_first(scores)
    ranked = scores[order]
    edges = [0, *(np.flatnonzero(ranked[1:] != ranked[:-1]) + 1).tolist(), len(order)]
    if len(edges) <= len(order):
        for start, end in pairwise(edges):
            if end - start > 1:
                order[start:end] = sorted(order[start:end], key=doc_ids.__getitem__, reverse=True)
    return order


@dataclass(frozen=True, slots=True)
class Run:
    """The rankings that a system returns for a set of queries.

    Attributes:
        rankings: Query id → Ranking.
        tag: Name of the system, the last column of a run file. Default: "birchbark".
    """

    rankings: Mapping[str, Ranking]
    tag: str = "birchbark"

    def head(self, depth: int) -> Run:
        """Return the run with each ranking cut to its best documents.

        Args:
            depth: Number of documents to include per query.
        """
        return Run({query_id: r.head(depth) for query_id, r in self.rankings.items()}, self.tag)


@dataclass(frozen=True, slots=True)
class Qrels:
    """Relevance judgments.

    Attributes:
        grades: Query id → doc_id → relevance grade; above 0 is relevant. Unjudged documents are
            absent, which differs from a grade of 0. Default: empty.
    """

    grades: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of judgments."""
        return sum(map(len, self.grades.values()))
