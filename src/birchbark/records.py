"""Which records do all packages share, and how are equal scores ordered?

All of them are immutable.

This module also defines the tie rule: higher scores come first, and equal scores are in
*descending* byte order of their doc_ids, as in trec_eval. Scores are float32, as in trec_eval, so
that evaluation sees the order that is printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from birchbark import defaults
from birchbark.arguments import listed, mapping_of, shown, text_of, values_by_query
from birchbark.errors import InputError, require_at_least
from birchbark.record_values import (
    MAX_GRADE,
    as_grade,
    as_id,
    as_paragraphs,
    as_text,
    by_id,
    ids_of,
    is_missing,
    take_id,
    weighted_terms,
)

T = TypeVar("T")

Float32s = NDArray[np.float32]
Ids = NDArray[np.int32]  # (n,) token ids of a text, without special tokens

PAGE_BREAK = "\f"  # in a text of pages: precedes every page but the first one
# A field: offsets in the text, separated by blanks, of the lines with which its sections begin.
SECTION_STARTS = "section_starts"
TYPES_OF_LINES = ("code", "text")  # of files whose lines are those of a document
# Field names for the id and the text of a document, in order of preference.
DOC_ID_NAMES = ("id", "_id", "doc_id", "docno", "pid", "docid")
TEXT_NAMES = ("text", "contents", "body", "segment", "content", "passage")


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
            record: Field name → value. The id is the first of `id`, `_id`, `doc_id`, `docno`,
                `pid` and `docid` that has a value; it must be a string or an integer. The text is
                the first of `text`, `contents`, `body`, `segment`, `content` and `passage` that has
                one, and is not empty if another is not; it may be missing if there is a `title`. A
                list of texts as title or text becomes paragraphs. All other values become fields of
                the same name: strings unchanged, other values as JSON. None, NaN and pandas' NA and
                NaT are no values, and are ignored.

        Raises:
            InputError: The record is no mapping, has no id, has neither text nor title, or contains
                a value that JSON cannot express, such as an infinite number.
        """
        if not isinstance(record, Mapping):
            raise InputError(
                "a record is not a mapping",
                wanted='field name → value, such as {"id": "d1", "text": "…"}',
                found=shown(record),
                remedy="of a frame, pass frame.to_dict('records')"
                if isinstance(record, str)
                else "",
            )
        values = {name: value for name, value in record.items() if not is_missing(value)}
        if unnamed := [name for name in values if not isinstance(name, str)]:
            raise InputError(f"field name {unnamed[0]!r} is not a string")
        doc_id = take_id(values, DOC_ID_NAMES)
        texts = {n: as_paragraphs(n, values.pop(n)) for n in TEXT_NAMES if n in values}
        text_name = next((n for n, text in texts.items() if text.strip()), next(iter(texts), None))
        if text_name is None and "title" not in values:
            raise InputError(
                f"document {doc_id} has no text",
                wanted=f"a field named {' or '.join(TEXT_NAMES)}",
                found=", ".join(sorted(values)) or "no further field",
            )
        fields = {
            name: as_paragraphs(name, value) if name == "title" else as_text(name, value)
            for name, value in values.items()
        }
        if text_name is not None:
            fields["text"] = texts.pop(text_name)
            fields |= {name: text for name, text in texts.items() if name != "text"}
        return cls(doc_id, fields)

    @property
    def fault(self) -> str:
        """Why this document cannot be indexed; empty if it can."""
        read: object = self.read_fields
        if not isinstance(read, tuple):
            return f"read_fields is no tuple of names: {read!r}"
        texts = (self.doc_id, *self.fields, *self.fields.values())
        if other := [text for text in texts if not isinstance(text, str)]:
            return f"document has an id, a field name or a value that is no string: {other[0]!r}"
        if not self.doc_id.strip():
            return "document has an empty id"
        try:
            for text in texts:
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


def stated_sections(starts: Iterable[int]) -> dict[str, str]:
    """Return the field that states where sections of a text begin; no field without sections.

    starts: the offset in the text of the line with which each begins.
    """
    stated = " ".join(map(str, starts))
    return {SECTION_STARTS: stated} if stated else {}


