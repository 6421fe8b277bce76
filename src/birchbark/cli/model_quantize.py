"""`birchbark model quantize`: how are a model's weights stored in fewer bits?"""

from __future__ import annotations

from pathlib import Path

import click

from birchbark.cli.console import notify, progress
from birchbark.cli.options import PATH, option, replace_option


@click.command(
    "quantize",
    epilog="Example: birchbark model quantize all-MiniLM-L6-v2 --bits 8 --to minilm-8bit",
    short_help="Store a model's weights in fewer bits.",
)
@click.argument("model")
@option(
    "--bits",
    type=click.Choice(["8", "16"]),
    required=True,
    help="8: int8 with one scale per row. 16: float16.",
)
@option("--to", "target", type=PATH, required=True, help="Folder to write.")
@replace_option("model")
def quantize_command(model: str, bits: str, target: Path, replace: bool) -> None:
    """Write a copy of MODEL with its weight matrices in fewer bits.

    The matrices are widened to float32 when the model is loaded: the files are smaller, but
    arithmetic and speed are unchanged. For faster arithmetic see --precision.
    """
    from birchbark.artifact import refuse_existing
    from birchbark.checkpoint.checkpoint import open_any_head
    from birchbark.checkpoint.locate import locate
    from birchbark.checkpoint.quantize import quantize_model
    from birchbark.score.channel_ranges import store_channel_maxima

    source = locate(model)
    refuse_existing(target, replace=replace)

    def finish(directory: Path) -> None:
        written = open_any_head(directory)
        if bits == "8" and not written.family.static and not written.pooling:
            store_channel_maxima(written)

    with progress("quantising"):
        quantize_model(source, int(bits), target, replace=replace, finish=finish)
    before, after = (open_any_head(path).bytes for path in (source, target))
    notify(f"{target}: {after / 1e6:.1f} MB of weights, {before / 1e6:.1f} MB before")
