"""How do rotary and relative positions enter the attention of a graph?

`Positions` is what attention calls in each layer; by itself it changes nothing, since BERT adds
positions to the embeddings. Tables for the longest input are stored as weights; the part that an
input of S tokens needs is cut out once per input. See checkpoint/positions.py for the formulas, and
graph.py for the shapes in comments.
"""

from __future__ import annotations

import numpy as np

from birchbark.checkpoint.encoder_config import EncoderConfig
from birchbark.checkpoint.families import Names
from birchbark.checkpoint.positions import RelativePositions, RotaryPositions, rotation
from birchbark.score.graph_writer import Floats, Graph, Linear


class Positions:
    """Positions that are part of the embeddings, so that attention needs to do nothing."""

    def enter_layer(self, layer: int, query: Linear, key: Linear, *, cls_only: bool) -> None:
        """Begin a layer, with the linear layers of its queries (scaled) and keys."""

    def rotate_queries(self, x: str) -> str:
        """Rotate queries by their positions: (B, Q, N, D) → (B, Q, N, D)."""
        return x

    def rotate(self, x: str) -> str:
        """Rotate keys by their positions: (B, S, N, D) → (B, S, N, D)."""
        return x

    def adjust(self, scores: str, q: str, k: str) -> str:
        """Change attention scores before the softmax: (B, N, Q, S) → (B, N, Q, S).

        q: queries (B, N, Q, D). k: keys (B, N, D, S).
        """
        return scores


class Unattended(Positions):
    """Positions with tokens that no token attends to, these tokens themselves included."""

    def __init__(self, graph: Graph, positions: Positions, unattended: str) -> None:
        """Extend `positions`. unattended: int64 (B, S), 1 for such tokens, 0 for others."""
        self._graph, self._positions = graph, positions
        zero, one, two = (graph.constant(np.array(n)) for n in (0, [1], [2]))
        never, no_change = (graph.constant(np.array(x, np.float32)) for x in (-np.inf, 0))
        added = graph.add("Where", graph.add("Greater", unattended, zero), never, no_change)
        # (B, S) → (B, 1, 1, S)
        self._added = graph.add("Unsqueeze", graph.add("Unsqueeze", added, one), two)

    def enter_layer(self, layer: int, query: Linear, key: Linear, *, cls_only: bool) -> None:
        """See Positions."""
        self._positions.enter_layer(layer, query, key, cls_only=cls_only)

    def rotate_queries(self, x: str) -> str:
        """See Positions."""
        return self._positions.rotate_queries(x)

    def rotate(self, x: str) -> str:
        """See Positions."""
        return self._positions.rotate(x)

    def adjust(self, scores: str, q: str, k: str) -> str:
        """See Positions. Scores of these tokens as keys become -∞."""
        return self._graph.add("Add", self._positions.adjust(scores, q, k), self._added)


def positions_in_attention(graph: Graph, names: Names, config: EncoderConfig) -> Positions:
    """Return what adds positions to the attention of this encoder."""
    if config.rotary:
        return Rotary(graph, config, config.rotary)
    if config.relative:
        return Relative(graph, names, config, config.relative)
    return Positions()


