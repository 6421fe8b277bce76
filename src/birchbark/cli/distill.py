"""`birchbark distill`: how is a student model trained on the output of teachers?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from birchbark.cli.train_variants import training_command
from birchbark.errors import InputError

if TYPE_CHECKING:
    from birchbark.train.config import TrainingConfig


def _config_error(training: TrainingConfig) -> InputError | None:
    if training.teachers:
        return None
    return InputError(
        "no teacher is configured",
        wanted='an objective such as { kind = "soft-labels", teacher = "…" }, or a table [match]',
        remedy="use birchbark train for labels alone",
    )


command = training_command(
    "distill",
    _config_error,
    """Train a student model on the output of the teachers named in CONFIG (a TOML file).

    One or more teachers of any kind can provide scores (objectives soft, soft-margin and
    soft-labels). A teacher with the student's tokeniser can also provide hidden states (table
    [match]). The loss can include labels as well. The student is initialised from all layers of the
    base model, or from those that the table [model] lists. In all other respects, this command
    works like `birchbark train`.
    """,
    example="birchbark distill distil.toml --data passages-pool --output small",
    short_help="Train a smaller model on teachers' output.",
)
