"""Which of a model's files does ranking need, and how do they arrive whole or not at all?"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath

from birchbark.artifact import new_directory, origin, write_json
from birchbark.checkpoint.model_json import read_object
from birchbark.checkpoint.reader import FILES, check_model, known_family, read_modules
from birchbark.checkpoint.shards import INDEX, shard_names
from birchbark.checkpoint.shelf import SOURCE
from birchbark.checkpoint.weights import WEIGHTS
from birchbark.errors import CheckpointError
from birchbark.hub.client import Hub, Listing
from birchbark.score.describe import Description, describe

BESIDE = (*FILES, "tokenizer_config.json", "sentence_bert_config.json")
PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl")

Watch = Callable[[int], AbstractContextManager[Callable[[int], object]]]


def fetch(
    hub: Hub, hub_id: str, revision: str, target: Path, watch: Watch, *, replace: bool = False
) -> Description:
    """Fetch a model to the directory `target`, with a record of where it came from (SOURCE).

    Never a pickle, and nothing but what ranking needs; weights come last, when the rest is known to
    be of a family that can be read. watch: progress, given the number of bytes to come. Raises
    HubError if something does not arrive, CheckpointError if it is no model that can be opened,
    InputError if `target` exists, unless it is a model and to be replaced. Then nothing is left
    behind.
    """
    listing = hub.listing(hub_id, revision)
    with new_directory(target, replace=replace, check=check_model) as scratch:
        try:
            fetched = _files(hub, listing, scratch, watch)
            described = describe(scratch, hub_id, whole=True)
        except CheckpointError as refused:
            refused.where = refused.where.replace(str(scratch), f"{hub_id} at {revision}")
            raise
        write_json(
            scratch / SOURCE,
            {
                "hub": hub.endpoint,
                "id": hub_id,
                "revision": revision,
                "commit": listing.commit,
                "sha256": fetched,
                "made by": origin(),
            },
        )
    return described


def _files(hub: Hub, listing: Listing, scratch: Path, watch: Watch) -> dict[str, str]:
    """Bring everything into `scratch`: name → SHA-256."""
    fetched: dict[str, str] = {}

    def bring(name: str, advance: Callable[[int], object] = lambda count: None) -> Path:
        target = scratch / name
        target.parent.mkdir(parents=True, exist_ok=True)
        fetched[name] = hub.copy(listing, name, target, advance)
        return target

    if "modules.json" in listing.files:
        bring("modules.json")
    modules = read_modules(scratch)
    home = PurePosixPath(modules.get("Transformer", ""))
    stated = PurePosixPath(modules.get("Pooling", "1_Pooling")) / "config.json"
    weights = _weights(listing, home)
    for path in (*(home / name for name in BESIDE), stated):
        if str(path) in listing.files:
            bring(str(path))
    known_family(read_object(scratch / home / "config.json"), scratch)
    parts = [weights]
    if weights.endswith(INDEX):
        parts = [str(home / shard) for shard in shard_names(bring(weights))]
        _check_listed(parts, listing)
    with watch(sum(listing.files[part].size or 0 for part in parts)) as advance:
        for part in parts:
            bring(part, advance)
    return fetched


def _weights(listing: Listing, home: PurePosixPath) -> str:
    """The safetensors file or its shards' index; CheckpointError with the reason if none is."""
    for name in WEIGHTS:
        if str(home / name) in listing.files:
            return str(home / name)
    pickles = [name for name in sorted(listing.files) if name.endswith(PICKLED)]
    raise CheckpointError(
        "its weights are pickles, which can run any code when loaded, and are never fetched"
        if pickles
        else "no weights",
        where=listing.hub_id,
        wanted=" or ".join(str(home / name) for name in WEIGHTS),
        found=", ".join(pickles[:3]),
        remedy="some models have safetensors in a pull request: --revision refs/pr/1; or load it "
        "with transformers where you trust it, and save_pretrained it"
        if pickles
        else "",
    )


def _check_listed(parts: list[str], listing: Listing) -> None:
    for part in parts:
        if part not in listing.files:
            raise CheckpointError(
                f"missing weights: no {part}",
                where=listing.hub_id,
                wanted="all that the index lists",
            )
