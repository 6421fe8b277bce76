"""Which head does a model have, by its settings, its modules and its weights?

Label 1 means relevant for a classifier. For BERT's next-sentence head label 0 is assumed, which
means "is next"; some rankers were trained with label 1 instead, such as those of Birch. A model
says which by `"birchbark": {"relevant_label": 1}` in its config.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from birchbark.checkpoint.architecture import PASSAGE_VECTOR_KINDS, POOLER
from birchbark.checkpoint.encoder_config import EncoderConfig
from birchbark.checkpoint.families import Family
from birchbark.checkpoint.heads import (
    MIXING_KEYS,
    PARADE_AGGREGATIONS,
    PARADE_LAYERS,
    PARADE_NAMES,
    POOLING_KEYS,
    POOLING_MODES,
    READS_PASSAGES,
    READS_TWO_TEXTS,
    RELEVANT_LABEL,
    Classifier,
    Head,
    Parade,
    Pooling,
    UnknownHeadError,
)
from birchbark.checkpoint.json_files import read_object
from birchbark.checkpoint.layers import Dense, Layer, LayerNorm, UnitLength, read_layers
from birchbark.checkpoint.modules import MASK, POOLING, TRANSFORMER
from birchbark.checkpoint.multi_vector import MULTI_VECTOR
from birchbark.checkpoint.prompts import read_prompts
from birchbark.checkpoint.settings import check_cross_encoder, check_embedding
from birchbark.errors import CheckpointError


@dataclass(frozen=True, slots=True)
class Modules:
    """What sentence-transformers' modules after the encoder compute.

    Attributes:
        pooling: Configuration of the pooling module; empty if there is none.
        layers: The layers after it.
        gives_scores: Whether the last layer gives scores instead of a vector.
    """

    pooling: Mapping[str, Any]
    layers: tuple[Layer, ...] = ()
    gives_scores: bool = False


@dataclass(frozen=True, slots=True)
class Stored:
    """What is stored of a model, from which `find_head` determines its head.

    Attributes:
        family: The model's family.
        config: Sizes of its encoder.
        shapes: Tensor name → shape.
        directory: The model directory, for error messages.
    """

    family: Family
    config: EncoderConfig
    shapes: Mapping[str, list[int]]
    directory: Path

    def outputs(self, layer: str) -> int:
        """Return the number of outputs of a linear layer; 0 if the model does not have it."""
        shape = self.shapes.get(f"{layer}.weight", [])
        return shape[0] if shape else 0

    def dense(self, name: str, outputs: int, activation: str = "") -> Dense:
        """Return the linear layer `name` of the classifier."""
        bias = f"{name}.bias" in self.shapes or not self.family.optional_biases
        return Dense(name, self.config.hidden, outputs, bias, activation)

    def transform(self) -> tuple[Layer, ...]:
        """Return the layers of the family's classifier before its output layer."""
        family, hidden = self.family, self.config.hidden
        name, activation = family.transform
        dense, norm = self.dense(name, hidden, activation), family.transform_norm
        return (dense, LayerNorm(norm, hidden, self.config.epsilon)) if norm else (dense,)

    def classifier(self, name: str, relevant_index: int, **settings: bool) -> Classifier:
        """Return the family's classifier with the output layer `name`."""
        output = self.dense(name, self.outputs(name))
        reads = self.family.reads
        return Classifier(self.transform(), output, relevant_index, reads=reads, **settings)


def read_head_modules(root: Path, listed: list[tuple[str, str]], width: int) -> Modules:
    """Return what the modules after the encoder compute.

    listed: see `list_modules`. width: of the encoder's vectors. Raises CheckpointError for modules
    that are not supported.
    """
    path = root / dict(listed).get(POOLING, "1_Pooling") / "config.json"
    pooling = read_object(path) if path.exists() else {}
    if pooling.get("include_prompt", True) is not True and read_prompts(root):
        raise CheckpointError(
            "unsupported include_prompt: the tokens of prompts are always pooled",
            where=str(path),
            wanted="true",
            found=repr(pooling["include_prompt"])[:40],
        )
    after = [module for module in listed if module[0] not in (TRANSFORMER, POOLING)]
    if (after and POOLING not in dict(listed)) or MASK in dict(after):
        raise CheckpointError(
            "unsupported modules in modules.json",
            where=str(root),
            wanted=f"{POOLING} after {TRANSFORMER}, or {MULTI_VECTOR} as model_type",
            found=", ".join(kind for kind, _ in listed)[:200],
        )
    return Modules(pooling, *read_layers(root, after, width))


