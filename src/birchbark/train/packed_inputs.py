"""How are inputs of different lengths packed for the network, without padding?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from birchbark.records import Ids


@dataclass(frozen=True, slots=True)
class Spans:
    """Where N inputs are in a row of T tokens, sorted by length, shortest first.

    groups: the number of inputs of each length, and this length.
    offsets: the position of each input's first token in the row, then T; (N + 1,).
    """

    groups: tuple[tuple[int, int], ...]
    offsets: Any

    @property
    def starts(self) -> Any:
        """The position of each input's first token in the row (N,)."""
        return self.offsets[:-1]


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
        offsets = np.concatenate([[0], np.cumsum(ordered)])  # (N + 1,)
        arrays = (
            np.concatenate([pairs[i][0] for i in order]).astype(np.int64),  # (T,)
            np.concatenate([pairs[i][1] for i in order]).astype(np.int64),  # (T,)
            np.arange(ordered.sum()) - np.repeat(offsets[:-1], ordered),  # (T,)
            offsets,
            order,  # (N,)
        )
        ids, types, positions, ends, indices = (torch.from_numpy(a).to(device) for a in arrays)
        groups = tuple((len(list(equal)), int(length)) for length, equal in groupby(ordered))
        counts = tuple(documents) or (1,) * len(pairs)
        return cls(ids, types, positions, Spans(groups, ends), indices, counts)

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
