"""How is a document split into sentences?

The library nupunkt finds the boundaries. It takes quadratic time for long runs of line breaks or
full stops, so text is first split at blank lines and list items, then into stretches of at most
8,000 characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from birchbark.records import Document, Segment

MAX_STRETCH = 8000  # characters that are passed to nupunkt at a time
LONG_RUN = 24  # stops in a row whose middle is replaced by hyphens
ABBREVIATIONS = "lt col maj capt sgt cpl adm brig cmdr sen rep gov hon rev lieut mme mlle".split()

_BLOCK_END = re.compile(
    r"\n[^\S\n]*(?:\n[^\S\n]*)+"  # blank lines
    r"|\n(?=[ \t]{0,16}(?:[-*•]|>>>|\(?(?:\d{1,3}|[A-Za-z])[.)])[ \t])"  # a list item, a prompt
)
_STOPS = re.compile(rf"""[.!?…)\]}}"'*]{{{LONG_RUN},}}""")


def sentences(document: Document) -> list[Segment]:
    """Return the sentences of a document, in order. The title is a separate sentence.

    Together, the segments cover every character of `Document.contents` except white space between
    them.
    """
    contents = document.contents
    text = len(document.title)  # the offset of the text
    spans = [(0, text)] if text else []
    spans += [(text + start, text + end) for start, end in sentence_spans(contents[text:])]
    return [
        Segment(document.doc_id, start, end, contents[start:end])
        for start, end in spans
        if not contents[start:end].isspace()
    ]


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of each sentence of `text`, without surrounding white space."""
    unix = text.replace("\r\n", " \n").replace("\r", "\n")  # has the same length
    spans: list[tuple[int, int]] = []
    begin = 0
    for match in _BLOCK_END.finditer(unix):
        spans += _block_spans(unix, begin, match.start())
        begin = match.end()
    return spans + list(_block_spans(unix, begin, len(unix)))


def _block_spans(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each sentence in the block text[begin:end], stretch by stretch.

    The last sentence of a stretch may be incomplete, so the next stretch begins with it.
    """
    while begin < end:
        stop = _stretch_end(text, begin, end)
        spans = [
            (begin + start, begin + finish)
            for start, finish in _punkt().span_tokenize(_STOPS.sub(_hyphenated, text[begin:stop]))
        ]
        spans = [span for span in (_stripped(text, *span) for span in spans) if span[0] < span[1]]
        if stop < end and len(spans) > 1:
            stop = spans.pop()[0]
        yield from spans
        begin = stop


def _stretch_end(text: str, begin: int, end: int) -> int:
    """Return the end of the stretch that starts at `begin`: the last space in it, if any."""
    if end - begin <= MAX_STRETCH:
        return end
    space = text.rfind(" ", begin + 1, begin + MAX_STRETCH)
    return space if space > begin else begin + MAX_STRETCH


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span without leading and trailing white space."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def _hyphenated(run: re.Match[str]) -> str:
    """Replace the middle of a long run of stops by hyphens; the length does not change."""
    stops = run.group()
    return stops[:8] + "-" * (len(stops) - 16) + stops[-8:]


@cache
def _punkt() -> Any:
    from nupunkt import PunktSentenceTokenizer
    from nupunkt.models import get_default_model_path

    tokenizer = PunktSentenceTokenizer.load(get_default_model_path())
    for abbreviation in ABBREVIATIONS:
        tokenizer.add_abbreviation(abbreviation)
    return tokenizer
