"""How does a model become an embedding model, from one of its layers and without its head?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from birchbark.artifact import write_json
from birchbark.checkpoint.checkpoint import open_any_head
from birchbark.checkpoint.encoder_modules import encoder_modules
from birchbark.checkpoint.export import write_pooling, write_prompts
from birchbark.checkpoint.heads import HEAD_KEY, POOLING_MODES, Pooling
from birchbark.checkpoint.json_files import read_object
from birchbark.checkpoint.modules import TRANSFORMER, list_modules
from birchbark.checkpoint.prompts import read_prompts
from birchbark.checkpoint.quantize import model_copy
from birchbark.checkpoint.settings import SETTINGS
from birchbark.errors import InputError

CARD = "README.md"


def pool_model(model: Path, pooling: Pooling, target: Path, *, overwrite: bool = False) -> None:
    """Write the embedding model that pools a layer of `model`, without the layers above it.

    The vectors are those of `model` with this pooling. Other libraries read the directory, too.
    Raises InputError for a layer that does not exist, for a pooling that gives a vector per token,
    and if `target` exists and `overwrite` is false; CheckpointError if `model` cannot be read.
    """
    if pooling.mode not in POOLING_MODES:
        raise InputError(
            "this pooling gives no text vector",
            wanted=" or ".join(POOLING_MODES),
            found=pooling.mode,
        )
    base = open_any_head(model)
    layers = base.config.layers if pooling.layer is None else pooling.layer
    if not 1 <= layers <= base.config.layers:
        raise InputError(
            "no such layer",
            where=str(model),
            wanted=f"1 to {base.config.layers}",
            found=str(layers),
        )
    if layers < base.config.layers and base.family.names.final_norm:
        raise InputError(
            "this family normalises the output of its last layer only",
            where=str(model),
            wanted=f"layer {base.config.layers}",
            found=str(layers),
        )
    if dict(list_modules(model)).get(TRANSFORMER):
        raise InputError(
            "the model's weights are in a folder of their own",
            where=str(model),
            remedy="use that folder as the model",
        )
    if base.prompts.markers:
        raise InputError(
            "the model's prompts are tokens of a model with a vector per token",
            where=str(model),
            found=", ".join(map(repr, base.prompts.markers)),
        )
    family, shape = base.family, replace(base.config, layers=layers)
    modules = encoder_modules(family, shape, tuple(range(layers)))
    kept = {f"{name}.{kind}" for name, _, _ in modules for kind in ("weight", "bias")}
    with model_copy(model, target, replace=overwrite) as (folder, tensors):
        for name in [n for n in tensors if n.removeprefix(family.prefix) not in kept]:
            del tensors[name]
        config = read_object(folder / "config.json")
        for key in (HEAD_KEY, "id2label", "label2id"):
            config.pop(key, None)
        size = family.keys.get("num_hidden_layers", "num_hidden_layers")
        config |= {size: layers, "architectures": [f"{family.classes}Model"]}
        write_json(folder / "config.json", config)
        (folder / SETTINGS).unlink(missing_ok=True)  # of the model's own modules
        write_prompts(folder, read_prompts(model))
        write_pooling(folder, pooling.mode, shape.hidden, base.max_length)
        _write_card(folder / CARD, base.name, layers, pooling.mode)


def _write_card(path: Path, name: str, layers: int, mode: str) -> None:
    """Say in front of the original card what was made of the model; only its licence remains."""
    note = (
        f"The first {layers} layers of {name} as an embedding model, by {mode} pooling. "
        "The card of the original follows.\n\n"
    )
    original = path.read_text("utf-8") if path.exists() else ""
    metadata = ["library_name: sentence-transformers", "pipeline_tag: sentence-similarity"]
    if original.startswith("---\n") and "\n---\n" in original:
        former, original = original[len("---\n") :].split("\n---\n", 1)
        metadata += [line for line in former.split("\n") if line.startswith("license:")]
    head = "\n".join(["---", *metadata, "---", "", note])
    path.write_text(head + original, "utf-8")
