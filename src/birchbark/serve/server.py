"""How does the service listen on the network, with time limits for slow clients?"""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import math
import re
import socket
import sys
from contextlib import suppress
from typing import Any

import h11
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from birchbark.errors import InputError
from birchbark.serve.admission import RETRY_AFTER
from birchbark.serve.error_responses import error_response
from birchbark.serve.middleware import HEADERS
from birchbark.systems import most_open_files

SWITCH_SECONDS = 0.0005  # between threads; with the usual 0.005 writes starve beside many searches
HEAD_SECONDS = 10.0  # maximum time to receive the head of a request
HEAD_BYTES = 1 << 15  # of a request that is not complete; the longest query has up to 24,000
HEAD_LINES = 256  # of a request
_HEAD_END = re.compile(rb"\n\r?\n")
FREE_PIECES, MEAN_PIECE = 1_000, 256  # of a body: chunks, or what a packet brings; bytes
WRITE_SECONDS = 20.0  # maximum time for a client to read 64 KB of an answer: 3 KB a second
UNSENT_BYTES = 1 << 14  # kernel's buffer: small, so that the client's progress is seen early
CLOSE_SECONDS = 10.0  # after the last request, to finish writes and to end threads
MAX_CONNECTIONS = 2_000
OTHER_FILES = 256  # open files other than connections: parts of indexes, models


class _BoundedConnection(h11.Connection):
    """An HTTP/1.1 connection that refuses what takes long to parse for its size.

    These are heads with many lines, and bodies in tiny pieces, each of which takes 50 µs.
    """

    _pieces, _bytes = 0, 0  # of the body of the request

    def next_event(self) -> Any:
        """See h11."""
        if self.their_state is h11.IDLE:
            received, _ = self.trailing_data
            end = _HEAD_END.search(received)
            head = received[: end.start()] if end else received
            if head.count(b"\n") > HEAD_LINES:
                raise h11.RemoteProtocolError("the head of the request has too many lines")
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._pieces, self._bytes = 0, 0
        elif isinstance(event, h11.Data):
            self._pieces += 1
            self._bytes += len(event.data)
            if self._pieces > FREE_PIECES + self._bytes / MEAN_PIECE:
                raise h11.RemoteProtocolError("the body comes in too small pieces")
        return event


