"""Which part of the work does a shard do?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from birchbark.arguments import is_count
from birchbark.errors import InputError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Shard:
    """One of `count` parts of a piece of work, which together are the whole.

    Attributes:
        number: Its number, from 1 to `count`.
        count: The number of shards, 1 or more.
    """

    number: int
    count: int

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.count:
            raise InputError(
                "no such shard", wanted="a number from 1 to the number of shards", found=str(self)
            )

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Parse NUMBER/COUNT, such as 2/8; InputError for anything else."""
        number, slash, count = text.partition("/")
        if not (slash and is_count(number) and is_count(count)):
            raise InputError("not a shard", wanted="NUMBER/COUNT, such as 2/8", found=repr(text))
        return cls(int(number), int(count))

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def of(self, items: Sequence[T]) -> Sequence[T]:
        """Return this shard's items: consecutive ones, of which all shards have equally many.

        The items of all shards, joined in the order of their numbers, are `items`.
        """
        size = len(items)
        return items[size * (self.number - 1) // self.count : size * self.number // self.count]

    def file(self, target: Path) -> Path:
        """Return the file that this shard writes for `target`, the file of the whole."""
        return target.with_name(f"{target.name}.{self.number}-of-{self.count}")
