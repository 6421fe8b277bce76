"""Which segmenter does a name such as `sentences` or `passages:150` stand for?"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version

from birchbark import defaults
from birchbark.arguments import is_count
from birchbark.errors import InputError
from birchbark.records import Document, Segment
from birchbark.segment.fields import text, title
from birchbark.segment.paragraphs import paragraphs
from birchbark.segment.passages import Passages
from birchbark.segment.sections import sections
from birchbark.segment.sentences import sentences
from birchbark.segment.whole import whole
from birchbark.segment.windows import Windows

DEFAULT_WINDOW = f"{defaults.WINDOW_SIZE}/{defaults.WINDOW_OVERLAP}"
Segmenter = Callable[[Document], list[Segment]]
SEGMENTERS: dict[str, Segmenter] = {
    "sentences": sentences,
    "paragraphs": paragraphs,
    "sections": sections,
    "whole": whole,
    "title": title,
    "text": text,
}


def parse_segmenter(name: str) -> Segmenter:
    """Return the segmenter called `name`: a key of `SEGMENTERS`, or one with sizes in words.

    These are passages:SIZE and windows:SIZE/OVERLAP; without numbers they have the default ones.
    Raises InputError for other names.
    """
    if name in SEGMENTERS:
        return SEGMENTERS[name]
    kind, colon, numbers = name.partition(":")
    if kind == "passages" and (is_count(numbers) or not colon):
        return Passages(int(numbers)) if numbers else Passages()
    size, _, overlap = (numbers if colon else DEFAULT_WINDOW).partition("/")
    if kind == "windows" and is_count(size) and is_count(overlap):
        return Windows(int(size), int(overlap))
    raise InputError(
        f"unknown segments {name!r}",
        wanted=f"{', '.join(SEGMENTERS)}, passages:SIZE, or windows:SIZE/OVERLAP",
    )


def segmenter_name(segmenter: Segmenter) -> str | None:
    """Return the name by which `parse_segmenter` finds `segmenter`; None if there is none."""
    for name, known in SEGMENTERS.items():
        if segmenter is known:
            return name
    if isinstance(segmenter, Windows):
        return f"windows:{segmenter.size}/{segmenter.overlap}"
    if isinstance(segmenter, Passages):
        return f"passages:{segmenter.size}"
    return None


def splitter_version(segmenter: Segmenter) -> str:
    """Return the version of the sentence splitter if `segmenter` uses it, otherwise ''.

    How sections were found is no part of it: where they begin is stored with each document.
    """
    uses = segmenter is sentences or isinstance(segmenter, Passages)
    split_by = f"nupunkt {version('nupunkt')}, lines of code, all scripts"
    return split_by if uses else ""
