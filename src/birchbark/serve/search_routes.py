"""How is the index searched, read and changed over HTTP?

The docstrings of the routes appear in /openapi.json.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent

from birchbark.errors import InputError
from birchbark.pipeline.answers.facets import Facet
from birchbark.records import Document
from birchbark.retrieve.filters import parse_filters
from birchbark.serve.bounded_json import BoundedRoute
from birchbark.serve.disconnect import cancel_on_disconnect
from birchbark.serve.error_responses import ERROR_STATUSES, reported
from birchbark.serve.limits import MAX_ID_CHARACTERS, MAX_QUERY_CHARACTERS
from birchbark.serve.original_files import send_file
from birchbark.serve.schemas import (
    LITERAL,
    MAX_FILTERS,
    DocumentResponse,
    DocumentsRequest,
    FacetResponse,
    FacetsResponse,
    SearchParameters,
    SearchRequest,
    SearchResponse,
    SpellingResponse,
    WriteResponse,
)
from birchbark.serve.service import NotFoundError, Service
from birchbark.show.exported_hits import hits_as_csv, hits_as_markdown

CSV, MARKDOWN, JSON = "text/csv", "text/markdown", "application/json"
_WEIGHT = re.compile(r"q=([01](?:\.\d{0,3})?)")
ERROR_SCHEMA = {"$ref": "#/components/schemas/ErrorResponse"}
STREAM_ERRORS: dict[int | str, dict[str, Any]] = {  # before a stream starts, errors are JSON
    status: {"content": {"application/json": {"schema": ERROR_SCHEMA}}} for status in ERROR_STATUSES
}
EXPORTS: dict[int | str, dict[str, Any]] = {
    200: {"content": {kind: {"schema": {"type": "string"}} for kind in (CSV, MARKDOWN)}}
}
DocId = Annotated[str, Path(max_length=MAX_ID_CHARACTERS)]
RequiredQuery = Annotated[str, Query(min_length=1, max_length=MAX_QUERY_CHARACTERS)]
Filters = Annotated[
    Sequence[str], Query(max_length=MAX_FILTERS, description="FIELD=VALUE; repeat for several.")
]
Literal = Annotated[bool, Query(description=LITERAL)]
OptionalQuery = Annotated[str | None, Query(min_length=1, max_length=MAX_QUERY_CHARACTERS)]


def exported(request: Request, answer: SearchResponse) -> SearchResponse | Response:
    """Return an answer in the form that the request accepts: as it is, as CSV or as Markdown.

    Of the latter two, the header X-Exact says whether the ranking is exact.
    """
    kind = _accepted(request.headers.get("accept", ""))
    if kind == JSON:
        return answer
    hits = [{**hit.model_dump(), "path": hit.source.get("path")} for hit in answer.hits]
    headers = {"X-Exact": str(answer.exact).lower()}
    if kind == CSV:
        return Response(hits_as_csv(hits), media_type=CSV, headers=headers)
    text = hits_as_markdown(answer.query, hits, unanswered=answer.unanswered)
    return Response(text, media_type=MARKDOWN, headers=headers)


def _accepted(header: str) -> str:
    """Return the form with the highest weight in a header Accept; JSON unless another is named.

    A type with `*` stands for JSON.
    """
    weights: dict[str, float] = {}
    for item in header.lower().split(","):
        kind, *parameters = (part.strip() for part in item.split(";"))
        given = [float(found[1]) for part in parameters if (found := _WEIGHT.fullmatch(part))]
        weights[kind] = given[0] if given else 1.0
    named = [kind for kind in (CSV, MARKDOWN) if weights.get(kind)]
    ranges = (JSON, "application/*", "*/*")
    weights[JSON] = next((weights[kind] for kind in ranges if kind in weights), 0.0)
    return max([*named, JSON], key=weights.__getitem__)


def search_routes(service: Service) -> APIRouter:
    """Return the routes for searches and documents."""
    routes = APIRouter(route_class=BoundedRoute)

    @routes.post("/search", tags=["search"], response_model=SearchResponse, responses=EXPORTS)
    async def search(body: SearchRequest, request: Request) -> SearchResponse | Response:
        """Return the best hits with their evidence, and whether their ranking is exact.

        With the header `Accept: text/csv` or `text/markdown`, return the hits in this form, each
        with its best evidence.
        """
        return exported(request, await cancel_on_disconnect(request, service.search(body)))

    @routes.get("/search", tags=["search"], response_model=SearchResponse, responses=EXPORTS)
    async def search_url(
        parameters: Annotated[SearchParameters, Query()], request: Request
    ) -> SearchResponse | Response:
        """Return what POST /search returns, for a search in the URL."""
        found = service.search(parameters.as_request())
        return exported(request, await cancel_on_disconnect(request, found))

    @routes.get("/facets", tags=["search"])
    async def facets(
        query: RequiredQuery, request: Request, filter: Filters = (), literal: Literal = False
    ) -> FacetsResponse:
        """Count the values of fields among the candidates of a search.

        The values of a field are counted without the filter of this field.
        """
        filters = parse_filters(filter)

        def count(seconds: float, on_step: Callable[[], None]) -> list[Facet]:
            parsed = service.searcher.parse(query, literal=literal)
            return service.searcher.facets(parsed, filters, seconds, on_batch=on_step)

        found = await cancel_on_disconnect(request, service.run_quick(count))
        return FacetsResponse(facets=[FacetResponse(**asdict(f)) for f in found])

    @routes.get("/spelling", tags=["search"])
    async def spelling(
        query: RequiredQuery, request: Request, literal: Literal = False
    ) -> SpellingResponse:
        """Return the query without its likely misspellings."""

        def correct(seconds: float, on_step: Callable[[], None]) -> str | None:
            parsed = service.searcher.parse(query, literal=literal)
            return service.searcher.correct(parsed, seconds, on_batch=on_step)

        correction = await cancel_on_disconnect(request, service.run_quick(correct))
        return SpellingResponse(correction=correction)

    @routes.post(
        "/search/stream",
        tags=["search"],
        response_class=EventSourceResponse,
        responses=STREAM_ERRORS,
        dependencies=[Depends(service.admission.check)],  # before the stream starts with 200
    )
    async def stream(body: SearchRequest, request: Request) -> AsyncIterator[ServerSentEvent]:
        """Stream the answers of a search as server-sent events while documents are scored.

        Each `answer` event has the format of /search: the first is the answer of the first stage,
        the last one is final. The stream ends with `done`, or with `error` if the search fails,
        which has the status that /search would have had.
        """
        try:
            async for answer in service.stream(body):
                yield ServerSentEvent(event="answer", data=answer)
            yield ServerSentEvent(event="done", data={})
        except Exception as error:  # the status has been sent
            status, message = reported(request, error)
            yield ServerSentEvent(event="error", data={"message": message, "status": status})

    @routes.get("/documents/{doc_id:path}", tags=["documents"])
    async def document(
        doc_id: DocId,
        request: Request,
        query: OptionalQuery = None,
        literal: Literal = False,
    ) -> DocumentResponse:
        """Return a document; with a query, also its segments with their scores."""
        found = service.document(doc_id, query, literal=literal)
        return await cancel_on_disconnect(request, found)

    @routes.get("/files/{doc_id:path}", tags=["documents"], response_class=Response)
    async def original_file(doc_id: DocId, request: Request) -> Response:
        """Return the file that a document of a served folder was read from."""

        def find(seconds: float, on_step: Callable[[], None]) -> Response:
            is_document = service.searcher.index.find(doc_id) is not None
            file = service.files.open(doc_id) if is_document else None
            if file is None:
                raise NotFoundError("no such file")
            return send_file(file)

        return await cancel_on_disconnect(request, service.run_quick(find))

    @routes.post("/documents", tags=["documents"])
    async def add(body: DocumentsRequest) -> WriteResponse:
        """Add documents, all or none. When the response arrives, they are on disk."""

        def read(seconds: float, on_step: Callable[[], None]) -> list[Document]:
            documents: dict[str, Document] = {}
            for number, fields in enumerate(body.documents, start=1):
                on_step()
                where = f"document {number} of {len(body.documents)}"
                try:
                    document = Document.from_dict(fields)
                except InputError as fault:
                    raise fault.at(where) from None
                if len(document.doc_id) > MAX_ID_CHARACTERS:
                    wanted = f"at most {MAX_ID_CHARACTERS} characters"
                    raise InputError("id is too long", where=where, wanted=wanted)
                if documents.setdefault(document.doc_id, document) is not document:
                    raise InputError(f"a second document with the id {document.doc_id}")
            return [*documents.values()]

        return await service.write(await service.run_quick(read))

    @routes.delete("/documents/{doc_id:path}", tags=["documents"])
    async def delete(doc_id: DocId) -> WriteResponse:
        """Delete a document. When the response arrives, the deletion is on disk."""
        written = await service.write(delete=[doc_id])
        if not written.deleted:
            raise NotFoundError("no such document")
        return written

    return routes
