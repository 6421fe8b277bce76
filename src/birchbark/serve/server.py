"""How does the service meet the network? Uvicorn, with patience for nobody who dawdles."""

from __future__ import annotations

import asyncio
import math
import resource
import socket
from contextlib import suppress
from typing import Any

import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from birchbark.errors import InputError
from birchbark.serve.gate import RETRY_AFTER
from birchbark.serve.guard import HEADERS
from birchbark.serve.refusals import refusal

HEAD_SECONDS = 10.0  # for a request's first lines to come
FLUSH_SECONDS = 20.0  # for some of an answer to be taken
UNSENT = 1 << 14  # bytes that the system may hold back, so that what is taken is seen soon
CONNECTIONS = 2_000
OTHER_FILES = 256  # that are open besides connections: parts of indexes, models


class PatientProtocol(H11Protocol):
    """HTTP/1.1; a connection that does not begin a request in time is closed."""

    _head: asyncio.TimerHandle | None = None
    _flow: asyncio.TimerHandle | None = None  # while something waits to be taken
    _taken = False  # whether something was, since that timer began

    def connection_made(self, transport: Any) -> None:
        """See asyncio."""
        super().connection_made(transport)
        most, self.limit_concurrency = self.limit_concurrency, None  # its refusal says too little
        if most is not None and len(self.connections) > most:
            self.app = _no_more
        own = transport.get_extra_info("socket")
        if own.family in (socket.AF_INET, socket.AF_INET6) and hasattr(socket, "TCP_NOTSENT_LOWAT"):
            own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT)
        self._head = self.loop.call_later(HEAD_SECONDS, self._too_slow)

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        if self._flow and not self.transport.get_write_buffer_size():  # all was taken
            self._flow.cancel()
            self._flow = None
        super().data_received(data)
        if self._answering():
            self._calm()
        elif not self._head:  # the beginning of a next request on the same connection
            self._head = self.loop.call_later(HEAD_SECONDS, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self._calm()
        if self._flow:
            self._flow.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """See asyncio."""
        super().pause_writing()
        self._see_it_taken()

    def resume_writing(self) -> None:
        """See asyncio."""
        super().resume_writing()
        self._taken = True

    def on_response_complete(self) -> None:
        """See uvicorn."""
        super().on_response_complete()
        self._see_it_taken()

    def _see_it_taken(self) -> None:
        if waiting := self.transport.get_write_buffer_size():
            self._flow = self._flow or self.loop.call_later(FLUSH_SECONDS, self._flows, waiting)

    def _flows(self, before: int) -> None:
        """Who takes nothing of an answer is let go, and what is left of it forgotten."""
        self._flow = None
        if self.transport.get_write_buffer_size() >= before and not self._taken:
            self.transport.abort()
        self._taken = False
        self._see_it_taken()

    def _answering(self) -> bool:
        cycle: Any = self.cycle
        return cycle is not None and not cycle.response_complete

    def _calm(self) -> None:
        if self._head:
            self._head.cancel()
            self._head = None

    def _too_slow(self) -> None:
        self._head = None
        if not self._answering():
            self.transport.close()


async def _no_more(scope: Scope, receive: Receive, send: Send) -> None:
    """What more connections than can be held are told."""
    answer = refusal(503, "too many connections at once", remedy=f"try again in {RETRY_AFTER} s")
    answer.headers.update({**HEADERS, "connection": "close"})
    await answer(scope, receive, send)


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 for any free one. InputError where that cannot be."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(CONNECTIONS)
    except OSError as fault:
        listening.close()
        raise InputError(
            "cannot listen there",
            where=f"{host}:{port}",
            found=fault.strerror or str(fault),
            remedy="another --port, or --port 0 for any free one",
        ) from None
    return listening


def _connections() -> int:
    """How many this process may hold; its limit of open files is raised for them where it can."""
    wanted = CONNECTIONS + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return CONNECTIONS
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(1, min(CONNECTIONS, soft - OTHER_FILES))


def run(application: Any, listening: socket.socket, grace: float) -> None:
    """Serve until told to stop (SIGTERM, SIGINT); what was accepted is answered before.

    grace: seconds, for that.
    """
    connections = _connections()
    config = uvicorn.Config(
        application,
        http=PatientProtocol,
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=connections,
        backlog=CONNECTIONS,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=math.ceil(grace),
    )
    with suppress(KeyboardInterrupt):  # told again when all is answered
        uvicorn.Server(config).run(sockets=[listening])
