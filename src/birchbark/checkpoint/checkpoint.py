"""What does a model directory contain? Its family, sizes, head and weights, read without torch."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from birchbark.artifact import fingerprint
from birchbark.checkpoint.encoder_config import (
    ACTIVATIONS,
    EncoderConfig,
    read_encoder_config,
)
from birchbark.checkpoint.families import FAMILIES, STATIC_FAMILY, Family
from birchbark.checkpoint.find_head import Stored, find_head, read_head_modules
from birchbark.checkpoint.heads import (
    EMBEDDING_WEIGHT,
    HEAD_KEY,
    PER_TOKEN,
    Head,
    Pooling,
    UnknownHeadError,
    is_modular,
    layers_of,
)
from birchbark.checkpoint.json_files import read_object
from birchbark.checkpoint.layers import layer_files, read_layer_tensors
from birchbark.checkpoint.modules import MODULES_FILE, STATIC, TRANSFORMER, list_modules
from birchbark.checkpoint.multi_vector import (
    MultiVector,
    is_multi_vector,
    read_multi_vector,
    read_token_layers,
)
from birchbark.checkpoint.prompts import Prompts, no_prompts, read_prompts
from birchbark.checkpoint.score_scale import ScoreScale, read_scale, without_scale
from birchbark.checkpoint.shards import weight_files
from birchbark.checkpoint.static_embedding import MAX_TOKENS, read_static_config
from birchbark.checkpoint.transformer_module import (
    TOKENIZER_CONFIG,
    check_one_length,
    check_transformer_module,
    max_length,
    tokenizer_states_length,
)
from birchbark.checkpoint.weights import Tensors, find_weights, read_tensor_shapes, read_tensors
from birchbark.errors import CheckpointError, InputError

CONFIG = "config.json"
FILES = (CONFIG, "tokenizer.json", "vocab.txt", "vocab.json", "merges.txt")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model of one of BERT's families, stored in a directory.

    Attributes:
        directory: The directory of config.json, which may be inside the model directory.
        name: Name for reports and messages.
        family: How the model's tensors and settings are named.
        config: Sizes of the encoder.
        head: What the model computes from the encoder's output.
        max_length: Maximum number of tokens in an input, including special tokens.
        root: The model directory.
        prompts: What is put before texts that are read alone; none if query and text are read
            together.
        multi_vector: What of queries and texts is read and compared, if the model itself has a
            vector per token; else None.
        scale: How its output becomes a score from 0 to 1.
        pooling: The pooling that it was opened with, as `parse_pooling` reads it; None if the
            directory determines the head.
    """

    directory: Path
    name: str
    family: Family
    config: EncoderConfig
    head: Head
    max_length: int
    root: Path
    prompts: Prompts
    multi_vector: MultiVector | None
    scale: ScoreScale
    pooling: str | None = None

    @classmethod
    def open(
        cls, directory: Path | str, name: str | None = None, pooling: Pooling | None = None
    ) -> Checkpoint:
        """Open a model of transformers or sentence-transformers, without reading its weights.

        directory: the model directory. name: by default, the directory's name. pooling: opens any
        encoder as an embedding model and ignores its head; by default, the directory determines the
        head (`find_head`). Raises CheckpointError if `directory` is not a model directory, if its
        architecture is unsupported, or if its weights are a pickle, and UnknownHeadError if it has
        no supported head.
        """
        root = Path(directory)
        _check_files(root)
        listed = list_modules(root)
        if listed and listed[0][0] == STATIC:
            return cls._open_static(root, root / listed[0][1], name or root.name, pooling)
        home = root / dict(listed).get(TRANSFORMER, "")
        values = read_object(home / CONFIG)
        family = find_family(values, root)
        config = read_encoder_config(family, values, home)
        shapes: dict[str, list[int]] = {}
        for file in weight_files(find_weights(home)):
            shapes |= read_tensor_shapes(file, family.prefix)
        _check_layers(family, config, shapes, home)
        check_transformer_module(home)
        stored = Stored(family, config, shapes, root)
        multi_vector = None
        if pooling:
            head: Head = pooling
        elif is_multi_vector(root):
            head = Pooling(PER_TOKEN, layers=read_token_layers(root, listed[1:], config.hidden))
            multi_vector = read_multi_vector(root, home, listed[1:], family, config)
        else:
            check_one_length(home)
            head = find_head(
                stored, read_head_modules(root, listed, config.hidden), values.get(HEAD_KEY)
            )
        if isinstance(head, Pooling):
            head = _with_layer(head, config, root)
        stated = {} if pooling else _own_settings(home)
        return cls(
            directory=home,
            name=name or root.name,
            family=family,
            config=config,
            head=head,
            max_length=max_length(home, config),
            root=root,
            prompts=read_prompts(root) if isinstance(head, Pooling) else no_prompts(root),
            multi_vector=multi_vector,
            scale=read_scale(stated, str(home / "config.json")),
            pooling=f"{head.mode}:{head.layer}" if pooling and isinstance(head, Pooling) else None,
        )

    @classmethod
    def _open_static(cls, root: Path, home: Path, name: str, pooling: Pooling | None) -> Checkpoint:
        """Open a static embedding; see `open`. home: the folder of its module."""
        if pooling:
            raise InputError(
                "a static embedding has no layers to pool", where=str(root), remedy="no pooling"
            )
        return cls(
            directory=home,
            name=name,
            family=STATIC_FAMILY,
            config=read_static_config(home),
            head=Pooling("mean", 0),
            max_length=MAX_TOKENS,
            root=root,
            prompts=read_prompts(root),
            multi_vector=None,
            scale=read_scale(_own_settings(home), str(home / CONFIG)),
        )

    @property
    def embedding_weight(self) -> float | None:
        """The share of an embedding in the evidence that suits this model, if it states one.

        It does so by `"birchbark": {"embedding_weight": 0.7}` in its config.json. Raises
        CheckpointError for a value that is not from 0 to 1.
        """
        weight = _own_settings(self.directory).get(EMBEDDING_WEIGHT)
        if weight is None or (type(weight) in (int, float) and 0 <= weight <= 1):
            return weight
        raise CheckpointError(
            f"invalid {EMBEDDING_WEIGHT}",
            where=str(self.directory / "config.json"),
            wanted="0 to 1",
            found=repr(weight),
        )

    @property
    def ties_embeddings(self) -> bool:
        """Whether a masked language model predicts tokens by their embeddings, as by default."""
        return read_object(self.directory / CONFIG).get("tie_word_embeddings") is not False

    @property
    def weights(self) -> Path:
        """The safetensors file, or the index of its shards (shards.py)."""
        return find_weights(self.directory)

    @property
    def vector_size(self) -> int:
        """Number of dimensions of an embedding model's vectors."""
        layers = self.head.layers if isinstance(self.head, Pooling) else ()
        return layers[-1].outputs if layers else self.config.hidden

    @property
    def bytes(self) -> int:
        """Size of the weights on disk."""
        return sum(path.stat().st_size for path in weight_files(self.weights))

    @property
    def parameters(self) -> int:
        """The number of weights, counted after they are widened to float32."""
        return sum(tensor.size for tensor in self.tensors().values())

    @property
    def fingerprint(self) -> str:
        """Hash of all that a model's scores depend on: its outputs and their scale."""
        return self.outputs_fingerprint + self.scale.fingerprint

    @property
    def outputs_fingerprint(self) -> str:
        """Hash of configuration, vocabulary, weights, pooling and prompts, without the scale.

        It is equal only for models with equal log-odds or vectors, so that stored vectors remain
        valid when a model's scale is stated.
        """
        names = [*FILES[1:], "sentence_bert_config.json"]
        whole = (self.directory / "tokenizer.json").exists()
        if not whole or tokenizer_states_length(self.directory, self.config):
            names.append(TOKENIZER_CONFIG)
        present = [self.directory / name for name in names if (self.directory / name).exists()]
        stated = self.directory / CONFIG
        config = without_scale(stated, HEAD_KEY) if stated.exists() else b""
        modules = layer_files(self.root, layers_of(self.head))
        files = fingerprint(config, *present, *weight_files(self.weights), *modules)
        if is_modular(self.head):
            files += f"-head {hashlib.sha256(repr(self.head).encode()).hexdigest()[:16]}"
        if self.prompts:
            files += f"-prompts {self.prompts.fingerprint}"
        if self.multi_vector:
            files += f"-vectors {self.multi_vector.fingerprint}"
        if isinstance(self.head, Pooling) and self.head != Pooling("mean", self.config.layers):
            return f"{files}-{self.head.mode}-{self.head.layer}"
        return files

    def tensors(self) -> Tensors:
        """Read all weights; return name without the family's prefix → array. See `read_tensors`."""
        tensors: dict[str, Any] = {}
        for file in weight_files(self.weights):
            tensors |= read_tensors(file, self.family.prefix)
        tensors |= read_layer_tensors(self.root, layers_of(self.head))
        return tensors


