"""How does BERT compute its outputs during training?

This is the network of score/graph.py in torch (Devlin et al. 2019). The tokens of all inputs are
packed into one row (packed_inputs.py). Linear layers and norms are applied to all tokens (T, H) at
once (transformer_layer.py). If the output depends on [CLS] alone, the last layer is computed for
[CLS] alone. Weights keep their stored names, so that a trained network can be saved without
renaming.

Shapes: T tokens of all inputs, N inputs, L tokens per input, H hidden dimensions, A attention
heads, D = H / A.
"""

from __future__ import annotations

import contextlib
from itertools import groupby
from typing import Any

from birchbark.checkpoint.architecture import CLS, Architecture
from birchbark.checkpoint.encoder_config import EncoderConfig
from birchbark.checkpoint.families import Family
from birchbark.checkpoint.heads import (
    PARADE_LAYERS,
    PARADE_NAMES,
    PARADE_POSITION_COUNT,
    PARADE_POSITIONS,
    PARADE_WEIGHTS,
    unsupported_aggregation,
    unsupported_pooling,
)
from birchbark.train.modules import Modules, Weights
from birchbark.train.packed_inputs import PackedInputs, Spans
from birchbark.train.transformer_layer import HiddenStates, TransformerLayer

SCALE = 20.0  # the logit for a cosine of 1, as in the losses of sentence-transformers


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
        self.weights, self.config, self.family = weights, config, family
        self.architecture, self.recomputes = architecture, False
        self.modules = Modules(weights, config.epsilon, dropout)
        self._layers = [
            TransformerLayer(self.modules, family.names, i, config) for i in range(config.layers)
        ]

    def training_logits(self, inputs: PackedInputs, states: HiddenStates | None = None) -> Any:
        """Return the log-odds of relevance with dropout, float32, in the order before sorting.

        The shape is (N,), for a bi-encoder (pairs,), for PARADE (documents,).
        states: if given, it is filled with intermediate results; the last layer is then computed
        for all tokens.
        """
        self.modules.training = True
        return self._logits(inputs, states)

    def score(self, inputs: PackedInputs) -> Any:
        """Return the log-odds of relevance without dropout and gradients; see `training_logits`."""
        import torch

        self.modules.training = False
        with torch.inference_mode():
            return self._logits(inputs)

    def hidden_states(self, inputs: PackedInputs, *, keeps_attention: bool = True) -> HiddenStates:
        """Return the intermediate results, without dropout and gradients."""
        import torch

        self.modules.training, states = False, HiddenStates(keeps_attention)
        with torch.no_grad():
            self._logits(inputs, states)
        return states

    def vectors(self, inputs: PackedInputs) -> Any:
        """Return a bi-encoder's vectors, of length 1, (N, H), in the order before sorting."""
        import torch

        self.modules.training = False
        with torch.inference_mode():
            return self._text_vectors(self._encode(inputs, None, cls_only=False).float(), inputs)

    def token_logits(self, inputs: PackedInputs, positions: Any, *, training: bool) -> Any:
        """Return, per masked position, the logits of all tokens, float32 (masked, vocabulary).

        positions: indices into the row of tokens (masked,). training: whether dropout and gradients
        are on.
        """
        import torch

        self.modules.training = training
        with contextlib.nullcontext() if training else torch.inference_mode():
            x = self._encode(inputs, None, cls_only=False)  # (T, H)
            head = self.family.masked
            x = self.modules.linear(x[positions], head.linear)  # (masked, embedding)
            x = self.modules.norm(self.modules.activate(x, self.config.activation), head.norm)
            table = self.weights[f"{self.family.names.words}.weight"]  # (vocabulary, embedding)
            return (x @ table.T).float() + self.weights[head.bias]  # (masked, vocabulary)

    def _encode(self, inputs: PackedInputs, states: HiddenStates | None, *, cls_only: bool) -> Any:
        """Return the output of the last layer: (T, H), or (N, H) if `cls_only`."""
        from torch.utils.checkpoint import checkpoint

        x = self._embed(inputs)  # (T, H)
        if states:
            states.embedded = x
        for number, layer in enumerate(self._layers, 1):
            last = number == len(self._layers)
            arguments = x, inputs.spans, inputs.positions, last and cls_only and not states, states
            if self.recomputes and self.modules.training and not states:
                x = checkpoint(layer.compute, *arguments, use_reentrant=False)
            else:
                x = layer.compute(*arguments)  # (T, H), or (N, H)
            if last and self.family.names.final_norm:
                x = self.modules.norm(x, self.family.names.final_norm)
            if states:
                states.hidden.append(x)
                x = x[inputs.spans.starts] if last and cls_only else x
        return x

    def _logits(self, inputs: PackedInputs, states: HiddenStates | None = None) -> Any:
        import torch

        reads = "cls" if self.architecture.parade else self.family.reads
        cls_only = not self.architecture.pooling and reads == "cls"
        x = self._encode(inputs, states, cls_only=cls_only)
        with torch.autocast(x.device.type, enabled=False):
            if self.architecture.pooling:
                return self._cosines(x.float(), inputs)  # (pairs,)
            if self.architecture.parade:
                return self._document_logits(self._passage_vectors(x.float()), inputs)
            x = x.float() if cls_only else self._pooled(x.float(), inputs, reads)  # (N, H)
            logits = self._head(x)[:, 0]  # (N,)
        return inputs.unsorted(logits)

    def _cosines(self, x: Any, inputs: PackedInputs) -> Any:
        """Return SCALE times the cosine between the two inputs of each pair, (pairs,)."""
        vectors = self._text_vectors(x, inputs)
        pairs = vectors.view(-1, 2, vectors.shape[1])  # (pairs, 2, H)
        return SCALE * (pairs[:, 0] * pairs[:, 1]).sum(1)

    def _text_vectors(self, x: Any, inputs: PackedInputs) -> Any:
        """Pool the tokens of each input: (N, H), of length 1, in the order before sorting."""
        from torch.nn.functional import normalize

        return inputs.unsorted(normalize(self._pooled(x, inputs, self.architecture.pooling)))

    def _pooled(self, x: Any, inputs: PackedInputs, mode: str | None) -> Any:
        """Pool the tokens (T, H) of each input: (N, H), in sorted order."""
        import torch

        return torch.cat([self._pool(tokens, mode) for tokens in inputs.split(x)])

    def _pool(self, tokens: Any, mode: str | None) -> Any:
        """Pool token vectors (inputs, L, H) into text vectors (inputs, H)."""
        match mode:
            case "cls":
                return tokens[:, 0]
            case "mean":
                return tokens.mean(1)
            case "max":
                return tokens.amax(1)
            case unknown:
                raise unsupported_pooling(unknown)

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
            by_count.append(
                self.modules.linear(self.modules.drop(aggregated), self.family.logits)[:, 0]
            )
        logits = torch.cat(by_count)  # (documents,), by number of passages
        indices = torch.tensor(order, device=logits.device)
        return torch.empty_like(logits).index_copy(0, indices, logits)

    def _aggregate(self, passages: Any, count: int) -> Any:
        """Aggregate passage vectors (d, count, H) into document vectors (d, H).

        See PARADE (Li et al. 2020).
        """
        match self.architecture.parade:
            case "avg":
                return passages.mean(1)
            case "max":
                return passages.amax(1)
            case "attn":
                weights = passages @ self.weights[PARADE_WEIGHTS["attn"]].T  # (d, count, 1)
                return (weights.softmax(1) * passages).sum(1)
            case "transformer":
                return self._by_transformer(passages, count)
            case unknown:
                raise unsupported_aggregation(unknown)

    def _by_transformer(self, passages: Any, count: int) -> Any:
        """Aggregate as `_aggregate` does, by layers that attend to all passages."""
        import torch

        positions = torch.arange(count, device=passages.device).clamp(max=PARADE_POSITION_COUNT - 1)
        passages = passages + self.weights[PARADE_POSITIONS][positions]
        cls = self.weights[PARADE_WEIGHTS["transformer"]].expand(len(passages), 1, -1)  # (d, 1, H)
        x = torch.cat([cls, passages], 1).reshape(-1, passages.shape[2])  # (d · (count + 1), H)
        spans = Spans.of([count + 1] * len(passages), x.device)
        config = self.config.as_bert(PARADE_LAYERS)
        for number in range(PARADE_LAYERS):
            layer = TransformerLayer(self.modules, PARADE_NAMES, number, config)
            x = layer.compute(x, spans, None, number == PARADE_LAYERS - 1, None)
        return x  # (d, H)

    def _embed(self, inputs: PackedInputs) -> Any:
        """Return the normalised sum of token, position and type embeddings, (T, H)."""
        from torch.nn.functional import embedding

        names, config = self.family.names, self.config
        x = embedding(inputs.ids, self.weights[f"{names.words}.weight"])  # (T, embedding)
        if names.positions:
            positions = inputs.positions + config.offset
            x = x + embedding(positions, self.weights[f"{names.positions}.weight"])
        if names.types and config.types:
            types = inputs.types.clamp(max=config.types - 1)
            x = x + embedding(types, self.weights[f"{names.types}.weight"])
        x = self.modules.drop(self.modules.norm(x, names.embedded))
        if names.widen and f"{names.widen}.weight" in self.weights:
            x = self.modules.linear(x, names.widen)
        return x  # (T, H)

    def _head(self, x: Any) -> Any:
        """Compute one logit from each [CLS] vector or mean: (N, H) → (N, 1).

        It is always computed in float32, because bf16 would make the logits of many inputs equal.
        """
        return self.modules.linear(self.modules.drop(self._transform(x)), self.family.logits)

    def _transform(self, x: Any) -> Any:
        transform, activation = self.family.transform
        x = self.modules.drop(x) if self.family.drops_first else x
        x = self.modules.activate(self.modules.linear(x, transform), activation)
        norm = self.family.transform_norm
        return self.modules.norm(x, norm) if norm else x
