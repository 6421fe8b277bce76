"""How do clients of Cohere, Jina and text-embeddings-inference re-rank texts with this service?"""

from __future__ import annotations

import math
from typing import Any
from uuid import uuid4

from fastapi import APIRouter, Request, Response

from birchbark.pipeline.answers.hit_fields import sentence_fields
from birchbark.serve.bounded_json import BoundedRoute
from birchbark.serve.disconnect import cancel_on_disconnect
from birchbark.serve.schemas import RerankRequest, TeiRequest
from birchbark.serve.service import Reranked, Service

MARGIN = 1e-7  # about the distance from 1 to the next number in float32


def rerank_routes(service: Service) -> APIRouter:
    """Return routes that are compatible with Cohere, Jina and text-embeddings-inference."""
    routes = APIRouter(tags=["re-ranking"], route_class=BoundedRoute)

    async def rerank(
        body: RerankRequest, request: Request, response: Response, version: str
    ) -> dict[str, Any]:
        work = service.rerank(
            body.query,
            body.texts,
            top=body.top_n,
            evidence=body.return_evidence,
            max_tokens=body.max_tokens_per_doc,
        )
        reranked = await cancel_on_disconnect(request, work)
        if body.max_tokens_per_doc is not None:
            response.headers["X-Truncated-Tokens"] = str(reranked.truncated)
        results: list[dict[str, Any]] = [
            {"index": text.index, "relevance_score": text.score} for text in reranked.texts
        ]
        if body.return_documents:
            for result in results:
                result["document"] = {"text": body.texts[result["index"]]}
        _add_evidence(results, reranked)
        return {
            "id": str(uuid4()),
            "object": "list",
            "model": service.model,
            "results": results,
            "usage": {"total_tokens": reranked.tokens},
            "meta": {"api_version": {"version": version}, "billed_units": {"search_units": 1}},
        }

    @routes.post("/v1/rerank", summary="Compatible with Jina's API and version 1 of Cohere's")
    async def version_1(
        body: RerankRequest, request: Request, response: Response
    ) -> dict[str, Any]:
        return await rerank(body, request, response, "1")

    @routes.post("/v2/rerank", summary="Compatible with version 2 of Cohere's API")
    async def version_2(
        body: RerankRequest, request: Request, response: Response
    ) -> dict[str, Any]:
        return await rerank(body, request, response, "2")

    @routes.post("/rerank", summary="Compatible with text-embeddings-inference")
    async def tei(body: TeiRequest, request: Request, response: Response) -> list[dict[str, Any]]:
        work = service.rerank(
            body.query,
            body.texts,
            evidence=body.return_evidence,
            max_tokens=0 if body.truncate else None,
            count_tokens=False,
        )
        reranked = await cancel_on_disconnect(request, work)
        if body.truncate:
            response.headers["X-Truncated-Tokens"] = str(reranked.truncated)
        results: list[dict[str, Any]] = [
            {"index": text.index, "score": log_odds(text.score) if body.raw_scores else text.score}
            | ({"text": body.texts[text.index]} if body.return_text else {})
            for text in reranked.texts
        ]
        _add_evidence(results, reranked)
        return results

    return routes


def log_odds(score: float) -> float:
    """Return ln(s / (1 - s)) of a score, which is first kept MARGIN away from 0 and 1."""
    kept = min(max(score, MARGIN), 1 - MARGIN)
    return math.log(kept / (1 - kept))


def _add_evidence(results: list[dict[str, Any]], reranked: Reranked) -> None:
    """Add the best sentences to the results of texts, if they were asked for."""
    for result, sentences in zip(results, reranked.sentences, strict=False):
        result["evidence"] = list(map(sentence_fields, sentences))
