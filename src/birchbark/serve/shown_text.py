"""Which characters of rendered markup are which characters of the document's text?

Positions count characters other than white space, as page/marks.js counts them: white space may
differ between a text and how it is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser

from rapidfuzz.distance import LCSseq

READINGS = ("rt", "rp")  # above characters; no part of a document's text
WHITE = re.compile(r"[\s\x1c-\x1f\x85\ufeff]+")
_IDEOGRAPH = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # and kana
_WORD = re.compile(rf"[{_IDEOGRAPH}]|(?:(?![{_IDEOGRAPH}])[^\W_])+")
_LETTER = re.compile(r"[^\W_]")
MOST_LETTERS = 500  # between words that are aligned: more are not aligned letter by letter

Run = tuple[int, int, int]  # position in the shown text, in the document's text, length
Unit = tuple[str, int]  # a word or letter, and its position


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces, self._readings = list[str](), 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._readings += tag in READINGS

    def handle_endtag(self, tag: str) -> None:
        self._readings -= tag in READINGS

    def handle_data(self, data: str) -> None:
        if not self._readings:
            self.pieces.append(data)


def shown_text(markup: str) -> str:
    """Return the text that a browser shows for sanitised markup, in which every tag is closed."""
    parser = _Text()
    parser.feed(markup)
    parser.close()
    return "".join(parser.pieces)


def aligned_runs(shown: str, text: str) -> list[Run]:
    """Return the longest common subsequence of words in both texts as runs of characters.

    Words that differ, as where markup divides one, are compared by letters if all letters that are
    shown are in the text. Runs are in the order of both texts and do not overlap. For texts of n
    and m words, this takes memory of n · m / 8 bytes.
    """
    bare = WHITE.sub("", shown), WHITE.sub("", text)
    if bare[0] == bare[1]:
        return [(0, 0, len(bare[0]))] if bare[0] else []
    return _joined(_pairs(*(list(_units(_WORD, one)) for one in (shown, text))), *bare)


def _units(pattern: re.Pattern[str], text: str, start: int = 0) -> Iterator[Unit]:
    """Yield each match with its position. start: the position of the first character."""
    end = 0
    for found in pattern.finditer(text):
        between = text[end : found.start()]
        start += len(WHITE.sub("", between))
        yield found[0], start
        start, end = start + len(found[0]), found.end()


def _pairs(shown: Sequence[Unit], text: Sequence[Unit]) -> Iterator[Run]:
    """Yield a run for each word, or letter, that is aligned."""
    ours = theirs = 0
    for at, start, size in _common(shown, text):
        yield from _by_letters(shown[ours:at], text[theirs:start])
        ours, theirs = at + size, start + size
        for (word, position), (_, place) in zip(shown[at:ours], text[start:theirs], strict=True):
            yield position, place, len(word)


def _common(shown: Sequence[Unit], text: Sequence[Unit]) -> Iterator[tuple[int, int, int]]:
    """Yield where the longest common subsequence is in both, by blocks; the last one is empty."""
    found = LCSseq.opcodes([unit for unit, _ in shown], [unit for unit, _ in text])
    return ((block.a, block.b, block.size) for block in found.as_matching_blocks())


def _by_letters(shown: Sequence[Unit], text: Sequence[Unit]) -> Iterator[Run]:
    """Yield a run for each letter that is shown; none unless all of them are in the text."""
    ours, theirs = (
        [unit for word, at in words for unit in _units(_LETTER, word, at)]
        for words in (shown, text)
    )
    if not ours or max(len(ours), len(theirs)) > MOST_LETTERS:
        return
    blocks = list(_common(ours, theirs))
    if sum(size for _, _, size in blocks) == len(ours):
        for at, start, size in blocks:
            for (_, position), (_, place) in zip(
                ours[at : at + size], theirs[start:], strict=False
            ):
                yield position, place, 1


def _joined(runs: Iterator[Run], shown: str, text: str) -> list[Run]:
    """Return runs with those joined between which both texts have the same characters."""
    joined = list[Run]()
    for at, start, length in runs:
        if joined:
            last_at, last_start, last_length = joined[-1]
            ends = last_at + last_length, last_start + last_length
            if shown[ends[0] : at] == text[ends[1] : start]:
                joined[-1] = (last_at, last_start, at + length - last_at)
                continue
        joined.append((at, start, length))
    return joined
