"""`birchbark distill`: a model that learns from others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from birchbark.cli.trained import training_verb
from birchbark.errors import InputError

if TYPE_CHECKING:
    from birchbark.train.config import Training


def _fault(training: Training) -> InputError | None:
    if training.teachers:
        return None
    return InputError(
        "nobody teaches",
        wanted='an objective such as { kind = "soft-labels", teacher = "…" }, or [match]',
        remedy="birchbark train learns from labels alone",
    )


command = training_verb(
    "distill",
    _fault,
    """Train what CONFIG (a TOML file) asks for, learning from the teachers that it names.

    They teach by their scores (an objective soft, soft-margin or soft-labels: any models, several
    together), by what they compute on the way (a table [match]: one whose tokens are the
    student's), or by both, with labels beside them. The student is the base, or what [model] leaves
    of it. All else is as with birchbark train, which reads the same files.
    """,
    example="birchbark distill training/distil.toml --output small",
    short="Train a smaller model on what others say.",
)
