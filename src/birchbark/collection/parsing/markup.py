"""How is plain text extracted from HTML or XML?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from html.parser import HTMLParser
from itertools import accumulate
from typing import NamedTuple, TypeVar

from birchbark.errors import InputError

IGNORED = frozenset(("script", "style", "template", "noscript"))
SOURCES = ("annotation", "annotation-xml")  # of a formula, in another language
INLINE = IGNORED | frozenset(
    (
        "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label link mark "
        "math meta nobr output picture q ruby s samp small source span strike strong sub sup svg "
        "time tt u var wbr"
    ).split()
)
_OFFICE = re.compile("(?:st[0-9]+|[ovw]):")  # how names of Office's tags begin, which are inline
READINGS = ("rt", "rp")  # how characters are read, and the brackets around that
RUBY = (*READINGS, "rb", "rtc")
MATHS = (
    "annotation annotation-xml maction menclose merror mfenced mfrac mi mmultiscripts mn mo mover "
    "mpadded mphantom mprescripts mroot mrow ms mspace msqrt mstyle msub msubsup msup mtable mtd "
    "mtext mtr munder munderover semantics"
).split()
# all other tags separate blocks
SOFT_BREAKS = {"br": "\n", "td": " ", "th": " ", **dict.fromkeys(MATHS, " ")}
# Elements of pages, by tag or by ARIA role, that are not what a page is about.
NAVIGATION_TAGS = frozenset("nav footer search select".split())
NAVIGATION_ROLES = frozenset("navigation menu contentinfo banner search".split())
NAV, MAIN, BUTTON = "navigation", "main", "button"
SECTION_HEADINGS = frozenset("h1 h2 h3 h4 h5 h6".split())
HEADINGS = SECTION_HEADINGS | frozenset("dt th summary legend".split())
SECTIONS = frozenset("article aside blockquote details dialog fieldset figure main section".split())
LABEL_WORDS, LABEL_LENGTH = 2, 12  # most words and characters of what is only a button's label
MAIN_WORDS, MAIN_SHARE = 20, 0.1  # one of the two makes the main element the text of a page
VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())


LONG = (("<!--", "-->"), ("<![CDATA[", "]]>"))  # what may contain tags, and where it ends
_TAG = re.compile(r"""<[^<>"']*+(?:(?:"[^"]*+"|'[^']*+'|["'])[^<>"']*+)*+>""")
_BADLY_QUOTED = re.compile("<[a-zA-Z/][^<>]*>")  # a tag with one quotation mark too many
Parser = TypeVar("Parser", bound=HTMLParser)


