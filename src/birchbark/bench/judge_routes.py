"""How does a person judge documents in a browser, without knowing which system found them?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from birchbark.bench.bench import Bench
from birchbark.bench.bench_folder import GRADES
from birchbark.bench.draft import PREFIX
from birchbark.records import Qrels, Query
from birchbark.serve.bounded_json import BoundedRoute
from birchbark.serve.disconnect import cancel_on_disconnect
from birchbark.serve.limits import MAX_ID_CHARACTERS, MAX_QUERY_CHARACTERS
from birchbark.serve.page_routes import file_response, page_files, report_response
from birchbark.serve.schemas import StrictRequest
from birchbark.serve.service import NotFoundError, Service


class Judgment(StrictRequest):
    """A grade for a document of the pool; without one, the judgment is removed."""

    query_id: str = Field(max_length=MAX_ID_CHARACTERS)
    doc_id: str = Field(max_length=MAX_ID_CHARACTERS)
    grade: int | None = Field(None, ge=GRADES[0], le=GRADES[-1])


class Rewording(StrictRequest):
    """A question in other words."""

    query_id: str = Field(max_length=MAX_ID_CHARACTERS)
    text: str = Field(min_length=1, max_length=MAX_QUERY_CHARACTERS)


def judge_routes(service: Service, bench: Bench) -> APIRouter:
    """Return the routes of the page on which a person judges, and of the report."""
    routes = APIRouter(include_in_schema=False, route_class=BoundedRoute)
    own_files = page_files(__package__)

    def shown(
        query: Query, pooled: Mapping[str, Sequence[str]], judgments: Qrels
    ) -> dict[str, Any]:
        grades = judgments.grades.get(query.query_id, {})
        return {
            "query_id": query.query_id,
            "text": query.text,
            "drafted": query.query_id.startswith(PREFIX),
            "documents": [
                {"doc_id": doc_id, "grade": grades.get(doc_id)} for doc_id in pooled[query.query_id]
            ],
        }

    @routes.get("/")
    async def page() -> Response:
        return file_response("judge.html", own_files["judge.html"])

    @routes.get("/judge/{name}")
    async def page_file(name: str) -> Response:
        if name not in own_files:
            raise NotFoundError("no such file")
        return file_response(name, own_files[name])

    @routes.get("/judgments")
    async def judgments(request: Request) -> dict[str, Any]:
        def read(seconds: float, on_step: Callable[[], None]) -> dict[str, Any]:
            pooled, given = bench.pooled, bench.folder.judgments
            return {"questions": [shown(query, pooled, given) for query in bench.questions]}

        return await cancel_on_disconnect(request, service.run_quick(read))

    @routes.post("/judgments")
    async def judge(body: Judgment, request: Request) -> dict[str, Any]:
        def store(seconds: float, on_step: Callable[[], None]) -> None:
            asked = {query.query_id: query for query in bench.questions}
            if body.doc_id not in bench.pooled.get(body.query_id, ()):
                raise NotFoundError("no such document to judge")
            bench.folder.judge(asked[body.query_id], body.doc_id, body.grade)

        await cancel_on_disconnect(request, service.run_quick(store))
        return {"grade": body.grade}

    @routes.post("/questions")
    async def reword(body: Rewording) -> dict[str, Any]:
        def rank(seconds: float, on_step: Callable[[], None]) -> dict[str, Any]:
            query = bench.reword(body.query_id, body.text)
            return shown(query, bench.pooled, bench.folder.judgments)

        return await service.run_scoring(rank)

    @routes.get("/report")
    async def report(request: Request) -> Response:
        def render(seconds: float, on_step: Callable[[], None]) -> bytes:
            return bench.report().page().encode()

        return report_response(await cancel_on_disconnect(request, service.run_quick(render)))

    return routes
