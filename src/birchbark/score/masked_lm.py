"""Which tokens does a masked language model predict at a masked position?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.heads import Pooling
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.errors import CheckpointError, InputError
from birchbark.records import Float32s, Ids, best_first
from birchbark.score.encoder_layers import embeddings, encoder_layers
from birchbark.score.graph import new_graph, pool
from birchbark.score.graph_writer import Linear
from birchbark.score.runtime import open_graph

MASKS = ("[MASK]", "<mask>")  # names of the mask token in different tokenisers


class MaskedLanguageModel:
    """A masked language model, as saved by `birchbark train` or transformers; runs without torch.

    Attributes:
        tokenizer: The model's tokeniser.
        mask: Id of the mask token.
        token_budget: Maximum number of tokens in a text, without special tokens.
    """

    def __init__(self, model: Path) -> None:
        """Open the model directory `model`.

        Raises CheckpointError if it cannot be read, has no mask token, or lacks the head of a
        masked language model, or if the weights of its output are not those of its embeddings.
        """
        checkpoint = Checkpoint.open(model, pooling=Pooling("mean"))
        self.tokenizer = CheckpointTokenizer(checkpoint)
        self.token_budget = checkpoint.max_length - self.tokenizer.single_overhead
        masks = [i for i in map(self.tokenizer.token_id, MASKS) if i is not None]
        if not masks or f"{checkpoint.family.masked.norm}.weight" not in checkpoint.tensors():
            raise CheckpointError(
                "not a masked language model",
                where=str(model),
                wanted="a masked-language-model head and a mask token",
                remedy="birchbark train with a table [masked] trains one",
            )
        if not checkpoint.ties_embeddings:
            raise CheckpointError(
                "a masked language model whose output has weights of its own is not supported",
                where=str(model),
                wanted="tie_word_embeddings true in config.json",
            )
        self.mask = masks[0]
        graph, self._weights = _build_graph(checkpoint)
        self._session = open_graph(graph, self._weights)

    def predict(self, ids: Ids, position: int) -> Float32s:
        """Return the probability (vocabulary,) of each token at `position` of the text `ids`.

        The token at that position is masked first.
        """
        masked = ids.copy()
        masked[position] = self.mask
        [[(start, _)]] = [self.tokenizer.text_ranges(None, len(ids))]
        scores = self._run("scores", masked, start + position)
        powers = np.exp(scores - scores.max())
        probabilities: Float32s = powers / powers.sum()
        return probabilities

    def fill(self, text: str, count: int) -> list[list[tuple[str, float]]]:
        """Return the `count` most probable tokens, with their probabilities, for each [MASK].

        Each position is predicted from the text around it, in which the others are masked, too.
        Raises InputError for a text without [MASK], and for one that is too long.
        """
        first, *others = self.tokenizer.encode(text.split(MASKS[0]))
        if not others:
            raise InputError(f"no {MASKS[0]} in the text", found=repr(text)[:80])
        parts, positions = [first], []
        for part in others:
            positions.append(sum(map(len, parts)))
            parts += [np.array([self.mask], np.int32), part]
        ids = np.concatenate(parts)
        if len(ids) > self.token_budget:
            raise InputError(
                "the text is too long for the model",
                wanted=f"at most {self.token_budget} tokens",
                found=str(len(ids)),
            )
        names, filled = self.tokenizer.id_to_token(), []
        for position in positions:
            probabilities = self.predict(ids, position)
            best = best_first(probabilities, count)
            filled.append([(names[n], float(probabilities[n])) for n in best])
        return filled

    def embed(self, ids: Ids) -> Float32s:
        """Return a text's unit vector (hidden,): the mean of its tokens' last-layer vectors."""
        return self._run("vector", ids, 0)

    def _run(self, output: str, ids: Ids, position: int) -> Float32s:
        feed = {
            "ids": self.tokenizer.single_input(ids).astype(np.int64)[None],  # (1, S)
            "place": np.array([position], np.int64),  # (1,)
        }
        row: Float32s = self._session.run([output], feed)[0][0]
        return row


def _build_graph(checkpoint: Checkpoint) -> tuple[bytes, dict[str, NDArray[Any]]]:
    """Return the ONNX model and its weights.

    Inputs: `ids` int64 (1, S), and `place` int64 (1,), a position in it. Outputs, float32: `scores`
    (1, V), the logit of each token of the vocabulary at that position, and `vector` (1, H).
    """
    from onnx import TensorProto, helper

    config, names, head = checkpoint.config, checkpoint.family.names, checkpoint.family.masked
    graph = new_graph(checkpoint)
    x = embeddings(graph, names, config, typed=False)  # (1, S, H)
    x = encoder_layers(graph, x, names, config, config.layers, cls_only=False)[-1]
    vector = pool(graph, x, Pooling("mean"))  # (1, H)
    rows = graph.add("Reshape", x, graph.constant(np.array([-1, config.hidden])))  # (S, H)
    x = graph.add("Gather", rows, "place")  # (1, H)
    x = graph.linear(x, head.linear, config.embedding, config.hidden)  # (1, E)
    x = graph.norm(
        graph.activate(x, config.activation), head.norm, config.embedding, config.epsilon
    )
    tokens = graph.tensor(f"{names.words}.weight", config.vocabulary, config.embedding)  # (V, E)
    bias = graph.tensor(head.bias, config.vocabulary)
    scores = graph.dense(x, Linear("words.transposed", tokens, bias))  # (1, V)
    graph.name_output(scores, "scores")
    graph.name_output(vector, "vector")
    inputs = [
        helper.make_tensor_value_info("ids", TensorProto.INT64, [1, "S"]),
        helper.make_tensor_value_info("place", TensorProto.INT64, [1]),
    ]
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, size])
        for name, size in (("scores", config.vocabulary), ("vector", config.hidden))
    ]
    return graph.serialize("birchbark", inputs, outputs), graph.weights
