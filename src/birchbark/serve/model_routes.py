"""How do clients use the models beside re-ranking: embeddings, attention, what they are?"""

from __future__ import annotations

import base64
from typing import Any

from fastapi import APIRouter, Request, Response

from birchbark._version import __version__
from birchbark.score.precision import Precision
from birchbark.serve.bounded_json import BoundedRoute
from birchbark.serve.disconnect import cancel_on_disconnect
from birchbark.serve.limits import MAX_TEXTS
from birchbark.serve.schemas import AttentionRequest, EmbeddingsRequest, TeiEmbedRequest
from birchbark.serve.service import Service

DTYPES = {  # as text-embeddings-inference calls them
    Precision.FP32: "float32",
    Precision.INT8: "int8",
    Precision.BF16: "bfloat16",
    Precision.FP16: "float16",
}


def model_routes(service: Service) -> APIRouter:
    """Return the routes for embeddings, compatible with OpenAI and TEI, and for attention."""
    routes = APIRouter(tags=["models"], route_class=BoundedRoute)

    @routes.post("/v1/embeddings", summary="Compatible with OpenAI's API")
    async def openai(body: EmbeddingsRequest, request: Request) -> dict[str, Any]:
        embedded = await cancel_on_disconnect(
            request, service.embed(body.texts, dimensions=body.dimensions)
        )
        if body.encoding_format == "base64":
            vectors: list[Any] = [
                base64.b64encode(row.astype("<f4").tobytes()).decode() for row in embedded.vectors
            ]
        else:
            vectors = embedded.vectors.tolist()
        return {
            "object": "list",
            "data": [
                {"object": "embedding", "index": number, "embedding": vector}
                for number, vector in enumerate(vectors)
            ],
            "model": embedded.model,
            "usage": {"prompt_tokens": embedded.tokens, "total_tokens": embedded.tokens},
        }

    @routes.post("/embed", summary="Compatible with text-embeddings-inference")
    async def tei(body: TeiEmbedRequest, request: Request, response: Response) -> list[list[float]]:
        work = service.embed(
            body.texts,
            dimensions=body.dimensions,
            queries=body.prompt_name == "query",
            truncate=bool(body.truncate),
        )
        embedded = await cancel_on_disconnect(request, work)
        if body.truncate:
            response.headers["X-Truncated-Tokens"] = str(embedded.truncated)
        vectors: list[list[float]] = embedded.vectors.tolist()
        return vectors

    @routes.get("/info", summary="Compatible with text-embeddings-inference")
    async def info() -> dict[str, Any]:
        name, precision = service.model_and_precision
        labels = {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
        return {
            "model_id": name,
            "model_dtype": DTYPES[precision],
            "model_type": {"reranker": labels} if service.model else {"embedding": {}},
            "max_concurrent_requests": service.limits.max_requests,
            "max_client_batch_size": MAX_TEXTS,
            "auto_truncate": False,
            "version": __version__,
        }

    @routes.post("/attention")
    async def attention(body: AttentionRequest, request: Request) -> dict[str, Any]:
        """Return the model's attention between query and text, by layer and head."""
        return await cancel_on_disconnect(request, service.attention(body.query, body.text))

    return routes
