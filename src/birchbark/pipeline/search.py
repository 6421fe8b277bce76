"""How is a query answered: first stage, re-ranking, hits with evidence?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from birchbark import defaults
from birchbark.arguments import shown, text_of
from birchbark.deadline import Deadline
from birchbark.errors import InputError, require_at_least, require_number
from birchbark.index.build_index import build_index
from birchbark.index.postings import compile_for_many
from birchbark.pipeline.answers.answer import Answer, Hit, SearchStats
from birchbark.pipeline.answers.best_sentences import with_best_sentences
from birchbark.pipeline.answers.copies import without_copies
from birchbark.pipeline.answers.snippets import Snippets
from birchbark.pipeline.reading.document_reader import RankerReaders
from birchbark.pipeline.run_stages import StageResult, check_query_lengths, run_stages
from birchbark.pipeline.settings.ranker import Ranker, stages_of
from birchbark.records import Document, Ranking
from birchbark.retrieve.engine import Engine, IndexEngine
from birchbark.retrieve.term_overlap import TermIndex
from birchbark.score.token_limits import cut_text
from birchbark.segment.sentences import sentence_spans

OnProgress = Callable[[Callable[[], Answer]], object]  # takes a function that returns an answer
OnHits = Callable[[Callable[[], tuple[list[Hit], SearchStats]]], object]
DEEPER = 10  # times as many hits are ranked, at most, to find enough that are no copies


def search(
    engine: Engine,
    query: str,
    rankers: Ranker | Sequence[Ranker],
    top: int = defaults.TOP,
    budget: float | None = None,
    *,
    on_progress: OnProgress = lambda answer: None,
) -> Answer:
    """Return the best hits for a query, best first.

    Documents that cannot be among the best are not scored.

    Args:
        engine: The first stage: an `IndexEngine`, what `open_engine` returns, or one of your own.
        query: The query.
        rankers: One stage, or several. Each stage re-ranks the best documents of the stage before
            it, down to its own depth; documents below the depth keep their order below the
            re-ranked ones. `()` for the first stage alone, whose hits have snippets
            instead of evidence.
        top: Maximum number of hits. Copies of a document are one hit, and more are ranked in their
            place, down to ten times `top` or the deepest stage's depth. Defaults to 10.
        budget: Maximum time in seconds. If it does not suffice, documents of which nothing was read
            follow the others, in the order of first stage and embedding, and the answer is not
            exact. Defaults to None: no limit.
        on_progress: Called after the first stage, if others follow, and whenever documents were
            scored, with a function that returns the answer so far. Does nothing by default.

    Returns:
        The hits, and how much was scored to find them.

    Raises:
        InputError: Before anything is scored, if `top` or `budget` is out of range, the query is
            too long for a model, or there are more comparisons than allowed.
    """
    if not hasattr(engine, "rank"):
        raise InputError(
            "the engine is no first stage",
            wanted="what open_engine(index) returns, an IndexEngine or one of your own",
            found=shown(engine),
        )
    stages = stages_of(rankers)
    deadline = deadline_for(budget)
    readers = [RankerReaders(engine, ranker) for ranker in stages]
    return search_with_readers(engine, query, readers, top, deadline, on_progress=on_progress)


def deadline_for(budget: float | None) -> Deadline:
    """Return the deadline in `budget` seconds; InputError unless `budget` is above 0 or None."""
    if budget is not None:
        require_number("budget", budget)
        if not budget > 0:
            raise InputError("budget is out of range", wanted="above 0", found=f"{budget} seconds")
    return Deadline(budget)


def search_with_readers(
    engine: Engine,
    query: str,
    readers: Sequence[RankerReaders],
    top: int,
    deadline: Deadline,
    *,
    terms: TermIndex | None = None,
    on_progress: OnProgress = lambda answer: None,
) -> Answer:
    """Search as `search` does, with existing readers of the engine's documents.

    terms: the terms of these documents, for snippets; those of the first readers by default.
    """
    require_at_least("top", top, 1)
    query = text_of(query, "the query")
    terms = terms or (readers[0].terms if readers else TermIndex(engine))
    snippets = Snippets(terms, query, deadline)
    stages = [stage_readers.ranker for stage_readers in readers]
    check_query_lengths(stages, query)

    def complete(hits: Iterable[Hit], stats: SearchStats) -> Answer:
        return Answer(snippets.complete(without_copies(hits)[:top]), stats)

    def ranked(most: int, on_hits: OnHits) -> tuple[list[Hit], SearchStats]:
        return _ranked(engine, query, readers, most, deadline, on_hits)

    hits, stats = ranked(top, lambda found: on_progress(lambda: complete(*found())))
    most, deepest = top, max([DEEPER * top, *(ranker.depth for ranker in stages)])
    while stats.exact and len(without_copies(hits)) < top and len(hits) == most < deepest:
        most = min(2 * most, deepest)
        deeper, of_deeper = ranked(most, lambda found: None)
        if of_deeper.exact:
            hits, stats = deeper, of_deeper
        else:  # time sufficed for these hits, and not to look for more
            stats = replace(stats, exact=False)
    answer = complete(hits, stats)
    if not stages:
        return answer
    last = stages[max([1, *(hit.stage for hit in hits)]) - 1]
    read, _ = cut_text(last.scorer, query, last.query_tokens)
    return with_best_sentences(answer, read, last.scorer, snippets, deadline)


def _ranked(
    engine: Engine,
    query: str,
    readers: Sequence[RankerReaders],
    top: int,
    deadline: Deadline,
    on_hits: OnHits,
) -> tuple[list[Hit], SearchStats]:
    """Return the `top` best hits, copies among them, and how much was scored."""
    if not readers:
        ranking = engine.rank(query, top)
        hits = _first_stage_hits(engine, ranking.doc_ids, dict(ranking), scored=True)
        return list(hits), SearchStats()
    stages = [stage_readers.ranker for stage_readers in readers]
    count = max(top, *(ranker.depth for ranker in stages))
    candidates, below = _candidates(engine, query, stages[0].depth, count)
    ranked = candidates.followed_by(below.doc_ids)
    for ranker in stages:
        if ranker.duo:
            ranker.duo.check_comparisons([min(len(ranked), ranker.depth)])
    shares = stages[0].interpolation.weighted_first_stage(candidates.scores, below.scores)
    unread = dict(zip(ranked.doc_ids, shares.tolist(), strict=True))

    def found(ranking: Ranking, results: Sequence[StageResult]) -> tuple[list[Hit], SearchStats]:
        stats = SearchStats.of_stages(result.stats for result in results)
        return _hits(engine, ranking.doc_ids, results, unread, top), stats

    def first() -> tuple[list[Hit], SearchStats]:
        hits = _first_stage_hits(engine, ranked.doc_ids[:top], unread, scored=False)
        return list(hits), SearchStats(candidates=len(candidates), exact=False)

    on_hits(first)
    state = run_stages(
        readers, query, ranked, top, deadline, lambda *state: on_hits(partial(found, *state))
    )
    return found(*state)


def _candidates(engine: Engine, query: str, depth: int, count: int) -> tuple[Ranking, Ranking]:
    """Return the ranking of `depth` that is re-ranked, and what follows it, `count` in all."""
    candidates = engine.rank(query, depth)
    if count <= depth or len(candidates) < depth:
        return candidates, Ranking.of([], [])
    included = set(candidates.doc_ids)  # the best of a deeper ranking may be others
    others = [pair for pair in engine.rank(query, count) if pair[0] not in included]
    return candidates, Ranking.from_pairs(others, count - depth)


def _first_stage_hits(
    engine: Engine, doc_ids: Sequence[str], scores: Mapping[str, float], *, scored: bool
) -> Iterator[Hit]:
    """Yield hits without evidence, with these scores of the first stage by doc_id."""
    for document in engine.documents(doc_ids):
        score = scores[document.doc_id]
        yield Hit(document, score, score, 0.0, (), scored=scored)


def _hits(
    engine: Engine,
    doc_ids: Sequence[str],
    results: Sequence[StageResult],
    unread: Mapping[str, float],
    top: int,
) -> list[Hit]:
    """Return the `top` best hits, each with the evidence of the last stage that read it.

    doc_ids: the ranking after the last completed stage; its documents fill up the hits. unread:
    the weighted scores of the first stage, for documents that no stage scored.
    """
    hits = {hit.document.doc_id: hit for hit in results[-1].hits()}
    doc_ids = list(dict.fromkeys([*hits, *doc_ids]))[:top]
    for result in results[-2::-1]:
        if all(doc_id in hits and hits[doc_id].scored for doc_id in doc_ids):
            break
        for hit in result.hits():
            later = hits.get(hit.document.doc_id)
            if later is None or (hit.scored and not later.scored):
                hits[hit.document.doc_id] = hit
    rest = [doc_id for doc_id in doc_ids if doc_id not in hits]
    hits |= {
        hit.document.doc_id: hit for hit in _first_stage_hits(engine, rest, unread, scored=False)
    }
    return [hits[doc_id] for doc_id in doc_ids]


def warm_up(engine: Engine, rankers: Sequence[Ranker], query: str) -> None:
    """Load everything that is loaded on first use, so that the first search is not slow."""
    _compile_loops()
    engine.rank(query, defaults.RERANKING_DEPTH)
    sentence_spans("A sentence. Another.")  # for snippets
    for ranker in rankers:
        ranker.segmenter(Document("", {"text": "A sentence. Another."}))
        for scorer in ranker.scorers:
            scorer.score(query, scorer.encode([""]))
        if ranker.duo:
            duo = ranker.duo.model
            duo.score(query, [duo.join(*duo.encode(["", ""]))])


def _compile_loops() -> None:
    """Compile what indexing and searching run; the user's index may have no document yet.

    It is compiled when it first runs if there is no space for temporary files.
    """
    with suppress(OSError), TemporaryDirectory(prefix="birchbark-") as folder:
        index = build_index([Document("a", {"text": "A sentence."})], Path(folder) / "index")
        IndexEngine(index).rank("sentence", 1)
    compile_for_many()
