"""How do Markdown and web pages of strangers become harmless markup?

What is left are texts in paragraphs, headings, lists, tables and the like, and links. There is
nothing that runs, loads, sends, or has a style: not even images, of which Markdown's descriptions
remain.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from posixpath import dirname, join, normpath
from typing import Any
from urllib.parse import unquote

import nh3
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.token import Token

from birchbark.collection.parsing.markup import IGNORED

TAGS = nh3.ALLOWED_TAGS - {"area", "img", "map", "mark", "nav"} | {"tfoot"}
CELL = {"align", "colspan", "rowspan"}
ATTRIBUTES = {
    "*": {"dir", "id", "lang", "title"},
    "a": {"href", "name"},
    "li": {"value"},
    "ol": {"start", "type"},
    "td": CELL,
    "th": CELL,
}
NO_TEXT = {*IGNORED, "title", "iframe", "object", "svg", "math", "textarea"}
ANCHOR = "text-"  # before every id of a document: it is none of the page
LINK = "#link-"  # and a number: a link to another file of the folder
MOST_LINKS = 5_000
_BARE_TAG = re.compile(r"</?([A-Za-z][\w.:-]*)\s*/?>")
_ALIGNED = re.compile(r"text-align:(left|right|center)")


def markdown_markup(text: str) -> str:
    """Return the markup of Markdown (CommonMark with GitHub's tables); it is not sanitised.

    A tag without attributes that HTML does not have, such as <name>, stays as text.
    """
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    parser.add_render_rule("image", _image)
    parser.add_render_rule("html_inline", _inline)
    tokens = parser.parse(text)
    headings = Counter[str]()
    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            heading = tokens[number + 1].content.lower()
            name = re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")
            token.attrSet("id", f"{name}-{headings[name]}" if headings[name] else name)
            headings[name] += 1
        elif aligned := _ALIGNED.fullmatch(str(token.attrGet("style") or "")):
            token.attrSet("align", aligned[1])
    return str(parser.renderer.render(tokens, parser.options, {}))


def _image(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    return f"<i>{escapeHtml(tokens[index].content)}</i>"


def _inline(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    content = tokens[index].content
    bare = _BARE_TAG.fullmatch(content)
    return escapeHtml(content) if bare and bare[1].lower() not in TAGS else content


def sanitised(markup: str, path: str | None) -> tuple[str, list[str]]:
    """Return markup that is safe to show, and the paths of the files that it links to.

    Links to web sites and addresses are kept. A link to a place in the document is #text-PLACE, and
    one to another file #link-N, with its number among the paths. path: that of the document's file,
    which links are relative to; None to leave out links to files.
    """
    paths: dict[str, int] = {}

    def relative(link: str) -> str | None:
        link = link.strip()
        if link.startswith("#"):
            return f"#{ANCHOR}{unquote(link[1:])}"
        target = unquote(re.split("[?#]", link)[0])
        if path is None or not target or target[0] in "/\\":
            return None
        below = normpath(join(dirname(path), target))
        if below.startswith("..") or (below not in paths and len(paths) == MOST_LINKS):
            return None
        return f"{LINK}{paths.setdefault(below, len(paths))}"

    safe = nh3.clean(
        markup,
        tags=TAGS,
        clean_content_tags=NO_TEXT,
        attributes=ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        url_relative=relative,
        id_prefix=ANCHOR,
    )
    return safe, list(paths)
