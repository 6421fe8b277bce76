"""Which weighted terms does a query have, and how are they written?"""

from __future__ import annotations

import pytest

from birchbark.errors import InputError
from birchbark.index.index import Index
from birchbark.retrieve.first_stage import rank_query
from birchbark.retrieve.query_terms import format_weighted, parse_weighted, query_terms


def test_query_terms_use_the_analyzer_of_the_index(index: Index) -> None:
    """Words are stemmed and counted, stop words removed."""
    assert query_terms(index.analyzer, "The bees' dances, dancing!") == {"bee": 1, "danc": 2}


def test_weighted_queries_round_trip(index: Index) -> None:
    """They are formatted and parsed, and ranked as index terms, without analysis."""
    weights = {"birch": 0.5, "river": 0.25, "a^b": 1e-9}
    assert parse_weighted(format_weighted(weights)) == weights
    assert format_weighted(weights).startswith("birch^0.5 river^0.25")
    plain, halved = (
        rank_query(index, {"birch": 2.0, "river": 2.0}),
        rank_query(index, "birch river"),
    )
    assert dict(plain) == pytest.approx({d: 2 * s for d, s in halved})
    assert parse_weighted("bee^1 wasp^1 bee^.5") == {"bee": 1.5, "wasp": 1}
    for bad in ("birch", "birch^", "^1", "birch^x"):
        with pytest.raises(InputError, match="not a weighted term"):
            parse_weighted(bad)
    for bad in ("bee^-1 wasp^1", "bee^1e999", "bee^1e30 bee^1e30"):
        with pytest.raises(InputError, match="the query: invalid weight of term 'bee'"):
            parse_weighted(bad)
