"""Are weights rounded to impacts, inverted into postings, and invalid ones refused?"""

from __future__ import annotations

import pytest

from birchbark.errors import InputError
from birchbark.index.weighted_terms import MAX_IMPACT, WeightedFieldBuilder, parse_impacts


@pytest.mark.parametrize(
    ("text", "steps", "impacts"),
    [
        ('{"bee": 1.5, "river": 0.25}', 100, {"bee": 150, "river": 25}),
        ('{"bee": 0.04, "river": 0.06}', 10, {"river": 1}),
        (f'{{"bee": {MAX_IMPACT}}}', 1, {"bee": MAX_IMPACT}),
        ('{"bee": 0}', 100, {}),
        (" \n", 100, {}),
    ],
)
def test_weights_are_rounded_to_steps(text: str, steps: int, impacts: dict[str, int]) -> None:
    """A weight below half a step leaves its term out, and an empty text has no terms."""
    assert parse_impacts(text, steps, "d") == impacts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bee", "terms have no weights"),
        ("[" * 100_000, "terms have no weights"),
        ('["bee"]', "terms have no weights"),
        ('{"bee": NaN}', "invalid weight of term 'bee'.*from 0 to 10485, found nan"),
        ('{"bee": 10486}', "invalid weight of term 'bee'.*found 10486"),
        ('{"": 1}', "invalid weight of term ''"),
        (r'{"bee\ud800": 1}', r"invalid weight of term 'bee\\ud800'"),
    ],
)
def test_invalid_weights_name_their_place(text: str, message: str) -> None:
    """Weights that no number of steps can hold are invalid, too."""
    with pytest.raises(InputError, match=f"document 'x', field 'v'.*{message}"):
        parse_impacts(text, 100, "document 'x', field 'v'")


def test_documents_are_inverted() -> None:
    """Terms are sorted, and the length of a document is the sum of its impacts."""
    builder = WeightedFieldBuilder()
    for impacts in ({"river": 2, "bee": 7}, {}, {"bee": 1}):
        builder.add(impacts)
    assert builder.max_tokens == builder.analyze() == 3
    terms, starts, docs, tfs, lengths = builder.invert()
    assert terms == ["bee", "river"]
    assert [part.tolist() for part in (starts, docs, tfs, lengths)] == [
        [0, 2, 3],
        [0, 2, 0],
        [7, 1, 2],
        [9, 0, 1],
    ]
