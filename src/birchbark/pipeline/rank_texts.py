"""How are texts ranked without an index, and which of their sentences show it?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from threading import Lock

from birchbark import defaults
from birchbark.arguments import shown, text_of, texts_of
from birchbark.combine.aggregate import Top, TopMean
from birchbark.deadline import Deadline
from birchbark.errors import DeadlineError, InputError, require_at_least
from birchbark.pipeline.answers.answer import Evidence
from birchbark.pipeline.load_rankers import make_ranker
from birchbark.pipeline.loaded_models import LoadedModels
from birchbark.pipeline.reading.choose import WHOLE_DOCUMENT
from birchbark.pipeline.reading.document_reader import RankerReaders
from birchbark.pipeline.reading.topk import TopKScoring, score_documents
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.settings.reading_plan import ReadingPlan
from birchbark.pipeline.stage_options import StageOptions
from birchbark.records import Document
from birchbark.retrieve.engine import MemoryStore
from birchbark.score.dynamic_batching import dynamic_batcher
from birchbark.score.load_scorer import load_scorer
from birchbark.score.scorer import Scorer
from birchbark.segment.passages import Passages
from birchbark.segment.sentences import sentences
from birchbark.segment.truncate import Limit
from birchbark.segment.whole import whole

_load_lock = Lock()


@dataclass(frozen=True, slots=True)
class RankedText:
    """A ranked text.

    Attributes:
        index: The text's position in the input, from 0.
        score: Its score, a probability of relevance from 0 to 1 for most models.
        text: The text.
        evidence: The part of the text with the highest score, which is the whole of a short text;
            empty if the model read nothing of it.
    """

    index: int
    score: float
    text: str
    evidence: str


def rank(
    query: str,
    texts: Iterable[str],
    model: str | Path | Scorer | Ranker | None = None,
    top: int | None = None,
    budget: float | None = None,
    *,
    on_batch: Callable[[], object] = lambda: None,
) -> list[RankedText]:
    """Rank texts by their relevance to `query`, best first; ties keep the order of the input.

    By default a text's score is the mean of two: the probability of relevance by the cross-encoder
    and the cosine by the embedding, each on its model's scale. A text of more than 120 words is
    split into passages of whole sentences; the cross-encoder reads the three passages with the most
    terms of the query, the embedding the best of them, and the weighted mean of the passages
    counts.

    A single model reads everything: a text longer than its input is split into chunks, and the
    text's score is that of its best chunk.

    Args:
        query: The query.
        texts: The texts to rank: a list, a generator, or the column of a frame, in the order of its
            rows, whatever its index is.
        model: A model that scores alone, from `load_scorer` or by its name or directory; or a
            ranker, whose models and embedding weight are used. Defaults to None: both default
            models. Models that are not given as objects are loaded at the first call, and shared
            by later calls.
        top: Maximum number of texts to return. Defaults to None: all texts.
        budget: Maximum time in seconds. Defaults to None: no limit.
        on_batch: Called before each batch; an exception that it raises ends the scoring. Does
            nothing by default.

    Returns:
        The best texts, each with its position in the input, its score and its best part.

    Raises:
        InputError: `top` is less than 1, the query or a text is not a string, the query is too
            long for a model, or a text of more than 200,000 characters is to be read whole within
            a budget.
        DeadlineError: The budget does not suffice for all texts.
    """
    if top is not None:
        require_at_least("top", top, 1)
    query, texts = text_of(query, "the query"), texts_of(texts, "text")
    ranker = ranker_of_texts(load_once(model))
    names = _names(texts)
    scoring = _score(query, texts, ranker, Deadline(budget, on_batch=on_batch))
    indexes = {name: i for i, name in enumerate(names)}
    best = {hit.document.doc_id: hit.segments[:1] for hit in scoring.hits(top)}
    return [
        RankedText(
            indexes[name],
            score,
            texts[indexes[name]],
            best[name][0].segment.text if best[name] else "",
        )
        for name, score in scoring.best().head(len(best))
    ]


def highlight(
    query: str,
    texts: Iterable[str],
    model: str | Path | Scorer | Ranker | None = None,
    budget: float | None = None,
    *,
    on_batch: Callable[[], object] = lambda: None,
) -> list[list[Evidence]]:
    """Find the sentences of each text that are most relevant to `query`, as a search does.

    The embedding reads all sentences, and chooses three of each text for the cross-encoder. A
    single model, or an embedding that has all the weight, reads all sentences.

    Args:
        query: The query.
        texts: The texts; see `rank`.
        model: See `rank`.
        budget: See `rank`.
        on_batch: See `rank`.

    Returns:
        For each text, in the order of the input, its sentences that were read, at most three, best
        first. `segment.start` and `segment.end` are offsets in the text.

    Raises:
        InputError: The query or a text is not a string, the query is too long for a model, a text
            is too long for the budget (see `rank`), or the model scores whole texts.
        DeadlineError: The budget does not suffice for all texts.
    """
    query, texts = text_of(query, "the query"), texts_of(texts, "text")
    loaded = load_once(model)
    models = loaded if isinstance(loaded, Ranker) else Ranker(loaded)
    if models.embedding and models.embedding_share == 1:
        models = Ranker(models.embedding)
    check_highlights(models)
    plan = ReadingPlan(segments=defaults.HIGHLIGHTS) if models.embedding else ReadingPlan()
    aggregation = Top((1.0,) * defaults.HIGHLIGHTS)
    ranker = replace(
        models, segmenter=sentences, aggregation=aggregation, limit=Limit(), duo=None, plan=plan
    )
    scoring = _score(query, texts, ranker, Deadline(budget, on_batch=on_batch))
    found = {hit.document.doc_id: hit.segments for hit in scoring.hits()}
    return [
        sorted(found.get(name, ()), key=lambda evidence: -evidence.score) for name in _names(texts)
    ]


def check_highlights(ranker: Ranker) -> None:
    """Raise InputError if a ranker's model scores whole texts, so that `highlight` has no use."""
    if ranker.scorer.width > 1:
        raise InputError(f"{ranker.scorer.name} scores whole texts, not sentences")


