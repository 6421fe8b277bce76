"""Which commands and options of early releases have another name now?"""

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
REPLACED_OPTIONS = {  # options of search, serve, mcp, retrieve and rerank → keys of a ranker's file
    **{f"--{key}": f"{key} in [first_stage]" for key in ("k1", "b")},
    "--idf-documents": "idf_documents in [first_stage]",
    "--field-bm25": "field_bm25 in [first_stage], such as field_bm25.title = { k1 = 1.2, b = 0.3 }",
    "--rm3-documents": "documents in [first_stage.rm3]",
    "--rm3-terms": "terms in [first_stage.rm3]",
    "--rm3-weight": "original_weight in [first_stage.rm3]",
    "--rm3-max-df": "max_df_share in [first_stage.rm3]",
    "--first-stage-scale": "first_stage_scale in [[stage]]",
    "--max-segments": "max_segments in [[stage]]",
    "--max-length": "max_length in [[stage]]",
    "--duo-depth": "duo_depth in [[stage]]",
    "--duo-aggregate": "duo_aggregate in [[stage]]",
    "--duo-max-comparisons": "duo_max_comparisons in [[stage]]",
    "--stages": "[[stage]], with the same keys",
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
