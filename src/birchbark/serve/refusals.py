"""How are errors told over HTTP? As JSON, in the words of errors.py, without places on disk."""

from __future__ import annotations

import logging

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from birchbark.errors import ArtifactError, BirchbarkError, InputError, LateError
from birchbark.serve.gate import RETRY_AFTER, BusyError
from birchbark.serve.service import ClosedError, NotFoundError, TooMuchError

LOG = logging.getLogger("birchbark.serve")
REFUSALS = (400, 401, 403, 404, 408, 413, 421, 422, 503)
MOST_FAULTS = 5  # of one request that are told


STATUS: dict[type[BirchbarkError], int] = {
    NotFoundError: 404,
    ClosedError: 403,
    TooMuchError: 413,
    InputError: 422,
    BusyError: 503,
    LateError: 503,
    ArtifactError: 503,  # another process writes, or the disk is damaged
}


def refusal(status: int, message: str, **parts: str) -> JSONResponse:
    """An answer that says what is wrong, where clients of Cohere (message) and Jina look for it."""
    given = {name: _safe(part) for name, part in parts.items() if part}
    headers = {"Retry-After": str(RETRY_AFTER)} if status == 503 else None
    return JSONResponse({"message": message, "detail": message, **given}, status, headers)


def tell_errors(app: FastAPI) -> None:
    """Have `app` answer so, whatever is raised."""
    app.add_exception_handler(BirchbarkError, _on_purpose)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unforeseen)


def told(error: BirchbarkError) -> str:
    """The error in one line, without the place on this disk where it happened."""
    parts = {"found": error.found, "wanted": error.wanted, "remedy": error.remedy}
    return _safe(str(BirchbarkError(error.what, **parts)))


async def _on_purpose(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, BirchbarkError)
    status = next((s for kind, s in STATUS.items() if isinstance(error, kind)), 500)
    if status >= 500 and not isinstance(error, BusyError | LateError):
        LOG.error("%s %s: %s", request.method, request.url.path, error)
    parts = {"found": error.found, "wanted": error.wanted, "remedy": error.remedy}
    return refusal(status, told(error), what=error.what, **parts)


async def _malformed(request: Request, error: Exception) -> JSONResponse:
    """What is wrong with a body, by its places; never what was sent, which may be anything."""
    assert isinstance(error, RequestValidationError)
    every = error.errors()
    faults = [
        f"{'.'.join(str(part) for part in fault['loc'][1:]) or 'body'}: {fault['msg']}"
        for fault in every[:MOST_FAULTS]
    ]
    if len(every) > MOST_FAULTS:
        faults.append(f"and {len(every) - MOST_FAULTS} more")
    message = _safe("; ".join(faults))
    return refusal(
        422, message, what="malformed request", remedy="/openapi.json says what is asked"
    )


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    answer = refusal(error.status_code, str(error.detail))
    answer.headers.update(error.headers or {})
    return answer


async def _unforeseen(request: Request, error: Exception) -> JSONResponse:
    LOG.error("%s %s", request.method, request.url.path, exc_info=error)
    return refusal(500, "something broke here; the service's log tells what")


def _safe(text: str) -> str:
    """Without what cannot be sent: halves of characters, in names of fields."""
    return text.encode("utf-8", "replace").decode()
