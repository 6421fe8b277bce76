"""What does a teacher say of the pairs, so that it need be asked but once?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from birchbark.records import Ids
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.remembering import Remembering
from birchbark.score.scorer import Scorer
from birchbark.score.store import ScoreStore
from birchbark.train.config import Teacher
from birchbark.train.examples import Pairs

TOGETHER = 1000  # queries whose texts are embedded together


@dataclass(frozen=True, slots=True)
class Teachers:
    """Where it is kept what teachers say, so that it is asked for once.

    store: a score store's folder. write: false in a process that finds there what another asked.
    """

    store: Path
    write: bool = True


def taught(
    pairs: Pairs, teacher: Teacher, scorer: Scorer, kept: Teachers
) -> tuple[NDArray[np.float32], int]:
    """What `teacher`, opened as `scorer`, says of each pair, (n,): scale · (score − shift).

    The score is a cosine (0 where it is negative), or a cross-encoder's log-odds. Texts that the
    teacher cannot read whole are cut to what it can; of how many pairs, is given besides.
    """
    cut = 0
    targets = np.empty(len(pairs), np.float32)
    with ScoreStore(kept.store, scorer, write=kept.write) as scores:
        remembering = Remembering(scorer, scores)
        texts = scorer.encode(pairs.texts)

        for start in range(0, len(pairs.queries), TOGETHER):
            asked: dict[str, list[Ids]] = {}
            numbers = pairs.by_query[start : start + TOGETHER]
            for query, own in zip(pairs.queries[start : start + TOGETHER], numbers, strict=True):
                whole, room = [texts[text] for text in pairs.text[own]], scorer.room(query)
                asked[query] = [piece[:room] for piece in whole]
                cut += sum(len(piece) > room for piece in whole)
            if isinstance(scorer, EmbeddingScorer):
                _embed_together(scorer, scores, asked)
            for (query, pieces), own in zip(asked.items(), numbers, strict=True):
                targets[own] = remembering.score(query, pieces)
    if scorer.kind == "cross-encoder":
        shares = np.clip(targets.astype(np.float64), 1e-7, 1 - 1e-7)
        targets = np.log(shares / (1 - shares)).astype(np.float32)
    return np.float32(teacher.scale) * (targets - np.float32(teacher.shift)), cut


def _embed_together(
    scorer: EmbeddingScorer, scores: ScoreStore, asked: Mapping[str, Sequence[Ids]]
) -> None:
    """Embed the texts of many queries at once: those of one query alone make small batches."""
    new = [
        piece
        for query, pieces in asked.items()
        if not scores.find(scores.keys(query, pieces))[1].all()
        for piece in pieces
    ]
    scorer.embed(new)
