"""Which files of a model are downloaded, and in which order?"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath

from birchbark.artifact import new_directory, software_versions, write_json
from birchbark.checkpoint.checkpoint import (
    FILES,
    check_replaceable,
    find_family,
)
from birchbark.checkpoint.json_files import read_object
from birchbark.checkpoint.model_folder import SOURCE
from birchbark.checkpoint.modules import TRANSFORMER, WITH_WEIGHTS, list_modules
from birchbark.checkpoint.settings import SETTINGS
from birchbark.checkpoint.shards import INDEX, shard_names
from birchbark.checkpoint.weights import WEIGHTS
from birchbark.errors import CheckpointError
from birchbark.hub.cache import HubCache
from birchbark.hub.client import Hub, Listing
from birchbark.score.describe import Description, describe

CONFIGURATION = (
    *FILES,
    "tokenizer_config.json",
    "special_tokens_map.json",
    "sentence_bert_config.json",
)
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")

Watch = Callable[[int], AbstractContextManager[Callable[[int], object]]]


def fetch(
    hub: Hub | HubCache,
    hub_id: str,
    revision: str,
    target: Path,
    watch: Watch,
    *,
    replace: bool = False,
) -> Description:
    """Download a model to the directory `target`, or copy it, and record its origin in SOURCE.

    Only files that ranking needs are downloaded, never a pickle. Weights are downloaded last, after
    the configuration has been checked.

    hub_id, revision: the model, and its branch, tag or commit. watch: given the size of the weights
    in bytes, returns a context manager that yields a function to report downloaded bytes. replace:
    whether an existing model may be replaced. Raises HubError if a download fails, CheckpointError
    if the model cannot be opened, and InputError if `target` exists and may not be replaced. In
    each case, `target` remains unchanged.
    """
    listing = hub.listing(hub_id, revision)
    with new_directory(target, replace=replace, check=check_replaceable) as scratch:
        try:
            fetched = _files(hub, listing, scratch, watch)
            description = describe(scratch, hub_id, check_weights=True)
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
                "made by": software_versions(),
            },
        )
    return description


def _files(hub: Hub | HubCache, listing: Listing, scratch: Path, watch: Watch) -> dict[str, str]:
    """Download a model's files to `scratch`; return file name → SHA-256."""
    fetched: dict[str, str] = {}

    def download(name: str, advance: Callable[[int], object] = lambda count: None) -> Path:
        target = scratch / name
        target.parent.mkdir(parents=True, exist_ok=True)
        fetched[name] = hub.copy(listing, name, target, advance)
        return target

    if "modules.json" in listing.files:
        download("modules.json")
    listed = list_modules(scratch)
    modules = dict(listed)
    home = PurePosixPath(modules.get("Transformer", ""))
    pooling = PurePosixPath(modules.get("Pooling", "1_Pooling")) / "config.json"
    weights = _weights(listing, home)
    folders = [PurePosixPath(folder) for kind, folder in listed if kind != TRANSFORMER]
    with_weights = [PurePosixPath(folder) for kind, folder in listed if kind in WITH_WEIGHTS]
    settings = (PurePosixPath(SETTINGS), pooling, *(folder / "config.json" for folder in folders))
    for path in (*(home / name for name in CONFIGURATION), *settings):
        if str(path) in listing.files:
            download(str(path))
    find_family(read_object(scratch / home / "config.json"), scratch)
    files = [weights]
    if weights.endswith(INDEX):
        files = [str(home / shard) for shard in shard_names(download(weights))]
        _check_listed(files, listing)
    files += [_weights(listing, folder) for folder in with_weights]
    with watch(sum(listing.files[name].size or 0 for name in files)) as advance:
        for name in files:
            download(name, advance)
    return fetched


def _weights(listing: Listing, home: PurePosixPath) -> str:
    """Return the name of the safetensors file or shard index; CheckpointError if there is none."""
    for name in WEIGHTS:
        if str(home / name) in listing.files:
            return str(home / name)
    pickles = [name for name in sorted(listing.files) if name.endswith(PICKLES)]
    raise CheckpointError(
        "the weights are pickles, which can run any code when loaded, and are never fetched"
        if pickles
        else "no weights",
        where=listing.hub_id,
        wanted=" or ".join(str(home / name) for name in WEIGHTS),
        found=", ".join(pickles[:3]),
        remedy="try --revision refs/pr/1, where some models have safetensors; or, if you trust it, "
        "load it with transformers and call save_pretrained"
        if pickles
        else "",
    )


def _check_listed(names: list[str], listing: Listing) -> None:
    for name in names:
        if name not in listing.files:
            raise CheckpointError(
                f"missing weights: no {name}",
                where=listing.hub_id,
                wanted="all files that the index lists",
            )
