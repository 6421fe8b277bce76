"""Where is code in fences, and where do headings stand beside it?"""

from __future__ import annotations

import pytest

from birchbark.text.headings import heading_starts, headings, markdown_headings


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# A\n```pip install x```\n# B\n", ["A", "B"]),  # code in a line
        ("````\n# no\n```\n# no\n````\n# A\n", ["A"]),  # a longer fence
        ("~~~\n# no\n```\n# no\n~~~~\n# A\n", ["A"]),  # other marks, and more of them
        ("``` sh\n# no\n``` sh\n# no\n```\n# A\n", ["A"]),  # text after the marks begins, not ends
        ("- a list\n  ~~~\n  # no\n  ~~~\n# A\n", ["A"]),
        ("~~~ python\n# no\n~~~\n# A", ["A"]),
        ("```\n# no", []),
    ],
)
def test_code_has_no_headings(text: str, expected: list[str]) -> None:
    """It ends with the marks that it began with, at least as many, and nothing after them."""
    assert headings(text) == expected
    assert [heading.text for heading in markdown_headings(text.split("\n"))] == expected


def test_tildes_underline_in_restructured_text() -> None:
    """Below a line as long as they are; anywhere else they begin code."""
    text = "Setup\n~~~~~\nRun it.\n\nUse\n~~~\n\n~~~~\n# no\n~~~~\n"
    assert headings(text) == ["Setup", "Use"]
    assert list(heading_starts(text, markdown=False)) == [0, 21, 35]
    assert list(heading_starts("Setup\n`````\n", markdown=False)) == [0]
    assert headings("Run\n```\n# no\n```\n") == []


def test_headings_of_markdown() -> None:
    """Below a line that begins a paragraph, an underline may be short; a rule is none."""
    text = "# One # \n---\nBirch bark\n---\n  Two\n ==\na\nb\n---\n\n- c\n---\n###### Six"
    found = list(markdown_headings(text.split("\n")))
    assert found == [
        (0, 1, 1, "One"), (2, 4, 2, "Birch bark"), (4, 6, 1, "Two"), (12, 13, 6, "Six"),
    ]  # fmt: skip
