"""How is the attention of a model's layers and heads shown on a page?

This is figure 5.3 of the birch paper, for all layers and heads.
"""

from __future__ import annotations

import base64
import json
from importlib import resources
from typing import Any, Literal

import numpy as np

from birchbark.records import Float32s
from birchbark.score.attention import QUERY, TEXT, Attention
from birchbark.show.draw_plot import colours
from birchbark.show.page import load_template

TOP_TOKENS = 4  # number of text tokens listed for each query token


def attention_page(attention: Attention, model: str, query: str, text: str) -> str:
    """Render a self-contained HTML page. Raises MissingPackageError without Jinja2.

    model, query, text: shown as the page's heading.
    """
    from markupsafe import Markup

    # "<" is escaped, so that no token can end the script element
    data = json.dumps(attention_data(attention)).replace("<", "\\u003c")
    page: str = load_template(__package__, "attention.html").render(
        attention=attention,
        model=model,
        query=query,
        text=text,
        query_tokens=[attention.tokens[i] for i in _positions(attention, QUERY)],
        table=[_layer_row(attention, layer) for layer in attention.layers],
        data=Markup(data),
        colours=Markup(colours()),
        style=Markup(attention_file("css")),
        script=Markup(attention_file("js")),
    )
    return page


def attention_data(attention: Attention) -> dict[str, Any]:
    """Return the data that the script draws.

    The key values of a layer is its attention (heads, rows, tokens) as unsigned bytes in base64;
    255 stands for 1.
    """
    return {
        "tokens": attention.tokens,
        "sides": attention.sides,
        "score": attention.score,
        "layers": [
            {"heads": layer.shape[0], "rows": layer.shape[1], "values": _packed(layer)}
            for layer in attention.layers
        ],
    }


def attention_file(kind: Literal["js", "css"]) -> str:
    """Return the script that draws the data from `attention_data`, or the style of the drawing."""
    return resources.files(__package__).joinpath(f"attention.{kind}").read_text("utf-8")


def _packed(layer: Float32s) -> str:
    return base64.b64encode(np.round(layer * 255).astype(np.uint8).tobytes()).decode("ascii")


def _positions(attention: Attention, side: str) -> list[int]:
    """Return the positions of the tokens on one side: QUERY or TEXT."""
    return [i for i, token_side in enumerate(attention.sides) if token_side == side]


def _layer_row(attention: Attention, layer: Float32s) -> list[str]:
    """List for each query token the text tokens that get most attention, averaged over heads.

    A layer with a single row ([CLS] in the last layer) gives a single entry.
    """
    mean: Any = layer.mean(axis=0)  # (rows, tokens)
    text_positions = _positions(attention, TEXT)
    rows = mean if len(mean) == 1 else mean[_positions(attention, QUERY)]
    return [_top_tokens(attention, row, text_positions) for row in rows]


def _top_tokens(attention: Attention, shares: Float32s, positions: list[int]) -> str:
    best = sorted(positions, key=lambda i: (-float(shares[i]), i))[:TOP_TOKENS]
    return ", ".join(
        f"{attention.tokens[i]} {100 * shares[i]:.0f}\N{NO-BREAK SPACE}%" for i in best
    )
