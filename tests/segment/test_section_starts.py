"""Do sentences and passages respect where a document says that its sections begin?"""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_segments import TEXTS

from birchbark.records import SECTION_STARTS, Document, Segment
from birchbark.segment.passages import Passages
from birchbark.segment.section_starts import section_starts
from birchbark.segment.sections import sections
from birchbark.segment.sentences import sentences

STARTS = st.lists(st.integers(-1, 120), max_size=12).map(
    lambda numbers: " ".join(map(str, numbers))
)
GUIDE = """Bark is peeled in spring,
when the sap rises.
## Tools
A knife and a wedge.
## Work
### In the wood
Cut once from top to bottom. Peel by hand.
"""


def guide(title: str = "") -> Document:
    """Return GUIDE as a document that states its headings."""
    starts = [number for number, line in _lines(GUIDE) if line.startswith("#")]
    fields = {"text": GUIDE, SECTION_STARTS: " ".join(map(str, starts))}
    return Document("d", {"title": title, **fields})


def _lines(text: str) -> list[tuple[int, str]]:
    lines = text.splitlines(keepends=True)
    return [(sum(map(len, lines[:number])), line) for number, line in enumerate(lines)]


@pytest.mark.parametrize("segmenter", [sentences, sections, Passages(), Passages(6), Passages(1)])
@given(title=TEXTS, text=TEXTS, starts=STARTS)
def test_every_character_is_kept(segmenter, title: str, text: str, starts: str) -> None:  # type: ignore[no-untyped-def]
    """Whatever the field says, segments are in order and cover all but white space."""
    document = Document("d", {"title": title, "text": text, SECTION_STARTS: starts})
    contents, segments = document.contents, segmenter(document)
    begin = len(title) if segments and segments[0].start >= len(title) else 0
    covered = {i for s in segments for i in range(s.start, s.end)}
    assert not "".join(contents[i] for i in range(begin, len(contents)) if i not in covered).strip()
    assert all(a.end <= b.start for a, b in pairwise(segments))
    assert all(s.text.endswith(contents[s.start : s.end]) for s in segments)


@given(title=TEXTS, text=TEXTS, starts=STARTS)
def test_no_sentence_contains_the_beginning_of_a_section(
    title: str, text: str, starts: str
) -> None:
    """A sentence has nothing but white space before the section that begins in it."""
    document = Document("d", {"title": title, "text": text, SECTION_STARTS: starts})
    for start in section_starts(document):
        for sentence in sentences(document):
            assert not sentence.start < start < sentence.end


def test_a_section_begins_a_passage() -> None:
    """A heading without text of its own is in the passage of the section that follows it."""
    assert [p.text for p in Passages(30)(guide())] == [
        "Bark is peeled in spring,\nwhen the sap rises.",
        "## Tools\nA knife and a wedge.",
        "## Work\n### In the wood\nCut once from top to bottom. Peel by hand.",
    ]
    assert [p.text for p in Passages(11)(guide())][2:] == [
        "## Work",
        "### In the wood\nCut once from top to bottom.",
        "Peel by hand.",
    ]
    with_title = Passages(30)(guide("Birch bark"))
    assert [p.text.partition("\n")[0] for p in with_title] == ["Birch bark"] * 3
    assert [GUIDE[p.start - 11 : p.end - 11] for p in with_title][
        1
    ] == "## Tools\nA knife and a wedge."


def test_a_title_is_not_repeated_more_than_the_text_is_long() -> None:
    """Sections that are shorter than the title are in one passage."""
    passages = Passages(30)(guide("bark" * 10))
    assert [GUIDE[p.start - 41 :].partition("\n")[0] for p in passages] == [
        "Bark is peeled in spring,",
        "## Tools",
    ]
    fields = {"title": "t" * 1_000, "text": "# a\nb c\n" * 2_000}
    starts = " ".join(map(str, range(0, 16_000, 8)))
    passages = Passages()(Document("d", {**fields, SECTION_STARTS: starts}))
    assert len(passages) == 69  # of 29 sections of four words, instead of 2,000


def test_a_short_document_with_sections_is_one_passage() -> None:
    """It fits into a passage, and says most as a whole."""
    assert Passages()(guide()) == [Segment("d", 0, len(GUIDE) - 1, GUIDE.strip())]


@pytest.mark.parametrize(
    ("stated", "found"),
    [
        ("0 4", [0, 4]),
        ("4 0 4", [0, 4]),
        ("4 5 99 -3", [4]),  # not the beginning of a line, behind the end, before the beginning
        ("4 four", []),
        ("4.0", []),
        ("9" * 5000, []),
        ("", []),
    ],
)
def test_only_beginnings_of_lines_count(stated: str, found: list[int]) -> None:
    """A field of another program with this name does no harm."""
    fields = {"text": "One\nTwo\n", SECTION_STARTS: stated}
    assert section_starts(Document("d", fields)) == found
    titled = Document("d", {"title": "Both", **fields})
    assert section_starts(titled) == [start + 5 for start in found]


def test_offsets_are_those_of_the_text() -> None:
    """Where another field is read before the text, they would be wrong."""
    fields = {"text": "One\nTwo", "lead": "Lead", SECTION_STARTS: "4"}
    assert section_starts(Document("d", fields, ("text", "lead"))) == [4]
    assert section_starts(Document("d", fields, ("lead", "text"))) == []


def test_the_end_of_a_section_does_not_go_on_in_the_next_one() -> None:
    """However short it is; a heading alone does go on with its text."""
    text = f"## One\n{'bark ' * 28}ends.\nEnds here.\n## Two\nBark.\n{'bees ' * 20}fly.\n"
    starts = f"0 {text.index('## Two')}"
    passages = Passages(30)(Document("d", {"text": text, SECTION_STARTS: starts}))
    firsts = [passage.text.split("\n")[0] for passage in passages]
    assert firsts == ["## One", "Ends here.", "## Two"]


def test_sections_begin_passages_only_in_longer_documents() -> None:
    """A document of exactly the size of a passage is one."""
    document = Document("d", {"text": "# A\nb c\n# D\ne f", SECTION_STARTS: "0 8"})
    assert [p.text for p in Passages(8)(document)] == [document.text]
    assert [p.text for p in Passages(7)(document)] == ["# A\nb c", "# D\ne f"]


def test_a_prepended_title_counts_towards_the_size_of_a_document_with_sections() -> None:
    """Here a title of two words and a text of nine: only of eleven words they are one passage."""
    parts = ["# Ash\nshield", "# Birch\ncanoe", "# Cedar\nhouse"]
    fields = {"title": "On bark", "text": "\n".join(parts), SECTION_STARTS: "0 13 27"}
    document = Document("d", fields)
    assert [p.text for p in Passages(11)(document)] == ["On bark\n" + document.text]
    assert [p.text for p in Passages(10)(document)] == [f"On bark\n{part}" for part in parts]


def test_a_section_of_a_tenth_of_a_passage_is_one() -> None:
    """A shorter one, here of two words, goes on in the next."""
    firsts = [[p.text.split("\n")[0] for p in Passages(size)(guide())][1:] for size in (20, 21)]
    assert firsts == [["## Tools", "## Work", "### In the wood"], ["## Tools", "## Work"]]
