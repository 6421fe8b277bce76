"""How are the service's routes, middleware and error handlers assembled?"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Response
from fastapi.responses import PlainTextResponse
from fastapi.security import HTTPBearer
from starlette.routing import Route

from birchbark._version import __version__
from birchbark.serve.agents import AGENTS_PATH, Agents
from birchbark.serve.error_responses import ERROR_STATUSES, add_error_handlers
from birchbark.serve.metrics import CONTENT_TYPE
from birchbark.serve.middleware import ServiceMiddleware
from birchbark.serve.model_routes import model_routes
from birchbark.serve.page_routes import docs_routes, page_routes
from birchbark.serve.rerank_routes import rerank_routes
from birchbark.serve.schemas import ErrorResponse, ReadyResponse
from birchbark.serve.search_routes import search_routes
from birchbark.serve.service import Service
from birchbark.serve.strict_parameters import check_parameters


def application(
    service: Service,
    key: str | None = None,
    hosts: Collection[str] = (),
    reports: Path | None = None,
    *,
    models_only: bool = False,
    agents: Agents | None = None,
    front: APIRouter | None = None,
) -> Any:
    """Return the service as an ASGI application.

    key: the bearer token that requests must carry; None if they need none. hosts: the accepted host
    names; all if empty. reports: the directory of the studies whose reports are served; None to
    serve none. models_only: whether there are no routes for documents, and no page.
    agents: what answers agents; None to let none in. front: the routes of another page in place of
    the search page; None for that one.
    """
    app = fastapi_app(service, key, reports, models_only=models_only, agents=agents, front=front)
    return ServiceMiddleware(app, service, key, hosts)


def fastapi_app(
    service: Service,
    key: str | None = None,
    reports: Path | None = None,
    *,
    models_only: bool = False,
    agents: Agents | None = None,
    front: APIRouter | None = None,
) -> FastAPI:
    """Return the routes and error handlers, without the middleware; see `application`."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.openapi()  # the checks of parameters read it
        service.start()
        async with agents.running() if agents else nullcontext():
            yield
        service.close()

    app = FastAPI(
        title="Birchbark",
        version=__version__,
        summary="Ranks documents with BERT and shows the evidence.",
        docs_url=None,  # FastAPI's documentation page loads scripts from another server
        redoc_url=None,
        lifespan=lifespan,
        responses={status: {"model": ErrorResponse} for status in ERROR_STATUSES},
        max_body_size=service.limits.max_request_bytes,
        redirect_slashes=False,
    )

    @app.head("/healthz", include_in_schema=False)
    @app.get("/healthz", tags=["service"])
    async def health() -> dict[str, str]:
        """Report that the process answers requests."""
        return {"status": "ok"}

    @app.head("/readyz", include_in_schema=False)
    @app.get("/readyz", tags=["service"])
    def ready() -> ReadyResponse:
        """Report that a search would be answered; 503 under overload, or without documents."""
        service.check()
        return ReadyResponse(failing=service.failing)

    dependencies = [Depends(check_parameters)]
    if key is not None:
        dependencies.append(Depends(HTTPBearer(auto_error=False)))  # for /openapi.json

    @app.get(
        "/metrics",
        tags=["service"],
        response_class=PlainTextResponse,
        dependencies=dependencies,
    )
    async def metrics() -> Response:
        """Return metrics in Prometheus' text format."""
        return Response(service.metrics.text(), media_type=CONTENT_TYPE)

    routers = [rerank_routes(service), model_routes(service), docs_routes(at_root=models_only)]
    if not models_only:
        routers += [search_routes(service), front or page_routes(service, reports)]
    for router in routers:
        app.include_router(router, dependencies=dependencies)
    if agents:
        route = Route(AGENTS_PATH, agents, methods=["POST"], include_in_schema=False)
        app.router.routes.append(route)
    add_error_handlers(app)
    return app
