"""How is the work for a request cancelled when its client disconnects?"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fastapi import Request
from starlette.exceptions import HTTPException

T = TypeVar("T")
CLIENT_CLOSED_REQUEST = 499  # nginx's status code; appears only in logs and metrics


async def cancel_on_disconnect(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of `work`; cancel it if the client disconnects.

    request: the request, whose body (if any) must have been read. Raises HTTPException if the
    client disconnects.
    """
    working = asyncio.create_task(work)
    disconnecting = asyncio.create_task(_disconnected(request))
    try:
        await asyncio.wait((working, disconnecting), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        disconnecting.result()  # raises if the request has a body that does not arrive
        raise HTTPException(CLIENT_CLOSED_REQUEST, "the client disconnected")
    finally:
        working.cancel()
        disconnecting.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