def _names(texts: Sequence[str]) -> list[str]:
    """Return a doc_id for each text; of texts with equal scores, the higher one is first."""
    return [f"{len(texts) - i:09}" for i in range(len(texts))]


def _score(query: str, texts: Sequence[str], ranker: Ranker, deadline: Deadline) -> TopKScoring:
    """Have a ranker read all texts; DeadlineError if time does not suffice.

    InputError for a text that is never read whole before a deadline, if a model is to do so.
    """
    names, longest = _names(texts), max(texts, key=len, default="")
    if deadline.exists and ranker.plan.segments is None and len(longest) > WHOLE_DOCUMENT:
        raise InputError(
            "a text is too long to be read within a budget",
            where=f"text {texts.index(longest)}",
            wanted=f"at most {WHOLE_DOCUMENT:,} characters, or no budget",
            found=f"{len(longest):,}",
        )
    documents = {n: Document(n, {"text": text}) for n, text in zip(names, texts, strict=True)}
    readers = RankerReaders(MemoryStore(documents), ranker)
    scoring = score_documents(readers, query, names, deadline)
    if not scoring.stats.exact:
        raise DeadlineError(
            "time does not suffice for all texts",
            found=f"{scoring.stats.scored} of {len(texts)} scored",
            remedy="fewer texts, or more time",
        )
    return scoring


def ranker_of_texts(models: Scorer | Ranker) -> Ranker:
    """Return the ranker that `rank` uses with these models."""
    if not isinstance(models, Ranker):
        return Ranker(models, whole, Top((1.0,)))
    if models.scorer.width > 1:
        return replace(models, duo=None)
    plan = ReadingPlan(segments=defaults.TEXT_SEGMENTS, embedded=defaults.EMBED_TEXT_SEGMENTS)
    return replace(
        models, segmenter=Passages(), aggregation=TopMean(), limit=Limit(), duo=None, plan=plan
    )


def load_once(model: str | Path | Scorer | Ranker | None) -> Scorer | Ranker:
    """Return the model, or the ranker with both default models; each is loaded once per process."""
    if model is not None and not isinstance(model, (str, Path)):
        if not isinstance(model, Ranker) and not hasattr(model, "token_budget"):
            raise InputError(
                "not a model", wanted="its name, or one from load_scorer", found=shown(model)
            )
        return model
    with _load_lock:
        return _load_default_ranker() if model is None else _load_by_name(model)


@cache
def _load_default_ranker() -> Ranker:
    models = LoadedModels(session=dynamic_batcher())  # batches the texts of concurrent calls
    return make_ranker(StageOptions(), models, auto_int8=True)


@cache
def _load_by_name(model: str | Path) -> Scorer:
    return load_scorer(model, session=dynamic_batcher())
