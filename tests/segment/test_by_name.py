"""Does each name stand for its segmenter?"""

from __future__ import annotations

import pytest

from birchbark.errors import InputError
from birchbark.records import Document
from birchbark.segment.by_name import Segmenter, parse_segmenter, segmenter_name, splitter_version
from birchbark.segment.fields import title
from birchbark.segment.passages import Passages
from birchbark.segment.sentences import sentences
from birchbark.segment.whole import whole
from birchbark.segment.windows import Windows


@pytest.mark.parametrize("name", ["passages", "windows", "paragraphs", "sections", "sentences"])
def test_a_very_long_word_as_title_is_not_repeated(name: str) -> None:
    """Segments would have the square of its characters, though it is a single word."""
    document = Document("d", {"title": "t" * 2_000, "text": "A word.\n\n" * 500})
    segments = parse_segmenter(name)(document)
    assert sum(len(segment.text) for segment in segments) < 2 * len(document.contents)


@pytest.mark.parametrize(
    ("name", "segmenter", "full"),
    [
        ("sentences", sentences, "sentences"),
        ("whole", whole, "whole"),
        ("title", title, "title"),
        ("passages", Passages(), f"passages:{Passages().size}"),
        ("passages:6", Passages(6), "passages:6"),
        ("windows", Windows(), "windows:150/50"),
        ("windows:20/5", Windows(20, 5), "windows:20/5"),
    ],
)
def test_a_name_stands_for_a_segmenter(name: str, segmenter: Segmenter, full: str) -> None:
    """Sizes that are left out are the default ones, and are named."""
    assert parse_segmenter(name) == segmenter
    assert segmenter_name(segmenter) == full


def test_a_segmenter_of_ones_own_has_no_name() -> None:
    """A function is none of the segmenters that have names."""
    assert segmenter_name(lambda document: []) is None


@pytest.mark.parametrize(
    "name", ["", "words", "passages:", "passages:x", "windows:", "windows:5", "title:3"]
)
def test_unknown_names_are_refused(name: str) -> None:
    """The error lists those that are known."""
    with pytest.raises(InputError, match=r"unknown segments.*sentences, paragraphs.*windows:SIZE"):
        parse_segmenter(name)


def test_only_sentences_depend_on_the_version_of_their_splitter() -> None:
    """Passages consist of sentences."""
    assert splitter_version(sentences) == splitter_version(Passages(6)) != ""
    assert splitter_version(whole) == splitter_version(Windows()) == ""


@pytest.mark.parametrize("name", ["passages", "windows", "paragraphs", "sections"])
def test_titles_are_prepended_up_to_their_limits(name: str) -> None:
    """They have at most 49 words and 1,000 characters; the text begins with a longer one."""
    for words, is_prepended in (
        ("t " * 48 + "t", True),
        ("t " * 49 + "t", False),
        ("t" * 1_000, True),
        ("t" * 1_001, False),
    ):
        first = parse_segmenter(name)(Document("d", {"title": words, "text": "A word."}))[0]
        assert first.start == (len(words) + 1 if is_prepended else 0)
        assert first.text.startswith(words)
