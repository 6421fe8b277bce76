"""Where is code in fences, and where do headings stand beside it?"""

from __future__ import annotations

import pytest

from birchbark.text.headings import heading_at, heading_starts, headings


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
    starts = heading_starts(text, restructured_text=False)
    assert [heading_at(text, start) for start in starts] == expected


def test_tildes_underline_in_restructured_text() -> None:
    """Below a line as long as they are; anywhere else they begin code."""
    text = "Setup\n~~~~~\nRun it.\n\nUse\n~~~\n\n~~~~\n# no\n~~~~\n"
    assert headings(text) == ["Setup", "Use"]
    assert list(heading_starts(text, markdown=False)) == [0, 21, 35]
    assert list(heading_starts("Setup\n`````\n", markdown=False)) == [0]
    assert headings("Run\n```\n# no\n```\n") == []
