"""Which candidates does a value of --match name?"""

from __future__ import annotations

import pytest

from birchbark.errors import InputError
from birchbark.retrieve.match import AND, OR
from birchbark.retrieve.vector_match import HYBRID, CandidateScores, VectorMatch, parse_vector_match

FIRST_STAGE, COSINE = CandidateScores.FIRST_STAGE, CandidateScores.COSINE


def test_match_option() -> None:
    """parse_vector_match accepts the values of --match and refuses others."""
    assert parse_vector_match("", COSINE) == VectorMatch()
    assert not parse_vector_match("", FIRST_STAGE).used
    assert parse_vector_match("and", COSINE) == VectorMatch(0, AND)
    assert not parse_vector_match("and", FIRST_STAGE).used
    assert parse_vector_match("nearest:100", FIRST_STAGE) == VectorMatch(100, None, FIRST_STAGE)
    assert parse_vector_match("nearest:100+or", COSINE) == VectorMatch(100, OR)
    assert parse_vector_match("nearest", FIRST_STAGE) == VectorMatch(None, None, FIRST_STAGE)
    assert parse_vector_match("nearest+or", FIRST_STAGE) == HYBRID
    for wrong in (
        "ann",
        "nearest5",
        "nearest:",
        "nearest:x",
        "nearest:5+",
        "nearest:5+xor",
        "near",
    ):
        with pytest.raises(InputError, match=r"unknown match '.*number, nearest or nearest:COUNT"):
            parse_vector_match(wrong, COSINE)


def test_numbers_of_nearest_documents() -> None:
    """They take at most half of the places of a ranking by terms; otherwise they share none."""
    depths = (1, 2, 5, 20)
    for count, expected in ((None, [0, 1, 2, 10]), (4, [0, 1, 2, 4]), (0, [0, 0, 0, 0])):
        shared = VectorMatch(count, OR, FIRST_STAGE)
        assert [shared.nearest(depth) for depth in depths] == expected
    for match in (VectorMatch(4), VectorMatch(4, OR), VectorMatch(4, None, FIRST_STAGE)):
        assert [match.nearest(depth) for depth in depths] == [4, 4, 4, 4]
    for match in (VectorMatch(), VectorMatch(None, OR, CandidateScores.RRF)):
        assert [match.nearest(depth) for depth in depths] == [1, 2, 5, 20]
