"""Is the markup of strangers harmless once it is sanitised?"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from birchbark.collection.parsing.markup import page_markup
from birchbark.serve.sanitised_html import ATTRIBUTES, TAGS, markdown_markup, sanitised

HOSTILE = """
<script>alert(1)</script><style>* { display: none }</style><link rel=stylesheet href=//e.org/x>
<img src=x onerror=alert(1)><img src=https://e.org/pixel.png><svg onload=alert(1)><a>x</a></svg>
<form action=/documents method=post><input name=q><button formaction=javascript:alert(1)>Go</button>
</form><a href="javascript:alert(1)">one</a> <a href="java&#10;script:alert(1)">two</a>
<a href="data:text/html,<script>alert(1)</script>">three</a> <a href=vbscript:x>four</a>
<a href=" &#1;javascript:alert(1)">five</a> <p onclick=alert(1) style="position:fixed">six</p>
<iframe src=//e.org></iframe><object data=x></object><embed src=x><base href=//e.org/>
<meta http-equiv=refresh content="0;url=//e.org"><div id=reader class=segment>seven</div>
<math><mtext><table><mglyph><style><img src=x onerror=alert(1)></style></table></mtext></math>
<noscript><p title="</noscript><img src=x onerror=alert(1)>"></noscript><video src=x></video>
<a href="//e.org/x">eight</a> <a href="\\\\e.org">nine</a> <a href='"><img src=x>'>ten</a>
"""


class Tags(HTMLParser):
    """Collects the tags of markup, with their attributes."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def assert_harmless(markup: str) -> None:
    """Only known tags and attributes, and links to web sites, places and files of the folder."""
    for tag, attributes in Tags(markup).found:
        assert tag in TAGS
        known = {*ATTRIBUTES["*"], *ATTRIBUTES.get(tag, ()), *({"rel"} if tag == "a" else ())}
        assert attributes.keys() <= known, (tag, attributes)
        link = attributes.get("href")
        assert link is None or re.match(r"https?:|mailto:|#text-|#link-\d+\Z", link), link
        assert (attributes.get("id") or "text-").startswith("text-")


PIECES = ["<", ">", '"', "'", "=", " ", "\n", "&lt;", "`", "*", "[x](", ")", "javascript:", "a"]


TAG_PIECES = ["<img src=x onerror=alert(1)>", "<a href=", "<script>", "</script>", "<svg>", "<p>"]


@pytest.mark.parametrize("render", [markdown_markup, page_markup, lambda text: text])
def test_nothing_hostile_survives(render: Any) -> None:
    """No script, style, image, form, event handler, nor a link that runs or loads anything."""
    markup, links = sanitised(render(HOSTILE), "sub/page.html")
    assert_harmless(markup)
    assert "six" in markup
    assert "//e.org" not in markup
    assert not any(link.startswith((".", "/")) for link in links)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES + TAG_PIECES)).map("".join))
def test_any_markup_becomes_harmless(text: str) -> None:
    for markup in (text, markdown_markup(text)):
        assert_harmless(sanitised(markup, "a.md")[0])


def test_markdown_keeps_its_structure_and_links() -> None:
    """Headings can be linked to; images are their descriptions; unknown bare tags stay as text."""
    text = "## A *b*!\n\n[w](https://e.org) [s](#a-b) [f](../b%20c.md#x) ![pic](p.png) <name>\n\n"
    markup, links = sanitised(markdown_markup(text + "|a|\n|-:|\n|1|"), "sub/a.md")
    assert '<h2 id="text-a-b">A <em>b</em>!</h2>' in markup
    for link in ("https://e.org", "#text-a-b", f"#link-{links.index('b c.md')}"):
        assert f'href="{link}"' in markup
    assert "<i>pic</i> &lt;name&gt;" in markup
    assert '<td align="right">1</td>' in markup


def test_links_out_of_the_folder_are_text() -> None:
    markup, links = sanitised('<a href="../../x.md">a</a><a href="/y">b</a>', "sub/a.md")
    assert links == []
    assert "href" not in markup
    assert "href" not in sanitised('<a href="x.md">a</a>', None)[0]