class Rotary(Positions):
    """Rotates queries and keys, and masks tokens outside the window of layers that have one."""

    def __init__(self, graph: Graph, config: EncoderConfig, rotary: RotaryPositions) -> None:
        self._graph, self._rotary = graph, rotary
        self._width, self._longest = config.hidden // config.heads, config.max_positions
        self._length = graph.add("Shape", "ids", start=1, end=2)  # (1,): S
        self._angles: dict[float, tuple[str, str]] = {}
        self._masks: dict[tuple[int, bool], str] = {}
        self._layer, self._cls_only = 0, False

    def enter_layer(self, layer: int, query: Linear, key: Linear, *, cls_only: bool) -> None:
        """See Positions."""
        self._layer, self._cls_only = layer, cls_only

    def rotate_queries(self, x: str) -> str:
        """See Positions; [CLS] is at position 0, which is not rotated."""
        return x if self._cls_only else self.rotate(x)

    def rotate(self, x: str) -> str:
        """See Positions. Dimension d turns together with dimension d + D / 2."""
        cosines, sines = self._cosines_and_sines(self._rotary.bases[self._layer])
        graph = self._graph
        a, b = graph.add_many("Split", 2, x, axis=-1, num_outputs=2)  # (B, S, N, D / 2) each
        left = graph.add("Sub", graph.add("Mul", a, cosines), graph.add("Mul", b, sines))
        right = graph.add("Add", graph.add("Mul", b, cosines), graph.add("Mul", a, sines))
        return graph.add("Concat", left, right, axis=-1)

    def adjust(self, scores: str, q: str, k: str) -> str:
        """See Positions. Scores of tokens outside the window become -∞."""
        window = self._rotary.windows[self._layer]
        if not window:
            return scores
        return self._graph.add("Add", scores, self._mask(window))

    def _cosines_and_sines(self, base: float) -> tuple[str, str]:
        """Return the cosines and sines of the first S positions, (S, 1, D / 2) each."""
        if base not in self._angles:
            graph = self._graph
            zero = graph.constant(np.array([0]))
            cosines, sines = (
                graph.add(
                    "Slice",
                    graph.weight(table[:, None], f"{name} {base}"),
                    zero,
                    self._length,
                    zero,
                )
                for name, table in zip(
                    ("cosines", "sines"), rotation(base, self._width, self._longest), strict=True
                )
            )
            self._angles[base] = cosines, sines
        return self._angles[base]

    def _mask(self, window: int) -> str:
        """Return 0 where two tokens are at most `window` apart, otherwise -∞: (Q, S)."""
        if (window, self._cls_only) in self._masks:
            return self._masks[window, self._cls_only]
        graph = self._graph
        zero = graph.constant(np.array([0]))
        table = graph.weight(np.arange(self._longest), "numbers")
        numbers = graph.add("Slice", table, zero, self._length, zero)  # (S,)
        columns = graph.add("Unsqueeze", numbers, zero)  # (1, S): the keys' positions
        if self._cls_only:
            distances = columns  # (1, S)
        else:
            rows = graph.add("Unsqueeze", numbers, graph.constant(np.array([1])))  # (S, 1)
            distances = graph.add("Abs", graph.add("Sub", rows, columns))  # (S, S)
        outside = graph.add("Greater", distances, graph.constant(np.array(window)))
        never, no_change = (graph.constant(np.array(x, np.float32)) for x in (-np.inf, 0))
        mask = graph.add("Where", outside, never, no_change)
        self._masks[window, self._cls_only] = mask
        return mask


