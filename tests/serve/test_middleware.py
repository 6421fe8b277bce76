"""Which requests does the middleware reject, and which headers do all answers have?"""

from __future__ import annotations

import asyncio
import json
import shutil
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from served import client, index_directory
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response

from birchbark.serve import middleware
from birchbark.serve.agents import Agents
from birchbark.serve.bounded_json import _STRING
from birchbark.serve.limits import Limits
from growth import FASTER_THAN_SQUARE, growth

__all__ = ["client", "index_directory"]
SEARCH = {"query": "birch"}
BEARER = {"authorization": "Bearer s3cret"}
SCRIPTS = sorted((Path(middleware.__file__).parent / "page").glob("*.js"))


def test_a_key_is_required(client: Any) -> None:
    """Only the page's own files and the health checks are public."""
    service = client(key="s3cret")
    paths = ("/search", "/search/stream", "/documents/canoe", "/metrics", "/about", "/openapi.json")
    for path in (*paths, "/v2/rerank", "/attention", "/nowhere", "/reportsx"):
        answer = service.get(path)
        assert answer.status_code == 401, path
        assert "a key is required" in answer.json()["message"], path
        assert answer.headers["www-authenticate"] == "Bearer"
    for path in ("/", "/page/page.js", "/healthz", "/readyz"):
        assert service.get(path).status_code == 200
    for path in ("/", "/healthz", "/readyz"):
        assert service.head(path).status_code == 200
    assert service.get("/reports").status_code == 401  # where it leads
    right = {"authorization": b"Bearer s3cret"}
    assert service.post("/search", json=SEARCH, headers=right).status_code == 200
    for wrong in (b"Bearer s3cre", b"Bearer ", b"Bearer s3cret \xff", b"Basic x", b"s3cret", b""):
        head = {"authorization": wrong}
        refused = service.post("/search", json=SEARCH, headers=head)
        assert refused.status_code == 401
        assert "the key is wrong" in refused.json()["message"]
    assert (
        service.post("/search", json=SEARCH, headers={"authorization": b"Bearer \xff"}).status_code
        == 401
    )


def test_reports_accept_the_key_as_a_password(client: Any) -> None:
    """Links carry no bearer token; the password opens reports and nothing else."""
    service = client(key="s3cret")
    for path in ("/reports/", "/reports/one"):
        assert service.get(path).headers["www-authenticate"].startswith("Basic realm=")
        assert service.get(path, headers=BEARER).status_code in (200, 404)
    assert service.get("/reports/", auth=("any", "s3cret")).status_code == 200
    for wrong in ("s3cre", "", "x:s3cret"):
        assert service.get("/reports/", auth=("any", wrong)).status_code == 401
    for odd in (b"Basic s3cret", b"Basic \xff", b"Basic", b"Basic czNjcmV0"):
        assert service.get("/reports/", headers={"authorization": odd}).status_code == 401
    assert service.get("/about", auth=("any", "s3cret")).status_code == 401
    assert service.get("/about", headers=BEARER).json()["reports"] is False


