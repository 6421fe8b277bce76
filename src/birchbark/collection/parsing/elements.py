"""Where are the elements of SGML or XML? Found in time that grows linearly with the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from html import unescape
from typing import NamedTuple


class Element(NamedTuple):
    """An element: where it begins and ends in the text, its attributes, and what is inside."""

    start: int
    end: int
    attributes: str
    inner: str


def elements(text: str, tag: str, *, any_case: bool = False) -> Iterator[Element]:
    """Yield the elements `tag` in order: from each start tag to the next end tag.

    Elements within such an element, and those that are not closed, are left out. any_case: whether
    tags may be in upper or lower case.
    """
    start_tag, end_tag = _tags(tag, any_case)
    position = 0
    while start := start_tag.search(text, position):
        end = end_tag.search(text, start.end())
        if not end:
            return
        yield Element(start.start(), end.end(), start[1], text[start.end() : end.start()])
        position = end.end()


def first_element(text: str, tag: str, *, any_case: bool = False) -> Element | None:
    """Return the first element `tag`, None if there is none."""
    return next(elements(text, tag, any_case=any_case), None)


@cache
def _tags(tag: str, any_case: bool) -> tuple[re.Pattern[str], re.Pattern[str]]:
    flags = re.IGNORECASE if any_case else 0
    # Attributes contain no <, so that a flood of unclosed start tags is read once.
    start = re.compile(rf"<{tag}((?:\s[^<>]*)?)>", flags)
    return start, re.compile(rf"</{tag}\s*>", flags)


def attribute(attributes: str, name: str) -> str | None:
    """Return the value of an attribute, with or without quotation marks; None if it is missing."""
    found = re.search(
        rf"""(?<![\w:-]){name}\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", attributes, re.I
    )
    return found and unescape(next(value for value in found.groups() if value is not None))
