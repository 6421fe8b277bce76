"""What is chosen for the second stage?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from birchbark.combine.aggregate import Aggregation, Top
from birchbark.combine.interpolate import Interpolation
from birchbark.errors import InputError
from birchbark.records import Document, Segment
from birchbark.score.scorer import Scorer
from birchbark.segment.limit import Limit
from birchbark.segment.sentences import sentences

DEPTH = 100
Segmenter = Callable[[Document], list[Segment]]


@dataclass(frozen=True, slots=True)
class Ranker:
    """All choices of the second stage in one value.

    scorer: reads query and segment. segmenter: document → segments. aggregation: segment scores →
    evidence. interpolation: evidence and first stage → score. depth: how many candidates of the
    first stage are re-ranked; those below keep their order, under the re-ranked ones. limit: how
    much of a document is read, all of it by default.
    """

    scorer: Scorer
    segmenter: Segmenter = sentences
    aggregation: Aggregation = field(default_factory=Top)
    interpolation: Interpolation = field(default_factory=Interpolation)
    depth: int = DEPTH
    limit: Limit = field(default_factory=Limit)

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise InputError("depth is out of range", wanted="1 or more", found=str(self.depth))
