"""Which modules does an encoder have, and what are the shapes of their weights?"""

from __future__ import annotations

import string
from collections.abc import Iterator
from dataclasses import asdict

from birchbark.checkpoint.encoder_config import EncoderConfig
from birchbark.checkpoint.families import Family

Size = tuple[int, ...]


def encoder_modules(
    family: Family, config: EncoderConfig, sources: tuple[int, ...]
) -> Iterator[tuple[str, str, Size]]:
    """Yield each module of an encoder: its name, its name in the base model, its weights' shape.

    family, config: the encoder's. sources: for each of its layers, the number of the base model's
    layer that it is copied from, counted from 0.
    """
    seen = set()
    for layer in range(config.layers):
        for part, pattern in asdict(family.names).items():
            in_layer = any(field for _, field, _, _ in string.Formatter().parse(pattern))
            module = pattern.format(i=layer, group=config.group(layer))
            if not module or module in seen or (layer and not in_layer):
                continue
            if lacks(part, layer, config):
                continue
            seen.add(module)
            source = pattern.format(i=sources[layer], group=config.group(layer))
            yield module, source, module_size(part, config)


def lacks(part: str, layer: int, config: EncoderConfig) -> bool:
    """Whether an encoder lacks a module that its family has; part: the module's field in Names.

    If layers normalise their inputs, the first one does not: the embeddings are normalised already.
    """
    if part == "types":
        return config.types == 0
    if part == "relative_norm":
        return config.relative is not None and not config.relative.normalised
    return part == "attended_norm" and layer == 0 and config.prenorm


def module_size(part: str, config: EncoderConfig) -> Size:
    """Return the shape of a module's weights; its bias has the first dimension.

    part: name of the module's field in Names.
    """
    hidden, width, inner = config.hidden, config.embedding, config.intermediate
    return {
        "words": (config.vocabulary, width),
        "positions": (config.positions, width),
        "types": (config.types, width),
        "embedded": (width,),
        "widen": (hidden, width),
        "attended_norm": (hidden,),
        "fused": (3 * hidden, hidden),
        "inner": (2 * inner if config.gated else inner, hidden),
        "outer": (hidden, inner),
        "outer_norm": (hidden,),
        "final_norm": (hidden,),
        "relative": (2 * config.relative.span if config.relative else 0, hidden),
        "relative_norm": (hidden,),
    }.get(part, (hidden, hidden))
