"""How does the service let agents in, which speak the Model Context Protocol?"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from birchbark.serve.bounded_json import check_json

AGENTS_PATH = "/mcp"


@dataclass(frozen=True, slots=True)
class Agents:
    """What answers agents, and what must be open meanwhile.

    Attributes:
        app: Answers requests for AGENTS_PATH.
        running: Returns the context in which it can do so.
    """

    app: ASGIApp
    running: Callable[[], AbstractAsyncContextManager[None]]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request as an ASGI application, if its JSON is not too large to be parsed."""
        request, is_read = Request(scope, receive), False
        try:
            check_json(await request.body())
        except ClientDisconnect:
            raise HTTPException(400, "the request ended before its body") from None

        async def receive_again() -> Message:
            nonlocal is_read
            if is_read:
                return await receive()  # waits until the agent disconnects
            is_read = True
            return {"type": "http.request", "body": await request.body()}

        await self.app(scope, receive_again, send)
