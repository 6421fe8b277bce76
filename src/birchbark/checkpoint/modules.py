"""Of which modules does a model of sentence-transformers consist?

modules.json lists them: the encoder (Transformer), and what is applied to its token vectors; or
StaticEmbedding, which is a table of token vectors (static_embedding.py).
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

from birchbark.artifact import can_exist
from birchbark.checkpoint.json_files import read_any, read_object
from birchbark.errors import CheckpointError

TRANSFORMER, POOLING, STATIC = "Transformer", "Pooling", "StaticEmbedding"
DENSE, LAYER_NORM, NORMALIZE, DROPOUT = "Dense", "LayerNorm", "Normalize", "Dropout"
MODULES_FILE = "modules.json"
MASK = "MultiVectorMask"  # says which tokens' vectors are compared
WITH_WEIGHTS = (DENSE, LAYER_NORM)  # modules with a safetensors file of their own
MODULES = {TRANSFORMER, POOLING, STATIC, DENSE, LAYER_NORM, NORMALIZE, DROPOUT, MASK}
PACKAGES = ("sentence_transformers", "pylate")  # others bring code of their own


def list_modules(root: Path) -> list[tuple[str, str]]:
    """Return the type and folder of each module, in the order in which they are applied.

    Returns nothing if the file does not exist. Raises CheckpointError for a damaged file, an
    unsupported module or order, or a folder outside the model directory.
    """
    path = root / MODULES_FILE
    if not path.exists():
        return []
    entries = read_any(path)
    try:
        types = [str(module["type"]) for module in entries]
        folders = [str(module.get("path", "")) for module in entries]
    except (TypeError, KeyError, AttributeError) as broken:
        raise CheckpointError(f"not a list of modules: {broken}", where=str(path)) from broken
    kinds = [name.rpartition(".")[2] for name in types]
    unknown = {
        name if kind in MODULES else kind
        for name, kind in zip(types, kinds, strict=True)
        if kind not in MODULES or name.partition(".")[0] not in PACKAGES
    }
    if unknown:
        raise CheckpointError(
            "unsupported module in modules.json",
            where=str(root),
            wanted=", ".join(sorted(MODULES)) + f" of {' or '.join(PACKAGES)}",
            found=", ".join(sorted(unknown))[:200],
        )
    for folder in folders:
        parts = PurePosixPath(folder).parts
        outside = PurePosixPath(folder).is_absolute() or ".." in parts or len(parts) > 1
        if outside or not can_exist(root / folder):
            raise CheckpointError(
                "module outside the model directory" if outside else "no folder has this name",
                where=str(path),
                wanted="a folder in the model directory",
                found=repr(folder)[:80],
            )
    if kinds[:1] == [STATIC] and kinds[1:] in ([], [NORMALIZE]):
        return list(zip(kinds, folders, strict=True))
    counts = [kinds.count(kind) for kind in (TRANSFORMER, POOLING)]
    pooled = [kind for kind in kinds if kind != DROPOUT][1:2] == [POOLING]
    if kinds and (kinds[0] != TRANSFORMER or counts not in ([1, 0], [1, int(pooled)])):
        raise CheckpointError(
            "unsupported modules in modules.json",
            where=str(root),
            wanted=f"{TRANSFORMER}, {POOLING}, and then {DENSE}, {LAYER_NORM} or {NORMALIZE}; or "
            f"{STATIC} and {NORMALIZE}",
            found=", ".join(kinds)[:200],
        )
    return list(zip(kinds, folders, strict=True))


def check_values(
    where: Path, config: dict[str, Any], supported: dict[str, tuple[object, ...]]
) -> None:
    """Raise CheckpointError for a value of `config` that is not supported.

    where: the file that it is from. supported: key → its values, None for a key that is missing.
    """
    for key, values in supported.items():
        if (found := config.get(key)) not in values:
            raise CheckpointError(
                f"unsupported {key}",
                where=str(where),
                wanted=" or ".join(str(v) for v in values if v is not None) or "none",
                found=str(found)[:80],
            )


def read_module(root: Path, folder: str) -> tuple[Path, dict[str, Any]]:
    """Return a module's configuration after its path; empty if an old module has none."""
    path = root / folder / "config.json"
    return path, read_object(path) if folder and path.exists() else {}
