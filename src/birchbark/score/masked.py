"""What does a masked language model expect where a token is hidden? No torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.checkpoint.heads import Pooling
from birchbark.checkpoint.reader import Checkpoint
from birchbark.checkpoint.tokenizer import Pieces
from birchbark.errors import CheckpointError
from birchbark.records import Float32s, Ids
from birchbark.score.graph import OPSET, embeddings, pool, transformer_layer
from birchbark.score.graph_writer import Graph
from birchbark.score.runtime import open_graph

MASKS = ("[MASK]", "<mask>")  # what tokenisers call the token that hides others


class MaskedModel:
    """A masked language model, as `birchbark adapt` or transformers save one.

    pieces: its tokeniser. mask: id of the token that hides others. room: tokens of a text.
    """

    def __init__(self, model: Path) -> None:
        """model: a directory; CheckpointError as `Checkpoint.open`, or if it has no such head."""
        checkpoint = Checkpoint.open(model, pooling=Pooling("mean"))
        self.pieces = Pieces(checkpoint)
        self.room = checkpoint.max_length - self.pieces.extra_single
        ids = {name: number for number, name in self.pieces.names().items()}
        masks = [ids[name] for name in MASKS if name in ids]
        if not masks or f"{checkpoint.family.masked.norm}.weight" not in checkpoint.tensors():
            raise CheckpointError(
                "no masked language model",
                where=str(model),
                wanted="its head, and a token that hides others",
                remedy="birchbark adapt makes one",
            )
        self.mask = masks[0]
        graph, self._weights = _graph(checkpoint)
        self._session = open_graph(graph, self._weights)

    def expected(self, ids: Ids, place: int) -> Float32s:
        """The probability (vocabulary,) of each token at one place of a text, by all the others.

        What stands at `place` is hidden.
        """
        hidden = ids.copy()
        hidden[place] = self.mask
        [[(start, _)]] = [self.pieces.sides(None, len(ids))]
        scores = self._run("scores", hidden, start + place)
        powers = np.exp(scores - scores.max())
        probabilities: Float32s = powers / powers.sum()
        return probabilities

    def embed(self, ids: Ids) -> Float32s:
        """A unit vector (hidden,) of a text: the mean of its tokens' in the last layer."""
        return self._run("vector", ids, 0)

    def _run(self, what: str, ids: Ids, place: int) -> Float32s:
        feed = {
            "ids": self.pieces.single(ids).astype(np.int64)[None],
            "place": np.array([place], np.int64),
        }
        found: Float32s = self._session.run([what], feed)[0][0]
        return found


def _graph(checkpoint: Checkpoint) -> tuple[bytes, dict[str, NDArray[Any]]]:
    """The ONNX model and its weights. Inputs: `ids` int64 (1, length), `place` int64 (1,).

    Outputs, float32: `scores` (1, vocabulary) of what stands at the place, `vector` (1, hidden).
    """
    from onnx import TensorProto, helper

    shape, names, head = checkpoint.shape, checkpoint.family.names, checkpoint.family.masked
    graph = Graph(checkpoint.tensors(), str(checkpoint.weights))
    x = embeddings(graph, names, shape, typed=False)
    for layer in range(shape.layers):
        x = transformer_layer(graph, x, names, layer, shape, cls_only=False)
    vector = pool(graph, x, "mean")
    rows = graph.add("Reshape", x, graph.constant(np.array([-1, shape.hidden])))
    x = graph.linear(graph.add("Gather", rows, "place"), head.linear, shape.embedding, shape.hidden)
    x = graph.norm(graph.activate(x, shape.activation), head.norm, shape.embedding, shape.epsilon)
    words = graph.tensor(f"{names.words}.weight", shape.vocabulary, shape.embedding)
    scores = graph.dense(x, words, graph.tensor(head.bias, shape.vocabulary), "words.transposed")
    for found, name in ((scores, "scores"), (vector, "vector")):
        graph.nodes.append(helper.make_node("Identity", [found], [name]))
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "birchbark",
            [
                helper.make_tensor_value_info("ids", TensorProto.INT64, [1, "S"]),
                helper.make_tensor_value_info("place", TensorProto.INT64, [1]),
            ],
            [
                helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, size])
                for name, size in (("scores", shape.vocabulary), ("vector", shape.hidden))
            ],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid(d, 1 if d else OPSET) for d in graph.domains],
        ir_version=9,
    )
    return model.SerializeToString(), graph.weights
