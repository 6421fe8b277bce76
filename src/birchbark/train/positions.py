"""How do rotary and relative positions enter attention during training?

score/position_nodes.py adds the same positions to the ranking graph; checkpoint/positions.py has
the formulas. Shapes as in packed_attention.py: T tokens, N inputs, L tokens per input, A attention
heads, D dimensions per head, H = A · D.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from birchbark.checkpoint.positions import RelativePositions, rotation

ScoreTerm = Callable[[Any, Any], Any]
"""Returns what is added to attention scores (inputs, A, L or 1, L) before the softmax.

Its arguments are the queries (inputs, A, L or 1, D) and keys (inputs, A, L, D) of a block's inputs,
padded to one length; if there is one query per input, it is that of the first token.
"""


def rotated(x: Any, places: Any, base: float, heads: int) -> Any:
    """Rotate queries or keys (T, H) by the angles of their positions `places` (T,), in float32."""
    import torch

    rows = x.float().view(len(x), heads, -1)  # (T, A, D)
    tables = _angles(base, rows.shape[2], int(places.max()) + 1, str(x.device))
    cosines, sines = (table[places][:, None] for table in tables)  # (T, 1, D / 2)
    a, b = rows.chunk(2, -1)  # (T, A, D / 2) each
    turned = torch.cat([a * cosines - b * sines, b * cosines + a * sines], -1)
    return turned.reshape(x.shape)


@lru_cache(maxsize=8)
def _angles(base: float, width: int, length: int, device: str) -> tuple[Any, Any]:
    import torch

    cosines, sines = rotation(base, width, length)
    return torch.from_numpy(cosines).to(device), torch.from_numpy(sines).to(device)


def window_term(window: int) -> ScoreTerm:
    """Return -∞ for keys that are more than `window` tokens away from the query, otherwise 0."""

    def term(queries: Any, keys: Any) -> Any:
        import torch

        places = torch.arange(keys.shape[2], device=keys.device)
        distances = (places[: queries.shape[2], None] - places).abs()  # (L or 1, L)
        outside = torch.zeros(distances.shape, device=keys.device)
        return outside.masked_fill(distances > window, -torch.inf).expand(len(keys), 1, -1, -1)

    return term


def distance_term(
    relative: RelativePositions, query_table: Any, key_table: Any, scale: float
) -> ScoreTerm:
    """Return products of queries and keys with embeddings of their distance, times `scale`.

    query_table, key_table: the queries and keys of the embeddings of distances (2 · span, H).
    """

    def term(queries: Any, keys: Any) -> Any:
        import torch

        inputs, heads, length, _ = keys.shape
        rows = torch.from_numpy(relative.rows(length)).to(keys.device)  # (2 · L - 1,)
        places = torch.arange(length, device=keys.device)
        # the row of the distance between query i and key j, (L or 1, L)
        index = rows[places[: queries.shape[2], None] - places + length - 1]
        by_query, by_key = (  # (inputs, A, L or 1, 2 · span) and (inputs, A, L, 2 · span)
            x @ table.float().view(len(table), heads, -1).permute(1, 2, 0)
            for x, table in ((queries, key_table), (keys, query_table))
        )
        shape = inputs, heads, *index.shape
        of_queries = by_query.gather(3, index.expand(shape))
        of_keys = by_key.gather(3, index.T.expand(inputs, heads, *index.T.shape)).transpose(2, 3)
        return (of_queries + of_keys) * scale

    return term
