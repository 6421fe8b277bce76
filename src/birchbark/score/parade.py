"""How relevant is a document, by the vectors of its passages? PARADE (Li et al. 2020).

BERT reads the query with each passage; what stands on [CLS] is the passage's vector. The vectors of
a document become one, by mean, by maximum, by learnt shares, or by a transformer that looks at all
of them, and that becomes a logit. Vectors depend on query and passage alone, so they can be kept;
a document's score depends on all its passages, but (rounding aside) not on their order: nothing
tells the transformer where in the document a passage stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.checkpoint.heads import PARADE_LAYERS, PARADE_NAMES, PARADE_WEIGHTS, Parade
from birchbark.checkpoint.reader import Checkpoint
from birchbark.checkpoint.shape import Shape
from birchbark.errors import CheckpointError
from birchbark.records import Float32s, Ids
from birchbark.score.cross_encoder import CrossEncoderScorer
from birchbark.score.graph import OPSET, transformer_layer
from birchbark.score.graph_writer import Graph
from birchbark.score.runtime import open_graph
from birchbark.score.session import NewSession, Session

Shares = NDArray[np.float64]


class ParadeScorer(CrossEncoderScorer):
    """Vectors of passages, and a probability of relevance for all that a document has of them."""

    kind, called = "parade", "PARADE"

    def __init__(
        self,
        checkpoint: Checkpoint,
        threads: int | None = None,
        session: NewSession = Session,
    ) -> None:
        """Load `checkpoint`, whose head is a Parade."""
        super().__init__(checkpoint, threads, session)
        self._aggregator = Aggregator(checkpoint)

    @property
    def width(self) -> int:
        """See Scorer: a vector for each passage."""
        return self.checkpoint.shape.hidden

    def score(self, query: str, pieces: Sequence[Ids]) -> Float32s:
        """Vectors of passages, float32 (n, hidden)."""
        if not pieces:
            return np.empty((0, self.width), np.float32)
        return self._run(query, pieces)

    def judge(self, values: Float32s) -> tuple[float, Shares]:
        """See DocumentScorer."""
        if not len(values):
            return 0.0, np.empty(0)
        logit, shares = self._aggregator.run(values)
        return float(1 / (1 + np.exp(-np.float64(logit)))), shares


class Aggregator:
    """The small graph that makes a document's logit of its passages' vectors."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Build and load it. checkpoint: one whose head is a Parade."""
        head = checkpoint.head
        if not isinstance(head, Parade):
            raise CheckpointError("this model aggregates no passages", where=checkpoint.name)
        self._how = head.how
        graph, self._weights = _build(checkpoint, head)
        self._session = open_graph(graph, self._weights)
        self._outputs = [put.name for put in self._session.get_outputs()]

    def run(self, vectors: Float32s) -> tuple[float, Shares]:
        """Log-odds of a document with these vectors (n, hidden), and shares (n,) of its passages.

        Shares add up to 1: for `avg` all are equal, for `max` it is how many dimensions come from a
        passage, for `attn` the learnt ones, for `transformer` how much is looked at, mean of heads.
        """
        count = len(vectors)
        logit, *looked = self._session.run(self._outputs, {"vectors": vectors[None]})
        if self._how == "avg":
            shares = np.ones(count)
        elif self._how == "max":
            shares = np.bincount(vectors.argmax(0), minlength=count).astype(np.float64)
        else:  # [CLS], which stands in front, does not count
            seen = looked[0].astype(np.float64).reshape(-1, looked[0].size // looked[0].shape[1])
            shares = seen.reshape(-1) if self._how == "attn" else seen[:, 1:].mean(0)
        return float(logit.reshape(-1)[0]), shares / shares.sum()


def _build(checkpoint: Checkpoint, head: Parade) -> tuple[bytes, dict[str, NDArray[Any]]]:
    """The ONNX model, and the weights that it names: `vectors` (1, n, hidden) → `out` (1, 1)."""
    from onnx import TensorProto, helper

    shape = checkpoint.shape
    graph = Graph(checkpoint.tensors(), str(checkpoint.weights))
    if head.how == "transformer":
        x = _looking(graph, shape)
    elif head.how == "attn":
        weight = graph.tensor(PARADE_WEIGHTS["attn"], 1, shape.hidden)
        asked = graph.add("MatMul", "vectors", graph.weight(weight.T, PARADE_WEIGHTS["attn"]))
        shares = graph.add("Softmax", graph.add("Transpose", asked, perm=[0, 2, 1]), axis=-1)
        x = graph.add("MatMul", shares, "vectors")
    else:
        rows = graph.add("Transpose", "vectors", perm=[0, 2, 1])
        reduce = "ReduceMax" if head.how == "max" else "ReduceMean"
        one = graph.add(reduce, rows, graph.constant(np.array([-1])), keepdims=1)
        x = graph.add("Transpose", one, perm=[0, 2, 1])
    out = graph.linear(x, head.output, 1, shape.hidden, one_row=True)
    graph.nodes.append(helper.make_node("Identity", [out], ["out"]))
    looked = [node.output[0] for node in graph.nodes if node.op_type == "Softmax"][-1:]
    vectors = helper.make_tensor_value_info("vectors", TensorProto.FLOAT, [1, "N", shape.hidden])
    results = [helper.make_tensor_value_info("out", TensorProto.FLOAT, [1, 1, 1])]
    results += [helper.make_empty_tensor_value_info(name) for name in looked]
    model = helper.make_model(
        helper.make_graph(graph.nodes, "parade", [vectors], results, graph.constants),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=9,
    )
    return model.SerializeToString(), graph.weights


def _looking(graph: Graph, shape: Shape) -> str:
    """A learnt [CLS] in front of the passages, and layers like the encoder's: (1, 1, H)."""
    name = PARADE_WEIGHTS["transformer"]
    front = graph.weight(graph.tensor(name, shape.hidden)[None, None], name)
    x = graph.add("Concat", front, "vectors", axis=1)
    own = replace(shape, layers=PARADE_LAYERS, groups=PARADE_LAYERS)
    for layer in range(PARADE_LAYERS):
        last = layer == PARADE_LAYERS - 1
        x = transformer_layer(graph, x, PARADE_NAMES, layer, own, cls_only=last)
    return x
