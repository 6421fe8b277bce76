"""Where do sentences begin and end?

nupunkt finds them; ARCHITECTURE.md says how it was chosen. Around it stand two guards: text is
first cut at blank lines and list items, and into stretches of at most 8,000 characters, since
nupunkt takes quadratic time on long runs of line ends and of stops.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from birchbark.records import Document, Segment

STRETCH = 8000
RUN = 24
TITLES = "lt col maj capt sgt cpl adm brig cmdr sen rep gov hon rev lieut mme mlle".split()

_BLOCK_END = re.compile(
    r"\n[^\S\n]*(?:\n[^\S\n]*)+"  # blank lines
    r"|\n(?=[ \t]{0,16}(?:[-*•]|>>>|\(?(?:\d{1,3}|[A-Za-z])[.)])[ \t])"  # a list item, a prompt
)
_STOPS = re.compile(rf"""[.!?…)\]}}"'*]{{{RUN},}}""")


def sentences(document: Document) -> list[Segment]:
    """The sentences of a document, in order; a title is one of its own.

    Together they cover every character of `Document.contents` but white space between them.
    """
    contents = document.contents
    title = len(document.title)
    spans = [(0, title)] if title else []
    spans += [(title + start, title + end) for start, end in sentence_spans(contents[title:])]
    return [
        Segment(document.doc_id, start, end, contents[start:end])
        for start, end in spans
        if not contents[start:end].isspace()
    ]


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Start and end of each sentence of `text`, without the white space around it."""
    unix = text.replace("\r\n", " \n").replace("\r", "\n")  # as long as before
    spans: list[tuple[int, int]] = []
    begin = 0
    for match in _BLOCK_END.finditer(unix):
        spans += _block_spans(unix, begin, match.start())
        begin = match.end()
    return spans + list(_block_spans(unix, begin, len(unix)))


def _block_spans(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Sentences of one block, found in stretches: a stretch's last sentence is begun anew."""
    while begin < end:
        stop = _stretch_end(text, begin, end)
        found = [
            (begin + start, begin + finish)
            for start, finish in _punkt().span_tokenize(_STOPS.sub(_softened, text[begin:stop]))
        ]
        found = [span for span in (_tight(text, *span) for span in found) if span[0] < span[1]]
        if stop < end and len(found) > 1:
            stop = found.pop()[0]
        yield from found
        begin = stop


def _stretch_end(text: str, begin: int, end: int) -> int:
    if end - begin <= STRETCH:
        return end
    space = text.rfind(" ", begin + 1, begin + STRETCH)
    return space if space > begin else begin + STRETCH


def _tight(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def _softened(run: re.Match[str]) -> str:
    """A long run of stops, made harmless in its middle, no longer or shorter than before."""
    stops = run.group()
    return stops[:8] + "-" * (len(stops) - 16) + stops[-8:]


@cache
def _punkt() -> Any:
    from nupunkt import PunktSentenceTokenizer
    from nupunkt.models import get_default_model_path

    tokenizer = PunktSentenceTokenizer.load(get_default_model_path())
    for title in TITLES:
        tokenizer.add_abbreviation(title)
    return tokenizer