def test_openapi_describes_the_key(client: Any) -> None:
    """If a key is required, /openapi.json says so, and generated clients send it."""
    described = client(key="s3cret").get("/openapi.json", headers=BEARER).json()
    assert described["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"
    assert described["paths"]["/search"]["post"]["security"] == [{"HTTPBearer": []}]
    assert "security" not in described["paths"]["/healthz"]["get"]
    assert "securitySchemes" not in client().get("/openapi.json").json()["components"]


def test_unknown_host_names_are_rejected(client: Any) -> None:
    """This protects against DNS rebinding."""
    service = client(hosts=("localhost", "127.0.0.1", "[::1]", "testserver"))
    assert service.post("/search", json=SEARCH).status_code == 200
    # An address cannot be an attacker's name.
    for host in ("localhost:8000", "127.0.0.1:1", "[::2]:8000", "LOCALHOST", "192.168.7.7"):
        assert service.post("/search", json=SEARCH, headers={"host": host}).status_code == 200
    evil = ("evil.example", "localhost.evil.example", "[evil]", "127.0.0.1.evil", "localhost@evil")
    evil += ("127.0.0.1:80@evil.example", "localhost:80/evil", "localhost:x", "[::1]evil:80")
    for host in (*evil, ""):
        assert service.post("/search", json=SEARCH, headers={"host": host}).status_code == 421


def test_other_sites_cannot_write(client: Any) -> None:
    """Content types that forms can send are refused, and CORS is not granted."""
    service = client(writable=True)
    body = '{"documents": [{"id": "x", "text": "y"}]}'
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        answer = service.post("/documents", content=body, headers={"content-type": kind})
        assert answer.status_code == 422, kind
        assert answer.json()["message"] == "the body must be JSON"
        assert answer.json()["wanted"] == "content-type: application/json"
    answer = service.options("/documents", headers={"origin": "https://evil.example"})
    assert not any(name.startswith("access-control") for name in answer.headers)


def test_large_bodies_are_rejected(client: Any) -> None:
    """The declared length counts, and so do the bytes received."""
    service = client(limits=Limits(max_request_bytes=1000))
    head = {"content-type": "application/json"}
    large = b'{"query": "' + b"x" * 2000 + b'"}'
    said = service.post("/search", content=large, headers=head)
    assert (said.status_code, said.json()["wanted"]) == (413, "at most 1,000 bytes")

    def token_ids() -> Any:
        for _ in range(100):
            yield b" " * 100

    answer = service.post("/search", content=token_ids(), headers=head)
    assert answer.status_code == 413
    assert answer.json()["message"]
    assert service.post("/search", json=SEARCH).status_code == 200


@pytest.mark.parametrize("path", ["/search", "/documents", "/rerank", "/v2/rerank"])
def test_json_of_too_many_lists_is_refused(client: Any, path: str) -> None:
    """A million empty lists took seconds to parse; brackets within strings do not count."""
    service = client(limits=Limits(max_request_bytes=1_000_000))
    head = {"content-type": "application/json"}
    body = b'{"query": "birch", "documents": [' + b"[]," * 100_000 + b"[]]}"
    said = service.post(path, content=body, headers=head)
    assert (said.status_code, "100,000 or fewer" in said.json()["message"]) == (422, True)
    text = json.dumps({"query": "birch", "x": '[{"\\' * 100_001})
    said = service.post(path, content=text, headers=head)
    assert (said.status_code, "or fewer" in said.text) == (422, False)  # of another reason


def test_strings_without_end_are_searched_once() -> None:
    """Escaped quotation marks do not begin strings of their own: the time grows with the length."""
    short, long = (b'"' + b'\\"' * length for length in (100_000, 400_000))
    assert growth(partial(_STRING.sub, b""), short, long) < FASTER_THAN_SQUARE


def test_long_values_are_quoted_in_part(client: Any) -> None:
    """An error does not send a request's long value back."""
    filters = {"title": '"' + "a" * 50_000}
    said = client().post("/search", json={"query": "birch", "filters": filters})
    assert said.status_code == 422
    assert len(said.text) < 10_000


@pytest.mark.parametrize("path", ["/search", "/mcp"])
def test_a_body_that_comes_too_slowly(
    client: Any, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """The answer says so, and ends the connection."""
    monkeypatch.setattr(middleware, "BODY_SECONDS", 0.05)
    app: Any = client(agents=Agents(Response(), nullcontext)).app
    pieces = [{"type": "http.request", "body": b"{", "more_body": True}]
    sent: list[Any] = []

    async def receive() -> Any:
        if pieces:
            return pieces.pop()
        return await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        **{"type": "http", "method": "POST", "path": path, "raw_path": path.encode()},
        **{"query_string": b"", "root_path": "", "scheme": "http", "http_version": "1.1"},
        "headers": [(b"content-type", b"application/json")],
    }
    asyncio.run(app(scope, receive, send))
    assert sent[0]["status"] == 408
    assert Headers(raw=sent[0]["headers"])["connection"] == "close"
    assert json.loads(sent[1]["body"])["message"] == "the body came too slowly"


def test_all_bodies_together_have_a_limit(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One too many is refused while others arrive; small ones are not, nor later ones."""
    monkeypatch.setattr(middleware, "LARGE_BODIES", 0)  # then the limit is that of one body
    service = client(limits=Limits(budget=20, max_request_bytes=500_000))
    app: Any = service.app

    async def post(*pieces: bytes, complete: bool = True) -> tuple[int, dict[bytes, bytes]]:
        """Return status and headers. complete: whether more follows; if not, the client leaves."""
        started: dict[str, Any] = {}
        waiting = [
            {"type": "http.request", "body": piece, "more_body": i or not complete}
            for i, piece in zip(range(len(pieces))[::-1], pieces, strict=True)
        ]

        async def receive() -> dict[str, Any]:
            if waiting:
                return waiting.pop(0)
            await leaves.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            started.update(message)

        scope = {
            **{"type": "http", "method": "POST", "path": "/search", "raw_path": b"/search"},
            **{"query_string": b"", "root_path": "", "scheme": "http", "http_version": "1.1"},
            "headers": [(b"content-type", b"application/json")],
        }
        await app(scope, receive, send)
        return started["status"], dict(started["headers"])

    async def all_posts() -> None:
        begun = asyncio.create_task(post(b" " * 400_000, complete=False))
        await asyncio.sleep(0)  # until it has sent what it sends
        for _ in range(3):
            status, headers = await post(b" " * 150_000, b" " * 150_000, complete=False)
            assert (status, headers[b"connection"]) == (503, b"close")
            assert headers[b"retry-after"] == b"1"
        assert (await post(b'{"query":', b'"birch"}'))[0] == 200
        leaves.set()
        assert (await begun)[0] == 400
        leaves.clear()
        assert (await post(b'{"query": "birch"', b" " * 400_000 + b"}"))[0] == 200

    leaves = asyncio.Event()
    asyncio.run(all_posts())


def test_all_answers_together_have_a_limit(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """While clients do not read, one too many large one gets 503; small ones are sent."""
    monkeypatch.setattr(middleware, "LARGE_ANSWERS", 250_000)
    large = bytes(range(250)) * 700

    async def answering(scope: Any, receive: Any, send: Any) -> None:
        body = large if scope["path"] == "/large" else large[:1_000]
        await Response(body)(scope, receive, send)

    app = middleware.ServiceMiddleware(answering, client().app.service)

    async def get(path: str, reads: asyncio.Event) -> tuple[int, bytes, str | None]:
        """Return status, body and Retry-After of an answer, of which a piece is read at first."""
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)
            if len(sent) > 2:
                await reads.wait()

        await app({"type": "http", "method": "GET", "path": path, "headers": []}, receive, send)
        body = b"".join(message["body"] for message in sent[1:])
        assert not sent[-1].get("more_body")
        return sent[0]["status"], body, Headers(raw=sent[0]["headers"]).get("retry-after")

    async def receive() -> Any:
        raise AssertionError("there is no body")

    async def all_gets() -> None:
        reads, at_once = asyncio.Event(), asyncio.Event()
        at_once.set()
        slow = [asyncio.create_task(get("/large", reads)) for _ in range(2)]
        await asyncio.sleep(0)
        status, _, retry = await get("/large", at_once)
        assert (status, retry) == (503, "1")
        assert await get("/small", at_once) == (200, large[:1_000], None)
        reads.set()
        assert await asyncio.gather(*slow) == 2 * [(200, large, None)]
        assert await get("/large", at_once) == (200, large, None)

    asyncio.run(all_gets())


def test_events_count_as_answers_do(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream whose first event is one too many large one gets 503; a later one ends it."""
    monkeypatch.setattr(middleware, "LARGE_ANSWERS", 250_000)

    async def events(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for size in scope["sizes"]:
            await send({"type": "http.response.body", "body": bytes(size), "more_body": True})
        await send({"type": "http.response.body", "body": b"end"})

    app = middleware.ServiceMiddleware(events, client().app.service)

    async def get(reads: asyncio.Event, *sizes: int) -> tuple[int, bytes]:
        """Return status and body of a stream with events of these sizes."""
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)
            await reads.wait()

        scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "sizes": sizes}
        await app(scope, receive, send)
        assert not sent[-1].get("more_body")
        return sent[0]["status"], b"".join(message["body"] for message in sent[1:])

    async def receive() -> Any:
        raise AssertionError("there is no body")

    async def all_gets() -> None:
        reads, at_once = asyncio.Event(), asyncio.Event()
        at_once.set()
        slow = asyncio.create_task(get(reads, 300_000))
        await asyncio.sleep(0)
        assert (await get(at_once, 10))[1] == bytes(10) + b"end"
        status, body = await get(at_once, 100_000, 10)
        assert (status, json.loads(body)["message"]) == (503, "too many large answers at once")
        status, body = await get(at_once, 10, 100_000, 10)
        begin, event = body.split(b"data: ")
        assert (status, begin) == (200, bytes(10) + b"event: error\n")
        assert json.loads(event)["status"] == 503
        reads.set()
        assert await slow == (200, bytes(300_000) + b"end")
        assert await get(at_once, 100_000, 10) == (200, bytes(100_010) + b"end")

    asyncio.run(all_gets())


def test_requests_with_two_lengths_are_rejected(client: Any) -> None:
    """A proxy in front might take what follows for another request."""
    service = client()
    both = {"content-length": "17", "transfer-encoding": "chunked"}
    answer = service.post("/search", content=b'{"query":"birch"}', headers=both)
    assert (answer.status_code, answer.headers["connection"]) == (400, "close")


def test_unreadable_bodies_are_told(client: Any) -> None:
    """Deep nesting, other encodings, and numbers of thousands of digits."""
    service = client()
    head = {"content-type": "application/json"}
    for body in (
        b"[" * 100_000,
        '{"query": "é"}'.encode("latin-1"),
        b'{"top": 1' + b"0" * 5000 + b"}",
    ):
        answer = service.post("/search", content=body, headers=head)
        assert answer.status_code in (400, 422)
        assert "There was an error" not in answer.text


def test_security_headers(client: Any) -> None:
    """All answers have them, including errors."""
    service = client()
    for answer in (
        service.get("/"),
        service.get("/page/page.js"),
        service.post("/search", json=SEARCH),
        service.get("/nowhere"),
        service.post("/search", content=b"{"),
    ):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "server" not in answer.headers


def test_no_url_reaches_other_files(tmp_path: Path, client: Any) -> None:
    """Files of the page and reports are found by listed names, never by joined paths."""
    study = tmp_path / "studies" / "one"
    study.mkdir(parents=True)
    (study / "report.html").write_text("<h1>One</h1><script>let a = 1;</script>")
    (study / "manifest.json").write_text("{}")
    (tmp_path / "studies" / "<b>").mkdir()
    (tmp_path / "studies" / "<b>" / "report.html").write_text("no")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "report.html").write_text("secret")
    service = client(reports=tmp_path / "studies")
    assert 'href="/reports/one/"' in service.get("/reports").text
    assert "<b>" not in service.get("/reports").text
    assert "<li>1 more: " in service.get("/reports").text
    report = service.get("/reports/one")
    assert "<h1>One</h1>" in report.text
    assert "sandbox allow-scripts" in report.headers["content-security-policy"]
    assert "'sha256-" in report.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in report.headers["content-security-policy"]
    (study / "folder.html").mkdir()
    assert service.get("/reports/one/folder.html").status_code == 404
    (study / "looked.html").write_text("<h1>What it looked at</h1>")
    assert service.get("/reports/one/looked.html").text == "<h1>What it looked at</h1>"
    for path in (
        "/reports/one/..%2f..%2fsecret%2freport.html", "/reports/one/manifest.json",
        "/reports/one/../../secret/report.html", "/reports/%2e%2e/secret", "/reports//evil.example",
        "/reports/..%2fsecret", "/reports/../secret", "/reports/%2e%2e%2fsecret", "/reports/two",
        "/reports/one%2fmanifest.json", "/page/..%2fapp.py", "/page/%2e%2e/app.py", "/page/",
        "/page/page.js%00", "/reports/one%00", "/page/..\\app.py", "//etc/passwd",
    ):  # fmt: skip
        answer = service.get(path)
        assert answer.status_code in (404, 405), path
        assert "secret" not in answer.text
    shutil.rmtree(tmp_path / "studies")  # such as while it is replaced
    for path in ("/reports/", "/reports/one", "/reports/one/"):
        answer = service.get(path)
        assert (answer.status_code, answer.json()["message"]) == (404, "no such report"), path


