"""Is the one who asked still there?"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fastapi import Request
from starlette.exceptions import HTTPException

T = TypeVar("T")
GONE = 499  # as nginx counts those; nobody reads the answer


async def while_there(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """What `work` gives; it is cancelled where the other side goes away, so that turns are freed.

    request: one whose body has been read, or has none.
    """
    working = asyncio.create_task(work)
    leaving = asyncio.create_task(_left(request))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise HTTPException(GONE, "whoever asked has gone")
    finally:
        working.cancel()
        leaving.cancel()


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
