"""What are the best hits for one query, and why?"""

from __future__ import annotations

from collections.abc import Sequence

from birchbark.errors import InputError
from birchbark.pipeline.answer import Answer, Hit, Work
from birchbark.pipeline.deadline import Deadline
from birchbark.pipeline.race import Readers
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.stage import Stage
from birchbark.records import Document, Query
from birchbark.retrieve.engine import Engine


def search(
    engine: Engine,
    text: str,
    rankers: Ranker | Sequence[Ranker] | None,
    top: int = 10,
    budget: float | None = None,
) -> Answer:
    """The `top` best hits for `text`, best first: first stage, then candidates re-ranked.

    rankers: one, or several stages, each of which re-ranks the best of what the one before made. At
    least `top` candidates are looked at, whatever the first's depth; those that cannot be among the
    best are not scored. Without a ranker the first stage has the last word, and hits have no
    evidence. budget: seconds; where they do not suffice, documents that were not settled keep the
    first stage's order, under those that were, and the answer says so.
    """
    if top < 1:
        raise InputError("top is out of range", wanted="1 or more", found=str(top))
    if budget is not None and not budget > 0:
        raise InputError("budget is out of range", wanted="seconds above 0", found=str(budget))
    if not rankers:
        ranking = engine.rank(text, top)
        documents = engine.documents(ranking.doc_ids)
        scores = ranking.scores.tolist()
        hits = [Hit(d, score, score, 0.0, ()) for d, score in zip(documents, scores, strict=True)]
        return Answer(tuple(hits), Work())
    stages = [rankers] if isinstance(rankers, Ranker) else list(rankers)
    deadline, query, work = Deadline(budget), Query("", text), Work()
    candidates = engine.rank(text, max(top, stages[0].depth))
    for place, ranker in enumerate(stages):
        wanted = max(top, *(after.depth for after in stages[place + 1 : place + 2]), 1)
        readers = Readers(engine, ranker)
        stage = Stage.run(readers, query, candidates, ranker, wanted, deadline)
        candidates, work = stage.best.head(wanted), work + stage.work
        if not work.exact:
            break
    return Answer(tuple(stage.hits()[:top]), work)


def warm_up(engine: Engine, rankers: Sequence[Ranker], text: str) -> None:
    """Load what is loaded on first use, so that a first answer is as fast as the next."""
    engine.rank(text, 1)
    for ranker in rankers:
        ranker.segmenter(Document("", {"text": "A sentence. Another."}))
        ranker.scorer.score(text, ranker.scorer.encode([""]))
        if ranker.duo:
            duo = ranker.duo.duo
            duo.score(text, [duo.joined(*duo.encode(["", ""]))])
