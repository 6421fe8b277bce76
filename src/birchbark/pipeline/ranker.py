"""What is chosen for the second stage?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np

from birchbark.combine.aggregate import Aggregation, Judged, Top, judged
from birchbark.combine.interpolate import Interpolation
from birchbark.errors import InputError
from birchbark.pipeline.duo import Duo
from birchbark.records import Float32s
from birchbark.score.scorer import DocumentScorer, Scorer
from birchbark.segment.limit import Limit
from birchbark.segment.named import Segmenter
from birchbark.segment.sentences import sentences

DEPTH = 100
REREAD = 20


@dataclass(frozen=True, slots=True)
class Ranker:
    """All choices of the second stage in one value.

    scorer: reads query and segment. segmenter: document → segments. aggregation: segment scores →
    evidence; not asked where the scorer judges documents itself (PARADE). interpolation: evidence
    and first stage → score. depth: how many candidates of the
    first stage are re-ranked; those below keep their order, under the re-ranked ones. limit: how
    much of a document is read, all of it by default. embedding: a second scorer, whose evidence
    makes up the share `embedding_weight` of all evidence, and which is asked for every candidate
    before the first: score = a · first stage + (1 − a) · ((1 − e) · evidence + e · embedding's).
    precise: reads again the segments that count most in the `reread` best documents, where the
    first scorer is a coarser one. duo: ranks the best of all these anew, by comparing them.
    """

    scorer: Scorer
    segmenter: Segmenter = sentences
    aggregation: Aggregation = field(default_factory=Top)
    interpolation: Interpolation = field(default_factory=Interpolation)
    depth: int = DEPTH
    limit: Limit = field(default_factory=Limit)
    embedding: Scorer | None = None
    embedding_weight: float = 0.5
    precise: Scorer | None = None
    reread: int = REREAD
    duo: Duo | None = None

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise InputError("depth is out of range", wanted="1 or more", found=str(self.depth))
        if not 0 <= self.embedding_weight <= 1:
            found = str(self.embedding_weight)
            raise InputError("embedding weight is out of range", wanted="0 to 1", found=found)
        if self.embedding and self.embedding.width > 1:
            raise InputError(f"{self.embedding.name} judges documents: it ranks alone")
        if self.precise and self.precise.encoding != self.scorer.encoding:
            raise InputError("the precise scorer must read the token ids of the first")

    def judge(self, values: Float32s) -> Judged:
        """What a document's segments are worth, by their scores (n,) or vectors (n, width)."""
        if self.scorer.width > 1:
            score, shares = cast(DocumentScorer, self.scorer).judge(values)
            return Judged(score, np.full(len(values), score, np.float32), shares)
        return judged(values, self.aggregation)

    def most(self, segments: int | None = None) -> float:
        """The highest evidence that so many segments can have; None: any number."""
        return float(segments != 0) if self.scorer.width > 1 else self.aggregation.most(segments)

    def by(self, scorers: Callable[[Scorer], Scorer]) -> Ranker:
        """The same with what `scorers` makes of each of its scorers."""
        return replace(
            self,
            scorer=scorers(self.scorer),
            embedding=self.embedding and scorers(self.embedding),
            precise=self.precise and scorers(self.precise),
            duo=self.duo and replace(self.duo, scorer=scorers(self.duo.scorer)),
        )

    @property
    def reads(self) -> tuple[object, ...]:
        """Equal for rankers that read the same of a document, by the same scorers."""
        return self.scorer, self.embedding, self.precise, self.segmenter, self.limit

    @property
    def embedding_share(self) -> float:
        """e: 0 without a second scorer."""
        return self.embedding_weight if self.embedding else 0.0
