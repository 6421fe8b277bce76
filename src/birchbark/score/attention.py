"""Which tokens does a cross-encoder attend to when it reads a query and a text?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.heads import Classifier, Pooling
from birchbark.checkpoint.locate import locate
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.errors import InputError
from birchbark.records import Float32s, Ids
from birchbark.score.channel_ranges import channel_maxima
from birchbark.score.graph import build_graph
from birchbark.score.precision import Precision
from birchbark.score.runtime import open_graph

SPECIAL, QUERY, TEXT = "special", "query", "text"


@dataclass(frozen=True, slots=True, eq=False)
class Attention:
    """The attention weights for one input of query and text.

    Attributes:
        tokens: The input's n tokens, including special tokens.
        sides: The side of each token: `special`, `query` or `text`.
        layers: For each layer, the attention (heads, rows, n) from each row's token to all tokens;
            each row sums to 1. There is a row for every token, except in the last layer of a
            model that reads [CLS] alone.
        score: The probability that the text is relevant.
    """

    tokens: tuple[str, ...]
    sides: tuple[str, ...]
    layers: tuple[Float32s, ...]
    score: float


class AttentionModel:
    """Runs a cross-encoder and returns its attention weights."""

    def __init__(self, checkpoint: Checkpoint, precision: Precision = Precision.FP32) -> None:
        """Build the graph of `checkpoint`; InputError unless it is a cross-encoder."""
        import onnx

        if not isinstance(checkpoint.head, Classifier) or checkpoint.head.is_duo:
            raise InputError(
                "an embedding model encodes query and text separately, without attention "
                "between them"
                if isinstance(checkpoint.head, Pooling)
                else "this model reads several texts together",
                where=checkpoint.name,
                wanted="a cross-encoder",
            )
        self._scale = checkpoint.scale
        self._tokenizer = CheckpointTokenizer(checkpoint)
        self._token_budget = checkpoint.max_length - self._tokenizer.pair_overhead
        maxima = channel_maxima(checkpoint) if precision is Precision.INT8 else None
        graph, self._weights = build_graph(checkpoint, maxima)  # the runtime reads them in place
        model = onnx.load_from_string(graph)
        self._softmaxes = [n.output[0] for n in model.graph.node if n.op_type == "Softmax"]
        for name in self._softmaxes:
            model.graph.output.append(onnx.helper.make_empty_tensor_value_info(name))
        self._session = open_graph(model.SerializeToString(), self._weights)

    def attend(self, query: str, text: str) -> Attention:
        """Return the attention when scoring `text` for `query`; InputError if they are too long."""
        query_ids, text_ids = self._tokenizer.encode([query, text])
        if len(query_ids) + len(text_ids) > self._token_budget:
            raise InputError(
                "query and text do not fit into one input",
                wanted=f"at most {self._token_budget} tokens together",
                found=f"{len(query_ids)} and {len(text_ids)}",
            )
        ids, types = self._tokenizer.pair_input(query_ids, text_ids)
        feed = {"ids": ids, "types": types}
        inputs = [put.name for put in self._session.get_inputs()]
        logit, *layers = self._session.run(
            ["out", *self._softmaxes], {name: feed[name].astype(np.int64)[None] for name in inputs}
        )
        return Attention(
            tokens=_token_names(self._tokenizer, ids),
            sides=_sides(self._tokenizer, query_ids, text_ids),
            layers=tuple(np.asarray(layer[0], np.float32) for layer in layers),
            score=float(self._scale.probabilities(logit)[0]),
        )


def attention(
    model: str, query: str, text: str, precision: Precision = Precision.FP32
) -> Attention:
    """Return the attention of `model` when it scores `text` for `query`.

    Raises InputError if the model is no cross-encoder or if the texts are too long. For a model
    that cannot be opened, raises what `load_scorer` raises.
    """
    return AttentionModel(Checkpoint.open(locate(model), model), precision).attend(query, text)


def _token_names(tokenizer: CheckpointTokenizer, ids: Ids) -> tuple[str, ...]:
    names = tokenizer.id_to_token()
    return tuple(names.get(int(number), "?") for number in ids)


def _sides(tokenizer: CheckpointTokenizer, query: Ids, text: Ids) -> tuple[str, ...]:
    """Return the side of each input token, by building the same input from marker ids."""
    markers = np.full(len(query), -1, np.int32), np.full(len(text), -2, np.int32)
    ids, _ = tokenizer.pair_input(*markers)
    return tuple({-1: QUERY, -2: TEXT}.get(int(number), SPECIAL) for number in ids)
