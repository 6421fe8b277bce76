"""How are errors reported over HTTP? As JSON, with the messages of errors.py but no file paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from birchbark.errors import (
    FULL,
    ArtifactError,
    BirchbarkError,
    DeadlineError,
    InputError,
    applicable,
    is_damage,
)
from birchbark.serve.admission import RETRY_AFTER, BusyError
from birchbark.serve.background_thread import LOG
from birchbark.serve.service import DisabledError, NotFoundError, TooLargeError
from birchbark.show.printable import printable

ERROR_STATUSES = (400, 401, 403, 404, 405, 408, 413, 421, 422, 500, 503, 507)
DOCUMENT = "document "  # begins `where` if that is a document of the request
MAX_FAULTS = 5  # listed per request
MOST_FOUND = 1_000  # characters of what a request had instead
UNREADABLE = "There was an error parsing the body"  # as FastAPI says it
UNREAD = "the body is not in UTF-8, is nested too deeply, or has a number of too many digits"

STATUS: dict[type[BirchbarkError], int] = {
    NotFoundError: 404,
    DisabledError: 403,
    TooLargeError: 413,
    InputError: 422,
    BusyError: 503,
    DeadlineError: 503,
    ArtifactError: 503,  # another process writes, or the index is damaged
}


def error_response(status: int, message: str, **parts: str) -> JSONResponse:
    """Return an error as JSON, with a Retry-After header if its status is 503.

    The message appears twice: as `message` for Cohere's clients, as `detail` for Jina's. parts:
    further fields, such as `remedy`; empty ones are left out.
    """
    given = {name: _encodable(part) for name, part in parts.items() if part}
    headers = {"Retry-After": str(RETRY_AFTER)} if status == 503 else None
    return JSONResponse({"message": message, "detail": message, **given}, status, headers)


def add_error_handlers(app: FastAPI) -> None:
    """Make `app` answer every exception with an `error_response`."""
    app.add_exception_handler(BirchbarkError, _birchbark_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(OSError, _other_error)
    app.add_exception_handler(Exception, _other_error)


def reported(request: Request, error: Exception) -> tuple[int, str]:
    """Return the status and the message that tell of an error; log what clients cannot mend.

    The status is 507 for a full or read-only disk, and 503 for what else the system refuses.
    """
    place = f"{request.method} {printable(request.url.path)}"
    if isinstance(error, BirchbarkError):
        status = next((s for kind, s in STATUS.items() if isinstance(error, kind)), 500)
        if status >= 500 and not isinstance(error, BusyError | DeadlineError):
            LOG.error("%s: %s", place, error)
        return status, error_message(error)
    if isinstance(error, OSError) and not is_damage(error):
        LOG.error("%s: %s", place, error)
        status = 507 if error.errno in FULL else 503
        return status, f"the service's operating system reported an error: {error.strerror}"
    LOG.error("%s", place, exc_info=error)
    return 500, "internal error; see the service's log"


def error_message(error: BirchbarkError) -> str:
    """Return the error as one line; of `where`, which may be a path, only a request's document."""
    where = error.where if error.where.startswith(DOCUMENT) else ""
    return _encodable(str(BirchbarkError(error.what, where=where, **_parts(error))))


async def _birchbark_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, BirchbarkError)
    status, message = reported(request, error)
    return error_response(status, message, what=error.what, **_parts(error))


async def _other_error(request: Request, error: Exception) -> JSONResponse:
    return error_response(*reported(request, error))


async def _validation_error(request: Request, error: Exception) -> JSONResponse:
    """Report which fields of a request are invalid, without their values."""
    assert isinstance(error, RequestValidationError)
    errors = error.errors()
    kind = request.headers.get("content-type", "")
    if "json" not in kind and any(fault["loc"] == ("body",) for fault in errors):
        wanted, found = "content-type: application/json", _encodable(kind) or "no content type"
        return error_response(422, "the body must be JSON", wanted=wanted, found=found)
    faults = list(map(_fault, errors[:MAX_FAULTS]))
    if len(errors) > MAX_FAULTS:
        faults.append(f"and {len(errors) - MAX_FAULTS} more")
    message = _encodable("; ".join(faults))
    return error_response(
        422, message, what="malformed request", remedy="/openapi.json describes all requests"
    )


def _fault(fault: Mapping[str, Any]) -> str:
    """Say what is wrong with a field, which is named without the types that it may have."""
    _, *place = fault["loc"]
    if fault["type"] == "json_invalid":
        return f"the body is not JSON, at character {place[0]}: {fault['ctx']['error']}"
    names = [str(part) for part in place if str(part).isidentifier() or isinstance(part, int)]
    return f"{'.'.join(names) or 'body'}: {fault['msg'].removeprefix('Value error, ')}"


async def _http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    unreadable = error.status_code == 400 and error.detail == UNREADABLE
    message = UNREAD if unreadable else str(error.detail)
    response = error_response(error.status_code, message)
    response.headers.update(error.headers or {})
    return response


def _parts(error: BirchbarkError) -> dict[str, str]:
    """Return what an error says beside what went wrong, without options of the shell."""
    remedy = applicable(error.remedy, known=())
    found = error.found
    if len(found) > MOST_FOUND:
        found = f"{found[:MOST_FOUND]}…"
    return {"found": found, "wanted": error.wanted, "remedy": remedy}


def _encodable(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode, by `?`."""
    return text.encode("utf-8", "replace").decode()
