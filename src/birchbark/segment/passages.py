"""How is a document split into passages of whole sentences, so that a short one stays whole?"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from birchbark import defaults
from birchbark.errors import require_at_least
from birchbark.records import Document, Segment
from birchbark.segment.section_starts import section_starts
from birchbark.segment.sentences import sentences

TINY = 10  # part of the size; nothing shorter ends before a section
# A word; of scripts without spaces between words (Chinese, Japanese, Korean, Thai), a character.
_SPACELESS = "\u0e00-\u0e7f\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_SPACELESS}]|[^\s{_SPACELESS}]+")


@dataclass(frozen=True, slots=True)
class Passages:
    """A segmenter that joins consecutive sentences to passages of at most `size` words.

    A document that is not longer is one passage. In a longer one each section that the document
    states (`section_starts`: headings, functions) begins a new passage, unless the one before
    is a whole section of less than a tenth of `size`, such as a heading alone, or shorter than the
    title. A title of fewer than 50 words and at most half of `size`, and of at most 1,000
    characters, is prepended to every passage and counts towards its size; a longer one is treated
    as the beginning of the text. A sentence that is longer than a passage is a passage by itself.
    Together, title and segments cover every character of `Document.contents` except white space
    between them. In scripts without spaces between words, each character counts as a word.

    Attributes:
        size: The maximum number of words per passage. Default 120.
    """

    size: int = defaults.PASSAGE_SIZE

    def __post_init__(self) -> None:
        require_at_least("passage size", self.size, 1)

    def __call__(self, document: Document) -> list[Segment]:
        """Return the passages of `document`, in order."""
        contents, title = document.contents, document.title
        title_words = _count_words(title)
        prepend = bool(title.strip())  # an ideographic space is one of the words below
        prepend &= title_words < defaults.TITLE_LIMIT and 2 * title_words <= self.size
        prepend &= len(title) <= defaults.PREPENDED_TITLE_CHARACTERS
        found = sentences(document)
        if prepend and len(found) > 1:
            prefix, found, size = f"{title}\n", found[1:], self.size - title_words
        else:
            prefix, size = "", self.size
        counts = [_count_words(sentence.text) for sentence in found]
        starts = section_starts(document) if sum(counts) > size else []
        spans: list[list[int]] = []
        words = last_section = 0  # of the last span
        begins = True  # whether it begins with a section, or the document
        for sentence, count in zip(found, counts, strict=True):
            section = bisect_right(starts, sentence.start)
            tiny = words < self.size / TINY or spans[-1][1] - spans[-1][0] < len(prefix)
            joins = section == last_section or (tiny and begins)
            if words and joins and words + count <= size:
                spans[-1][1] = sentence.end
                words += count
            else:
                spans.append([sentence.start, sentence.end])
                words, begins = count, not words or section != last_section
            last_section = section
        return [
            Segment(document.doc_id, start, end, prefix + contents[start:end])
            for start, end in spans
        ]


def _count_words(text: str) -> int:
    return sum(1 for _ in _WORD.finditer(text))
