"""How does a sequence make its items when they are asked for?"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TypeVar, overload

T = TypeVar("T")


class LazySequence(Sequence[T]):
    """A sequence of which a class defines the length and `item`. A slice is a list."""

    @abstractmethod
    def item(self, index: int) -> T:
        """Return the item at `index`, from 0 to the length − 1."""

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        places = range(len(self))[index]
        return self.item(places) if isinstance(places, int) else list(map(self.item, places))
