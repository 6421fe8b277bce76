"""How is a document split into sentences?

The library nupunkt finds the boundaries; a stop of another script, such as 。 or ।, always ends a
sentence. nupunkt takes quadratic time for long runs of line breaks or full stops, so text is first
split at blank lines and list items, then into stretches of at most 8,000 characters. Source code,
tables and lists without full stops are no sentences: where nupunkt finds a long one in them, it is
split into chunks of lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any

from birchbark.records import Document, Segment
from birchbark.segment.section_starts import section_starts
from birchbark.text.line_breaks import BLANK_LINES, with_line_feeds

MAX_STRETCH = 8000  # characters that are passed to nupunkt at a time
MAX_CHUNK = 300  # characters of lines that are not prose; a longer line stays whole
LONG_RUN = 24  # stops in a row whose middle is replaced by hyphens
ABBREVIATIONS = "lt col maj capt sgt cpl adm brig cmdr sen rep gov hon rev lieut mme mlle".split()

_BLOCK_END = re.compile(
    BLANK_LINES.pattern  # or a list item, a prompt
    + r"|\n(?=[ \t]{0,16}(?:[-*•]|>>>|\(?(?:\d{1,3}|[A-Za-z])[.)])[ \t])"
)
_SYMBOL = re.compile(r"""[^\w\s.,;:!?'"()-]|_""")  # rare in prose
MAX_SYMBOLS = 0.04  # of the characters of prose other than white space
_LAID_OUT = re.compile(r"^[ \t]|\t| {3}\S")  # a line that is indented or has columns
_SCRIPT_STOP = re.compile(  # Chinese, Japanese, Indic, Arabic, Armenian, Ethiopic, …
    r"(?:[。｡！？।॥۔؟։።፧។៕။།]|．(?!\d))+[」』）】》〉”’\])]*"
)
_STOPS = re.compile(rf"""[.!?…)\]}}"'*]{{{LONG_RUN},}}""")


def sentences(document: Document) -> list[Segment]:
    """Return the sentences of a document, in order. The title is a separate sentence.

    None contains the beginning of a section (`section_starts`) unless it begins there. Together,
    the segments cover every character of `Document.contents` except white space between them.
    """
    contents = document.contents
    text = len(document.title)  # the offset of the text
    spans = [(0, text)] if text else []
    for begin, finish in pairwise([text, *section_starts(document), len(contents)]):
        of_section = sentence_spans(contents[begin:finish])
        spans += [(begin + start, begin + end) for start, end in of_section]
    return [
        Segment(document.doc_id, start, end, contents[start:end])
        for start, end in spans
        if not contents[start:end].isspace()
    ]


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of each sentence of `text`, without surrounding white space."""
    unix = with_line_feeds(text)
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
        if _SCRIPT_STOP.search(text, begin, stop):
            spans = [part for span in spans for part in _split_at_script_stops(text, *span)]
        spans = [span for span in (_stripped(text, *span) for span in spans) if span[0] < span[1]]
        if stop < end and len(spans) > 1:
            stop = spans.pop()[0]
        for span in spans:
            yield from [span] if _is_prose(text, *span) else _chunks(text, *span)
        begin = stop


def _split_at_script_stops(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of the parts of a span that end with a stop of another script."""
    for stop in _SCRIPT_STOP.finditer(text, start, end):
        yield start, stop.end()
        start = stop.end()
    yield start, end


def _is_prose(text: str, start: int, end: int) -> bool:
    """Return whether a sentence is short, a single line, or wrapped lines of prose."""
    if end - start <= MAX_CHUNK or text.find("\n", start, end) < 0:
        return True
    sentence = text[start:end]
    lines = sentence.split("\n")
    symbols, characters = len(_SYMBOL.findall(sentence)), len("".join(sentence.split()))
    laid_out = sum(1 for line in lines[1:] if _LAID_OUT.search(line))
    return symbols <= MAX_SYMBOLS * characters and laid_out <= len(lines) / 2


def _chunks(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of chunks of whole lines, of at most MAX_CHUNK characters if possible."""
    while end - start > MAX_CHUNK:
        stop = text.rfind("\n", start + 1, start + MAX_CHUNK + 1)
        if stop < 0:
            stop = text.find("\n", start + MAX_CHUNK, end)
        if stop < 0:
            break
        yield _stripped(text, start, stop)
        start = _stripped(text, stop, end)[0]
    yield start, end


def _stretch_end(text: str, begin: int, end: int) -> int:
    """Return the end of the stretch that starts at `begin`: its last white space, if any."""
    if end - begin <= MAX_STRETCH:
        return end
    last = begin + MAX_STRETCH
    return next((at for at in range(last - 1, begin, -1) if text[at].isspace()), last)


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
