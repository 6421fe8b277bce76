"""Is patience had with those who are slow, and none with those who do nothing?"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from birchbark.serve import server
from birchbark.serve.server import PatientProtocol

PIECE = b"birch " * 10_000
REQUEST = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"


async def endless(scope: Any, receive: Any, send: Any) -> None:
    """An answer of 1.2 GB, in pieces, like a stream that goes on and on."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(20_000):
        await send({"type": "http.response.body", "body": PIECE, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def seconds_held(taken: int, most: float) -> float:
    """How long a connection lasts whose reader takes so many bytes every tenth of a second."""
    loop, state = asyncio.get_running_loop(), ServerState()
    config = uvicorn.Config(endless, http=PatientProtocol, ws="none", log_level="critical")
    config.load()
    listening = await loop.create_server(
        lambda: PatientProtocol(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    reader.setblocking(False)
    begun = loop.time()
    async with listening:
        await loop.sock_connect(reader, listening.sockets[0].getsockname())
        await loop.sock_sendall(reader, REQUEST)
        while not state.connections:
            await asyncio.sleep(0.01)
        while state.connections and loop.time() < begun + most:
            await asyncio.sleep(0.1)
            if taken:
                await loop.sock_recv(reader, taken)
        held = loop.time() - begun
        reader.close()
        for connection in list(state.connections):
            connection.transport.abort()
        while state.tasks:
            await asyncio.sleep(0.01)
    return held


async def told_beside_others(others: int, most: int) -> bytes:
    """What one is answered who comes when so many are there."""
    loop, state = asyncio.get_running_loop(), ServerState()
    config = uvicorn.Config(
        endless, http=PatientProtocol, ws="none", log_level="critical", limit_concurrency=most
    )
    config.load()
    listening = await loop.create_server(
        lambda: PatientProtocol(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    port = listening.sockets[0].getsockname()[1]
    async with listening:
        there = [await asyncio.open_connection("127.0.0.1", port) for _ in range(others)]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(REQUEST)
        said = await asyncio.wait_for(reader.read(-1 if others >= most else 2_000), 10)
        for _, one in (*there, (reader, writer)):
            one.transport.abort()
        while state.connections or state.tasks:
            await asyncio.sleep(0.01)
    return said


def test_more_than_can_be_held_are_told_when_to_come_back() -> None:
    """In the words and with the headers of every refusal; then they are let go."""
    assert asyncio.run(told_beside_others(2, most=3)).startswith(b"HTTP/1.1 200 ")
    head, _, body = asyncio.run(told_beside_others(3, most=3)).lower().partition(b"\r\n\r\n")
    assert head.startswith(b"http/1.1 503 ")
    for line in (b"retry-after: 1", b"connection: close", b"content-security-policy: default-src"):
        assert b"\r\n" + line in head
    assert b"too many connections" in body


def test_who_takes_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of an answer, too; the connection is gone, and what was to be sent."""
    monkeypatch.setattr(server, "FLUSH_SECONDS", 0.3)
    assert asyncio.run(seconds_held(0, 10)) < 5


def test_who_takes_little_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as something goes, it goes on."""
    monkeypatch.setattr(server, "FLUSH_SECONDS", 1.0)
    assert asyncio.run(seconds_held(1 << 16, 3)) >= 3
