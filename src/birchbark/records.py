"""What are the nouns of the house? Document, Query, Segment, Pair, Run, Qrels and the like: frozen.

The one tie rule lives here too: higher scores first; equal scores in *descending* byte order of
their doc_id, as trec_eval breaks ties. Scores are float32, as trec_eval holds them, so that the
order we print is the order that is measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from birchbark.errors import InputError

Float32s = NDArray[np.float32]
Ids = NDArray[np.int32]  # (n,) token ids of a text, without special tokens


@dataclass(frozen=True, slots=True)
class Document:
    """One unit of retrieval: an id and named texts, of which `title` and `text` are the usual."""

    doc_id: str
    fields: Mapping[str, str]

    @property
    def fault(self) -> str:
        """Why this document cannot be kept; empty if it can."""
        if not self.doc_id.strip():
            return "document has an empty id"
        try:
            for text in (self.doc_id, *self.fields, *self.fields.values()):
                text.encode()
        except UnicodeEncodeError:
            return "text holds half a character (a lone surrogate)"
        return ""

    @property
    def title(self) -> str:
        """The field `title`, or an empty string."""
        return self.fields.get("title", "")

    @property
    def text(self) -> str:
        """The field `text`, or an empty string."""
        return self.fields.get("text", "")

    @property
    def contents(self) -> str:
        """Title and text on lines of their own: what is read by people and by BERT.

        Offsets of segments count characters of this string.
        """
        return "\n".join(part for part in (self.title, self.text) if part)


@dataclass(frozen=True, slots=True)
class Query:
    """The text searched, under the id that qrels and runs know it by."""

    query_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Rewording:
    """A query in other words, and how much it counts beside the one that was asked, 0 to 1."""

    text: str
    weight: float


@dataclass(frozen=True, slots=True)
class Segment:
    """A sentence or window of a document, scored as one unit.

    `start` and `end` are character offsets in `Document.contents`. `text` is what the model reads:
    the characters between them, with the title in front where the segmenter puts it there.
    """

    doc_id: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Pair:
    """A query and a text that somebody judged for it: what a model is trained on.

    relevance: a whole grade from 0, where 0 is not relevant.
    """

    query_id: str
    query: str
    doc_id: str
    text: str
    relevance: int

    @property
    def fault(self) -> str:
        """Why nobody can learn from this pair; empty if one can."""
        for name in ("query_id", "query", "doc_id", "text"):
            value: str = getattr(self, name)
            if not value.strip():
                return f"{name} is empty"
            try:
                value.encode()
            except UnicodeEncodeError:
                return f"{name} holds half a character (a lone surrogate)"
        return ""


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """The documents of one query, best first.

    doc_ids: n distinct ids. scores: float32 (n,), not rising, read-only. Made by `Ranking.of`.
    """

    doc_ids: tuple[str, ...]
    scores: Float32s

    @classmethod
    def of(cls, doc_ids: Sequence[str], scores: ArrayLike, depth: int | None = None) -> Ranking:
        """Rank `doc_ids` by `scores` under the tie rule and keep the first `depth`.

        Raises InputError for a doc_id that appears twice and for a score that is not finite.
        """
        with np.errstate(over="ignore"):  # too large for float32 is infinite, and refused below
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
                remedy="trec_eval refuses such runs too; keep one line for each document",
            )
        order = _order(doc_ids, values)[:depth]
        values = values[order]
        values.flags.writeable = False
        return cls(tuple(doc_ids[i] for i in order), values)

    def head(self, depth: int) -> Ranking:
        """The first `depth` documents."""
        return Ranking(self.doc_ids[:depth], self.scores[:depth])

    def __len__(self) -> int:
        return len(self.doc_ids)

    def __iter__(self) -> Iterator[tuple[str, float]]:
        """Pairs of doc_id and score, best first."""
        return zip(self.doc_ids, self.scores.tolist(), strict=True)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Ranking)
            and self.doc_ids == other.doc_ids
            and np.array_equal(self.scores, other.scores)
        )

    def __hash__(self) -> int:
        return hash(self.doc_ids)


def _order(doc_ids: Sequence[str], scores: Float32s) -> list[int]:
    """Positions by falling score; only runs of equal scores look at the ids."""
    order: list[int] = np.argsort(-scores, kind="stable").tolist()
    ranked = scores[order]
    edges = [0, *(np.flatnonzero(ranked[1:] != ranked[:-1]) + 1).tolist(), len(order)]
    if len(edges) <= len(order):
        for start, end in pairwise(edges):
            if end - start > 1:
                order[start:end] = sorted(order[start:end], key=doc_ids.__getitem__, reverse=True)
    return order


@dataclass(frozen=True, slots=True)
class Run:
    """A ranking for each query_id, under a tag that names the system."""

    rankings: Mapping[str, Ranking]
    tag: str = "birchbark"

    def head(self, depth: int) -> Run:
        """The same run with each ranking cut to its first `depth` documents."""
        return Run({query_id: r.head(depth) for query_id, r in self.rankings.items()}, self.tag)


@dataclass(frozen=True, slots=True)
class Qrels:
    """Relevance judgments: query_id → doc_id → grade. An unjudged document is absent, not 0."""

    grades: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def __len__(self) -> int:
        """The number of judgments."""
        return sum(map(len, self.grades.values()))
