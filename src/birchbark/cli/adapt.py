"""`birchbark adapt`: a model reads a collection before it learns to rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from birchbark.cli.trained import training_verb
from birchbark.errors import InputError

if TYPE_CHECKING:
    from birchbark.train.config import Training


def _fault(training: Training) -> InputError | None:
    if training.masking and training.masking.query is None:
        return None
    return InputError(
        "no texts to adapt to",
        wanted="a table [masked], and [[data]] with documents alone",
        remedy="birchbark train learns from pairs, birchbark pretrain from relevant ones",
    )


command = training_verb(
    "adapt",
    _fault,
    """Go on with the pre-training of a model on the texts of a collection, as CONFIG asks for.

    15 % of the tokens (masked.share) are hidden, and the model learns to say what they were: 80 %
    of them behind a mask, 10 % behind another token, 10 % as they are. Documents are cut so that
    all of them is read. An embedding model stays one; a ranker can be trained from what comes out.
    Words that its vocabulary lacks: birchbark model extend. What was interrupted goes on with the
    same command.
    """,
    example="birchbark adapt training/adapt.toml --output adapted",
    short="Pre-train a model further on a collection's texts.",
)
