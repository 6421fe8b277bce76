"""How is the index searched, read and changed over HTTP?"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import PlainTextResponse
from fastapi.sse import EventSourceResponse, ServerSentEvent

from birchbark.collection.jsonl import document_of
from birchbark.errors import BirchbarkError, InputError
from birchbark.serve.limits import ID_CHARACTERS, QUERY_CHARACTERS
from birchbark.serve.metrics import CONTENT_TYPE
from birchbark.serve.presence import while_there
from birchbark.serve.refusals import REFUSALS, told
from birchbark.serve.service import NotFoundError, Service
from birchbark.serve.shapes import (
    AttentionRequest,
    DocumentShape,
    DocumentsRequest,
    SearchAnswer,
    SearchRequest,
    Written,
)

PLAIN: dict[int | str, dict[str, Any]] = {  # refusals of a stream are no stream
    status: {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}}}
    for status in REFUSALS
}
Id = Annotated[str, Path(max_length=ID_CHARACTERS)]
Asked = Annotated[str | None, Query(min_length=1, max_length=QUERY_CHARACTERS)]


def search_routes(service: Service) -> APIRouter:
    """Searching, documents, and what the page asks besides."""
    routes = APIRouter()

    @routes.post("/search", tags=["search"])
    async def search(request: SearchRequest, asked: Request) -> SearchAnswer:
        """The best hits, why they are there, and whether time sufficed."""
        return await while_there(asked, service.search(request))

    @routes.post(
        "/search/stream",
        tags=["search"],
        response_class=EventSourceResponse,
        responses=PLAIN,
        dependencies=[Depends(service.gate.check)],  # while it can be refused as others are
    )
    async def stream(request: SearchRequest) -> AsyncIterator[ServerSentEvent]:
        """Server-sent events: `answer`, as often as more is known, then `done`; or `error`.

        An answer is one of /search; the first is the first stage's, the last is the best.
        """
        try:
            async for answer in service.stream(request):
                yield ServerSentEvent(event="answer", data=answer)
            yield ServerSentEvent(event="done", data={})
        except BirchbarkError as error:
            yield ServerSentEvent(event="error", data={"message": told(error)})

    @routes.get("/documents/{doc_id:path}", tags=["documents"])
    async def document(doc_id: Id, asked: Request, query: Asked = None) -> DocumentShape:
        """A document; with a query, every segment with its score."""
        return await while_there(asked, service.document(doc_id, query))

    @routes.post("/documents", tags=["documents"])
    async def add(request: DocumentsRequest) -> Written:
        """Add documents, all or none; on disk when this is answered."""
        documents = [document_of(one) for one in request.documents]
        for one in documents:
            if len(one.doc_id) > ID_CHARACTERS:
                raise InputError("id is too long", wanted=f"{ID_CHARACTERS} characters at most")
        new, replaced = await service.write(lambda: service.searcher.add(documents))
        return Written(added=new, replaced=replaced)

    @routes.delete("/documents/{doc_id:path}", tags=["documents"])
    async def delete(doc_id: Id) -> Written:
        """Delete a document; on disk when this is answered."""
        deleted = await service.write(lambda: service.searcher.delete([doc_id]))
        if not deleted:
            raise NotFoundError("no such document")
        return Written(deleted=deleted)

    @routes.post("/attention", tags=["search"])
    async def attention(request: AttentionRequest, asked: Request) -> dict[str, Any]:
        """What the model's tokens look at in a text, by layer and head."""
        return await while_there(asked, service.attention(request.query, request.text))

    @routes.get("/metrics", tags=["service"], response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Counts, in Prometheus' text format."""
        return Response(service.metrics.written(), media_type=CONTENT_TYPE)

    return routes
