"""`birchbark pretrain`: what queries and passages share, before a model learns to rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from birchbark.cli.trained import training_verb
from birchbark.errors import InputError

if TYPE_CHECKING:
    from birchbark.train.config import Training


@click.group(
    epilog="Example: birchbark pretrain relemb training/relemb.toml --output relemb",
    short_help="Pre-train a model for ranking.",
)
def command() -> None:
    """Pre-training tasks that are closer to ranking than hidden words of single texts."""


def _fault(training: Training) -> InputError | None:
    if training.masking and training.masking.query is not None:
        return None
    return InputError(
        "no side of a pair is hidden",
        wanted="a table [masked] with query, and [[data]] of pairs",
        remedy="birchbark adapt learns from texts alone",
    )


command.add_command(
    training_verb(
        "relemb",
        _fault,
        """Learn to say hidden tokens of a query from a relevant passage, and the other way round.

        RelEmb (Rau, Kondylidis and Kamps, TREC 2020), as CONFIG asks for: masked.query says how
        often the query is the side that is hidden (0.8), masked.share how much of it. Pairs that
        are not relevant are left out. Then fine-tune: birchbark train, with base = OUTPUT/model.
        """,
        example="birchbark pretrain relemb training/relemb.toml --output relemb",
        short="Tokens of queries from passages, and the reverse.",
    )
)
