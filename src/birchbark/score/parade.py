"""How does PARADE score a document from the vectors of its passages? (Li et al. 2020)

BERT reads the query with each passage, and the passage's vector is computed from [CLS]. The vectors
of a document are aggregated by mean, maximum, learned weights, or a transformer that attends to all
of them; a linear layer turns the result into one logit. A passage's vector depends only on the
query and the passage, so it can be cached. A document's score depends on all its passages. Their
order matters to the transformer alone, if it has position embeddings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.encoder_config import EncoderConfig
from birchbark.checkpoint.heads import (
    PARADE_LAYERS,
    PARADE_NAMES,
    PARADE_POSITION_COUNT,
    PARADE_POSITIONS,
    PARADE_WEIGHTS,
    Parade,
    unsupported_aggregation,
)
from birchbark.errors import CheckpointError
from birchbark.records import Float32s, Ids
from birchbark.score.cross_encoder import CrossEncoderScorer
from birchbark.score.encoder_layers import transformer_layer
from birchbark.score.graph import new_graph
from birchbark.score.graph_writer import Graph
from birchbark.score.position_nodes import Positions
from birchbark.score.runtime import open_graph

Shares = NDArray[np.float64]


class ParadeScorer(CrossEncoderScorer):
    """Computes vectors of passages, and from these the probability that a document is relevant."""

    kind, title = "parade", "{} PARADE"

    def _prepare(self) -> None:
        super()._prepare()
        self._aggregator = PassageAggregator(self.checkpoint)

    @property
    def width(self) -> int:
        """The length of a passage's vector; see Scorer."""
        return self.checkpoint.config.hidden

    def score_queries(self, requests: Sequence[tuple[str, Sequence[Ids]]]) -> list[Float32s]:
        """Return the vectors of each query's encoded passages, float32 (n, hidden)."""
        if not any(len(token_ids) for _, token_ids in requests):
            return [np.empty((0, self.width), np.float32) for _ in requests]
        return self._run(requests)

    def score_document(self, values: Float32s) -> tuple[float, Shares]:
        """See DocumentScorer."""
        if not len(values):
            return 0.0, np.empty(0)
        logit, shares = self._aggregator.run(values)
        return float(self.checkpoint.scale.probabilities(np.array([logit]))[0]), shares


class PassageAggregator:
    """Computes a document's logit from the vectors of its passages, with a small ONNX graph."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Build and load the graph; CheckpointError unless the checkpoint's head is a Parade."""
        head = checkpoint.head
        if not isinstance(head, Parade):
            raise CheckpointError("this model does not aggregate passages", where=checkpoint.name)
        self._aggregation = head.aggregation
        graph, self._weights = _build_graph(checkpoint, head)
        self._session = open_graph(graph, self._weights)
        self._outputs = [put.name for put in self._session.get_outputs()]

    def run(self, vectors: Float32s) -> tuple[float, Shares]:
        """Return a document's log-odds of relevance, and each passage's share (n,) in them.

        vectors: the document's passage vectors (n, hidden). Shares sum to 1. They are equal for
        `avg`; for `max`, the share of dimensions whose maximum comes from the passage; for `attn`,
        the learned weights; for `transformer`, the attention from [CLS] in the last layer, averaged
        over heads.
        """
        count = len(vectors)
        logit, *attention = self._session.run(self._outputs, {"vectors": vectors[None]})
        match self._aggregation:
            case "avg":
                shares = np.ones(count)
            case "max":
                shares = np.bincount(vectors.argmax(0), minlength=count).astype(np.float64)
            case "attn":
                shares = attention[0].astype(np.float64).reshape(-1)  # (1, 1, n) → (n,)
            case "transformer":  # (1, N, 1, n + 1) → (N, n + 1) → (n,), without [CLS] in front
                weights = attention[0].astype(np.float64).reshape(attention[0].shape[1], -1)
                shares = weights[:, 1:].mean(0)
            case unknown:
                raise unsupported_aggregation(unknown)
        return float(logit.reshape(-1)[0]), shares / shares.sum()


def _build_graph(checkpoint: Checkpoint, head: Parade) -> tuple[bytes, dict[str, NDArray[Any]]]:
    """Return the ONNX model, `vectors` (1, n, H) → `out` (1, 1, 1), and its weights.

    The graph's last softmax, if it has one, is an output as well: the attention or learned weights.
    """
    from onnx import TensorProto, helper

    config = checkpoint.config
    graph = new_graph(checkpoint)
    match head.aggregation:  # → (1, 1, H)
        case "transformer":
            x = _transformer(graph, config)
        case "attn":
            weight = graph.tensor(PARADE_WEIGHTS["attn"], 1, config.hidden)
            logits = graph.add("MatMul", "vectors", graph.weight(weight.T, PARADE_WEIGHTS["attn"]))
            # (1, n, 1) → (1, 1, n)
            shares = graph.add("Softmax", graph.add("Transpose", logits, perm=[0, 2, 1]), axis=-1)
            x = graph.add("MatMul", shares, "vectors")
        case "avg":
            x = _reduced(graph, "ReduceMean")
        case "max":
            x = _reduced(graph, "ReduceMax")
        case unknown:
            raise unsupported_aggregation(unknown)
    out = graph.linear(x, head.output, 1, config.hidden, one_row=True)  # (1, 1, 1)
    graph.name_output(out, "out")
    softmaxes = [node.output[0] for node in graph.nodes if node.op_type == "Softmax"][-1:]
    vectors = helper.make_tensor_value_info("vectors", TensorProto.FLOAT, [1, "N", config.hidden])
    outputs = [helper.make_tensor_value_info("out", TensorProto.FLOAT, [1, 1, 1])]
    outputs += [helper.make_empty_tensor_value_info(name) for name in softmaxes]
    return graph.serialize("parade", [vectors], outputs), graph.weights


def _reduced(graph: Graph, operator: str) -> str:
    """Reduce each dimension of the passages' vectors: (1, n, H) → (1, 1, H)."""
    reduced = graph.reduced("vectors", operator)  # (1, H)
    return graph.add("Unsqueeze", reduced, graph.constant(np.array([1])))


def _transformer(graph: Graph, config: EncoderConfig) -> str:
    """Prepend a learned [CLS] and apply transformer layers: (1, n, H) → (1, 1, H).

    Position embeddings, if the model has some, are added to the passages' vectors first.
    """
    name, passages = PARADE_WEIGHTS["transformer"], "vectors"
    if graph.has(PARADE_POSITIONS):
        table = graph.tensor(PARADE_POSITIONS, PARADE_POSITION_COUNT, config.hidden)
        zero, one = (graph.constant(np.array(n)) for n in (0, 1))
        count = graph.add("Gather", graph.add("Shape", passages), one)
        end = graph.constant(np.array(PARADE_POSITION_COUNT - 1))
        numbers = graph.add("Min", graph.add("Range", zero, count, one), end)  # (n,)
        rows = graph.add("Gather", graph.weight(table, PARADE_POSITIONS), numbers)  # (n, H)
        passages = graph.add("Add", passages, rows)
    cls = graph.weight(graph.tensor(name, config.hidden)[None, None], name)  # (1, 1, H)
    x = graph.add("Concat", cls, passages, axis=1)  # (1, n + 1, H)
    layers = config.as_bert(PARADE_LAYERS)
    for layer in range(PARADE_LAYERS):
        last = layer == PARADE_LAYERS - 1
        x = transformer_layer(graph, x, PARADE_NAMES, layer, layers, Positions(), cls_only=last)
    return x
