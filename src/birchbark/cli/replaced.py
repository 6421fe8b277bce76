"""Which commands of early releases are called otherwise now?"""

from __future__ import annotations

import click

from birchbark.errors import InputError

REPLACED = {
    "distill": "birchbark train",
    "adapt": "birchbark train",
    "pretrain": "birchbark train",
    "model pool": "birchbark.checkpoint.pool.pool_model, a function in Python",
    "model fill-mask": "birchbark.score.masked_lm.MaskedLanguageModel.fill, a function in Python",
}


class Group(click.Group):
    """A group of commands that refuses their former names with the new ones."""

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return the command called `name`; InputError for one of REPLACED."""
        program = ctx.find_root().command_path  # such as `python -m birchbark`
        full_name = " ".join([*ctx.command_path.removeprefix(program).split(), name])
        if full_name in REPLACED:
            raise InputError(f"birchbark {full_name} is now {REPLACED[full_name]}")
        return super().get_command(ctx, name)
