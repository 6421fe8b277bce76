"""Is a document read up to its limits, and is the rest counted?"""

from __future__ import annotations

import re

import numpy as np
import pytest

from birchbark.errors import InputError
from birchbark.records import Document, Ids, Segment
from birchbark.segment.split_long import Encoded
from birchbark.segment.truncate import Limit, count_truncated_tokens


def spans(text: str) -> list[tuple[int, int]]:
    """Return the places of words, which are the tokens here."""
    return [found.span() for found in re.finditer(r"\S+", text)]


def ids(texts: list[str]) -> list[Ids]:
    """Return an id for each word."""
    return [np.arange(len(spans(text)), dtype=np.int32) for text in texts]


def encoded(start: int, text: str) -> Encoded:
    return Segment("d", start, start + len(text), text), ids([text])[0]


FITTED = [[encoded(0, "bees dance in"), encoded(14, "the sun")], [encoded(22, "birch bark")]]


@pytest.mark.parametrize(
    ("limit", "texts"),
    [
        (Limit(), ["bees dance in", "the sun", "birch bark"]),
        (Limit(segments=2), ["bees dance in", "the sun"]),
        (Limit(length=1), ["bees", "birch"]),
        (Limit(length=3), ["bees dance in", "birch bark"]),
        (Limit(segments=2, length=4), ["bees dance in", "the"]),
    ],
)
def test_segments_are_cut_at_the_limit(limit: Limit, texts: list[str]) -> None:
    """A limit of tokens holds for all chunks of a segment together."""
    read = limit.apply(FITTED, spans)
    assert [segment.text for segment, _ in read] == texts
    assert [len(tokens) for _, tokens in read] == [len(spans(text)) for text in texts]
    assert [segment.end - segment.start for segment, _ in read] == [len(text) for text in texts]


@pytest.mark.parametrize("limit", [{"segments": 0}, {"length": 0}])
def test_limits_below_1_are_refused(limit: dict[str, int]) -> None:
    """Nothing at all would be read."""
    with pytest.raises(InputError, match=r"limit of \w+ is out of range"):
        Limit(**limit)


def test_tokens_that_no_segment_has_read_are_counted() -> None:
    """Those that are read twice count once, and those of no segment do not count."""
    document = Document("d", {"text": "one two three four five six"})
    whole = Segment("d", 0, 23, "one two three four five")
    assert count_truncated_tokens(document, [whole], [], ids) == 5
    read = [Segment("d", 4, 13, "two three"), Segment("d", 8, 13, "three")]
    assert count_truncated_tokens(document, [whole], read, ids) == 3
    assert count_truncated_tokens(document, [whole], [whole], ids) == 0


def test_a_prepended_title_counts_as_tokens() -> None:
    """They are read if a segment that is read begins with them."""
    document = Document("d", {"title": "Birch bark", "text": "one two three four"})
    whole = Segment("d", 11, 29, "Birch bark\none two three four")
    titled, untitled = (Segment("d", 11, 18, text + "one two") for text in ("Birch bark\n", ""))
    for read, missing in (([], 6), ([titled], 2), ([untitled], 4), ([untitled, titled], 2)):
        assert count_truncated_tokens(document, [whole], read, ids) == missing


def test_offsets_of_a_segment_that_is_cut_are_those_of_its_own_text() -> None:
    """Where no more than the title is left, it has no text of its own."""
    whole = Segment("d", 11, 29, "Birch bark\none two three four")
    for length, characters, end in ((1, 5, 11), (2, 10, 11), (3, 14, 14), (4, 18, 18)):
        ((cut, tokens),) = Limit(length=length).apply([[(whole, ids([whole.text])[0])]], spans)
        assert (cut, len(tokens)) == (Segment("d", 11, end, whole.text[:characters]), length)