class _Text(HTMLParser):
    """Collects text. Every tag that is not inline ends a line, a block or a table cell."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title: list[str] = []
        self.body: list[str] = []
        self.headings: list[slice] = []  # where the text of each is among the pieces of the body
        self._heading: int | None = None  # where the one that is open begins
        self._ignored = self._svg = 0  # how many are open
        self._in_title = self._in_reading = self._in_math = self._in_source = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._ignored += tag in IGNORED
        self._in_math |= tag == "math"
        self._in_source |= self._in_math and tag in SOURCES
        # what is above characters; its end may be missing
        self._in_reading = tag in READINGS or (self._in_reading and tag in INLINE)
        self._svg += tag == "svg"  # whose elements have titles as well
        self._in_title |= tag == "title" and not self.title and not self._svg
        self._break(tag)
        if tag in SECTION_HEADINGS:
            self._heading = len(self.body)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._break(tag)

    def handle_endtag(self, tag: str) -> None:
        self._ignored = max(0, self._ignored - (tag in IGNORED))
        self._svg = max(0, self._svg - (tag == "svg"))
        self._in_title &= tag != "title"
        self._in_math &= tag != "math"
        self._in_source &= self._in_math and tag not in SOURCES
        self._in_reading &= tag in INLINE and tag != "ruby"
        if tag in SECTION_HEADINGS and self._heading is not None:
            self.headings.append(slice(self._heading, len(self.body)))
            self._heading = None
        self._break(tag)

    def _break(self, tag: str) -> None:
        is_inline = tag in INLINE or tag in RUBY or _OFFICE.match(tag)
        if not (self._svg or self._ignored or is_inline):
            self.body.append(SOFT_BREAKS.get(tag, "\n\n"))

    def parse_marked_section(self, i: int, report: int = 1) -> int:
        """Read CDATA as text, and skip other marked sections, for which html.parser fails."""
        is_text = self.rawdata.startswith("<![CDATA[", i)
        mark = "]]>" if is_text else ">"
        end = self.rawdata.find(mark, i)
        if end < 0:
            return -1
        if is_text:
            self.handle_data(self.rawdata[i + 9 : end])
        return end + len(mark)

    def handle_data(self, data: str) -> None:
        if not (self._ignored or self._in_reading or self._in_source):
            text = f" {data} " if self._svg else data  # labels of a drawing stay apart
            (self.title if self._in_title else self.body).append(text)


class _Element(NamedTuple):
    """Where the text of an element is among the pieces of a page, and all of it in the markup."""

    pieces: slice
    markup: slice


class _Page(_Text):
    """Also finds where elements with navigation, main elements and buttons begin and end.

    Elements that are not closed are none. Of nested ones, only the outermost counts. A footer of a
    section, such as a quotation, and a button in a heading are part of the text.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, list[_Element]] = {NAV: [], MAIN: [], BUTTON: []}
        # kind → tag, where it begins among the pieces and in the markup, depth of equal tags
        self._open: dict[str, tuple[str, tuple[int, int], int]] = {}
        self._markup, self._lines = "", [0]  # and where each of its lines begins
        self._around = Counter[str]()  # tag of a heading or section → how many are open

    def feed(self, data: str) -> None:
        """Read a whole page."""
        self._markup = data
        self._lines = [0, *accumulate(len(line) + 1 for line in data.split("\n"))]
        super().feed(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        super().handle_starttag(tag, attrs)
        roles = (dict(attrs).get("role") or "").lower().split()  # the first that is known counts
        of_tag = self._kind(tag, roles[0] if roles else "")
        for kind in self.found:
            if kind in self._open:
                opened, start, depth = self._open[kind]
                self._open[kind] = (opened, start, depth + (tag == opened))
            elif of_tag == kind and tag not in VOID:
                self._open[kind] = (tag, (len(self.body), self._offset), 1)
        if tag in HEADINGS | SECTIONS:
            self._around[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        super().handle_endtag(tag)
        if self._around[tag]:
            self._around[tag] -= 1
        for kind, (opened, start, depth) in list(self._open.items()):
            if tag == opened and depth > 1:
                self._open[kind] = (opened, start, depth - 1)
            elif tag == opened:
                del self._open[kind]
                end = self._markup.find(">", self._offset) + 1
                parts = slice(start[0], len(self.body)), slice(start[1], end)
                self.found[kind].append(_Element(*parts))

    @property
    def _offset(self) -> int:
        """Where the tag that is being read begins in the markup."""
        line, column = self.getpos()
        return self._lines[line - 1] + column

    def _kind(self, tag: str, role: str) -> str | None:
        """Return what an element is: navigation, main, a button, or none of these."""
        if (role or tag) == BUTTON:
            return None if self._is_in(HEADINGS) else BUTTON
        if (role or tag) == MAIN:
            return MAIN
        if role in NAVIGATION_ROLES or (tag in NAVIGATION_TAGS and not role):
            return None if tag == "footer" and self._is_in(SECTIONS) else NAV
        return None

    def _is_in(self, tags: Iterable[str]) -> bool:
        return any(self._around[tag] for tag in tags)


def _without_open_tags(markup: str) -> str:
    """Return the markup with each < that begins neither a tag nor a comment written as &lt;.

    html.parser reads such a character as text, too, but looks for its end first: a flood of them
    would take time that grows with the square of its length.
    """
    pieces, position = list[str](), 0
    last_end = {end: markup.rfind(end) for _, end in LONG}
    while (start := markup.find("<", position)) >= 0:
        pieces.append(markup[position:start])
        begin, end = next((pair for pair in LONG if markup.startswith(pair[0], start)), ("<", ""))
        tag = None if end else _TAG.match(markup, start) or _BADLY_QUOTED.match(markup, start)
        if end and last_end[end] >= start + len(begin):
            position = markup.index(end, start + len(begin)) + len(end)
        elif tag:
            position = tag.end()
        else:
            position = start + 1
            pieces.append("&lt;")
            continue
        pieces.append(markup[start:position])
    return "".join([*pieces, markup[position:]])


def _read(parser: Parser, markup: str) -> Parser:
    """Have the parser read markup without open tags, and return it."""
    try:
        parser.feed(markup)
        parser.close()
    except ValueError as error:  # such as a numeric entity with thousands of digits
        raise InputError(f"the markup cannot be read: {error}") from None
    return parser


def plain_text(markup: str) -> tuple[str, str]:
    """Return the title and the text of `markup`, without tags and with entities resolved.

    Scripts, styles, templates, <noscript> and the readings of <ruby> are left out. Blocks
    (paragraphs, list items, table rows) are separated by a blank line. Line breaks are preserved;
    other runs of white space are replaced by one space.
    """
    parser = _read(_Text(), _without_open_tags(markup))
    return " ".join("".join(parser.title).split()), _squeeze("".join(parser.body))


class PageText(NamedTuple):
    """The title and the text of a web page, and the offsets in the text at which headings begin."""

    title: str
    text: str
    headings: list[int]


def page_text(markup: str) -> PageText:
    """Return the title and the text of a web page, without navigation.

    If the page has a main element with more than a few words, only that is returned. Otherwise as
    `plain_text`.
    """
    page = _read(_Page(), _without_open_tags(markup))
    chosen = _chosen(page)
    starts = _heading_starts(chosen.pieces, page.headings, chosen.text)
    return PageText(" ".join("".join(page.title).split()), chosen.text, starts)


def heading_starts(markup: str, text: str) -> list[int]:
    """Return the offsets in `text`, which `plain_text` has read, at which headings begin."""
    parser = _read(_Text(), _without_open_tags(markup))
    return _heading_starts(parser.body, parser.headings, text)


def _heading_starts(pieces: list[str], headings: Iterable[slice], text: str) -> list[int]:
    """Return where blocks of the text begin that consist of a heading, whose pieces these are.

    From the end of the text on, since a table of contents has the same words before.
    """
    left = Counter(_squeeze("".join(pieces[part])) for part in headings)
    starts, position = list[int](), len(text)
    for block in reversed(text.split("\n\n")):
        position -= len(block)
        if left[block]:
            left[block] -= 1
            starts.append(position)
        position -= len("\n\n")
    return starts[::-1]


def page_markup(markup: str) -> str:
    """Return the markup of what `page_text` reads: main elements or all, without navigation."""
    markup = _without_open_tags(markup)
    _, main, omitted, _ = _chosen(_read(_Page(), markup))
    pieces = list[str]()
    for part in [element.markup for element in main] or [slice(0, len(markup))]:
        position = part.start
        for cut in sorted((element.markup for element in omitted), key=lambda cut: cut.start):
            if position <= cut.start < part.stop:
                pieces.append(markup[position : cut.start])
                position = cut.stop
        pieces.append(markup[position : part.stop])
    return "\n".join(pieces)


class _Chosen(NamedTuple):
    """The text of a page, the main elements that it is in, those that it lacks, and the pieces.

    No main elements if the text is that of all others. Pieces that are omitted have no words.
    """

    text: str
    main: Sequence[_Element]
    omitted: Sequence[_Element]
    pieces: list[str]


def _chosen(page: _Page) -> _Chosen:
    labels = [part for part in page.found[BUTTON] if _is_label("".join(page.body[part.pieces]))]
    omitted = page.found[NAV] + labels
    pieces: list[str] = page.body.copy()
    for part, _ in omitted:
        pieces[part] = ["\n\n"] * (part.stop - part.start)
    main = _squeeze("".join("".join(pieces[part]) for part, _ in page.found[MAIN]))
    text = _squeeze("".join(pieces))
    if main and len(main.split()) >= min(MAIN_WORDS, MAIN_SHARE * len(text.split())):
        return _Chosen(main, page.found[MAIN], omitted, pieces)
    if text:
        return _Chosen(text, (), omitted, pieces)
    return _Chosen(_squeeze("".join(page.body)), (), (), page.body)


def _is_label(text: str) -> bool:
    words = text.split()
    return len(words) <= LABEL_WORDS and sum(map(len, words)) < LABEL_LENGTH


def _squeeze(text: str) -> str:
    """Normalise the white space within blocks, and separate blocks by one blank line."""
    blocks = (
        "\n".join(filter(None, (" ".join(line.split()) for line in block.split("\n"))))
        for block in re.split(r"\n\s*\n", text)
    )
    return "\n\n".join(filter(None, blocks))
