"""Which segmenter does a word stand for, and which word stands for a segmenter?"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version

from birchbark.errors import InputError
from birchbark.records import Document, Segment
from birchbark.segment.paragraphs import paragraphs
from birchbark.segment.parts import text, title
from birchbark.segment.sections import sections
from birchbark.segment.sentences import sentences
from birchbark.segment.whole import whole
from birchbark.segment.windows import Windows

Segmenter = Callable[[Document], list[Segment]]
WORDS: dict[str, Segmenter] = {
    "sentences": sentences,
    "paragraphs": paragraphs,
    "sections": sections,
    "whole": whole,
    "title": title,
    "text": text,
}


def parse_segmenter(name: str) -> Segmenter:
    """The segmenter that `name` stands for: a word of `WORDS`, or windows:SIZE/OVERLAP."""
    if name in WORDS:
        return WORDS[name]
    kind, _, numbers = name.partition(":")
    size, _, overlap = (numbers or "150/50").partition("/")
    if kind == "windows" and size.isdecimal() and overlap.isdecimal():
        return Windows(int(size), int(overlap))
    raise InputError(f"unknown segments {name!r}", remedy=f"{', '.join(WORDS)}, or windows:150/50")


def spell(segmenter: Segmenter) -> str | None:
    """The word that `parse_segmenter` understands; None for a segmenter that has none."""
    for word, named in WORDS.items():
        if segmenter is named:
            return word
    if isinstance(segmenter, Windows) and segmenter == Windows(segmenter.size, segmenter.overlap):
        return f"windows:{segmenter.size}/{segmenter.overlap}"
    return None


def rules(segmenter: Segmenter) -> str:
    """What else the segments depend on: the release of the sentence splitter."""
    return f"nupunkt {version('nupunkt')}" if segmenter is sentences else ""
