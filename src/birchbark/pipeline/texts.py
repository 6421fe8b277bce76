"""How are texts ranked that lie in no index?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from birchbark.combine.aggregate import Max
from birchbark.combine.interpolate import Interpolation
from birchbark.errors import InputError, LateError
from birchbark.pipeline.deadline import Deadline
from birchbark.pipeline.race import Race, Readers
from birchbark.pipeline.ranker import Ranker
from birchbark.records import Document, Query, Ranking
from birchbark.score.scorer import Scorer
from birchbark.segment.whole import whole


@dataclass(frozen=True, slots=True)
class RankedText:
    """A text's place among those given, from 0, and its probability of relevance, 0 to 1."""

    place: int
    score: float


def rank_texts(
    query: str,
    texts: Sequence[str],
    scorer: Scorer,
    top: int | None = None,
    budget: float | None = None,
    *,
    watch: Callable[[], object] = lambda: None,
) -> list[RankedText]:
    """The texts by their relevance for `query`, best first; of equal ones the first given is first.

    A text is read whole; one that is longer than the model reads at once, in chunks, of which the
    best counts: nothing is cut off. top: only the best so many. budget: seconds. watch: called
    before each batch; what it raises is raised. Raises InputError for a query that leaves no room
    for text, and LateError where time does not suffice.
    """
    if top is not None and top < 1:
        raise InputError("top is out of range", wanted="1 or more", found=str(top))
    ranker = Ranker(scorer, whole, Max(), Interpolation(0.0), depth=max(1, len(texts)))
    names = [f"{len(texts) - place:09}" for place in range(len(texts))]  # see the tie rule
    given = dict(zip(names, texts, strict=True))
    race = Race(
        Readers(_Given(given), ranker),
        Query("", query),
        Ranking.of(names, [0.0] * len(names)),
        len(names),
    )
    race.run(Deadline(budget, watch=watch))
    if not race.work.exact:
        raise LateError(
            "time does not suffice for all texts",
            found=f"{race.work.settled} of {len(texts)} read",
            remedy="fewer texts, or more time",
        )
    places = {name: place for place, name in enumerate(names)}
    return [RankedText(places[name], score) for name, score in race.best()][:top]


@dataclass(frozen=True, slots=True)
class _Given:
    """Texts by name, as a store of documents."""

    texts: dict[str, str]

    def documents(self, doc_ids: Sequence[str]) -> list[Document]:
        """As `DocumentStore.documents`."""
        return [Document(doc_id, {"text": self.texts[doc_id]}) for doc_id in doc_ids]
