"""What is in a model directory? Its family, its shape and its head, read without torch."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from birchbark.artifact import fingerprint
from birchbark.errors import CheckpointError
from birchbark.score.families import FAMILIES, Family
from birchbark.score.heads import Head, Pooling, find_head
from birchbark.score.shape import Shape, read_shape
from birchbark.score.weights import Tensors, find_weights, read_shapes, read_tensors

MODULES = {"Transformer", "Pooling", "Normalize"}
FILES = ("config.json", "tokenizer.json", "vocab.txt", "vocab.json", "merges.txt")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model of BERT's kind on disk.

    directory: of its config.json; name: what people call it. max_length counts tokens of an input,
    special tokens included.
    """

    directory: Path
    name: str
    family: Family
    shape: Shape
    head: Head
    max_length: int

    @classmethod
    def open(
        cls, directory: Path | str, name: str | None = None, pooling: Pooling | None = None
    ) -> Checkpoint:
        """Read what `directory` holds, weights aside: transformers' or sentence-transformers'.

        name: the directory's, if not given. pooling: makes an embedding model of any encoder,
        whatever head it has; if not given, the directory says which head there is (`find_head`).
        Raises CheckpointError if it is no model directory, if the architecture or head is not known
        (the message lists those that are), or if the weights are a pickle.
        """
        root = Path(directory)
        modules = _modules(root)
        home = root / modules.get("Transformer", "")
        config = _json(home / "config.json")
        kind = str(config.get("model_type"))
        if kind not in FAMILIES:
            raise CheckpointError(
                "unknown architecture",
                where=str(root),
                wanted=" or ".join(FAMILIES),
                found=kind,
            )
        family = FAMILIES[kind]
        shape = read_shape(family, config, home)
        shapes = read_shapes(find_weights(home), family.prefix)
        stated = root / modules.get("Pooling", "1_Pooling") / "config.json"
        module = _json(stated) if stated.exists() else {}
        head = pooling or find_head(family, shapes, module, root)
        if isinstance(head, Pooling):
            head = _layer(head, shape, root)
        return cls(home, name or root.name, family, shape, head, _max_length(home, shape))

    @property
    def weights(self) -> Path:
        """The safetensors file."""
        return find_weights(self.directory)

    @property
    def fingerprint(self) -> str:
        """Over configuration, vocabulary, weights and pooling: equal for equal scores."""
        names = [*FILES, "sentence_bert_config.json"]
        if not (self.directory / "tokenizer.json").exists():
            names.append("tokenizer_config.json")  # only then is it read
        present = [self.directory / name for name in names if (self.directory / name).exists()]
        files = fingerprint(*present, self.weights)
        if isinstance(self.head, Pooling) and self.head != Pooling("mean", self.shape.layers):
            return f"{files}-{self.head.mode}-{self.head.layer}"
        return files

    def tensors(self) -> Tensors:
        """All weights by their names, without the family's prefix, as they are stored."""
        return read_tensors(self.weights, self.family.prefix)


def _layer(pooling: Pooling, shape: Shape, root: Path) -> Pooling:
    """`pooling` with the number of its layer."""
    layer = shape.layers if pooling.layer is None else pooling.layer
    if not 0 <= layer <= shape.layers:
        raise CheckpointError(
            "no such layer", where=str(root), wanted=f"0 to {shape.layers}", found=str(layer)
        )
    return replace(pooling, layer=layer)


def _modules(root: Path) -> dict[str, str]:
    """Kind of module → its folder, as sentence-transformers' modules.json lists them."""
    path = root / "modules.json"
    if not path.exists():
        return {}
    try:
        listed = json.loads(path.read_bytes())
        found = {str(m["type"]).rpartition(".")[2]: str(m.get("path", "")) for m in listed}
    except (ValueError, TypeError, KeyError, AttributeError) as broken:
        raise CheckpointError(f"not a list of modules: {broken}", where=str(path)) from broken
    if unknown := found.keys() - MODULES:
        raise CheckpointError(
            "unknown module in modules.json",
            where=str(root),
            wanted=", ".join(sorted(MODULES)),
            found=", ".join(sorted(unknown)),
        )
    return found


def _json(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise CheckpointError(
            "not a model directory", where=str(path.parent), remedy=f"there is no {path.name} in it"
        ) from None
    except (json.JSONDecodeError, UnicodeDecodeError) as broken:
        raise CheckpointError(f"not valid JSON: {broken}", where=str(path)) from broken
    if not isinstance(values, dict):
        raise CheckpointError("not a JSON object", where=str(path))
    return values


def _max_length(directory: Path, shape: Shape) -> int:
    path = directory / "sentence_bert_config.json"
    stated = _json(path).get("max_seq_length") if path.exists() else None
    return min(int(stated or shape.longest), shape.longest)
