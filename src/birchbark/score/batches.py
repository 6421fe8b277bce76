"""Which inputs are run through BERT in one batch? Only inputs of equal length.

Equal lengths need neither padding nor an attention mask. A score therefore depends on its own
tokens alone, not on the batch, the number of threads or the other inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

BATCH_TOKENS = 1024


def equal_lengths(lengths: Sequence[int], batch_tokens: int = BATCH_TOKENS) -> Iterator[list[int]]:
    """Yield batches of input positions, shortest inputs first.

    lengths: each input's number of tokens. batch_tokens: a batch has at most this many tokens,
    unless a single input is longer.
    """
    by_length: dict[int, list[int]] = {}
    for position, length in enumerate(lengths):
        by_length.setdefault(length, []).append(position)
    for length in sorted(by_length):
        positions = by_length[length]
        rows = max(1, batch_tokens // max(1, length))
        for start in range(0, len(positions), rows):
            yield positions[start : start + rows]