class Places:
    """Tells where in its file a character of a document is; quick if asked in order.

    Attributes:
        contents: Those of the document, which are joined once.
    """

    def __init__(self, document: Document) -> None:
        self.contents = document.contents
        self._has_pages = PAGE_BREAK in self.contents
        self._has_lines = not document.title and document.fields.get("type") in TYPES_OF_LINES
        self._last: dict[str, tuple[int, int]] = {}

    def page(self, offset: int) -> int | None:
        """Return the page, from 1, of a character; None if the text has no form feeds."""
        return self._count(PAGE_BREAK, offset) + 1 if self._has_pages else None

    def line(self, offset: int) -> int | None:
        """Return the line, from 1, in which a character is.

        Returns None unless the contents are the lines of the file: those of source code and text.
        """
        return self._count("\n", offset) + 1 if self._has_lines else None

    def _count(self, mark: str, offset: int) -> int:
        """Return how often a mark stands before an offset, counted on from the last one."""
        start, count = self._last.get(mark, (0, 0))
        if offset < start:
            start, count = 0, 0
        count += self.contents.count(mark, start, offset)
        self._last[mark] = offset, count
        return count


@dataclass(frozen=True, slots=True)
class Query:
    """A query, with the id that qrels and runs use for it.

    Attributes:
        query_id: Id of the query; an integer becomes a string.
        text: Text to search for.
        weights: Index term → weight, 0 or more, to search for instead of the text's terms, as
            SPLADE computes them. Default None.

    Raises:
        InputError: The id is neither a string nor an integer, the text is not a string, or a weight
            is not a number from 0 to 1e30.
    """

    query_id: str
    text: str
    weights: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "query_id", as_id(self.query_id, "query id"))
        object.__setattr__(self, "text", text_of(self.text, f"the text of query {self.query_id}"))
        if self.weights is not None:
            weights = weighted_terms(self.weights, f"weights of query {self.query_id}")
            if not weights:
                raise InputError(f"query {self.query_id} has no weights", wanted="one term or more")
            object.__setattr__(self, "weights", weights)


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

    def __post_init__(self) -> None:
        self.scores.flags.writeable = False

    def __reduce__(self) -> tuple[type[Ranking], tuple[tuple[str, ...], Float32s]]:
        """Copies and pickles are made anew, since those of an array can be written to."""
        return Ranking, (self.doc_ids, self.scores)

    @classmethod
    def of(cls, doc_ids: Sequence[str], scores: ArrayLike, depth: int | None = None) -> Ranking:
        """Rank documents by their scores; equal scores are in descending byte order of doc_ids.

        Args:
            doc_ids: Ids of n different documents, in any order; integers become strings.
            scores: Their scores (n,), converted to float32.
            depth: Number of best documents to include. Default: all.

        Raises:
            InputError: A document occurs twice, a score is not finite in float32, or the numbers of
                ids and scores differ.
        """
        doc_ids = ids_of(doc_ids)
        if depth is not None:
            require_at_least("depth", depth, 0)
        try:
            with np.errstate(over="ignore"):  # too large for float32 is infinite, rejected below
                given = scores if hasattr(scores, "__array__") else listed(scores, "scores")  # type: ignore[arg-type]
                values = np.asarray(given).astype(np.float32)
        except (OverflowError, TypeError, ValueError):
            raise InputError("scores are not numbers", found=shown(scores)) from None
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
        return cls(tuple(doc_ids[i] for i in order), values[order])

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
        items = getattr(pairs, "items", None)  # of a Series, too
        given = listed(items() if items and not hasattr(pairs, "columns") else pairs, "pairs")
        if bad := [pair for pair in given if not isinstance(pair, tuple | list) or len(pair) != 2]:
            raise InputError("not a pair of doc_id and score", found=shown(bad[0]))
        return cls.of([doc_id for doc_id, _ in given], [score for _, score in given], depth)

    def head(self, depth: int) -> Ranking:
        """Return the ranking cut to its best documents.

        Args:
            depth: Number of documents to include, 0 or more.
        """
        require_at_least("depth", depth, 0)
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
        lowest, steps = float(self.scores.min()), np.arange(1, len(doc_ids) + 1) * 1e-3
        # scores above 0 stay above 0, so that they can still be divided by the highest
        below = lowest / (1 + steps) if lowest > 0 else lowest - steps * max(1e-3, abs(lowest))
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
    lowest_first = -np.asarray(scores, np.float64)  # unsigned integers have no negatives
    order: list[int] = np.argsort(lowest_first, kind="stable")[:count].tolist()
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
        rankings: Query id → Ranking; ids that are integers become strings.
        tag: Name of the system, the last column of a run file. Default: "birchbark".

    Raises:
        InputError: An id is neither a string nor an integer, or a value is not a Ranking.
    """

    rankings: Mapping[str, Ranking]
    tag: str = "birchbark"

    def __post_init__(self) -> None:
        object.__setattr__(self, "tag", text_of(self.tag, "the tag of a run"))
        for query_id, ranking in mapping_of(self.rankings, "rankings").items():
            if not isinstance(ranking, Ranking):
                raise InputError(
                    f"the ranking of query {query_id} is not a Ranking",
                    found=shown(ranking),
                    remedy="make a run of scores with Run.of",
                )
        object.__setattr__(self, "rankings", by_id(self.rankings, "query"))

    def head(self, depth: int) -> Run:
        """Return the run with each ranking cut to its best documents.

        Args:
            depth: Number of documents to include per query.
        """
        return Run({query_id: r.head(depth) for query_id, r in self.rankings.items()}, self.tag)

    @classmethod
    def of(cls, values: Any, tag: str = "birchbark") -> Run:
        """Make a run from another library's.

        Args:
            values: Query id → doc_id → score; a Run of ranx; or a frame of pandas or polars, or a
                list of mappings, with a row for each document: `query_id`, `qid`, `q_id` or
                `query-id`; `doc_id`, `docno`, `docid` or `corpus-id`; and `score`. Ranks are not
                read: documents are ranked by their scores.
            tag: Name of the system. Default: "birchbark".

        Raises:
            InputError: It is none of these, lacks a column, or as in `Ranking.of`.
        """
        scores = values_by_query(values, ("score",), "a run")
        return cls({q: Ranking.from_pairs(scored) for q, scored in scores.items()}, tag)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return query id → doc_id → score, best first, as ranx and ir-measures take."""
        return {
            query_id: dict(zip(ranking.doc_ids, ranking.scores.tolist(), strict=True))
            for query_id, ranking in self.rankings.items()
        }

    def to_records(self) -> list[dict[str, Any]]:
        """Return a row for each document, of which `pandas.DataFrame` makes a frame.

        Each has `query_id`, `doc_id`, `score` and `rank`, from 1.
        """
        return [
            {"query_id": query_id, "doc_id": doc_id, "score": score, "rank": rank}
            for query_id, of_query in self.to_dict().items()
            for rank, (doc_id, score) in enumerate(of_query.items(), 1)
        ]


