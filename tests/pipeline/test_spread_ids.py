"""Are documents for samples taken from all over an index?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pytest

from birchbark.index.index import Index
from birchbark.pipeline.answers.example_queries import spread_ids


@dataclass(frozen=True)
class PartOfNumbers:
    """Documents whose ids are numbers, of which the odd ones are deleted."""

    first: int
    size: int

    @property
    def doc_ids(self) -> PartOfNumbers:
        return self

    def live_numbers(self) -> Any:
        return np.arange(0, self.size, 2)

    def take(self, numbers: Any) -> list[str]:
        return [str(self.first + number) for number in numbers.tolist()]


class IndexOfNumbers(list[PartOfNumbers]):
    """An index with these parts."""

    @property
    def parts(self) -> list[PartOfNumbers]:
        return self

    def __len__(self) -> int:
        return sum(len(part.live_numbers()) for part in iter(self))


@pytest.mark.parametrize("sizes", [[2000], [20] * 100, [200, 0, 1600, 200], [2] * 1000])
def test_ids_are_spread_over_all_parts(sizes: list[int]) -> None:
    """As many as are asked for, at equal distances, however the documents are divided."""
    firsts = np.cumsum([0, *sizes[:-1]]).tolist()
    index = cast(Index, IndexOfNumbers(map(PartOfNumbers, firsts, sizes)))
    assert spread_ids(index, 5) == ["0", "498", "998", "1498", "1998"]
    assert spread_ids(index, 5_000) == [str(number) for number in range(0, 2000, 2)]
    assert spread_ids(cast(Index, IndexOfNumbers()), 5) == []
