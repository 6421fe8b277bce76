"""Where does a cross-encoder look when it reads a query and a text?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from birchbark.checkpoint.heads import Classifier, Pooling
from birchbark.checkpoint.named import locate
from birchbark.checkpoint.reader import Checkpoint
from birchbark.checkpoint.tokenizer import Pieces
from birchbark.errors import InputError
from birchbark.records import Float32s, Ids
from birchbark.score.channels import largest_channels
from birchbark.score.graph import build_graph
from birchbark.score.precision import Precision
from birchbark.score.runtime import open_graph

SPECIAL, QUERY, TEXT = "special", "query", "text"


@dataclass(frozen=True, slots=True, eq=False)
class Attention:
    """What each token of one input looked at.

    tokens: n, special ones included. sides: of each, `special`, `query` or `text`. layers: of each
    layer, the shares (heads, rows, n) that a row's token gave to each token: they sum to 1. Rows
    are all tokens, in the last layer [CLS] alone, for nothing else is read there. score: the
    probability that the text is relevant.
    """

    tokens: tuple[str, ...]
    sides: tuple[str, ...]
    layers: tuple[Float32s, ...]
    score: float


class AttentionReader:
    """A cross-encoder that tells what it looks at."""

    def __init__(self, checkpoint: Checkpoint, precision: Precision = Precision.FP32) -> None:
        """Build its graph; InputError unless it is a cross-encoder."""
        import onnx

        if not isinstance(checkpoint.head, Classifier) or checkpoint.head.compares:
            raise InputError(
                "an embedding reads query and text apart: neither looks at the other"
                if isinstance(checkpoint.head, Pooling)
                else "this model reads more than one text",
                where=checkpoint.name,
                wanted="a cross-encoder",
            )
        self._pieces = Pieces(checkpoint)
        self._longest = checkpoint.max_length - self._pieces.extra_pair
        largest = largest_channels(checkpoint) if precision is Precision.INT8 else None
        graph, self._weights = build_graph(checkpoint, largest)  # the runtime reads them there
        net = onnx.load_from_string(graph)
        self._shares = [node.output[0] for node in net.graph.node if node.op_type == "Softmax"]
        for name in self._shares:
            net.graph.output.append(onnx.helper.make_empty_tensor_value_info(name))
        self._session = open_graph(net.SerializeToString(), self._weights)

    def read(self, query: str, text: str) -> Attention:
        """What it looks at while it scores `text` for `query`; InputError if they do not fit."""
        asked, read = self._pieces.encode([query, text])
        if len(asked) + len(read) > self._longest:
            raise InputError(
                "query and text do not fit into one input",
                wanted=f"{self._longest} tokens together",
                found=f"{len(asked)} and {len(read)}",
            )
        ids, types = self._pieces.pair(asked, read)
        feed = {"ids": ids, "types": types}
        inputs = [put.name for put in self._session.get_inputs()]
        logit, *found = self._session.run(
            ["out", *self._shares], {name: feed[name].astype(np.int64)[None] for name in inputs}
        )
        return Attention(
            tokens=_words(self._pieces, ids),
            sides=_sides(self._pieces, asked, read),
            layers=tuple(np.asarray(layer[0], np.float32) for layer in found),
            score=float(1 / (1 + np.exp(-float(logit[0])))),
        )


def attention(
    model: str, query: str, text: str, precision: Precision = Precision.FP32
) -> Attention:
    """The attention of `model` while it scores `text` for `query`.

    Errors as AttentionReader, and as `load_scorer`.
    """
    return AttentionReader(Checkpoint.open(locate(model), model), precision).read(query, text)


def _words(pieces: Pieces, ids: Ids) -> tuple[str, ...]:
    """What the vocabulary calls each token."""
    names = pieces.names()
    return tuple(names.get(int(number), "?") for number in ids)


def _sides(pieces: Pieces, query: Ids, text: Ids) -> tuple[str, ...]:
    """Where each token of the input comes from: asked of the same frame with marks in it."""
    ids, _ = pieces.pair(np.full(len(query), -1, np.int32), np.full(len(text), -2, np.int32))
    return tuple({-1: QUERY, -2: TEXT}.get(int(number), SPECIAL) for number in ids)
