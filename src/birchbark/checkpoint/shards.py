"""Which files hold a model's weights, if they are split into shards?"""

from __future__ import annotations

from pathlib import Path

from birchbark.artifact import can_exist
from birchbark.checkpoint.json_files import read_object
from birchbark.checkpoint.weights import current_tensor_name, read_tensor_shapes
from birchbark.errors import CheckpointError

INDEX = ".index.json"  # transformers' name: model.safetensors.index.json


def weight_files(path: Path) -> tuple[Path, ...]:
    """Return `path` itself, or, if it is an index, the shards that it lists, sorted by name.

    Raises CheckpointError if a shard is missing or lacks a tensor that the index lists.
    """
    if not path.name.endswith(INDEX):
        return (path,)
    listed = shard_names(path)
    for name, tensors in listed.items():
        shard = path.parent / name
        if not shard.is_file():
            raise CheckpointError(
                f"missing weights: no {name}",
                where=str(path.parent),
                wanted=f"all {len(listed)} files of {path.name}",
                remedy="fetch the model again",
            )
        if missing := tensors - read_tensor_shapes(shard, "").keys():
            raise CheckpointError(
                f"damaged weights: this file lacks {sorted(missing)[0]}",
                where=str(shard),
                wanted=f"the tensors that {path.name} lists",
                remedy="fetch the model again",
            )
    return tuple(path.parent / name for name in listed)


def shard_names(path: Path) -> dict[str, set[str]]:
    """Return shard name → names of its tensors, from the index at `path`, sorted by shard name.

    Raises CheckpointError if the index is damaged.
    """
    weight_map = read_object(path).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise CheckpointError("damaged index of weights: no weight_map", where=str(path))
    tensors: dict[str, set[str]] = {}
    for tensor, shard in weight_map.items():
        is_name = isinstance(shard, str) and Path(shard).name == shard
        if not is_name or not can_exist(path.parent / shard):
            raise CheckpointError(
                "damaged index of weights",
                where=str(path),
                wanted="names of safetensors files in the same directory",
                found=repr(shard)[:80],
            )
        tensors.setdefault(shard, set()).add(current_tensor_name(tensor, ""))
    return dict(sorted(tensors.items()))
