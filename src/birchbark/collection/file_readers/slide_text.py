"""Which text do people see on a slide or in a box, in the XML of PowerPoint or OpenDocument?"""

from __future__ import annotations

from collections.abc import Collection
from typing import Self
from xml.parsers import expat

from birchbark.errors import InputError

# Names without their namespaces, of both formats.
PAGE = "page"
PARAGRAPHS = ("p", "h")
ROWS, CELLS = ("tr", "table-row"), ("tc", "table-cell")
SPACES = {"br": "\n", "line-break": "\n", "s": " ", "tab": " "}
# Alternatives for old programs; comments; slide numbers; encoded pictures; numbers of charts.
LEFT_OUT = ("Fallback", "annotation", "page-number", "page-count", "binary-data", "numCache")


class PageText:
    """Collects paragraphs and rows of tables from the events of a parser, a list for each page."""

    def __init__(self, within: Collection[str] = ()) -> None:
        """within: the elements outside of which nothing is read; empty to read all."""
        self.pages: list[list[str]] = [[]]
        self._within = within
        self._read_in = 0 if within else 1  # how many of these are open
        self._left_out = 0
        self._paragraphs: list[list[str]] = []  # the pieces of each that is open
        self._cells: list[list[str]] | None = None

    @classmethod
    def read_page(cls, raw: bytes, within: Collection[str] = ()) -> str:
        """Return the text of XML without pages, as blocks separated by blank lines."""
        return "\n\n".join(block for page in cls._read(raw, within).pages for block in page)

    @classmethod
    def read_pages(cls, raw: bytes) -> list[str]:
        """Return the same of each page in the XML; what precedes the first one is left out."""
        return ["\n\n".join(page) for page in cls._read(raw).pages[1:]]

    @classmethod
    def _read(cls, raw: bytes, within: Collection[str] = ()) -> Self:
        text = cls(within)
        parser = _parser()
        parser.StartElementHandler = text._start
        parser.EndElementHandler = text._end
        parser.CharacterDataHandler = text._characters
        _parse(parser, raw)
        return text

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        local = _local(name)
        if self._left_out:
            self._left_out += 1
        elif local in self._within:
            self._read_in += 1
        elif not self._read_in:
            pass
        elif local in LEFT_OUT or attributes.get("type") == "slidenum":
            self._left_out = 1
        elif local == PAGE:
            self.pages.append([])
        elif local in PARAGRAPHS or local == "pt":  # a word on the axis of a chart
            self._paragraphs.append([])
        elif local in ROWS:
            self._cells = []
        elif local in CELLS and self._cells is not None:
            self._cells.append([])
        elif local in SPACES:
            self._characters(SPACES[local])

    def _end(self, name: str) -> None:
        local = _local(name)
        if self._left_out:
            self._left_out -= 1
        elif local in self._within:
            self._read_in -= 1
        elif not self._read_in:
            pass
        elif local in PARAGRAPHS or local == "pt":
            self._add("".join(self._paragraphs.pop()))
        elif local in ROWS and self._cells is not None:
            row, self._cells = self._cells, None
            self._add("; ".join(" ".join(cell) for cell in row if cell))

    def _characters(self, text: str) -> None:
        if self._paragraphs and not self._left_out:
            self._paragraphs[-1].append(text)

    def _add(self, text: str) -> None:
        """Add a block to the open cell of a table, or else to the page."""
        lines = [" ".join(line.split()) for line in text.split("\n")]
        if block := "\n".join(filter(None, lines)):
            (self._cells[-1] if self._cells else self.pages[-1]).append(block)


def attributes_of(raw: bytes, name: str) -> list[dict[str, str]]:
    """Return the attributes of all elements of this name, which has no namespace."""
    found: list[dict[str, str]] = []
    parser = _parser()

    def start(element: str, attributes: dict[str, str]) -> None:
        if _local(element) == name:
            found.append(attributes)

    parser.StartElementHandler = start
    _parse(parser, raw)
    return found


def text_of(raw: bytes, name: str) -> str:
    """Return the text in the elements of this name; empty if there are none."""
    pieces: list[str] = []
    inside = [False]
    parser = _parser()
    parser.StartElementHandler = lambda element, _: inside.append(_local(element) == name)
    parser.EndElementHandler = lambda _: inside.pop()
    parser.CharacterDataHandler = lambda text: pieces.append(text) if inside[-1] else None
    _parse(parser, raw)
    return " ".join("".join(pieces).split())


def _local(name: str) -> str:
    return name.rpartition(" ")[2]


def _parser() -> expat.XMLParserType:
    """Return a parser that refuses entities, which could make a small file large."""
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True

    def refuse(*_: object) -> None:
        raise InputError("the XML declares a document type, as no presentation does")

    parser.StartDoctypeDeclHandler = refuse
    return parser


def _parse(parser: expat.XMLParserType, raw: bytes) -> None:
    try:
        parser.Parse(raw, True)
    except expat.ExpatError as error:
        raise InputError(f"the XML is damaged: {error}") from None
