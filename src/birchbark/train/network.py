"""How does BERT learn? The network that score/graph.py writes, in torch, with gradients.

Tokens of all inputs stand in one row, without padding: linear layers and norms see (tokens, width),
and only attention looks at inputs, those of one length together. The last layer is computed for
[CLS] alone. Weights keep the names that they are stored by, so that what is trained can be saved
without being taken apart. Devlin et al. 2019.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np

from birchbark.checkpoint.families import Family, Names
from birchbark.checkpoint.heads import PARADE_LAYERS, PARADE_NAMES, PARADE_WEIGHTS
from birchbark.checkpoint.shape import Shape
from birchbark.records import Ids

SCALE = 20.0  # log-odds of a cosine of 1; that of sentence-transformers' losses
Weights = Mapping[str, Any]
Groups = tuple[tuple[int, int], ...]  # how many inputs of which length


@dataclass(frozen=True, slots=True)
class Inputs:
    """Inputs of BERT as one row of tokens, shortest input first.

    ids, types, positions: int64 (tokens,). groups: how many inputs of which length, in this order.
    starts: (inputs,) where each begins. order: (inputs,) its place among those that were given.
    documents: of how many inputs each document has, in the order given.
    """

    ids: Any
    types: Any
    positions: Any
    groups: Groups
    starts: Any
    order: Any
    documents: tuple[int, ...]

    @classmethod
    def of(
        cls, pairs: Sequence[tuple[Ids, Ids]], device: Any, documents: Sequence[int] = ()
    ) -> Inputs:
        """`pairs` of token ids and types, each with its special tokens; one a document, if none."""
        import torch

        lengths = np.array([len(ids) for ids, _ in pairs])
        order = np.argsort(lengths, kind="stable")
        ordered = lengths[order]
        starts = np.cumsum(ordered) - ordered
        arrays = (
            np.concatenate([pairs[i][0] for i in order]).astype(np.int64),
            np.concatenate([pairs[i][1] for i in order]).astype(np.int64),
            np.arange(ordered.sum()) - np.repeat(starts, ordered),
            starts,
            order,
        )
        ids, types, positions, begin, places = (torch.from_numpy(a).to(device) for a in arrays)
        groups = tuple((len(list(some)), int(length)) for length, some in groupby(ordered))
        counts = tuple(documents) or (1,) * len(pairs)
        return cls(ids, types, positions, groups, begin, places, counts)


@dataclass(slots=True)
class States:
    """What a network computes on the way to its logits, for inputs as they stand in `Inputs`.

    embedded: (tokens, hidden). hidden: of each layer (tokens, hidden). attention: of each layer and
    group of inputs (count, heads, length, length), before softmax.
    """

    embedded: Any = None
    hidden: list[Any] = field(default_factory=list)
    attention: list[list[Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Form:
    """What is read, and what is said of it: without any of these a pair has a logit of [CLS].

    parade: how passages become documents, which then have a logit each. pooling: how tokens become
    a vector, where query and text are read apart, two inputs a pair: its logit is then SCALE times
    their cosine. duo: whether inputs are comparisons of two texts. masked: whether it says which
    tokens were hidden, instead of a logit.
    """

    parade: str | None = None
    pooling: str | None = None
    duo: bool = False
    masked: bool = False


class Network:
    """BERT with one logit, or what `form` has in its place (`predict` of a masked one).

    weights: name without the family's prefix → tensor, with gradients where it learns. dropout: of
    hidden values and of attention, by torch's own chance; used in training alone.
    """

    def __init__(
        self,
        weights: Weights,
        shape: Shape,
        family: Family,
        dropout: float,
        form: Form = Form(),
    ) -> None:
        self.weights, self.shape, self.family, self.dropout = weights, shape, family, dropout
        self.form, self._training = form, False

    def learn(self, inputs: Inputs, states: States | None = None) -> Any:
        """Log-odds of relevance, float32 (inputs,), in the order given, with dropout.

        states: to be filled, if asked for; the last layer is then computed for all tokens.
        """
        self._training = True
        return self._logits(inputs, states)

    def predict(self, inputs: Inputs, places: Any, *, learns: bool) -> Any:
        """Scores of all tokens (places, vocabulary), float32, of what was hidden.

        places: of the row of all tokens. learns: with dropout and gradients.
        """
        import torch

        self._training = learns
        with contextlib.nullcontext() if learns else torch.inference_mode():
            x = self._embed(inputs)
            for layer in range(self.shape.layers):
                x = self._layer(x, layer, inputs, cls_only=False, states=None)
            head = self.family.masked
            x = self._linear(x[places], head.linear)
            x = self._norm(self._activate(x, self.shape.activation), head.norm)
            words = self.weights[f"{self.family.names.words}.weight"]
            return (x @ words.T).float() + self.weights[head.bias]

    def show(self, inputs: Inputs) -> States:
        """What it computes on the way, without dropout and gradients."""
        import torch

        self._training, states = False, States()
        with torch.no_grad():
            self._logits(inputs, states)
        return states

    def score(self, inputs: Inputs) -> Any:
        """As `learn`, but as the model ranks: without dropout and gradients."""
        import torch

        self._training = False
        with torch.inference_mode():
            return self._logits(inputs)

    def _logits(self, inputs: Inputs, states: States | None = None) -> Any:
        import torch

        x = self._embed(inputs)
        if states:
            states.embedded = x
        for layer in range(self.shape.layers):
            last = layer == self.shape.layers - 1 and not self.form.pooling
            x = self._layer(x, layer, inputs, last and not states, states)
            if states:
                states.hidden.append(x)
                x = x[inputs.starts] if last else x
        with torch.autocast(x.device.type, enabled=False):
            if self.form.pooling:
                return self._cosines(x.float(), inputs)
            if self.form.parade:
                return self._documents(self._transformed(x.float()), inputs)
            logits = self._head(x.float())[:, 0]
        return torch.empty_like(logits).index_copy(0, inputs.order, logits)

    def _cosines(self, x: Any, inputs: Inputs) -> Any:
        """SCALE times the cosines (pairs,) of each two inputs, in the order given."""
        import torch
        from torch.nn.functional import normalize

        parts = x.split([count * length for count, length in inputs.groups])
        stacked = [
            part.view(count, length, -1)
            for (count, length), part in zip(inputs.groups, parts, strict=True)
        ]
        pooled = torch.cat([self._pooled(some) for some in stacked])
        given = torch.empty_like(pooled).index_copy(0, inputs.order, normalize(pooled))
        pairs = given.view(-1, 2, given.shape[1])
        return SCALE * (pairs[:, 0] * pairs[:, 1]).sum(1)

    def _pooled(self, tokens: Any) -> Any:
        """Vectors (inputs, hidden) of their tokens' (inputs, length, hidden)."""
        if self.form.pooling == "max":
            return tokens.amax(1)
        return tokens.mean(1) if self.form.pooling == "mean" else tokens[:, 0]

    def _documents(self, vectors: Any, inputs: Inputs) -> Any:
        """Logits (documents,) of passages' vectors (inputs, hidden), as inputs stand in order.

        Documents of equally many passages are computed together.
        """
        import torch

        given = torch.empty_like(vectors).index_copy(0, inputs.order, vectors)
        parts = given.split(inputs.documents)
        order = sorted(range(len(parts)), key=lambda i: inputs.documents[i])
        found = []
        for count, some in groupby(order, key=lambda i: inputs.documents[i]):
            stacked = torch.stack([parts[i] for i in some])
            one = self._aggregated(stacked, count)
            found.append(self._linear(self._drop(one), self.family.logits)[:, 0])
        logits = torch.cat(found)
        return torch.empty_like(logits).index_copy(
            0, torch.tensor(order, device=logits.device), logits
        )

    def _aggregated(self, vectors: Any, count: int) -> Any:
        """Documents (d, hidden) of their passages (d, count, hidden). Li et al. 2020."""
        import torch

        if self.form.parade == "avg":
            return vectors.mean(1)
        if self.form.parade == "max":
            return vectors.amax(1)
        if self.form.parade == "attn":
            shares = (vectors @ self.weights[PARADE_WEIGHTS["attn"]].T).softmax(1)
            return (shares * vectors).sum(1)
        front = self.weights[PARADE_WEIGHTS["transformer"]].expand(len(vectors), 1, -1)
        x = torch.cat([front, vectors], 1).reshape(-1, vectors.shape[2])
        starts = torch.arange(0, len(x), count + 1, device=x.device)
        groups = ((len(vectors), count + 1),)
        for layer in range(PARADE_LAYERS):
            last = layer == PARADE_LAYERS - 1
            x = self._block(x, PARADE_NAMES, layer, layer, (groups, starts), last, None)
        return x

    def _embed(self, inputs: Inputs) -> Any:
        """Token + position + type vectors, normalised and widened: (tokens, hidden)."""
        from torch.nn.functional import embedding

        names, shape = self.family.names, self.shape
        x = embedding(inputs.ids, self.weights[f"{names.words}.weight"])
        x = x + embedding(
            inputs.positions + shape.offset, self.weights[f"{names.positions}.weight"]
        )
        if names.types:
            types = inputs.types.clamp(max=shape.types - 1)
            x = x + embedding(types, self.weights[f"{names.types}.weight"])
        x = self._drop(self._norm(x, names.embedded))
        if names.widen and f"{names.widen}.weight" in self.weights:
            x = self._linear(x, names.widen)
        return x

    def _layer(
        self, x: Any, number: int, inputs: Inputs, cls_only: bool, states: States | None
    ) -> Any:
        """One layer of the encoder: (tokens, hidden), or (inputs, hidden) for [CLS] alone."""
        names, group = self.family.names, self.shape.group(number)
        where = inputs.groups, inputs.starts
        return self._block(x, names, number, group, where, cls_only, states)

    def _block(
        self,
        x: Any,
        names: Names,
        i: int,
        group: int,
        where: tuple[Groups, Any],
        cls_only: bool,
        states: States | None,
    ) -> Any:
        """One transformer layer. where: see Inputs, groups and starts."""
        groups, starts = where

        def name(pattern: str) -> str:
            return pattern.format(i=i, group=group)

        own = x[starts] if cls_only else x
        query = self._linear(own, name(names.query))
        key, value = self._linear(x, name(names.key)), self._linear(x, name(names.value))
        if states:
            states.attention.append([])
        seen = self._attend(query, key, value, groups, cls_only, states)
        x = own + self._drop(self._linear(seen, name(names.attended)))
        x = self._norm(x, name(names.attended_norm))
        inner = self._activate(self._linear(x, name(names.inner)), self.shape.activation)
        x = x + self._drop(self._linear(inner, name(names.outer)))
        return self._norm(x, name(names.outer_norm))

    def _attend(
        self,
        query: Any,
        key: Any,
        value: Any,
        groups: Groups,
        cls_only: bool,
        states: States | None,
    ) -> Any:
        """What each token takes from the tokens of its own input; always in float32.

        Products of single heads are so small that 16 bits only cost time.
        """
        import torch

        heads, scale = self.shape.heads, (self.shape.hidden // self.shape.heads) ** -0.5
        asking = [count * (1 if cls_only else length) for count, length in groups]
        asked = [count * length for count, length in groups]
        parts = (query.float().split(asking), key.float().split(asked), value.float().split(asked))
        found = []
        with torch.autocast(query.device.type, enabled=False):
            for (count, _), *some in zip(groups, *parts, strict=True):
                q, k, v = (
                    x.view(count, -1, heads, x.shape[1] // heads).transpose(1, 2) for x in some
                )
                scores = q * scale @ k.transpose(2, 3)
                if states:
                    states.attention[-1].append(scores)
                shares = self._drop(scores.softmax(-1))
                found.append((shares @ v).transpose(1, 2).reshape(count * q.shape[2], -1))
        return torch.cat(found)

    def _head(self, x: Any) -> Any:
        """The layer on [CLS] with its activation, then one logit: (inputs, 1).

        Always in float32: logits of 16 bits would be equal for many inputs.
        """
        return self._linear(self._drop(self._transformed(x)), self.family.logits)

    def _transformed(self, x: Any) -> Any:
        transform, activation = self.family.transform
        x = self._drop(x) if self.family.drops_first else x
        return self._activate(self._linear(x, transform), activation)

    def _linear(self, x: Any, name: str) -> Any:
        from torch.nn.functional import linear

        return linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def _norm(self, x: Any, name: str) -> Any:
        from torch.nn.functional import layer_norm

        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return layer_norm(x, weight.shape, weight, bias, self.shape.epsilon)

    def _drop(self, x: Any) -> Any:
        from torch.nn.functional import dropout

        return dropout(x, self.dropout) if self._training and self.dropout else x

    @staticmethod
    def _activate(x: Any, name: str) -> Any:
        from torch.nn.functional import gelu, relu

        if name == "tanh":
            return x.tanh()
        if name == "relu":
            return relu(x)
        return gelu(x, approximate="none" if name == "gelu" else "tanh")