class TimeLimitProtocol(H11Protocol):
    """HTTP/1.1 with limits: closes connections whose clients are too slow.

    A client must send the head of a request within HEAD_SECONDS, and read what is ready of an
    answer, up to 64 KB and a piece, within WRITE_SECONDS; something of the last of it. A body must
    come in pieces of MEAN_PIECE bytes or more on average, apart from FREE_PIECES.
    """

    _head_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None  # runs while some of an answer is unread
    _progress = False  # whether the client has read what was ready since the write timer started

    def connection_made(self, transport: Any) -> None:
        """See asyncio."""
        super().connection_made(transport)
        self.conn = _BoundedConnection(h11.SERVER, HEAD_BYTES)
        # Uvicorn's own answer to too many connections lacks our headers.
        limit, self.limit_concurrency = self.limit_concurrency, None
        if limit is not None and len(self.connections) > limit:
            self.app = _too_many_connections
        connection = transport.get_extra_info("socket")
        tcp = connection.family in (socket.AF_INET, socket.AF_INET6)
        if tcp and hasattr(socket, "TCP_NOTSENT_LOWAT"):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
        self._start_head_timer()

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        if self._write_timer and not self.transport.get_write_buffer_size():  # all was read
            self._write_timer.cancel()
            self._write_timer = None
        super().data_received(data)
        if self._answering():
            self._cancel_head_timer()
        elif not self._head_timer:  # the next request on this connection has begun
            self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self._cancel_head_timer()
        if self._write_timer:
            self._write_timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """See asyncio."""
        super().pause_writing()
        self._watch_progress()

    def resume_writing(self) -> None:
        """See asyncio."""
        super().resume_writing()
        self._progress = True

    def send_400_response(self, msg: str) -> None:
        """Answer as other errors do, and close; once an answer has begun, there is no other."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            wanted = f"HTTP/1.1, with a head of at most {HEAD_BYTES:,} bytes, {HEAD_LINES} lines"
            answer = error_response(400, "the request cannot be read", wanted=wanted)
            answer.headers.update({**HEADERS, "connection": "close"})
            head = h11.Response(status_code=400, headers=answer.raw_headers, reason=b"Bad Request")
            for event in (head, h11.Data(data=bytes(answer.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event))
        self.transport.close()

    def on_response_complete(self) -> None:
        """See uvicorn."""
        super().on_response_complete()
        self._watch_progress()

    def _watch_progress(self) -> None:
        """Start the write timer if the client has not read the whole answer."""
        if unread := self.transport.get_write_buffer_size():
            self._write_timer = self._write_timer or self.loop.call_later(
                WRITE_SECONDS, self._check_progress, unread
            )

    def _check_progress(self, unread_before: int) -> None:
        """Abort the connection if the client has read too little since the timer started."""
        self._write_timer = None
        idle = self.transport.get_write_buffer_size() >= unread_before
        if not self._progress and (idle or self.flow.write_paused):
            self.transport.abort()
        self._progress = False
        self._watch_progress()

    def _answering(self) -> bool:
        cycle: Any = self.cycle
        return cycle is not None and not cycle.response_complete

    def _start_head_timer(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self._head_timed_out)

    def _cancel_head_timer(self) -> None:
        if self._head_timer:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_timed_out(self) -> None:
        self._head_timer = None
        if not self._answering():
            self.transport.close()


async def _too_many_connections(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a connection beyond the limit, and close it."""
    remedy = f"try again in {RETRY_AFTER} s"
    response = error_response(503, "too many connections at once", remedy=remedy)
    response.headers.update({**HEADERS, "connection": "close"})
    await response(scope, receive, send)


def open_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket; InputError if it cannot be opened.

    port: 0 for any free port.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only if the protocol is given; without it the kernel holds back the
    # second packet of a response for 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(MAX_CONNECTIONS)
    except OSError as error:
        listening.close()
        raise InputError(
            "cannot listen on this address",
            where=f"{host}:{port}",
            found=error.strerror or str(error),
            remedy="another --port, or --port 0 for any free one",
        ) from None
    return listening


def _connection_limit() -> int:
    """Return how many connections the limit on open files, which `cli` has raised, allows."""
    allowed = most_open_files()
    if allowed is None:
        return MAX_CONNECTIONS
    return max(1, min(MAX_CONNECTIONS, allowed - OTHER_FILES))


class _Server(uvicorn.Server):
    """A server whose process ends soon after it was told to, whatever its threads do."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """See uvicorn. A thread that does not end in time is shown on standard error."""
        grace = self.config.timeout_graceful_shutdown or 0
        faulthandler.dump_traceback_later(grace + CLOSE_SECONDS, exit=True, file=2)
        await super().shutdown(sockets)
        faulthandler.cancel_dump_traceback_later()


def run(application: Any, listening: socket.socket, grace: float) -> None:
    """Serve until SIGTERM or SIGINT; then finish the requests that have begun.

    grace: maximum number of seconds to finish them. Whatever else is not finished CLOSE_SECONDS
    later, such as an update of the index, is dropped, which leaves the index as it was before.
    """
    config = uvicorn.Config(
        application,
        http=TimeLimitProtocol,
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=_connection_limit(),
        backlog=MAX_CONNECTIONS,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=math.ceil(grace),
    )
    sys.setswitchinterval(SWITCH_SECONDS)
    logging.getLogger("uvicorn.error").addFilter(_is_of_use)
    with suppress(KeyboardInterrupt):  # uvicorn raises the signal again at the end
        _Server(config).run(sockets=[listening])


def _is_of_use(record: logging.LogRecord) -> bool:
    """Whether an operator can use a message.

    Not of use: that a second Ctrl-C ended what was still running, and advice to install a library
    for WebSockets when a client has asked for one.
    """
    message = record.getMessage()
    return "CancelledError" not in message and "WebSocket library" not in message
