"""Which safetensors files hold a checkpoint's weights, where they are split into several?"""

from __future__ import annotations

from pathlib import Path

from birchbark.checkpoint.model_json import read_object
from birchbark.checkpoint.weights import read_shapes, todays_name
from birchbark.errors import CheckpointError

INDEX = ".index.json"  # transformers' name: model.safetensors.index.json


def weight_files(path: Path) -> tuple[Path, ...]:
    """`path` itself, or the shards that it lists if it is their index, in the order of names.

    Raises CheckpointError if a shard is missing or has not the tensors that the index promises.
    """
    if not path.name.endswith(INDEX):
        return (path,)
    promised = shard_names(path)
    for name, tensors in promised.items():
        shard = path.parent / name
        if not shard.is_file():
            raise CheckpointError(
                f"missing weights: no {name}",
                where=str(path.parent),
                wanted=f"all {len(promised)} files of {path.name}",
                remedy="fetch the model again",
            )
        if lacking := tensors - read_shapes(shard, "").keys():
            raise CheckpointError(
                f"damaged weights: {sorted(lacking)[0]} is not in this file",
                where=str(shard),
                wanted=f"the tensors that {path.name} lists",
                remedy="fetch the model again",
            )
    return tuple(path.parent / name for name in promised)


def shard_names(path: Path) -> dict[str, set[str]]:
    """Shard's name → its tensors, as the index at `path` lists them; sorted by names."""
    listed = read_object(path).get("weight_map")
    if not isinstance(listed, dict) or not listed:
        raise CheckpointError("damaged index of weights: no weight_map", where=str(path))
    found: dict[str, set[str]] = {}
    for tensor, shard in listed.items():
        if not isinstance(shard, str) or Path(shard).name != shard:
            raise CheckpointError(
                "damaged index of weights",
                where=str(path),
                wanted="names of safetensors files beside it",
                found=repr(shard)[:80],
            )
        found.setdefault(shard, set()).add(todays_name(tensor, ""))
    return dict(sorted(found.items()))
