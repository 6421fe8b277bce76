"""How is a document cut into overlapping windows of words?"""

from __future__ import annotations

import re
from dataclasses import dataclass

from birchbark.errors import InputError
from birchbark.records import Document, Segment

_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of `size` words, `overlap` of them shared with the window before.

    A title of fewer than `longest_title` words stands in front of every window and counts towards
    its size; a longer one is read as the beginning of the text. Steensland 2021 (the passages
    paper): 150, 50, 50.
    """

    size: int = 150
    overlap: int = 50
    longest_title: int = 50

    def __post_init__(self) -> None:
        if not 0 <= self.overlap < self.size:
            raise InputError(
                "windows cannot overlap so far",
                wanted="0 <= overlap < size",
                found=f"size {self.size}, overlap {self.overlap}",
            )

    def __call__(self, document: Document) -> list[Segment]:
        """The windows of `document`, in order; the last one may be shorter."""
        title_words = len(document.title.split())
        in_front = 0 < title_words < min(self.longest_title, self.size - self.overlap)
        if not in_front:
            return self._cut(document, 0, self.size, "")
        title = document.title
        return self._cut(document, len(title), self.size - title_words, f"{title}\n")

    def _cut(self, document: Document, begin: int, size: int, prefix: str) -> list[Segment]:
        contents = document.contents
        words = [match.span() for match in _WORD.finditer(contents, begin)]
        if not words and prefix:
            return [Segment(document.doc_id, 0, begin, document.title)]
        step = size - self.overlap
        last = max(1, len(words) - self.overlap)
        return [
            Segment(document.doc_id, start, end, prefix + contents[start:end])
            for first in range(0, last if words else 0, step)
            for start, end in [(words[first][0], words[min(first + size, len(words)) - 1][1])]
        ]