def _own_settings(home: Path) -> Mapping[str, Any]:
    """Return what config.json states for birchbark; a static embedding may have no config.json."""
    path = home / CONFIG
    own = read_object(path).get(HEAD_KEY) if path.exists() else None
    return own if isinstance(own, dict) else {}


def open_any_head(directory: Path | str, name: str | None = None) -> Checkpoint:
    """Open a model like `Checkpoint.open`, with cls pooling if it has no supported head."""
    try:
        return Checkpoint.open(directory, name)
    except UnknownHeadError:
        return Checkpoint.open(directory, name, Pooling("cls"))


def check_replaceable(directory: Path) -> None:
    """Raise InputError unless `directory`, a folder with files, holds a model."""
    try:
        modules = dict(list_modules(directory))
        config = directory / modules.get(TRANSFORMER, "") / CONFIG
        is_model = STATIC in modules or "model_type" in read_object(config)
    except CheckpointError:
        is_model = False
    if not is_model:
        raise InputError(
            "the folder is not empty and does not contain a model",
            where=str(directory),
            remedy="choose another folder",
        )


def find_family(config: Mapping[str, Any], root: Path) -> Family:
    """Return the family that config.json names, with what it states of the classifier.

    Raises CheckpointError if the family, or what is stated, is not supported.
    """
    name = str(config.get("model_type"))
    if name not in FAMILIES:
        raise CheckpointError(
            "unsupported architecture", where=str(root), wanted=" or ".join(FAMILIES), found=name
        )
    family = FAMILIES[name]
    layer, activation = family.transform
    activation = config.get(family.activation_key, activation)
    reads = config.get(family.reads_key, family.reads)
    for key, found, supported in (
        (family.activation_key, activation, (*ACTIVATIONS, "tanh")),
        (family.reads_key, reads, ("cls", "mean")),
    ):
        if found not in supported:
            raise CheckpointError(
                f"unsupported {key}",
                where=str(root / "config.json"),
                wanted=" or ".join(supported),
                found=str(found)[:80],
            )
    return replace(family, transform=(layer, activation), reads=reads)