def test_the_page_loads_nothing_from_other_servers(client: Any) -> None:
    """All files that the page refers to are served by the service."""
    import re

    service = client()
    waiting, seen = ["/"], set()
    while waiting:
        path = waiting.pop()
        text = service.get(path).text
        seen.add(path)
        assert service.get(path).status_code == 200, path
        assert not re.findall(r"https?://(?!www\.w3\.org)", text), path
        named = re.findall(r'(?:href|src)="(/page/[^"]+)"', text)
        named += [f"/page/{name}" for name in re.findall(r'from "\./([^"]+)"', text)]
        waiting += [name for name in named if name not in seen]
    assert {
        "/page/page.js",
        "/page/document_dialog.js",
        "/page/colours.css",
        "/page/attention.js",
        "/page/attention.css",
    } <= seen


@pytest.mark.parametrize("name", [path.name for path in SCRIPTS])
def test_scripts_never_write_html(client: Any, name: str) -> None:
    """No script writes HTML or evaluates text."""
    text = client().get(f"/page/{name}").text
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "Function(",
    ):
        assert word not in text


def test_hostile_reports_harm_nothing(client: Any, tmp_path: Path) -> None:
    """Thousands of scripts, another encoding, and links out of the folder."""
    pages = {
        "good": b"<p>x</p><script>one()</script><script>two()</script>",
        "many": b"<script>" * 60_000,
        "closed": b"<script></script>" * 60_000,
        "latin": "<p>Größe</p>".encode("latin-1"),
    }
    for name, content in pages.items():
        (tmp_path / "studies" / name).mkdir(parents=True)
        (tmp_path / "studies" / name / "report.html").write_bytes(content)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "report.html").write_text("secret")
    (tmp_path / "studies" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "studies" / "good" / "page.html").symlink_to(tmp_path / "outside" / "report.html")
    service = client(reports=tmp_path / "studies")
    policies = {}
    for name, content in pages.items():
        response = service.get(f"/reports/{name}/")
        assert (response.status_code, response.content) == (200, content)
        policies[name] = response.headers["content-security-policy"]
    assert policies["good"].count("'sha256-") == 2
    assert all("script-src 'none';" in policies[name] for name in ("many", "closed", "latin"))
    for path in ("/reports/link/", "/reports/good/page.html", "/reports/../outside/"):
        response = service.get(path)
        assert (response.status_code, "secret" in response.text) == (404, False)


def test_an_agent_that_leaves_while_it_sends() -> None:
    """Its request is a bad one, and no error of the service."""
    agents = Agents(lambda scope, receive, send: None, nullcontext)  # type: ignore[arg-type]

    async def receive() -> dict[str, str]:
        return {"type": "http.disconnect"}

    with pytest.raises(HTTPException, match="400: the request ended before its body"):
        asyncio.run(agents({"type": "http"}, receive, receive))  # type: ignore[arg-type]