@dataclass(frozen=True, slots=True)
class Qrels:
    """Relevance judgments.

    Attributes:
        grades: Query id → doc_id → relevance grade; above 0 is relevant. Unjudged documents are
            absent, which differs from a grade of 0. Ids that are integers become strings, and
            grades such as 1.0 integers. Default: empty.
        relevant: The lowest grade that measures without grades, such as AP, count as relevant,
            unless they name another (`AP(rel=1)`). Default 1.

    Raises:
        InputError: An id is neither a string nor an integer, or a grade is not a whole number.
    """

    grades: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    relevant: int = 1

    def __post_init__(self) -> None:
        require_at_least("relevant", self.relevant, 1)
        grades = {}
        for query_id, judged in by_id(mapping_of(self.grades, "grades"), "query").items():
            of_query = mapping_of(judged, f"the judgment of query {query_id}")
            of_query = by_id(of_query, f"query {query_id}: document")
            if not query_id or "" in of_query:
                raise InputError("an id of a judgment is empty", found=f"query {query_id!r}")
            values = of_query.values()
            if not set(map(type, values)) <= {int} or max(map(abs, values), default=0) > MAX_GRADE:
                try:
                    of_query = {doc_id: as_grade(grade) for doc_id, grade in of_query.items()}
                except InputError as error:
                    raise error.at(f"query {query_id}") from None
            grades[query_id] = of_query
        object.__setattr__(self, "grades", grades)

    @classmethod
    def of(cls, values: Any, relevant: int = 1) -> Qrels:
        """Make judgments from another library's.

        Args:
            values: Query id → doc_id → grade; Qrels of ranx; or a frame of pandas or polars, or a
                list of mappings, with a row for each judgment: columns as in `Run.of`, and
                `relevance`, `label`, `grade` or `score`.
            relevant: See the attribute. Default 1.

        Raises:
            InputError: It is none of these, lacks a column, or as for `Qrels`.
        """
        names = ("relevance", "label", "grade", "score")
        return cls(values_by_query(values, names, "judgments"), relevant)

    def to_dict(self) -> dict[str, dict[str, int]]:
        """Return query id → doc_id → grade, as ranx and ir-measures take."""
        return {query_id: dict(judged) for query_id, judged in self.grades.items()}

    def to_records(self) -> list[dict[str, Any]]:
        """Return a row for each judgment, with `query_id`, `doc_id` and `relevance`."""
        return [
            {"query_id": query_id, "doc_id": doc_id, "relevance": grade}
            for query_id, judged in self.grades.items()
            for doc_id, grade in judged.items()
        ]

    def __len__(self) -> int:
        """Return the number of judgments."""
        return sum(map(len, self.grades.values()))
