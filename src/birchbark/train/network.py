"""How does BERT compute its outputs during training?

This is the network of score/graph.py in torch (Devlin et al. 2019). The tokens of all inputs are
packed into one row (packed_inputs.py). Linear layers and norms are applied to all tokens (T, H) at
once; for attention see attention.py. If the output depends on [CLS] alone, the last layer is
computed for [CLS] alone. Weights keep their stored names, so that a trained network can be saved
without renaming.

Shapes: T tokens of all inputs, N inputs, L tokens per input, H hidden dimensions, A attention
heads, D = H / A.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from birchbark.checkpoint.architecture import CLS, Architecture
from birchbark.checkpoint.encoder_config import EncoderConfig
from birchbark.checkpoint.families import Family, Names
from birchbark.checkpoint.heads import (
    PARADE_LAYERS,
    PARADE_NAMES,
    PARADE_POSITION_COUNT,
    PARADE_POSITIONS,
    PARADE_WEIGHTS,
)
from birchbark.train.attention import attend, attend_with_scores
from birchbark.train.packed_inputs import PackedInputs, Spans

SCALE = 20.0  # the logit for a cosine of 1, as in the losses of sentence-transformers
Weights = Mapping[str, Any]


@dataclass(slots=True)
class HiddenStates:
    """Intermediate results for packed inputs.

    keeps_attention: whether attention scores are kept; without them attention is faster.
    embedded: the output of the embedding layer (T, H).
    hidden: the output of each layer (T, H).
    attention: for each layer and each group of inputs, the attention scores before softmax
    (inputs, A, L, L).
    """

    keeps_attention: bool = True
    embedded: Any = None
    hidden: list[Any] = field(default_factory=list)
    attention: list[list[Any]] = field(default_factory=list)


class Network:
    """BERT with the output that `architecture` describes: by default one logit computed from [CLS].

    weights: tensors by name, without the family's prefix; those that are trained require gradients.
    dropout: the probability of dropout on hidden values and attention weights, in training only.
    recomputes: whether a layer's intermediate values are computed again for the gradient instead of
    being kept: less memory for one more forward pass (Chen et al. 2016).
    """

    def __init__(
        self,
        weights: Weights,
        config: EncoderConfig,
        family: Family,
        dropout: float,
        architecture: Architecture = Architecture(),
    ) -> None:
        self.weights, self.config, self.family, self.dropout = weights, config, family, dropout
        self.architecture, self._training, self.recomputes = architecture, False, False

    def training_logits(self, inputs: PackedInputs, states: HiddenStates | None = None) -> Any:
        """Return the log-odds of relevance with dropout, float32, in the order before sorting.

        The shape is (N,), for a bi-encoder (pairs,), for PARADE (documents,).
        states: if given, it is filled with intermediate results; the last layer is then computed
        for all tokens.
        """
        self._training = True
        return self._logits(inputs, states)

    def score(self, inputs: PackedInputs) -> Any:
        """Return the log-odds of relevance without dropout and gradients; see `training_logits`."""
        import torch

        self._training = False
        with torch.inference_mode():
            return self._logits(inputs)

    def hidden_states(self, inputs: PackedInputs, *, keeps_attention: bool = True) -> HiddenStates:
        """Return the intermediate results, without dropout and gradients."""
        import torch

        self._training, states = False, HiddenStates(keeps_attention)
        with torch.no_grad():
            self._logits(inputs, states)
        return states

    def vectors(self, inputs: PackedInputs) -> Any:
        """Return a bi-encoder's vectors, of length 1, (N, H), in the order before sorting."""
        import torch

        self._training = False
        with torch.inference_mode():
            return self._text_vectors(self._encode(inputs, None).float(), inputs)

    def token_logits(self, inputs: PackedInputs, positions: Any, *, training: bool) -> Any:
        """Return, per masked position, the logits of all tokens, float32 (masked, vocabulary).

        positions: indices into the row of tokens (masked,). training: whether dropout and gradients
        are on.
        """
        import torch

        self._training = training
        with contextlib.nullcontext() if training else torch.inference_mode():
            x = self._embed(inputs)  # (T, H)
            for layer in range(self.config.layers):
                x = self._layer(x, layer, inputs, cls_only=False, states=None)  # (T, H)
            head = self.family.masked
            x = self._linear(x[positions], head.linear)  # (masked, embedding)
            x = self._norm(self._activate(x, self.config.activation), head.norm)
            table = self.weights[f"{self.family.names.words}.weight"]  # (vocabulary, embedding)
            return (x @ table.T).float() + self.weights[head.bias]  # (masked, vocabulary)

    def _encode(self, inputs: PackedInputs, states: HiddenStates | None) -> Any:
        """Return the output of the last layer: (T, H) with pooling, (N, H) otherwise."""
        x = self._embed(inputs)  # (T, H)
        if states:
            states.embedded = x
        for layer in range(self.config.layers):
            last = layer == self.config.layers - 1 and not self.architecture.pooling
            x = self._layer(x, layer, inputs, last and not states, states)  # (T, H), last (N, H)
            if states:
                states.hidden.append(x)
                x = x[inputs.spans.starts] if last else x
        return x

    def _logits(self, inputs: PackedInputs, states: HiddenStates | None = None) -> Any:
        import torch

        x = self._encode(inputs, states)
        with torch.autocast(x.device.type, enabled=False):
            if self.architecture.pooling:
                return self._cosines(x.float(), inputs)  # (pairs,)
            if self.architecture.parade:
                return self._document_logits(self._passage_vectors(x.float()), inputs)
            logits = self._head(x.float())[:, 0]  # (N,)
        return inputs.unsorted(logits)

    def _cosines(self, x: Any, inputs: PackedInputs) -> Any:
        """Return SCALE times the cosine between the two inputs of each pair, (pairs,)."""
        vectors = self._text_vectors(x, inputs)
        pairs = vectors.view(-1, 2, vectors.shape[1])  # (pairs, 2, H)
        return SCALE * (pairs[:, 0] * pairs[:, 1]).sum(1)

    def _text_vectors(self, x: Any, inputs: PackedInputs) -> Any:
        """Pool the tokens of each input: (N, H), of length 1, in the order before sorting."""
        import torch
        from torch.nn.functional import normalize

        pooled = torch.cat([self._pool(tokens) for tokens in inputs.split(x)])  # (N, H)
        return inputs.unsorted(normalize(pooled))

    def _pool(self, tokens: Any) -> Any:
        """Pool token vectors (inputs, L, H) into text vectors (inputs, H)."""
        if self.architecture.pooling == "max":
            return tokens.amax(1)
        return tokens.mean(1) if self.architecture.pooling == "mean" else tokens[:, 0]

    def _passage_vectors(self, x: Any) -> Any:
        """Turn the [CLS] vectors of passages (N, H) into the vectors that are aggregated."""
        return x if self.architecture.passage_vectors == CLS else self._transform(x)

    def _document_logits(self, vectors: Any, inputs: PackedInputs) -> Any:
        """Return the logits of documents (documents,).

        vectors: the passages' vectors (N, H), in sorted order. Documents with the same number of
        passages are computed together.
        """
        import torch

        documents = inputs.unsorted(vectors).split(inputs.documents)  # (passages, H) each
        order = sorted(range(len(documents)), key=lambda i: inputs.documents[i])
        by_count = []
        for count, equal in groupby(order, key=lambda i: inputs.documents[i]):
            passages = torch.stack([documents[i] for i in equal])  # (d, count, H)
            aggregated = self._aggregate(passages, count)  # (d, H)
            by_count.append(self._linear(self._drop(aggregated), self.family.logits)[:, 0])
        logits = torch.cat(by_count)  # (documents,), by number of passages
        indices = torch.tensor(order, device=logits.device)
        return torch.empty_like(logits).index_copy(0, indices, logits)

    def _aggregate(self, passages: Any, count: int) -> Any:
        """Aggregate passage vectors (d, count, H) into document vectors (d, H).

        See PARADE (Li et al. 2020).
        """
        import torch

        if self.architecture.parade == "avg":
            return passages.mean(1)
        if self.architecture.parade == "max":
            return passages.amax(1)
        if self.architecture.parade == "attn":
            weights = passages @ self.weights[PARADE_WEIGHTS["attn"]].T  # (d, count, 1)
            return (weights.softmax(1) * passages).sum(1)
        positions = torch.arange(count, device=passages.device).clamp(max=PARADE_POSITION_COUNT - 1)
        passages = passages + self.weights[PARADE_POSITIONS][positions]
        cls = self.weights[PARADE_WEIGHTS["transformer"]].expand(len(passages), 1, -1)  # (d, 1, H)
        x = torch.cat([cls, passages], 1).reshape(-1, passages.shape[2])  # (d · (count + 1), H)
        offsets = torch.arange(0, len(x) + 1, count + 1, device=x.device)  # (d + 1,)
        spans = Spans(((len(passages), count + 1),), offsets)
        for layer in range(PARADE_LAYERS):
            last = layer == PARADE_LAYERS - 1
            x = self._block(x, PARADE_NAMES, (layer, layer), spans, last, None)
        return x  # (d, H)

    def _embed(self, inputs: PackedInputs) -> Any:
        """Return the normalised sum of token, position and type embeddings, (T, H)."""
        from torch.nn.functional import embedding

        names, config = self.family.names, self.config
        x = embedding(inputs.ids, self.weights[f"{names.words}.weight"])  # (T, embedding)
        positions = inputs.positions + config.offset
        x = x + embedding(positions, self.weights[f"{names.positions}.weight"])
        if names.types:
            types = inputs.types.clamp(max=config.types - 1)
            x = x + embedding(types, self.weights[f"{names.types}.weight"])
        x = self._drop(self._norm(x, names.embedded))
        if names.widen and f"{names.widen}.weight" in self.weights:
            x = self._linear(x, names.widen)
        return x  # (T, H)

    def _layer(
        self,
        x: Any,
        layer: int,
        inputs: PackedInputs,
        cls_only: bool,
        states: HiddenStates | None,
    ) -> Any:
        """Compute one encoder layer: (T, H), or (N, H) if `cls_only`."""
        from torch.utils.checkpoint import checkpoint

        number = layer, self.config.group(layer)
        arguments = x, self.family.names, number, inputs.spans, cls_only, states
        if self.recomputes and self._training and not states:
            return checkpoint(self._block, *arguments, use_reentrant=False)
        return self._block(*arguments)

    def _block(
        self,
        x: Any,
        names: Names,
        number: tuple[int, int],
        spans: Spans,
        cls_only: bool,
        states: HiddenStates | None,
    ) -> Any:
        """Compute one transformer layer: (T, H), or (N, H) if `cls_only`.

        x: its input (T, H). number: the number of the layer, and of the group of layers that it
        shares weights with.
        """

        def name(pattern: str) -> str:
            return pattern.format(i=number[0], group=number[1])

        residual = x[spans.starts] if cls_only else x  # (N, H) or (T, H)
        query = self._linear(residual, name(names.query))
        key, value = self._linear(x, name(names.key)), self._linear(x, name(names.value))  # (T, H)
        arguments = query, key, value, spans, self.config.heads, self._dropout
        if states and states.keeps_attention:
            context, scores = attend_with_scores(*arguments)  # the shape of residual
            states.attention.append(scores)
        else:
            context = attend(*arguments)
        x = residual + self._drop(self._linear(context, name(names.attended)))
        x = self._norm(x, name(names.attended_norm))
        inner = self._activate(self._linear(x, name(names.inner)), self.config.activation)
        x = x + self._drop(self._linear(inner, name(names.outer)))  # inner: (…, intermediate)
        return self._norm(x, name(names.outer_norm))

    def _head(self, x: Any) -> Any:
        """Compute one logit from each [CLS] vector: (N, H) → (N, 1).

        It is always computed in float32, because bf16 would make the logits of many inputs equal.
        """
        return self._linear(self._drop(self._transform(x)), self.family.logits)

    def _transform(self, x: Any) -> Any:
        transform, activation = self.family.transform
        x = self._drop(x) if self.family.drops_first else x
        return self._activate(self._linear(x, transform), activation)

    def _linear(self, x: Any, name: str) -> Any:
        from torch.nn.functional import linear

        return linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def _norm(self, x: Any, name: str) -> Any:
        from torch.nn.functional import layer_norm

        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return layer_norm(x, weight.shape, weight, bias, self.config.epsilon)

    def _drop(self, x: Any) -> Any:
        from torch.nn.functional import dropout

        return dropout(x, self._dropout) if self._dropout else x

    @property
    def _dropout(self) -> float:
        """The probability of dropout, which is 0 outside training."""
        return self.dropout if self._training else 0.0

    @staticmethod
    def _activate(x: Any, name: str) -> Any:
        from torch.nn.functional import gelu, relu

        if name == "tanh":
            return x.tanh()
        if name == "relu":
            return relu(x)
        return gelu(x, approximate="none" if name == "gelu" else "tanh")
