"""Which rankers does a search request select, and with which settings?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from birchbark.combine.aggregate import Top, TopMean
from birchbark.combine.interpolate import Interpolation
from birchbark.errors import InputError
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.stored.stored_embedding import ATTACH
from birchbark.serve.schemas import SearchRequest

BERT_FIELDS = ("depth", "first_stage_weight", "weights")


def choose_rankers(
    searcher: Searcher, embedding_model: str | None, request: SearchRequest
) -> Callable[[], list[Ranker]] | None:
    """Return a function that returns the rankers; None if the first stage alone ranks.

    The function may load a model and should be called in a thread. embedding_model: the model for
    `by: embedding`; None if the service has none. `by: nearest` uses the model of the stored
    vectors. Raises InputError for a model that the service does not have, and for fields of the
    request that would have no effect.
    """
    rankers = searcher.rankers
    given = [
        name for name in BERT_FIELDS if getattr(request, name) is not None
    ]  # set by the client
    if given and (request.by == "first_stage" or not rankers):
        found = "by: first_stage" if rankers else "a service without a model"
        raise InputError(f"{given[0]} requires BERT", found=found)
    if request.by in ("embedding", "nearest"):
        if not rankers:
            remedy = "birchbark serve, with a --model"
            raise InputError(f"by: {request.by} requires a model", remedy=remedy)
        nearest = request.by == "nearest"
        embedding = searcher.vectors_model if nearest else embedding_model
        if embedding is None:
            remedy = f"{ATTACH} INDEX" if nearest else "birchbark serve, with an --embedding"
            missing = "stored vectors" if nearest else "embedding model"
            raise InputError(f"this service has no {missing}", remedy=remedy)
        if "first_stage_weight" in given:
            raise InputError("first_stage_weight requires BERT", found=f"by: {request.by}")
        return lambda: [_adjust(_embedding_ranker(searcher, embedding), request)]
    if request.by == "first_stage" or not rankers:
        return None
    if given and len(rankers) > 1:
        raise InputError(f"{given[0]} has no effect: this service ranks in several stages")
    if "weights" in given and rankers[0].scorer.width > 1:
        raise InputError("weights have no effect: the model scores whole documents")
    return lambda: [_adjust(ranker, request) for ranker in rankers]


def _embedding_ranker(searcher: Searcher, embedding: str) -> Ranker:
    """Return the searcher's first ranker with the embedding model as its only scorer.

    It reads all candidates.
    """
    first = searcher.rankers[0]
    ranker = replace(
        first,
        scorer=searcher.models.scorer(embedding),
        embedding=None,
        precise=None,
        duo=None,
        interpolation=Interpolation(0.0),
        plan=replace(first.plan, documents=None, pairs=None),
    )
    return searcher.cache_scores(ranker)


def _adjust(ranker: Ranker, request: SearchRequest) -> Ranker:
    """Return `ranker` with the settings that the request specifies."""
    changes: dict[str, Any] = {}
    if request.depth is not None:
        changes["depth"] = request.depth
    if request.weights is not None:
        kind = TopMean if isinstance(ranker.aggregation, TopMean) else Top
        changes["aggregation"] = kind(tuple(request.weights))
        if ranker.plan.segments is not None:
            segments = max(ranker.plan.segments, len(request.weights))
            changes["plan"] = replace(ranker.plan, segments=segments)
    if request.first_stage_weight is not None:
        scale = ranker.interpolation.scale
        changes["interpolation"] = Interpolation(request.first_stage_weight, scale)
    return replace(ranker, **changes)
