"""How are the page and the reports of studies served, without exposing other files?"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from birchbark.combine.aggregate import Top, TopMean
from birchbark.errors import ArtifactError
from birchbark.pipeline.answers.example_queries import example_queries
from birchbark.serve.disconnect import cancel_on_disconnect
from birchbark.serve.render_document import DocumentRenderer
from birchbark.serve.search_routes import DocId
from birchbark.serve.service import NotFoundError, Service, known_document
from birchbark.show.attention_page import attention_file
from birchbark.show.draw_plot import colours

T = TypeVar("T")
MEDIA_TYPES = {
    "html": "text/html",
    "js": "text/javascript",
    "css": "text/css",
    "svg": "image/svg+xml",
}
REPORT = "report.html"
EXAMPLES = "example queries"  # what Index.derived calls them; no field has a blank in its name
SCRIPT, SCRIPT_END, MAX_SCRIPTS = b"<script>", b"</script>", 20


def docs_routes(*, at_root: bool = False) -> APIRouter:
    """Return the routes for the page that describes the HTTP API, and for all pages' files.

    at_root: whether the address of the service leads to that page.
    """
    routes = APIRouter(include_in_schema=False)
    if at_root:
        routes.add_api_route("/", lambda: RedirectResponse("/docs"))

    @routes.get("/docs")
    async def docs() -> Response:
        return file_response("docs.html", _page_files()["docs.html"])

    @routes.get("/page/{name}")
    async def page_file(name: str) -> Response:
        if name not in _page_files():
            raise NotFoundError("no such file")
        return file_response(name, _page_files()[name])

    return routes


def page_routes(service: Service, reports: Path | None) -> APIRouter:
    """Return the routes for the search page, and studies' reports.

    The page has the service's settings (/about), and rendered documents.
    """
    routes = APIRouter(include_in_schema=False)

    renderer = DocumentRenderer(
        service.files, lambda doc_id: service.searcher.index.find(doc_id) is not None
    )

    async def read(request: Request, work: Callable[[], T]) -> T:
        """Return the result of `work`, which reads reports, in a thread."""

        def look(*_: object) -> T:
            try:
                return work()
            except (FileNotFoundError, NotADirectoryError):  # such as while one is replaced
                raise NotFoundError("no such report") from None

        return await cancel_on_disconnect(request, service.run_quick(look))

    @routes.head("/")
    @routes.get("/")
    async def page() -> Response:
        return file_response("index.html", _page_files()["index.html"])

    @routes.get("/about")
    async def about(request: Request) -> dict[str, Any]:
        def describe(seconds: float, on_step: Callable[[], None]) -> dict[str, Any]:
            return _describe_collection(service, on_step)

        rankers = service.searcher.rankers
        first = rankers[0] if rankers else None
        aggregation = first.aggregation if first and first.scorer.width == 1 else None
        return {
            **await cancel_on_disconnect(request, service.run_quick(describe)),
            "model": service.model,
            "kinds": list(dict.fromkeys(ranker.scorer.kind for ranker in rankers)),
            "unit": first.unit if first else None,
            "embedding": first.embedding.name if first and first.embedding else None,
            "embedding_model": service.embedding_model if rankers else None,
            "stages": len(rankers),
            "attention": service.has_attention,
            "depth": first.depth if first else None,
            "first_stage_weight": first.interpolation.first_stage_weight if first else None,
            "weights": list(aggregation.by_rank)
            if isinstance(aggregation, (Top, TopMean))
            else None,
            "failing": service.failing,
            "reading": service.reading,
            "reports": reports is not None,
        }

    @routes.get("/rendered/{doc_id:path}")
    async def rendered(doc_id: DocId, request: Request) -> dict[str, Any]:
        def render(seconds: float, on_step: Callable[[], None]) -> dict[str, Any]:
            with known_document():
                (document,) = service.searcher.documents([doc_id])
            return asdict(renderer.render(document, on_step))

        return await cancel_on_disconnect(request, service.run_rendering(render))

    @routes.get("/reports")
    async def redirect_to_reports() -> Response:
        return RedirectResponse("/reports/")

    @routes.get("/reports/")
    async def list_reports(request: Request) -> Response:
        studies, unlisted = await read(request, lambda: _studies(reports))
        rows = "".join(f'<li><a href="/reports/{n}/">{n}</a></li>' for n in sorted(studies))
        if unlisted:
            rows += f"<li>{unlisted} more: only names of A-Z a-z 0-9 . - _ have links</li>"
        text = _page_files()["reports.html"].replace(
            "{{ rows }}", rows or "<li>No reports yet.</li>"
        )
        return file_response("reports.html", text)

    @routes.get("/reports/{name}")  # links in a report are relative to its folder
    async def redirect_to_report(name: str, request: Request) -> Response:
        await read(request, lambda: _find_page(reports, name, REPORT))
        return RedirectResponse(f"/reports/{name}/")

    @routes.get("/reports/{name}/")
    async def report(name: str, request: Request) -> Response:
        return await report_page(name, REPORT, request)

    @routes.get("/reports/{name}/{page}")
    async def report_page(name: str, page: str, request: Request) -> Response:
        return await read(
            request, lambda: report_response(_find_page(reports, name, page).read_bytes())
        )

    return routes


@cache
def _page_files() -> dict[str, str]:
    drawing = {
        "attention.js": attention_file("js"),
        "attention.css": attention_file("css"),
    }
    return {**page_files(__package__), "colours.css": colours(), **drawing}


@cache
def page_files(package: str) -> dict[str, str]:
    """Return name → text of the files in the folder `page` of a package."""
    folder = files(package).joinpath("page")
    return {file.name: file.read_text("utf-8") for file in folder.iterdir() if "." in file.name}


def _describe_collection(service: Service, on_step: Callable[[], None]) -> dict[str, Any]:
    """Return what the front page tells of the index and its documents."""
    searcher = service.searcher
    index = searcher.index
    examples = index.derived.get(EXAMPLES)
    if examples is None:  # reads documents, which may be long, once per snapshot
        try:
            examples = example_queries(index, on_step=on_step)
        except ArtifactError:  # searches say so, if they read the damaged document, too
            examples = []
        index.derived[EXAMPLES] = examples
    return {
        "name": searcher.directory.resolve().name.removesuffix(".index"),
        "documents": len(index),
        "first_stage": searcher.first_stage_name,
        "unread_fields": index.unread_fields,
        "changed": index.changed.isoformat(),
        "examples": examples,
        "files": service.files.exist,
        "keywords": list(index.keywords),
    }


def file_response(name: str, text: str) -> Response:
    """Return a file of a page, with the media type that its name indicates."""
    return Response(text, media_type=MEDIA_TYPES[name.rpartition(".")[2]])


def _studies(folder: Path | None) -> tuple[dict[str, Path], int]:
    """Return a map from the names of studies to their directories.

    A study whose name does not fit into a URL is left out; the second result is their number.
    """
    studies = [path for path in folder.iterdir() if (path / REPORT).is_file()] if folder else []
    plain = {path.name: path for path in studies if re.fullmatch(r"[\w.-]+", path.name, re.ASCII)}
    return plain, len(studies) - len(plain)


def _find_page(reports: Path | None, name: str, page: str) -> Path:
    """Return the path of a study's page; NotFoundError if there is none.

    Names are looked up in directory listings and never joined to paths, and links out of the
    directory are not followed, so that no request can leave it.
    """
    study = _studies(reports)[0].get(name)
    paths = study.iterdir() if study else ()
    pages = {path.name: path for path in paths if path.suffix == ".html" and path.is_file()}
    found = pages.get(page)
    if reports is None or not found or not found.resolve().is_relative_to(reports.resolve()):
        raise NotFoundError("no such report")
    return found


def report_response(text: bytes) -> Response:
    """Return a page of a report, which may run its own scripts, but load nothing."""
    policy = (
        f"sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; "
        f"img-src data:; script-src {_script_hashes(text)}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Response(text, media_type="text/html", headers={"content-security-policy": policy})


def _script_hashes(page: bytes) -> str:
    """Return the hashes of a page's inline scripts, as sources in a content security policy.

    A page with more than MAX_SCRIPTS, which no report has, may run none.
    """
    hashes, end = list[str](), 0
    while (start := page.find(SCRIPT, end)) >= 0:
        start += len(SCRIPT)
        end = page.find(SCRIPT_END, start)
        if end < 0 or len(hashes) == MAX_SCRIPTS:
            return "'none'"
        digest = hashlib.sha256(page[start:end]).digest()
        hashes.append(f"'sha256-{base64.b64encode(digest).decode()}'")
    return " ".join(hashes) or "'none'"
