"""Does a section begin with each heading?"""

from __future__ import annotations

from birchbark.records import SECTION_STARTS, Document
from birchbark.segment.sections import sections
from birchbark.text.headings import headings


def test_sections_begin_with_their_headings() -> None:
    """Headings of Markdown and underlined headings, but not in code and not between rules."""
    text = """Before all.

# One #
First.
```
# no heading
```
Two
===
Second.

Three words here
--
still second

| a | b |
---------
    code
    ----
------
------
    #hash

  ### Four
Last."""
    texts = [s.text for s in sections(Document("d", {"text": text}))]
    assert [text.split("\n")[0] for text in texts] == [
        "Before all.",
        "# One #",
        "Two",
        "| a | b |",
        "### Four",
    ]
    assert texts[1].endswith("```") and texts[2].endswith("still second")
    windows = sections(Document("d", {"title": "Bees", "text": "A\r\n===\r\nb.\r\n# C\r\nd."}))
    assert [s.text for s in windows] == ["Bees\nA\r\n===\r\nb.", "Bees\n# C\r\nd."]
    assert [s.start for s in windows] == [5, 17]
    assert [s.text for s in sections(Document("d", {"text": "Plain."}))] == ["Plain."]


def test_sections_are_those_that_the_document_states() -> None:
    """Source code states its functions; its comments are no headings."""
    code = "# A comment\nimport bark\n# Peels.\ndef peel():\n    # no\n    pass\n"
    document = Document("d", {"text": code, SECTION_STARTS: "24"})
    assert [s.text for s in sections(document)] == [
        "# A comment\nimport bark",
        "# Peels.\ndef peel():\n    # no\n    pass",
    ]


def test_headings_are_on_one_line_without_marks() -> None:
    text = (
        "Before.\n\n#  One   word #\nText.\n\nTwo words\n=========\n\n```\n# none\n```\n### Three\n"
    )
    assert headings(text) == ["One word", "Two words", "Three"]
    assert headings("none") == []