def _check_files(root: Path) -> None:
    """Raise CheckpointError if a folder has no model, or has a named pipe or a device.

    These could be read without an end.
    """
    if not any((root / name).exists() for name in (CONFIG, MODULES_FILE)):
        raise CheckpointError(
            "not a model directory",
            where=str(root),
            wanted=f"a folder with {CONFIG} or {MODULES_FILE}",
            remedy="birchbark model list names the models that are installed",
        )
    for path in (*root.glob("*"), *root.glob("*/*")):
        if path.exists() and not path.is_file() and not path.is_dir():
            raise CheckpointError("neither a file nor a folder", where=str(path))


def _check_layers(
    family: Family, config: EncoderConfig, shapes: Mapping[str, list[int]], home: Path
) -> None:
    """Raise CheckpointError if the weights have more layers than config.json states.

    The additional layers would otherwise be ignored silently.
    """
    names = family.names
    first = (names.fused or names.query).format(i=config.layers, group=config.groups)
    if f"{first}.weight" in shapes:
        raise CheckpointError(
            "weights do not fit config.json",
            where=str(home),
            wanted=f"weights of {config.layers} layers in {config.groups} groups",
            found="more",
        )


def _with_layer(pooling: Pooling, config: EncoderConfig, root: Path) -> Pooling:
    """Return `pooling` with its layer filled in; CheckpointError if the layer does not exist."""
    layer = config.layers if pooling.layer is None else pooling.layer
    if not 0 <= layer <= config.layers:
        raise CheckpointError(
            "no such layer", where=str(root), wanted=f"0 to {config.layers}", found=str(layer)
        )
    return replace(pooling, layer=layer)
