"""How is a transformer layer computed during training?

This is `transformer_layer` of score/encoder_layers.py in torch. Shapes: T tokens of all inputs, N
inputs, L tokens per input, H hidden dimensions, A attention heads, D = H / A.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from birchbark.checkpoint.encoder_config import EncoderConfig
from birchbark.checkpoint.encoder_modules import lacks
from birchbark.checkpoint.families import Names
from birchbark.checkpoint.positions import RelativePositions
from birchbark.train.modules import Modules
from birchbark.train.packed_attention import AttentionSettings, attend, attend_with_scores
from birchbark.train.packed_inputs import Spans
from birchbark.train.positions import ScoreTerm, distance_term, rotated, window_term


@dataclass(slots=True)
class HiddenStates:
    """Intermediate results for packed inputs.

    keeps_attention: whether attention scores are kept; without them attention is faster.
    embedded: the output of the embedding layer (T, H).
    hidden: the output of each layer (T, H).
    attention: for each layer and each block of inputs, the attention scores before softmax
    (inputs, A, L, L).
    """

    keeps_attention: bool = True
    embedded: Any = None
    hidden: list[Any] = field(default_factory=list)
    attention: list[list[Any]] = field(default_factory=list)


class TransformerLayer:
    """One layer of an encoder.

    modules: the weights. names, number, config: where those of this layer are, and their sizes.
    """

    def __init__(self, modules: Modules, names: Names, number: int, config: EncoderConfig) -> None:
        self._modules, self._names = modules, names
        self._number, self._config = number, config

    def compute(
        self, x: Any, spans: Spans, places: Any, cls_only: bool, states: HiddenStates | None
    ) -> Any:
        """Apply the layer: (T, H) → (T, H), or (N, H) if `cls_only`.

        places: the position of each token in its input (T,); not read if the embeddings contain the
        positions. states: if given, attention scores are added to it.
        """
        modules, config = self._modules, self._config
        read = self._norm(x, "attended_norm") if config.prenorm else x  # (T, H)
        x = x[spans.starts] if cls_only else x  # (N, H) or (T, H)
        asking = x  # what queries are computed from, (N, H) or (T, H)
        if config.prenorm:
            asking = read[spans.starts] if cls_only else read
        context = self._attended(asking, read, spans, places, states)
        x = x + modules.drop(modules.linear(context, self._at("attended")))
        if config.prenorm:
            read = self._norm(x, "outer_norm")
        else:
            read = x = self._norm(x, "attended_norm")
        inner = modules.linear(read, self._at("inner"))  # (…, I), or (…, 2 · I) if gated
        if config.gated:
            inner, gate = inner.chunk(2, -1)
            inner = modules.activate(inner, config.activation) * gate
        else:
            inner = modules.activate(inner, config.activation)
        x = x + modules.drop(modules.linear(inner, self._at("outer")))
        return x if config.prenorm else self._norm(x, "outer_norm")

    def _at(self, part: str) -> str:
        """Return the name of a module; part: its field in Names."""
        pattern: str = getattr(self._names, part)
        return pattern.format(i=self._number, group=self._config.group(self._number))

    def _norm(self, x: Any, part: str) -> Any:
        absent = lacks(part, self._number, self._config)
        return x if absent else self._modules.norm(x, self._at(part))

    def _attended(
        self, asking: Any, x: Any, spans: Spans, places: Any, states: HiddenStates | None
    ) -> Any:
        """Apply attention: (T, H) → the shape of `asking`, from which queries are computed."""
        modules, config, rotary = self._modules, self._config, self._config.rotary
        first = spans.starts if len(asking) < len(x) else slice(None)
        if self._names.fused:
            query, key, value = modules.linear(x, self._at("fused")).chunk(3, -1)  # (T, H) each
            query = query[first]  # (N, H) or (T, H)
        else:
            query = modules.linear(asking, self._at("query"))  # (N, H) or (T, H)
            key, value = (modules.linear(x, self._at(part)) for part in ("key", "value"))  # (T, H)
        term: ScoreTerm | None = None
        if rotary:
            base, window = rotary.bases[self._number], rotary.windows[self._number]
            query = rotated(query, places[first], base, config.heads)
            key = rotated(key, places, base, config.heads)
            term = window_term(window) if window else None
        elif config.relative:
            term = self._distance_term(config.relative)
        settings = AttentionSettings(
            config.heads, modules.dropout_now, config.attention_scale, term
        )
        if states and states.keeps_attention:
            context, scores = attend_with_scores(query, key, value, spans, settings)
            states.attention.append(scores)
            return context
        return attend(query, key, value, spans, settings)

    def _distance_term(self, relative: RelativePositions) -> ScoreTerm:
        """Return the score term of relative positions."""
        modules = self._modules
        table = modules.weights[f"{self._names.relative}.weight"]  # (2 · span, H)
        table = modules.drop(self._norm(table, "relative_norm"))
        queries, keys = (modules.linear(table, self._at(part)) for part in ("query", "key"))
        return distance_term(relative, queries, keys, self._config.attention_scale)
