"""What are the best hits for one query, and why?"""

from __future__ import annotations

from birchbark.errors import InputError
from birchbark.pipeline.answer import Answer, Hit, Work
from birchbark.pipeline.deadline import Deadline
from birchbark.pipeline.duo import compare
from birchbark.pipeline.race import Race, Readers
from birchbark.pipeline.ranker import Ranker
from birchbark.records import Document, Query
from birchbark.retrieve.engine import Engine


def search(
    engine: Engine, text: str, ranker: Ranker | None, top: int = 10, budget: float | None = None
) -> Answer:
    """The `top` best hits for `text`, best first: first stage, then candidates re-ranked.

    At least `top` candidates are looked at, whatever the ranker's depth; those that cannot be among
    the best are not scored. Without a ranker the first stage has the last word, and hits have no
    evidence. budget: seconds; where they do not suffice, documents that were not settled keep the
    first stage's order, under those that were, and the answer says so.
    """
    if top < 1:
        raise InputError("top is out of range", wanted="1 or more", found=str(top))
    if budget is not None and not budget > 0:
        raise InputError("budget is out of range", wanted="seconds above 0", found=str(budget))
    if ranker is None:
        ranking = engine.rank(text, top)
        documents = engine.documents(ranking.doc_ids)
        scores = ranking.scores.tolist()
        hits = [Hit(d, score, score, 0.0, ()) for d, score in zip(documents, scores, strict=True)]
        return Answer(tuple(hits), Work())
    deadline = Deadline(budget)
    candidates = engine.rank(text, max(top, ranker.depth))
    reach = max(top, ranker.duo.depth) if ranker.duo else top
    race = Race(Readers(engine, ranker), Query("", text), candidates, ranker, reach)
    race.run(deadline)
    hits, work = race.hits(), race.work
    if ranker.duo and work.exact:
        ranker.duo.check_cost([len(hits)])
        compared = compare(ranker.duo, text, hits[: ranker.duo.depth], deadline)
        hits = [*compared.hits, *hits[ranker.duo.depth :]]
        work += compared.work
    return Answer(tuple(hits[:top]), work)


def warm_up(engine: Engine, ranker: Ranker, text: str) -> None:
    """Load what is loaded on first use, so that a first answer is as fast as the next."""
    engine.rank(text, 1)
    ranker.segmenter(Document("", {"text": "A sentence. Another."}))
    ranker.scorer.score(text, ranker.scorer.encode([""]))
