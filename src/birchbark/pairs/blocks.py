"""How are many items, such as pairs, worked on in blocks?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

BLOCK = 4096

T = TypeVar("T")


def in_blocks(items: Iterable[T], size: int = BLOCK) -> Iterator[list[T]]:
    """Yield lists of `size` items; the last may be shorter.

    An error of `items` is raised after the items before it.
    """
    remaining = iter(items)
    while True:
        block: list[T] = []
        try:
            block.extend(islice(remaining, size))
        except Exception:
            yield block
            raise
        if not block:
            return
        yield block
