"""`birchbark adapt`: how is a model adapted to the texts of a collection?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from birchbark.cli.train_variants import training_command
from birchbark.errors import InputError

if TYPE_CHECKING:
    from birchbark.train.config import TrainingConfig


def _config_error(training: TrainingConfig) -> InputError | None:
    if training.masking and training.masking.query is None:
        return None
    return InputError(
        "this configuration does not adapt a model to texts",
        wanted="a table [masked] without the key query, and [[data]] with documents only",
        remedy="use birchbark train to learn relevance from pairs, or birchbark pretrain to mask "
        "tokens of relevant pairs",
    )


command = training_command(
    "adapt",
    _config_error,
    """Continue pre-training a model on the texts of a collection (masked language modelling).

    CONFIG is a TOML file with a table [masked]. By default, 15 % of the tokens (masked.share) are
    selected for prediction: 80 % of them are masked, 10 % are replaced by a random token, and 10 %
    are left unchanged. Long documents are split, so that their complete text is used. An adapted
    embedding model remains an embedding model; a ranking model can be trained from any adapted
    model. To add the collection's words to the vocabulary first, use `birchbark model extend`.
    Repeat the command to resume an interrupted training run.
    """,
    example="birchbark adapt adapt.toml --output adapted",
    short_help="Continue pre-training on a collection's texts.",
)
