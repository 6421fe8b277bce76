"""How do clients of Cohere, Jina and text-embeddings-inference have their texts ranked here?"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from fastapi import APIRouter, Request

from birchbark.errors import InputError
from birchbark.serve.presence import while_there
from birchbark.serve.service import Service
from birchbark.serve.shapes import RerankRequest, TeiRequest


def rerank_routes(service: Service) -> APIRouter:
    """The three addresses that they ask."""
    routes = APIRouter(tags=["re-ranking"])

    async def rerank(request: RerankRequest, asked: Request, version: str) -> dict[str, Any]:
        found = service.rerank(request.query, request.texts)
        ranked, tokens = await while_there(asked, found)
        results: list[dict[str, Any]] = [
            {"index": one.place, "relevance_score": one.score} for one in ranked[: request.top_n]
        ]
        if request.return_documents:
            for result in results:
                result["document"] = {"text": request.texts[result["index"]]}
        return {
            "id": str(uuid4()),
            "object": "list",
            "model": service.model,
            "results": results,
            "usage": {"total_tokens": tokens},
            "meta": {"api_version": {"version": version}, "billed_units": {"search_units": 1}},
        }

    @routes.post("/v1/rerank", summary="As Cohere's and Jina's first versions")
    async def first(request: RerankRequest, asked: Request) -> dict[str, Any]:
        return await rerank(request, asked, "1")

    @routes.post("/v2/rerank", summary="As Cohere's second version")
    async def second(request: RerankRequest, asked: Request) -> dict[str, Any]:
        return await rerank(request, asked, "2")

    @routes.post("/rerank", summary="As text-embeddings-inference")
    async def tei(request: TeiRequest, asked: Request) -> list[dict[str, Any]]:
        if request.raw_scores:
            raise InputError("raw scores are not given", wanted="raw_scores: false")
        texts = request.texts
        ranked, _ = await while_there(asked, service.rerank(request.query, texts, counted=False))
        return [
            {"index": one.place, "score": one.score}
            | ({"text": texts[one.place]} if request.return_text else {})
            for one in ranked
        ]

    return routes
