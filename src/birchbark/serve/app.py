"""Which addresses does the service have, and who may ask them?"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.security import HTTPBearer

from birchbark._version import __version__
from birchbark.serve.guard import Guard
from birchbark.serve.page_routes import page_routes
from birchbark.serve.refusals import REFUSALS, tell_errors
from birchbark.serve.rerank_routes import rerank_routes
from birchbark.serve.search_routes import search_routes
from birchbark.serve.service import Service
from birchbark.serve.shapes import Refusal


def application(
    service: Service,
    key: str | None = None,
    hosts: Collection[str] = (),
    reports: Path | None = None,
) -> Any:
    """The service as an ASGI application.

    key: what requests must carry as a bearer's token, if any. hosts: names that the service goes
    by; any, if none. reports: a folder of studies, whose reports are shown.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(
        title="Birchbark",
        version=__version__,
        summary="Ranks documents with BERT and shows the evidence.",
        docs_url=None,  # its page comes from another server
        redoc_url=None,
        lifespan=lifespan,
        responses={status: {"model": Refusal} for status in REFUSALS},
        max_body_size=service.limits.body,
        redirect_slashes=False,
    )

    @app.get("/healthz", tags=["service"])
    async def health() -> dict[str, str]:
        """Whether the process answers."""
        return {"status": "ok"}

    @app.get("/readyz", tags=["service"])
    def ready() -> dict[str, str]:
        """Whether a search would be answered: 503 where too many are inside, or the index gone."""
        service.check()
        return {"status": "ready"}

    asked_for = [] if key is None else [Depends(HTTPBearer(auto_error=False))]  # for /openapi.json
    for routes in (search_routes(service), rerank_routes(service), page_routes(service, reports)):
        app.include_router(routes, dependencies=asked_for)
    tell_errors(app)
    return Guard(app, service, key, hosts)
