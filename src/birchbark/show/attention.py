"""How does a model's attention look on a page that needs nothing but itself?

Figure 5.3 of the birch paper, for all layers and heads.
"""

from __future__ import annotations

import base64
import json
from importlib import resources
from typing import Any

import numpy as np

from birchbark.records import Float32s
from birchbark.score.attention import QUERY, TEXT, Attention
from birchbark.show.drawing import colours
from birchbark.show.page import template

BEST = 4  # tokens of the text that are named for a token of the query


def attention_page(found: Attention, model: str, query: str, text: str) -> str:
    """One HTML page. Raises MissingPackageError without Jinja2."""
    from markupsafe import Markup

    plain = json.dumps(attention_data(found)).replace("<", "\\u003c")  # no token can end the script
    rows = [found.tokens[place] for place in _places(found, QUERY)]
    page: str = template(__package__, "attention.html").render(
        found=found,
        model=model,
        query=query,
        text=text,
        rows=rows,
        table=[_looked_at(found, layer) for layer in found.layers],
        data=Markup(plain),
        colours=Markup(colours()),
        script=Markup(attention_script()),
    )
    return page


def attention_data(found: Attention) -> dict[str, Any]:
    """What the script draws. values: shares as bytes, 255 for all, in base64."""
    return {
        "tokens": found.tokens,
        "sides": found.sides,
        "score": found.score,
        "layers": [
            {"heads": layer.shape[0], "rows": layer.shape[1], "values": _packed(layer)}
            for layer in found.layers
        ],
    }


def attention_script() -> str:
    """Draws that data, wherever a page has room for it."""
    return resources.files(__package__).joinpath("attention.js").read_text("utf-8")


def _packed(layer: Float32s) -> str:
    """Shares as bytes, 255 for all."""
    return base64.b64encode(np.round(layer * 255).astype(np.uint8).tobytes()).decode("ascii")


def _places(found: Attention, side: str) -> list[int]:
    return [place for place, one in enumerate(found.sides) if one == side]


def _looked_at(found: Attention, layer: Float32s) -> list[str]:
    """For each token of the query, tokens of the text; for one row alone, what that looks at."""
    mean: Any = layer.mean(axis=0)
    texts = _places(found, TEXT)
    rows = _places(found, QUERY)
    if len(mean) == 1:
        return [_named(found, mean[0], texts)]
    return [_named(found, mean[row], texts) for row in rows]


def _named(found: Attention, shares: Float32s, places: list[int]) -> str:
    best = sorted(places, key=lambda place: (-float(shares[place]), place))[:BEST]
    return ", ".join(
        f"{found.tokens[place]} {100 * shares[place]:.0f}\N{NO-BREAK SPACE}%" for place in best
    )
