"""How are inputs of different lengths packed for the network?

All that is computed for each token by itself needs no padding. Attention is computed for blocks of
inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from birchbark.records import Ids

MASKED = -1e9  # not -∞, of which gradients are not finite where all keys are masked
SHORT = 64  # tokens; inputs of at most as many are padded to the longest of them


@dataclass(frozen=True, slots=True)
class Padding:
    """How the inputs of a block are padded to its longest, of L tokens.

    source: for each place of each input, the token that fills it, among the block's tokens
    (inputs · L,); the input's last token fills the places after its end.
    places: for each of the block's tokens, its place (tokens,).
    mask: what is added to attention scores, (inputs, 1, 1, L): 0 for the input's own tokens, MASKED
    for the places after its end.
    """

    source: Any
    places: Any
    mask: Any


@dataclass(frozen=True, slots=True)
class Block:
    """Inputs that follow one another in the row, and whose attention is computed together.

    inputs: the number of inputs. length: the number of tokens L of the longest. tokens: the number
    of tokens of all. padding: None if all inputs have L tokens.
    """

    inputs: int
    length: int
    tokens: int
    padding: Padding | None = None


@dataclass(frozen=True, slots=True)
class Spans:
    """Where N inputs are in a row of T tokens, sorted by length, shortest first.

    groups: the number of inputs of each length, and this length.
    blocks: the inputs whose attention is computed together: on a CPU those of a group; on a GPU,
    which short matrix products would leave idle, inputs of similar length.
    offsets: the position of each input's first token in the row, then T; (N + 1,).
    """

    groups: tuple[tuple[int, int], ...]
    blocks: tuple[Block, ...]
    offsets: Any

    @classmethod
    def of(cls, lengths: Sequence[int], device: Any, *, pads: bool | None = None) -> Spans:
        """Return the spans of inputs of these lengths, shortest first.

        pads: whether inputs of similar length form a block; None (the default) for a GPU only.
        """
        import torch

        groups = tuple((len(list(equal)), length) for length, equal in groupby(lengths))
        pads = torch.device(device).type != "cpu" if pads is None else pads
        if pads:
            blocks = tuple(_padded(group, device) for group in _similar(lengths))
        else:
            blocks = tuple(Block(count, length, count * length) for count, length in groups)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return cls(groups, blocks, torch.from_numpy(offsets).to(device))

    @property
    def starts(self) -> Any:
        """The position of each input's first token in the row (N,)."""
        return self.offsets[:-1]


def _similar(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Divide lengths, shortest first, so that the longest has SHORT tokens or twice the shortest.

    A few large blocks keep a GPU busy; what attention computes for the padding is little beside the
    linear layers, which need none.
    """
    block: list[int] = []
    for length in lengths:
        if block and length > max(SHORT, 2 * block[0]):
            yield block
            block = []
        block.append(length)
    if block:
        yield block


def _padded(lengths: Sequence[int], device: Any) -> Block:
    import torch

    sizes, longest = np.array(lengths), lengths[-1]
    tokens = int(sizes.sum())
    if lengths[0] == longest:
        return Block(len(lengths), longest, tokens)
    column = np.arange(longest)
    exists = column < sizes[:, None]  # (inputs, L)
    starts = np.cumsum(sizes) - sizes
    source = starts[:, None] + np.minimum(column, sizes[:, None] - 1)  # (inputs, L)
    mask = np.where(exists, np.float32(0), np.float32(MASKED))[:, None, None]
    arrays = source.reshape(-1), np.flatnonzero(exists), mask
    return Block(
        len(lengths), longest, tokens, Padding(*(torch.from_numpy(a).to(device) for a in arrays))
    )


@dataclass(frozen=True, slots=True)
class PackedInputs:
    """Inputs of BERT as one row of tokens.

    ids, types, positions: int64 (T,).
    spans: where each input is in the row.
    order: each input's index before sorting (N,).
    documents: the number of inputs per document, in the order before sorting.
    """

    ids: Any
    types: Any
    positions: Any
    spans: Spans
    order: Any
    documents: tuple[int, ...]

    @classmethod
    def of(
        cls, pairs: Sequence[tuple[Ids, Ids]], device: Any, documents: Sequence[int] = ()
    ) -> PackedInputs:
        """Pack inputs, given as pairs of ids and types that include special tokens.

        documents: the number of inputs per document; empty for one input per document.
        """
        import torch

        lengths = np.array([len(ids) for ids, _ in pairs])  # (N,)
        order = np.argsort(lengths, kind="stable")
        ordered = lengths[order]
        arrays = (
            np.concatenate([pairs[i][0] for i in order]).astype(np.int64),  # (T,)
            np.concatenate([pairs[i][1] for i in order]).astype(np.int64),  # (T,)
            np.arange(ordered.sum()) - np.repeat(np.cumsum(ordered) - ordered, ordered),  # (T,)
            order,  # (N,)
        )
        ids, types, positions, indices = (torch.from_numpy(a).to(device) for a in arrays)
        spans = Spans.of(ordered.tolist(), device)
        counts = tuple(documents) or (1,) * len(pairs)
        return cls(ids, types, positions, spans, indices, counts)

    def split(self, tokens: Any) -> Iterator[Any]:
        """Split `tokens` (T, …) into one tensor (inputs, L, …) per length."""
        groups = self.spans.groups
        parts = tokens.split([count * length for count, length in groups])
        for (count, length), part in zip(groups, parts, strict=True):
            yield part.view(count, length, *tokens.shape[1:])

    def unsorted(self, values: Any) -> Any:
        """Return `values` (N, …), which are in sorted order, in the order before sorting."""
        import torch

        return torch.empty_like(values).index_copy(0, self.order, values)
