"""What is kept out before a request reaches the service, and what goes with every answer?"""

from __future__ import annotations

import asyncio
import base64
import hmac
import time
from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from birchbark.serve.gate import BusyError
from birchbark.serve.refusals import refusal, told
from birchbark.serve.service import Service

OPEN_PATHS = ("/", "/healthz", "/readyz", "/reports")  # the last leads on to /reports/
OPEN_FOLDER = "/page/"  # the page's own files, which say nothing of the documents
BODY_SECONDS = 20.0  # for a whole body to come
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Keys, hosts, patience and headers, around an application."""

    def __init__(
        self,
        app: ASGIApp,
        service: Service,
        key: str | None = None,
        hosts: Collection[str] = (),
    ) -> None:
        """service: whose limits and counts are used. key: what requests must carry, if any.

        hosts: names the service goes by; any if none.
        A page elsewhere can have a browser ask a name of its own that leads here; it cannot have it
        ask by another name.
        """
        self._app, self.service, self._hosts = app, service, frozenset(map(str.lower, hosts))
        self._key = key.encode() if key is not None else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.monotonic()
        status, whole, late = 500, False, False

        async def received() -> Message:
            nonlocal whole, late
            if whole:
                return await receive()  # waits until the other side goes away
            left = max(0.0, begun + BODY_SECONDS - time.monotonic())
            try:
                message = await asyncio.wait_for(receive(), left)
            except TimeoutError:
                late = True
                return {"type": "http.disconnect"}
            whole = message["type"] != "http.request" or not message.get("more_body")
            return message

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if late:  # whatever was made of half a body
                    message["status"] = 408
                    headers["connection"] = "close"
                status = message["status"]
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)  # the server lets go who takes nothing

        self.service.metrics.inside.inc()
        try:
            await (self._refusal(scope) or self._app)(scope, received, sent)
        finally:
            self.service.metrics.inside.dec()
            route = getattr(scope.get("route"), "path", "other")
            self.service.metrics.requests.labels(route, str(status)).inc()
            self.service.metrics.seconds.labels(route).observe(time.monotonic() - begun)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        """The answer to a request that is not let in."""
        headers = Headers(scope=scope)
        if self._hosts and _host(headers.get("host", "")) not in self._hosts:
            return refusal(421, "this service does not go by that name")
        if self._may_enter(scope["path"], headers):
            most = self.service.limits.body
            length = headers.get("content-length", "0")
            if length.isdecimal() and int(length) > most:
                return refusal(413, "request is too large", wanted=f"{most:,} bytes at most")
            try:  # before a body is read, which is measured while it comes if it hides its length
                if scope["method"] == "POST":
                    self.service.gate.check()
            except BusyError as busy:
                return refusal(503, told(busy))
            return None
        answer = refusal(401, "a key is needed", remedy="Authorization: Bearer KEY")
        asks = 'Basic realm="Birchbark: any name, the key as password"'
        answer.headers["WWW-Authenticate"] = asks if _is_report(scope["path"]) else "Bearer"
        return answer

    def _may_enter(self, path: str, headers: Headers) -> bool:
        if self._key is None or path in OPEN_PATHS or path.startswith(OPEN_FOLDER):
            return True
        scheme, _, given = headers.get("authorization", "").partition(" ")
        sent = given.strip().encode("latin-1")
        if scheme.lower() == "basic" and _is_report(path):
            scheme, sent = "bearer", _password(sent)
        return hmac.compare_digest(sent, self._key) and scheme.lower() == "bearer"


def _is_report(path: str) -> bool:
    """Whether a link leads there, which brings no bearer's token: a browser asks for a password."""
    return path.startswith("/reports/")  # a browser then sends the password there alone


def _password(sent: bytes) -> bytes:
    """Of name:password in base64; nothing where it is not that."""
    try:
        return base64.b64decode(sent, validate=True).partition(b":")[2]
    except ValueError:
        return b""


def _host(header: str) -> str:
    """The name in a Host header, without its port."""
    if header.startswith("["):
        return header.partition("]")[0] + "]"
    return header.partition(":")[0].lower()
