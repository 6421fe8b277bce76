"""What is left of HTML or XML when the markup is taken away?"""

from __future__ import annotations

import re
from html.parser import HTMLParser

UNREAD = {"script", "style", "template", "noscript"}
INLINE = frozenset(
    (
        "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark q ruby "
        "s samp small span strike strong sub sup time tt u var wbr"
    ).split()
)

SOFT = {"br": "\n", "td": " ", "th": " "}  # what breaks less than a block does


class _Text(HTMLParser):
    """Collects text; every tag that is not inline ends a line, a block or a cell."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title: list[str] = []
        self.body: list[str] = []
        self._unread = 0
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._unread += tag in UNREAD
        self._in_title |= tag == "title" and not self.title  # drawings have titles too
        self._break(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._break(tag)

    def handle_endtag(self, tag: str) -> None:
        self._unread = max(0, self._unread - (tag in UNREAD))
        self._in_title &= tag != "title"
        self._break(tag)

    def _break(self, tag: str) -> None:
        if tag not in INLINE:
            self.body.append(SOFT.get(tag, "\n\n"))

    def parse_marked_section(self, i: int, report: int = 1) -> int:
        """CDATA is text; html.parser stumbles over other marked sections, which are not."""
        is_text = self.rawdata.startswith("<![CDATA[", i)
        mark = "]]>" if is_text else ">"
        end = self.rawdata.find(mark, i)
        if end < 0:
            return -1
        if is_text:
            self.handle_data(self.rawdata[i + 9 : end])
        return end + len(mark)

    def handle_data(self, data: str) -> None:
        if not self._unread:
            (self.title if self._in_title else self.body).append(data)


def plain_text(markup: str) -> tuple[str, str]:
    """Title and text of `markup`: tags gone, entities resolved.

    Left out: scripts, styles, templates, and what is for browsers without scripts. A blank line
    stands between blocks (paragraphs, list items, table rows); line ends stay, and other runs of
    white space become one space.
    """
    parser = _Text()
    parser.feed(markup)
    parser.close()
    return " ".join("".join(parser.title).split()), _squeeze("".join(parser.body))


def _squeeze(text: str) -> str:
    blocks = (
        "\n".join(filter(None, (" ".join(line.split()) for line in block.split("\n"))))
        for block in re.split(r"\n\s*\n", text)
    )
    return "\n\n".join(filter(None, blocks))
