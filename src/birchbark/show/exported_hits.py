"""How are hits written for a spreadsheet, or for notes?"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping
from typing import Any

from birchbark.show.printable import printable

COLUMNS = ("rank", "doc_id", "path", "title", "score", "probability", "page", "line", "text")
_FORMULA = re.compile(r"[=+\-@\t\r]")  # what a spreadsheet takes a cell for that begins with it
_MARKUP = re.compile(r"([\\`*_\[\]<>#|~&]|^[+-])")
_NUMBER = re.compile(r"^(\d+)([.)])")  # of a list

Fields = Mapping[str, Any]  # of a hit, as `hit_fields` returns them


def hits_as_csv(hits: Iterable[Fields]) -> str:
    """Return a line with COLUMNS, then one for each hit with its best evidence.

    A text that a spreadsheet would take for a formula has an apostrophe in front of it.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for rank, hit in enumerate(hits, 1):
        best = _best(hit)
        values = {**hit, **best, "rank": rank}
        writer.writerow([_cell(values.get(column)) for column in COLUMNS])
    return out.getvalue()


def hits_as_markdown(query: str, hits: Iterable[Fields], *, unanswered: bool = False) -> str:
    """Return the query as a heading, then a list of hits, each with its best evidence quoted.

    unanswered: whether probably none of them answers it, which is told.
    """
    lines = [f"## {_plain(query)}", ""]
    if unanswered:
        lines += ["Probably none of these documents answers this.", ""]
    for rank, hit in enumerate(hits, 1):
        best = _best(hit)
        title = f": {_plain(hit['title'])}" if hit["title"] else ""
        number = f"{rank}. "
        lines.append(f"{number}**{_plain(hit['path'] or hit['doc_id'])}**{title}")
        if best["text"]:
            place = next((f" ({k} {best[k]})" for k in ("page", "line") if best.get(k)), "")
            lines.append(f"{' ' * len(number)}> {_plain(best['text'])}{place}")
    return "\n".join(lines) + "\n"


def _best(hit: Fields) -> dict[str, Any]:
    """Return text, page and line of a hit's best evidence, or of its snippet."""
    segment = hit["segments"][0] if hit["segments"] else hit["snippet"]
    if not segment:
        return {"text": ""}
    text = segment["text"]
    if sentence := segment.get("sentence"):
        text = text[slice(*sentence)]
    return {"text": _line(text), "page": segment["page"], "line": segment["line"]}


def _line(text: str) -> str:
    return " ".join(printable(text).split())


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, str):
        shown = printable(value)
        return f"'{shown}" if _FORMULA.match(shown) else shown
    return value


def _plain(text: str) -> str:
    """Return a text on one line that Markdown shows as it is."""
    return _NUMBER.sub(r"\1\\\2", _MARKUP.sub(r"\\\1", _line(text)))
