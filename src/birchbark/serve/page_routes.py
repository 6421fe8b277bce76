"""Where does the page come from? Files of the package, and reports of a folder, by listed names."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from birchbark.combine.aggregate import Top
from birchbark.serve.service import NotFoundError, Service
from birchbark.show.attention import attention_script
from birchbark.show.drawing import colours

KINDS = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
REPORT = "report.html"


def page_routes(service: Service, reports: Path | None) -> APIRouter:
    """The page, its files, what it must know of the service, and reports of studies."""
    routes = APIRouter(include_in_schema=False)
    own = files(__package__).joinpath("page")
    texts = {one.name: one.read_text("utf-8") for one in own.iterdir() if "." in one.name}
    texts |= {"colours.css": colours(), "attention.js": attention_script()}

    @routes.get("/")
    async def page() -> Response:
        return _file("index.html", texts["index.html"])

    @routes.get("/page/{name}")
    async def part(name: str) -> Response:
        if name not in texts:
            raise NotFoundError("no such file")
        return _file(name, texts[name])

    @routes.get("/about")
    async def about() -> dict[str, Any]:
        rankers = service.searcher.rankers
        first = rankers[0] if rankers else None
        how = first.aggregation if first and first.scorer.width == 1 else None
        return {
            "documents": await service.quickly(lambda: len(service.searcher.index)),
            "model": service.model,
            "embedding": service.embedding if rankers else None,
            "stages": len(rankers),
            "attention": service.can_look,
            "depth": first.depth if first else None,
            "first_stage_weight": first.interpolation.first_stage_weight if first else None,
            "weights": list(how.by_rank) if isinstance(how, Top) else None,
            "budget_ms": 1000 * service.limits.budget,
            "reports": reports is not None,
        }

    @routes.get("/reports")
    async def reports_folder() -> Response:
        return RedirectResponse("/reports/")

    @routes.get("/reports/")
    def listed() -> Response:  # looks at the disk: in a thread
        names, others = _studies(reports)
        rows = "".join(f'<li><a href="/reports/{n}/">{n}</a></li>' for n in sorted(names))
        if others:
            rows += f"<li>{others} more: an address holds letters, digits, . - _ alone</li>"
        text = texts["reports.html"].replace("{{ rows }}", rows or "<li>none yet</li>")
        return _file("reports.html", text)

    @routes.get("/reports/{name}")
    def moved(name: str) -> Response:  # links in a report begin at its folder
        _page(reports, name, REPORT)
        return RedirectResponse(f"/reports/{name}/")

    @routes.get("/reports/{name}/")
    def report(name: str) -> Response:
        return report_page(name, REPORT)

    @routes.get("/reports/{name}/{page}")
    def report_page(name: str, page: str) -> Response:
        text = _page(reports, name, page).read_text("utf-8")
        policy = (
            f"sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; "
            f"img-src data:; script-src {_hashes(text)}; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        return Response(text, media_type="text/html", headers={"content-security-policy": policy})

    return routes


def _file(name: str, text: str) -> Response:
    return Response(text, media_type=KINDS[name.rpartition(".")[2]])


def _studies(folder: Path | None) -> tuple[dict[str, Path], int]:
    """Name → each study in the folder; how many have names that no address holds."""
    there = [one for one in folder.iterdir() if (one / REPORT).is_file()] if folder else []
    plain = {one.name: one for one in there if re.fullmatch(r"[\w.-]+", one.name, re.ASCII)}
    return plain, len(there) - len(plain)


def _page(reports: Path | None, name: str, page: str) -> Path:
    """A page of a study: its report, or what that leads to; found by listed names alone."""
    study = _studies(reports)[0].get(name)
    every = study.iterdir() if study else ()
    pages = {one.name: one for one in every if one.suffix == ".html" and one.is_file()}
    if page not in pages:
        raise NotFoundError("no such report")
    return pages[page]


def _hashes(page: str) -> str:
    """The scripts that a page brings, so that no others run in it."""
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
    return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
