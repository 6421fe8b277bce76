"""What is in a model directory? Its family, its shape and its head, read without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from birchbark.artifact import fingerprint
from birchbark.checkpoint.families import FAMILIES, Family
from birchbark.checkpoint.heads import STATEMENT, Head, Pooling, UnknownHeadError, find_head
from birchbark.checkpoint.model_json import read_any, read_object
from birchbark.checkpoint.shape import Shape, read_shape, whole
from birchbark.checkpoint.shards import weight_files
from birchbark.checkpoint.weights import Tensors, find_weights, read_shapes, read_tensors
from birchbark.errors import CheckpointError, InputError

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
        modules = read_modules(root)
        home = root / modules.get("Transformer", "")
        config = read_object(home / "config.json")
        family = known_family(config, root)
        shape = read_shape(family, config, home)
        shapes: dict[str, list[int]] = {}
        for file in weight_files(find_weights(home)):
            shapes |= read_shapes(file, family.prefix)
        _check_layers(family, shape, shapes, home)
        stated = root / modules.get("Pooling", "1_Pooling") / "config.json"
        module = read_object(stated) if stated.exists() else {}
        said = config.get(STATEMENT)
        head = pooling or find_head(family, shapes, module, said, root)
        if isinstance(head, Pooling):
            head = _layer(head, shape, root)
        return cls(home, name or root.name, family, shape, head, _max_length(home, shape))

    @property
    def weights(self) -> Path:
        """The safetensors file, or the index of its shards."""
        return find_weights(self.directory)

    @property
    def bytes(self) -> int:
        """What the weights take on the disk."""
        return sum(path.stat().st_size for path in weight_files(self.weights))

    @property
    def parameters(self) -> int:
        """How many weights there are, however they are stored."""
        return sum(tensor.size for tensor in self.tensors().values())

    @property
    def fingerprint(self) -> str:
        """Over configuration, vocabulary, weights and pooling: equal for equal scores."""
        names = [*FILES, "sentence_bert_config.json"]
        if not (self.directory / "tokenizer.json").exists():
            names.append("tokenizer_config.json")  # only then is it read
        present = [self.directory / name for name in names if (self.directory / name).exists()]
        files = fingerprint(*present, *weight_files(self.weights))
        if isinstance(self.head, Pooling) and self.head != Pooling("mean", self.shape.layers):
            return f"{files}-{self.head.mode}-{self.head.layer}"
        return files

    def tensors(self) -> Tensors:
        """All weights by their names, without the family's prefix, as they are stored."""
        tensors: dict[str, Any] = {}
        for file in weight_files(self.weights):
            tensors |= read_tensors(file, self.family.prefix)
        return tensors


def open_any(directory: Path | str, name: str | None = None) -> Checkpoint:
    """As `Checkpoint.open`, whatever head the model has; where there is none, a Pooling stands."""
    try:
        return Checkpoint.open(directory, name)
    except UnknownHeadError:
        return Checkpoint.open(directory, name, Pooling("cls"))


def check_model(directory: Path) -> None:
    """Raise InputError if files in `directory` are no model's: they may not be replaced by one."""
    if not any(directory.iterdir()):
        return
    try:
        home = directory / read_modules(directory).get("Transformer", "")
        known = "model_type" in read_object(home / "config.json")
    except CheckpointError:
        known = False
    if not known:
        raise InputError(
            "holds something else than a model", where=str(directory), remedy="name another folder"
        )


def known_family(config: Mapping[str, Any], root: Path) -> Family:
    """The family that config.json names; CheckpointError, which lists all, if it is none."""
    kind = str(config.get("model_type"))
    if kind not in FAMILIES:
        raise CheckpointError(
            "unknown architecture", where=str(root), wanted=" or ".join(FAMILIES), found=kind
        )
    return FAMILIES[kind]


def _check_layers(
    family: Family, shape: Shape, shapes: Mapping[str, list[int]], home: Path
) -> None:
    """Refuse weights of more layers than there should be: they would be another model's scores."""
    if family.names.query.format(i=shape.layers, group=shape.groups) + ".weight" in shapes:
        raise CheckpointError(
            "weights do not fit config.json",
            where=str(home),
            wanted=f"weights of {shape.layers} layers in {shape.groups} groups",
            found="more",
        )


def _layer(pooling: Pooling, shape: Shape, root: Path) -> Pooling:
    """`pooling` with the number of its layer."""
    layer = shape.layers if pooling.layer is None else pooling.layer
    if not 0 <= layer <= shape.layers:
        raise CheckpointError(
            "no such layer", where=str(root), wanted=f"0 to {shape.layers}", found=str(layer)
        )
    return replace(pooling, layer=layer)


def read_modules(root: Path) -> dict[str, str]:
    """Kind of module → its folder, as sentence-transformers' modules.json lists them."""
    path = root / "modules.json"
    if not path.exists():
        return {}
    listed = read_any(path)
    try:
        found = {str(m["type"]).rpartition(".")[2]: str(m.get("path", "")) for m in listed}
    except (TypeError, KeyError, AttributeError) as broken:
        raise CheckpointError(f"not a list of modules: {broken}", where=str(path)) from broken
    if unknown := found.keys() - MODULES:
        raise CheckpointError(
            "unknown module in modules.json",
            where=str(root),
            wanted=", ".join(sorted(MODULES)),
            found=", ".join(sorted(unknown)),
        )
    for folder in map(PurePosixPath, found.values()):
        if folder.is_absolute() or ".." in folder.parts:
            raise CheckpointError(
                "a module outside of the directory", where=str(path), found=str(folder)
            )
    return found


def _max_length(directory: Path, shape: Shape) -> int:
    path = directory / "sentence_bert_config.json"
    stated = read_object(path).get("max_seq_length") if path.exists() else None
    if stated is None:
        return shape.longest
    return min(whole(stated, "max_seq_length", path), shape.longest)
