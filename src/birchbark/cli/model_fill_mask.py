"""`birchbark model fill-mask`: which words does a masked language model expect?"""

from __future__ import annotations

import click

from birchbark import defaults
from birchbark.cli.options import option


@click.command(
    "fill-mask",
    epilog='Example: birchbark model fill-mask adapted/model "Covid-19 is a [MASK]."',
    short_help="Show which words a masked language model expects.",
)
@click.argument("model")
@click.argument("text")
@option(
    "--top", type=click.IntRange(1), default=defaults.FILLED_TOKENS, help="Tokens for each [MASK]."
)
def fill_mask(model: str, text: str, top: int) -> None:
    """Print the most probable tokens for each [MASK] in TEXT, with their probabilities.

    A line has the number of the [MASK], the rank, the token and its probability, separated by tabs.
    MODEL must have the head of a masked language model, as those of `birchbark adapt` have.
    """
    from birchbark.checkpoint.locate import locate
    from birchbark.score.masked_lm import MaskedLanguageModel

    for number, tokens in enumerate(MaskedLanguageModel(locate(model)).fill(text, top), 1):
        for rank, (token, probability) in enumerate(tokens, 1):
            click.echo(f"{number}\t{rank}\t{token}\t{probability:.3f}")
