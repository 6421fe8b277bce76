"""Which requests are rejected before they reach a route, and which headers do answers have?"""

from __future__ import annotations

import asyncio
import base64
import hmac
import re
import time
from collections.abc import Collection
from ipaddress import ip_address

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from birchbark.serve.admission import RETRY_AFTER, BusyError
from birchbark.serve.error_responses import error_message, error_response
from birchbark.serve.service import Service

PUBLIC_PATHS = ("/", "/docs", "/healthz", "/readyz", "/reports")  # /reports redirects to /reports/
PUBLIC_FOLDER = "/page/"  # the page's files, which reveal nothing about documents
BODY_SECONDS = 20.0  # maximum time to receive a request's body
SMALL_BODY = 1 << 16  # bytes of a body that always have room, so that searches do
LARGE_BODIES = 256_000_000  # bytes that all bodies at once have beyond these
LARGE_ANSWERS = 256_000_000  # likewise, bytes of answers that their clients have not read yet
PIECE = 1 << 14  # bytes of an answer that are handed over at a time, so that the rest is counted
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::[0-9]{0,5})?", re.ASCII)
HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class ServiceMiddleware:
    """Rejects requests by host, key, size and load; adds headers to all answers.

    It also limits the time in which a request's body must arrive and the memory that all bodies
    and all answers take at once, and records metrics.
    """

    def __init__(
        self,
        app: ASGIApp,
        service: Service,
        key: str | None = None,
        hosts: Collection[str] = (),
    ) -> None:
        """service: provides limits and metrics.

        key: the bearer token that requests must carry; None if they need none. hosts: the accepted
        host names; all if empty. They protect against DNS rebinding: an attacker's domain can
        resolve to this address, but browsers then send that domain's name in the Host header.
        """
        self._app, self.service, self._hosts = app, service, frozenset(map(str.lower, hosts))
        self._key = key.encode() if key is not None else None
        self._large_bodies = 0  # bytes of the requests being answered, beyond SMALL_BODY of each
        self._large_answers = 0  # bytes of answers being sent, likewise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.monotonic()
        status, body_complete, received = 500, False, 0
        held: Message | None = None  # the head of an answer, until the size of its body shows
        refused = False

        async def receive_within_limits() -> Message:
            nonlocal body_complete, received
            if body_complete:
                return await receive()  # waits until the client disconnects
            remaining = max(0.0, start + BODY_SECONDS - time.monotonic())
            try:
                message = await asyncio.wait_for(receive(), remaining)
            except TimeoutError:
                told, head = "the body came too slowly", {"connection": "close"}
                raise HTTPException(408, told, head) from None
            body_complete = message["type"] != "http.request" or not message.get("more_body")
            before, received = received, received + len(message.get("body", b""))
            self._large_bodies += _beyond_small(received) - _beyond_small(before)
            if self._large_bodies > max(LARGE_BODIES, self.service.limits.max_request_bytes):
                told = f"too many large requests at once; try again in {RETRY_AFTER} s"
                raise HTTPException(503, told, {"connection": "close"})
            return message

        async def send_with_headers(message: Message) -> None:
            nonlocal status, held
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                status = message["status"]
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                held = message
            elif message["type"] == "http.response.body":
                await send_body(message)
            else:
                await send(message)

        async def send_body(message: Message) -> None:
            nonlocal status, held, refused
            body, more = message.get("body", b""), message.get("more_body", False)
            head, held, size = held, None, _beyond_small(len(body))
            if refused:
                return
            if size and self._large_answers and self._large_answers + size > LARGE_ANSWERS:
                refused = True
                remedy = f"try again in {RETRY_AFTER} s"
                response = error_response(503, "too many large answers at once", remedy=remedy)
                response.headers.update(HEADERS)
                if head:
                    status = 503
                    await response(scope, receive, send)
                else:  # of the answers, only a stream of events has several large pieces
                    told = bytes(response.body).removesuffix(b"}") + b',"status":503}'
                    last = b"event: error\ndata: " + told + b"\n\n"
                    await send({"type": message["type"], "body": last})
                return
            self._large_answers += size
            try:  # waits for the client; server.py closes connections whose clients read too slowly
                if head:
                    await send(head)
                for begin in range(0, max(1, len(body)), PIECE):
                    end = begin + PIECE
                    left = more or end < len(body)
                    await send({**message, "body": body[begin:end], "more_body": left})
            finally:
                self._large_answers -= size

        metrics = self.service.metrics
        metrics.active.inc()
        try:
            app = self._rejection(scope) or self._app
            await app(scope, receive_within_limits, send_with_headers)
        finally:
            self._large_bodies -= _beyond_small(received)
            metrics.active.dec()
            route = getattr(scope.get("route"), "path", "other")
            metrics.requests.labels(route, str(status)).inc()
            metrics.seconds.labels(route).observe(time.monotonic() - start)

    def _rejection(self, scope: Scope) -> ASGIApp | None:
        """Return the error response to a rejected request; None if the request is accepted."""
        headers = Headers(scope=scope)
        if self._hosts and not self._is_known(host_name(headers.get("host", ""))):
            return error_response(
                421,
                "the service does not accept this host name",
                remedy="start it with --allowed-host HOST",
            )
        if "transfer-encoding" in headers and "content-length" in headers:
            # A proxy in front may read another length than this server (request smuggling).
            response = error_response(
                400,
                "the request has both Content-Length and Transfer-Encoding",
                wanted="one of them",
            )
            response.headers["connection"] = "close"
            return response
        if not self._authorized(scope["path"], headers):
            what = "the key is wrong" if "authorization" in headers else "a key is required"
            response = error_response(401, what, remedy="Authorization: Bearer KEY")
            basic = 'Basic realm="Birchbark: any name, the key as password"'
            challenge = basic if _is_link(scope["path"]) else "Bearer"
            response.headers["WWW-Authenticate"] = challenge
            return response
        limit = self.service.limits.max_request_bytes
        length = headers.get("content-length", "0")  # without it, bytes are counted as they arrive
        if length.isdecimal() and int(length) > limit:
            return error_response(413, "request is too large", wanted=f"at most {limit:,} bytes")
        try:
            if scope["method"] == "POST":
                self.service.admission.check()  # before the body is read
        except BusyError as error:
            return error_response(503, error_message(error))
        return None

    def _is_known(self, host: str) -> bool:
        """Whether requests may use this host name; an address cannot be an attacker's name."""
        if host in self._hosts:
            return True
        try:
            ip_address(host.strip("[]"))
        except ValueError:
            return False
        return True

    def _authorized(self, path: str, headers: Headers) -> bool:
        if self._key is None or path in PUBLIC_PATHS or path.startswith(PUBLIC_FOLDER):
            return True
        scheme, _, credentials = headers.get("authorization", "").partition(" ")
        key = credentials.strip().encode("latin-1")
        if scheme.lower() == "basic" and _is_link(path):
            scheme, key = "bearer", _password(key)
        return hmac.compare_digest(key, self._key) and scheme.lower() == "bearer"


def _beyond_small(size: int) -> int:
    return max(0, size - SMALL_BODY)


def _is_link(path: str) -> bool:
    """Whether the path is opened by a link, which carries no token; browsers need a password.

    Browsers send the password to these folders only.
    """
    return path.startswith(("/reports/", "/files/"))


def _password(credentials: bytes) -> bytes:
    """Return the password in base64-encoded `name:password`; empty if this is malformed."""
    try:
        return base64.b64decode(credentials, validate=True).partition(b":")[2]
    except ValueError:
        return b""


def host_name(header: str) -> str:
    """Return the host name in a Host header, without the port; empty if it is malformed."""
    found = _HOST.fullmatch(header)
    return found[1].lower() if found else ""