def find_head(stored: Stored, modules: Modules, declared_head: object) -> Head:
    """Determine a model's head.

    The first of these determines it: the head declared in config.json, modules that give scores, a
    classifier, a pooling, a next-sentence head.

    declared_head: value of HEAD_KEY in config.json, None if there is none. Raises UnknownHeadError
    if the model has none of these heads, and CheckpointError if the declared head or the pooling is
    unsupported.
    """
    family, directory = stored.family, stored.directory
    if isinstance(declared_head, dict):
        declared_head = {k: x for k, x in declared_head.items() if k not in MIXING_KEYS} or None
    label = declared_head.get(RELEVANT_LABEL) if isinstance(declared_head, dict) else None
    if declared_head is not None and label is None:
        return _declared_head(stored, declared_head)
    if label is not None and (type(label) is not int or label not in (0, 1)):
        raise CheckpointError(
            f"wrong {RELEVANT_LABEL}",
            where=str(directory / "config.json"),
            wanted="0 or 1",
            found=str(label)[:80],
        )
    if modules.gives_scores:
        check_cross_encoder(directory)
        return _classifier_of_modules(modules, label, directory)
    logit_count = stored.outputs(family.logits)
    if logit_count in (1, 2):
        relevant = label if label is not None and logit_count == 2 else logit_count - 1
        return stored.classifier(family.logits, relevant)
    if modules.pooling:
        layers = modules.layers
        check_embedding(directory, layers)
        if layers and isinstance(layers[-1], UnitLength):  # any text vector is scaled at the end
            layers = layers[:-1]
        return Pooling(_mode(modules.pooling, directory), layers=layers)
    if not logit_count and stored.outputs(family.next_sentence) == 2:
        return stored.classifier(family.next_sentence, label or 0, is_assumed=label is None)
    raise UnknownHeadError(
        "no supported head",
        where=str(directory),
        wanted="a classifier with one or two logits, a next-sentence head, or a pooling "
        "(in 1_Pooling/config.json or as an option)",
        found=f"a classifier with {logit_count} logits" if logit_count else "none",
    )


def _classifier_of_modules(modules: Modules, label: int | None, directory: Path) -> Classifier:
    """Return the classifier whose last module is a Dense that gives scores."""
    *layers, output = modules.layers
    if (
        not isinstance(output, Dense)
        or output.residual
        or output.outputs not in (1, 2)
        or (output.activation and output.outputs == 2)
    ):
        raise CheckpointError(
            "unsupported scores",
            where=str(directory / output.folder),
            wanted="one or two outputs, two without an activation, and no residual",
            found=f"{output.outputs} outputs",
        )
    relevant = label if label is not None and output.outputs == 2 else output.outputs - 1
    return Classifier(tuple(layers), output, relevant, reads=_mode(modules.pooling, directory))


def _declared_head(stored: Stored, declared_head: object) -> Head:
    """Return the declared head: that of a duoBERT or PARADE model."""
    family, directory = stored.family, stored.directory
    if declared_head == {"reads": READS_TWO_TEXTS} and stored.outputs(family.logits) == 1:
        return stored.classifier(family.logits, 0, is_duo=True)
    values = declared_head if isinstance(declared_head, dict) else {}
    aggregation, vectors = values.get("aggregation"), values.get("vectors", POOLER)
    reads_passages = values.get("reads") == READS_PASSAGES and vectors in PASSAGE_VECTOR_KINDS
    if not reads_passages or aggregation not in PARADE_AGGREGATIONS:
        raise CheckpointError(
            "unsupported kind of model",
            where=str(directory / "config.json"),
            wanted=f"one that reads {READS_TWO_TEXTS}, or {READS_PASSAGES} aggregated by "
            + ", ".join(PARADE_AGGREGATIONS)
            + f", with vectors by {' or '.join(PASSAGE_VECTOR_KINDS)}",
            found=str(declared_head)[:80],
            remedy="a newer version of Birchbark may support it",
        )
    if f"{PARADE_NAMES.query.format(i=PARADE_LAYERS)}.weight" in stored.shapes:
        raise CheckpointError(
            "too many layers attend to passages",
            where=str(directory),
            wanted=str(PARADE_LAYERS),
        )
    layers = stored.transform() if vectors == POOLER else ()
    return Parade(layers, family.logits, aggregation)


def _mode(pooling_config: Mapping[str, Any], directory: Path) -> str:
    """Return the pooling mode in a pooling module's configuration, which has one of two formats."""
    mode = pooling_config.get("pooling_mode")
    if isinstance(mode, str):
        modes = [mode]
    else:
        modes = [mode for key, mode in POOLING_KEYS.items() if pooling_config.get(key)]
    if len(modes) == 1 and modes[0] in POOLING_MODES:
        return str(modes[0])
    raise CheckpointError(
        "unsupported pooling",
        where=str(directory),
        wanted=" or ".join(POOLING_MODES),
        found=" and ".join(modes) or "none",
    )
