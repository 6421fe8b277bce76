"""Which inputs are run through BERT in one batch?

On a CPU, only inputs of equal length. Equal lengths need neither padding nor an attention mask. A
score therefore depends on its own tokens alone, not on the batch, the number of threads or the
other inputs. On a GPU, inputs of similar length, padded to the longest.
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


def similar_lengths(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Yield batches of input positions, shortest inputs first.

    lengths: each input's number of tokens. batch_tokens: a batch, padded to its longest input, has
    at most this many tokens, unless a single input is longer.
    """
    batch: list[int] = []
    for position in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[position] > batch_tokens:
            yield batch
            batch = []
        batch.append(position)
    if batch:
        yield batch
