"""`birchbark pretrain`: how is a model pre-trained on a task that resembles ranking?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from birchbark.cli.train_variants import training_command
from birchbark.errors import InputError

if TYPE_CHECKING:
    from birchbark.train.config import TrainingConfig


EXAMPLE = "birchbark pretrain relemb relemb.toml --data passages-pool --output relemb"


@click.group(
    epilog=f"Example: {EXAMPLE}",
    short_help="Pre-train a model for ranking.",
)
def command() -> None:
    """Pre-train a model on a task closer to ranking than plain masked language modelling."""


def _config_error(training: TrainingConfig) -> InputError | None:
    if training.masking and training.masking.query is not None:
        return None
    return InputError(
        "this configuration does not mask pairs",
        wanted="masked.query, and [[data]] of query–text pairs",
        remedy="use birchbark adapt for texts without queries",
    )


command.add_command(
    training_command(
        "relemb",
        _config_error,
        """Predict masked tokens of a query from a relevant passage, and the other way round.

        This is RelEmb (Rau, Kondylidis and Kamps, TREC 2020). In CONFIG, masked.query is the
        probability that tokens are masked in the query rather than the passage (the example uses
        0.8); masked.share is the share of that side's tokens that are predicted, of which four in
        five are masked. Pairs that are not relevant are skipped. Fine-tune the resulting model with
        `birchbark train` and base = OUTPUT/model.
        """,
        example=EXAMPLE,
        short_help="Predict query tokens from passages, and vice versa.",
    )
)