class Relative(Positions):
    """Adds products of queries and keys with embeddings of distances to the scores.

    The score of query i and key j gets the products qᵢ · K[i - j] and kⱼ · Q[i - j]. K and Q are
    the keys and queries that a layer computes from the embeddings of distances; since they depend
    on no input, they are stored as weights. Each query is multiplied with the K of all distances,
    and a shift of the rows of the result then puts the product for key j in column j.
    """

    def __init__(
        self, graph: Graph, names: Names, config: EncoderConfig, relative: RelativePositions
    ) -> None:
        self._graph, self._relative, self._config = graph, relative, config
        table = graph.tensor(f"{names.relative}.weight", 2 * relative.span, config.hidden)
        self._table = table.astype(np.float64)  # (2 · span, H)
        if relative.normalised:
            scale, bias = (
                graph.tensor(f"{names.relative_norm}.{part}", config.hidden)
                for part in ("weight", "bias")
            )
            deviation = self._table - self._table.mean(1, keepdims=True)
            variance = (deviation**2).mean(1, keepdims=True)
            self._table = deviation / np.sqrt(variance + config.epsilon) * scale + bias
        self._length = graph.add("Shape", "ids", start=1, end=2)  # (1,): S
        self._rising, self._falling = (self._rows(step) for step in (1, -1))
        self._query_table = self._key_table = ""
        self._cls_only = False

    def enter_layer(self, layer: int, query: Linear, key: Linear, *, cls_only: bool) -> None:
        """See Positions."""
        self._cls_only = cls_only
        self._key_table, self._query_table = (
            self._graph.weight(self._projected(linear), f"distances of {linear.name}")
            for linear in (key, query)
        )

    def _projected(self, linear: Linear) -> Floats:
        """Apply a linear layer to the embeddings of distances: float32 (N, D, 2 · span)."""
        rows = self._table @ linear.weight.T.astype(np.float64)  # (2 · span, H)
        rows = rows if linear.bias is None else rows + linear.bias
        per_head = rows.reshape(len(rows), self._config.heads, -1).transpose(1, 2, 0)
        return np.ascontiguousarray(per_head, np.float32)

    def _rows(self, step: int) -> str:
        """Return the rows of the distances from 1 - S to S - 1, or from S - 1 to 1 - S: (2 · S,).

        The last one has no meaning; with it, the shift in `_shifted` needs no padding.
        """
        graph, longest = self._graph, self._config.max_positions
        rows = np.append(self._relative.rows(longest)[::step], 0)  # (2 · longest,)
        table = graph.weight(
            rows, "rows of distances" if step > 0 else "rows of distances, falling"
        )
        middle = graph.constant(np.array([longest]))
        start = graph.add("Sub", middle, self._length)
        end, axis = graph.add("Add", middle, self._length), graph.constant(np.array([0]))
        return graph.add("Slice", table, start, end, axis)

    def adjust(self, scores: str, q: str, k: str) -> str:
        """See Positions."""
        graph = self._graph
        keys = graph.add("Gather", self._key_table, self._falling, axis=2)  # (N, D, 2 · S)
        by_query = self._shifted(graph.add("MatMul", q, keys))  # (B, N, Q, S)
        scores = graph.add("Add", scores, by_query)
        if self._cls_only:
            queries = graph.add("Gather", self._query_table, self._falling, axis=2)
            product = graph.add("Mul", k, self._of_cls(queries))  # (B, N, D, S)
            axis = graph.constant(np.array([2]))
            by_key = graph.add("ReduceSum", product, axis, keepdims=1)  # (B, N, 1, S)
            return graph.add("Add", scores, by_key)
        queries = graph.add("Gather", self._query_table, self._rising, axis=2)  # (N, D, 2 · S)
        rows = graph.add("Transpose", k, perm=[0, 1, 3, 2])  # (B, N, S, D)
        by_key = self._shifted(graph.add("MatMul", rows, queries))  # (B, N, S, S): key, query
        return graph.add("Add", scores, graph.add("Transpose", by_key, perm=[0, 1, 3, 2]))

    def _shifted(self, products: str) -> str:
        """Shift row i to the left by S - 1 - i columns: (B, N, Q, 2 · S) → (B, N, Q, S).

        Read as one row of 2 · S² numbers, column j of row i is at S - 1 + i · (2 · S - 1) + j.
        """
        if self._cls_only:
            return self._of_cls(products)
        graph = self._graph
        before = graph.add("Sub", self._length, graph.constant(np.array([1])))  # (1,): S - 1
        flat = graph.add("Reshape", products, graph.constant(np.array([0, 0, -1])))
        flat = self._columns(flat, before, graph.constant(np.array([-1])))
        heads = graph.constant(np.array([0, self._config.heads]))
        rest = graph.constant(np.array([-1]))
        shape = graph.add("Concat", heads, self._length, rest, axis=0)  # (4,)
        rows = graph.add("Reshape", flat, shape)  # (B, N, S, 2 · S - 1)
        return self._columns(rows, graph.constant(np.array([0])), self._length)

    def _of_cls(self, x: str) -> str:
        """Cut out the distances from [CLS] to each key, 0 to 1 - S: (…, 2 · S) → (…, S)."""
        start = self._graph.add("Sub", self._length, self._graph.constant(np.array([1])))
        return self._columns(x, start, self._graph.add("Add", start, self._length))

    def _columns(self, x: str, start: str, end: str) -> str:
        """Cut out a range of the last dimension."""
        return self._graph.add("Slice", x, start, end, self._graph.constant(np.array([-1])))
