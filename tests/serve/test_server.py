"""Does the server wait for slow clients, and disconnect idle ones?"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from subprocess import PIPE
from typing import Any
from urllib.parse import quote

import h11
import pytest
import uvicorn
from uvicorn.server import ServerState

from birchbark.serve import server
from birchbark.serve.server import TimeLimitProtocol

PIECE = b"birch " * 10_000
REQUEST = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"


async def endless(scope: Any, receive: Any, send: Any) -> None:
    """Send a response of 1.2 GB in chunks."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(20_000):
        await send({"type": "http.response.body", "body": PIECE, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def measuring(scope: Any, receive: Any, send: Any) -> None:
    """Respond with the length of the request's body."""
    length, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        length, more = length + len(message["body"]), message["more_body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(length).encode()})


@asynccontextmanager
async def serving(
    limit: int | None = None, application: Any = endless
) -> AsyncIterator[tuple[ServerState, tuple[str, int]]]:
    """Serve the application; yield the server's state and address. limit: connection limit."""
    state = ServerState()
    config = uvicorn.Config(
        application,
        http=TimeLimitProtocol,
        ws="none",
        log_level="critical",
        limit_concurrency=limit,
    )
    config.load()
    listening = await asyncio.get_running_loop().create_server(
        lambda: TimeLimitProtocol(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    async with listening:
        yield state, listening.sockets[0].getsockname()


async def seconds_held(bytes_read: int, max_seconds: float) -> float:
    """Return how long a client stays connected that reads `bytes_read` bytes every 0.1 s."""
    loop = asyncio.get_running_loop()
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    reader.setblocking(False)
    begun = loop.time()
    async with serving() as (state, address):
        await loop.sock_connect(reader, address)
        await loop.sock_sendall(reader, REQUEST)
        while not state.connections:
            await asyncio.sleep(0.01)
        while state.connections and loop.time() < begun + max_seconds:
            await asyncio.sleep(0.1)
            if bytes_read:
                await loop.sock_recv(reader, bytes_read)
        held = loop.time() - begun
        reader.close()
        for connection in list(state.connections):
            connection.transport.abort()
        while state.tasks:
            await asyncio.sleep(0.01)
    return held


async def answer_beside_others(others: int, limit: int) -> bytes:
    """Return the answer to a client while `others` other connections are open."""
    async with serving(limit) as (state, address):
        there = [await asyncio.open_connection(*address) for _ in range(others)]
        reader, writer = await asyncio.open_connection(*address)
        writer.write(REQUEST)
        answer = await asyncio.wait_for(reader.read(-1 if others >= limit else 2_000), 10)
        for _, one in (*there, (reader, writer)):
            one.transport.abort()
        while state.connections or state.tasks:
            await asyncio.sleep(0.01)
    return answer


def test_too_many_connections_get_503() -> None:
    """The answer has the headers of all errors, and the connection is closed."""
    assert asyncio.run(answer_beside_others(2, limit=3)).startswith(b"HTTP/1.1 200 ")
    head, _, body = asyncio.run(answer_beside_others(3, limit=3)).lower().partition(b"\r\n\r\n")
    assert head.startswith(b"http/1.1 503 ")
    for line in (b"retry-after: 1", b"connection: close", b"content-security-policy: default-src"):
        assert b"\r\n" + line in head
    assert b"too many connections" in body


def test_a_client_that_reads_nothing_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is disconnected in the middle of an answer, and the rest is discarded."""
    monkeypatch.setattr(server, "WRITE_SECONDS", 0.3)
    assert asyncio.run(seconds_held(0, 10)) < 5


def test_a_client_that_reads_slowly_stays_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection lasts as long as the client reads 64 KB in the time."""
    monkeypatch.setattr(server, "WRITE_SECONDS", 1.0)
    assert asyncio.run(seconds_held(1 << 16, 3)) >= 3


def test_a_client_that_reads_a_few_bytes_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would hold an answer for hours."""
    monkeypatch.setattr(server, "WRITE_SECONDS", 0.3)
    assert asyncio.run(seconds_held(200, 10)) < 5


async def answer_to_chunks(size: int, count: int) -> bytes:
    """Return the whole answer to a body of so many chunks of so many bytes, empty if it is lost."""
    chunk = b"%x\r\n%b\r\n" % (size, b"b" * size)
    head = b"POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n"
    async with serving(application=measuring) as (_, address):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(head + b"connection: close\r\n\r\n" + chunk * count + b"0\r\n\r\n")
        answer = b""
        with suppress(ConnectionError):  # with some of the body unread, the answer may be lost
            answer = await asyncio.wait_for(reader.read(), 20)
        writer.close()
    return answer


@pytest.mark.parametrize(
    ("lines", "accepted"),
    [(b"a:\r\n" * 200, True), (b"a:\r\n" * 16_000, False)],
)
@pytest.mark.parametrize("before", [b"", REQUEST])
def test_heads_with_many_lines_are_refused(lines: bytes, accepted: bool, before: bytes) -> None:
    """A head that comes at once is not parsed, also one behind another request."""

    async def answers() -> bytes:
        async with serving(application=measuring) as (_, address):
            reader, writer = await asyncio.open_connection(*address)
            last = REQUEST[:-2] + b"connection: close\r\n" + lines + b"\r\n\r\n"
            writer.write(before + last)
            answer = await asyncio.wait_for(reader.read(), 20)
            writer.close()
        return answer

    answer = asyncio.run(answers())
    assert answer.count(b"HTTP/1.1 200") == accepted + bool(before)
    assert answer.count(b"HTTP/1.1 400") == (not accepted)


def test_a_head_has_room_for_the_longest_query() -> None:
    """2,000 characters, each up to 12 bytes of a URL, in whatever packets they come."""

    async def answer() -> bytes:
        async with serving(application=measuring) as (_, address):
            reader, writer = await asyncio.open_connection(*address)
            head = b"GET /search?q=" + quote("🛶" * 2_000).encode() + REQUEST[5:]
            writer.write(head[:-2])
            await writer.drain()
            await asyncio.sleep(0.2)
            writer.write(b"connection: close\r\n\r\n")
            received = await asyncio.wait_for(reader.read(), 20)
            writer.close()
        return received

    assert asyncio.run(answer()).startswith(b"HTTP/1.1 200")


def test_what_is_no_request_gets_an_error_as_all_others() -> None:
    """A head above the limit of bytes, and bytes that are not HTTP: JSON, with our headers."""

    async def answer(sent: bytes) -> bytes:
        async with serving(application=measuring) as (_, address):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(sent)
            received = await asyncio.wait_for(reader.read(), 20)
            writer.close()
        return received

    long = b"a" * (server.HEAD_BYTES + 1)
    for sent in (b"GET /?" + long, b"birch\r\n\r\n", REQUEST[:-2] + b"a: " + long):
        head, _, body = asyncio.run(answer(sent)).partition(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        assert lines[0] == b"http/1.1 400 bad request"
        assert {b"connection: close", b"content-type: application/json"} <= set(lines)
        assert any(line.startswith(b"content-security-policy: ") for line in lines)
        told = json.loads(body)
        assert told["message"] == told["detail"] == "the request cannot be read"
        assert "32,768 bytes" in told["wanted"]


def test_bodies_in_tiny_chunks_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each chunk takes time in the event loop, before any limit of bytes: 1 MB took 5 seconds."""
    parsed = 0
    next_event = h11.Connection.next_event

    def count(self: h11.Connection) -> Any:
        nonlocal parsed
        parsed += 1
        return next_event(self)

    monkeypatch.setattr(h11.Connection, "next_event", count)
    assert asyncio.run(answer_to_chunks(1, 40_000))[:13] in (b"HTTP/1.1 400 ", b"")
    assert parsed < 1_100
    assert b"\r\n900\r\n" in asyncio.run(answer_to_chunks(1, 900))
    assert b"\r\n1200000\r\n" in asyncio.run(answer_to_chunks(300, 4_000))


def test_small_packets_are_sent_at_once() -> None:
    """The kernel does not hold back the body of a response until its head is acknowledged."""

    async def option() -> int:
        found = asyncio.get_running_loop().create_future()

        class Protocol(asyncio.Protocol):
            def connection_made(self, transport: Any) -> None:
                connection = transport.get_extra_info("socket")
                found.set_result(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

        listening = server.open_socket("127.0.0.1", 0)
        async with await asyncio.get_running_loop().create_server(Protocol, sock=listening):
            _, writer = await asyncio.open_connection(*listening.getsockname())
            result: int = await found
            writer.close()
            return result

    assert asyncio.run(option())


HANGS = """
import sys, time
from birchbark.serve import server

server.CLOSE_SECONDS = 0.5

async def application(scope, receive, send):
    while (await receive())["type"] != "lifespan.shutdown":
        await send({"type": "lifespan.startup.complete"})
    time.sleep(60)  # as a thread that is waited for, and does not end

with server.open_socket("127.0.0.1", 0) as listening:
    print("ready", flush=True)
    server.run(application, listening, 1)
"""


def test_the_process_ends_whatever_hangs() -> None:
    """After SIGTERM, a thread that does not end is shown on standard error, and left."""
    command = [sys.executable, "-c", HANGS]
    with subprocess.Popen(command, stdout=PIPE, stderr=PIPE, text=True) as process:
        try:
            assert process.stdout
            assert process.stderr
            assert process.stdout.readline() == "ready\n"
            time.sleep(1)  # until it handles signals
            process.send_signal(signal.SIGTERM)
            assert process.wait(15) == 1
            assert "in application" in process.stderr.read()
        finally:
            process.kill()
