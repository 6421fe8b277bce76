"""Which inputs go through BERT together? Only inputs of one length: no padding, no mask.

So a score depends on its own tokens alone. It does not change with the batch, the number of
threads, or what else is scored; and no time goes into padding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

TOKENS = 1024


def equal_lengths(lengths: Sequence[int], tokens: int = TOKENS) -> Iterator[list[int]]:
    """Positions of inputs to run together, shortest first; about `tokens` tokens a batch."""
    by_length: dict[int, list[int]] = {}
    for position, length in enumerate(lengths):
        by_length.setdefault(length, []).append(position)
    for length in sorted(by_length):
        group = by_length[length]
        rows = max(1, tokens // max(1, length))
        for start in range(0, len(group), rows):
            yield group[start : start + rows]
