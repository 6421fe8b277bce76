"""How is a document split into overlapping windows of words?"""

from __future__ import annotations

import re
from dataclasses import dataclass

from birchbark import defaults
from birchbark.errors import InputError, require_at_least
from birchbark.records import Document, Segment

_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Windows:
    """A segmenter that splits a document into overlapping windows of words.

    Each window shares `overlap` words with the previous one. A title of fewer than 50 words, and
    fewer than `size` − `overlap`, and of at most 1,000 characters is prepended to every window and
    counts towards its size; a longer one is treated as the beginning of the text. The defaults are
    those of Steensland (2021).

    Attributes:
        size: The number of words per window; the last one may be shorter. Default 150.
        overlap: The number of words that a window shares with the previous one, from 0 to
            `size` − 1. Default 50.
    """

    size: int = defaults.WINDOW_SIZE
    overlap: int = defaults.WINDOW_OVERLAP

    def __post_init__(self) -> None:
        require_at_least("window size", self.size, 1)
        require_at_least("window overlap", self.overlap, 0)
        if self.overlap >= self.size:
            raise InputError(
                "window overlap is out of range",
                wanted=f"below the size, {self.size}",
                found=str(self.overlap),
            )

    def __call__(self, document: Document) -> list[Segment]:
        """Return the windows of `document`, in order. The last one may be shorter."""
        title_words = len(document.title.split())
        prepend = 0 < title_words < min(defaults.TITLE_LIMIT, self.size - self.overlap)
        title = document.title
        if not prepend or len(title) > defaults.PREPENDED_TITLE_CHARACTERS:
            return self._cut(document, 0, self.size, "")
        return self._cut(document, len(title), self.size - title_words, f"{title}\n")

    def _cut(self, document: Document, begin: int, size: int, prefix: str) -> list[Segment]:
        """Return windows of the contents from `begin` on.

        size: the number of words per window, without the title. prefix: prepended to each window.
        """
        contents = document.contents
        spans = [match.span() for match in _WORD.finditer(contents, begin)]
        if not spans and prefix:
            return [Segment(document.doc_id, 0, begin, document.title)]
        step = size - self.overlap
        last = max(1, len(spans) - self.overlap)
        return [
            Segment(document.doc_id, start, end, prefix + contents[start:end])
            for first in range(0, last if spans else 0, step)
            for start, end in [(spans[first][0], spans[min(first + size, len(spans)) - 1][1])]
        ]
