"""How are candidates found by their vectors, without or beside the terms of the query?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError
from birchbark.index.attachment_reader import Attachment
from birchbark.index.reader import Index
from birchbark.pipeline.keeping import VECTORS, embedding_of
from birchbark.pipeline.kept import Kept
from birchbark.records import Document, Float32s, Ranking
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import FirstStage, Nearby, matching, rank_query
from birchbark.retrieve.match import OR, Match, parse_match
from birchbark.retrieve.nearest import KeptVectors, filtered
from birchbark.score.rounding import unpack
from birchbark.score.scorer import Scorer
from birchbark.segment.named import parse_segmenter

REMEDY = "birchbark index attach INDEX --vectors MODEL"


@dataclass(frozen=True, slots=True)
class Near:
    """Which documents are candidates, and what ranks them.

    count: the so many nearest to the query are candidates; None for as many as are asked for, 0 for
    none by nearness. terms: those that hold its terms are, too; None for none by terms. cosine:
    ranked by the cosine of query and nearest segment, in [0, 1]; else by the first stage's model.
    """

    count: int | None = None
    terms: Match | None = None
    cosine: bool = True

    def __post_init__(self) -> None:
        if self.count is not None and self.count < 0:
            raise InputError("number of near documents", wanted="0 or more", found=str(self.count))
        if self.count == 0 and self.terms is None:
            raise InputError("no document would be a candidate", wanted="a count, or terms")

    @property
    def used(self) -> bool:
        """Whether vectors have a part in it."""
        return self.cosine or self.count != 0


def parse_near(text: str, *, dense: bool) -> Near:
    """What `text` says: a match (parse_match), ann:COUNT, or ann:COUNT+MATCH.

    dense: ranked by cosine. Empty: any term; where dense, as many near ones as are asked for.
    """
    if not text:
        return Near() if dense else Near(0, OR, cosine=False)
    near, plus, terms = text.partition("+")
    if not near.startswith("ann"):
        return Near(0, parse_match(text), dense)
    count = near.removeprefix("ann:")
    if not count.isdecimal() or (plus and not terms):
        raise InputError(f"unknown match {text!r}", wanted="ann:COUNT, or ann:COUNT+or, +and, …")
    return Near(int(count), parse_match(terms) if plus else None, dense)


class DenseEngine:
    """An `Engine` (retrieve/engine.py) over an index that keeps vectors of segments.

    By cosine a document is worth as much as its nearest segment; documents of which no vectors are
    kept are not found by it. The nearest are found by HNSW graphs where there are some (graphs.py),
    so that a few may be missed; what is found is scored exactly. The scores are those that the
    embedding has in the second stage, and ranked by terms those of the first.
    """

    def __init__(
        self,
        index: Index,
        load: Callable[[str], Scorer],
        near: Near = Near(),
        stage: FirstStage = FirstStage(),
    ) -> None:
        """load: gives the scorer of a model by its name; that of the kept vectors is asked for.

        stage: whose model, fields, filters and expansion are used, not its match. Raises InputError
        for an index that keeps no vectors, or none of that model.
        """
        found = index.attachment(VECTORS)
        if found is None:
            raise InputError("no vectors are kept", where=str(index.directory), remedy=REMEDY)
        config = found.schema.config
        self.index, self.near = index, near
        self.stage = stage if near.terms is None else replace(stage, match=near.terms)
        scorer = load(config["model"])
        self._kept = Kept(IndexEngine(index), scorer, parse_segmenter(config["segments"]))
        embedding = embedding_of(scorer)
        if embedding is None or self._kept.scorer is scorer:
            raise InputError(
                f"the vectors were made by another model than {config['model']} is now",
                where=str(index.directory),
                remedy=REMEDY,
            )
        self._embedding = embedding
        self._vectors = KeptVectors.of(index, found, unpack)

    def rank(self, query: str, depth: int) -> Ranking:
        """As `Engine.rank`."""
        if depth < 1:
            raise InputError("depth is out of range", wanted="1 or more", found=str(depth))
        near = self._near(query, depth)
        if not self.near.cosine:
            by_terms = self.near.terms is not None
            return rank_query(self.index, query, self.stage, depth, Nearby(near, by_terms))
        if self.near.terms is not None:
            allowed = [a | b for a, b in zip(near, self._matching(query), strict=True)]
            near = self._vectors.near(self._embed(query), allowed, depth, exactly=True)
        doc_ids = [
            doc_id
            for part, found in zip(self.index.parts, near, strict=True)
            for doc_id in part.doc_ids.take(np.flatnonzero(found))
        ]
        scores = [s.max() for s in self._kept.scores(query, doc_ids) if s is not None]
        return Ranking.of(doc_ids, np.array(scores, np.float32), depth)

    def filtered(self, filters: Mapping[str, str]) -> DenseEngine:
        """The same, for documents with these values besides."""
        other = copy(self)
        other.stage = self.stage.filtered(filters)
        return other

    @property
    def name(self) -> str:
        """What runs of it are called."""
        return "dense" if self.near.cosine else f"{self.stage.name}+ann"

    @property
    def missing(self) -> int:
        """Documents of which no vectors are kept."""
        return self.index.incomplete().get(VECTORS, 0)

    def match_ratio(self, query: str, depth: int) -> float:
        """Share of all documents that are candidates, 0 to 1."""
        found = self._near(query, depth)
        if self.near.terms is not None:
            found = [a | b for a, b in zip(found, self._matching(query), strict=True)]
        return sum(int(part.sum()) for part in found) / max(1, len(self.index))

    def documents(self, doc_ids: Sequence[str]) -> list[Document]:
        """As `DocumentStore.documents`."""
        return self.index.documents(doc_ids)

    def attachment(self, name: str) -> Attachment | None:
        """As `Index.attachment`."""
        return self.index.attachment(name)

    def _near(self, query: str, depth: int) -> list[NDArray[np.bool_]]:
        """Of each part, which documents are near."""
        count = depth if self.near.count is None else self.near.count
        allowed = filtered(self.index, self.stage.filters)
        if not count or not self._embedding.spans(query):
            return [np.zeros_like(may) for may in allowed]
        return self._vectors.near(self._embed(query), allowed, count)

    def _matching(self, query: str) -> list[NDArray[np.bool_]]:
        return matching(self.index, query, self.stage)

    def _embed(self, query: str) -> Float32s:
        self._embedding.room(query)  # a query that is too long is told as such
        vector: Float32s = self._embedding.embed(self._embedding.encode([query]))[0]
        return vector
