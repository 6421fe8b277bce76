"""Are the modules of an encoder those that its checkpoints store?"""

from __future__ import annotations

from pathlib import Path

import pytest
from zoo import FAMILIES, HIDDEN, INNER, write_family

from birchbark.checkpoint.checkpoint import Checkpoint, open_any_head
from birchbark.checkpoint.encoder_modules import encoder_modules, lacks, module_size


@pytest.mark.parametrize("family", FAMILIES)
def test_modules_are_those_of_the_stored_weights(family: str, tmp_path: Path) -> None:
    """Each has its shape, and none is left out, in every family."""
    checkpoint = open_any_head(write_family(tmp_path / family, family, None))
    sources = tuple(range(checkpoint.config.layers))
    modules = list(encoder_modules(checkpoint.family, checkpoint.config, sources))
    assert all(module == source for module, source, _ in modules)
    shapes = {name: value.shape for name, value in checkpoint.tensors().items()}
    stored = {name.removesuffix(".weight"): shapes[name] for name in shapes if "weight" in name}
    assert {module: size for module, _, size in modules} == stored


def test_layers_are_copied_from_those_that_are_named(tmp_path: Path) -> None:
    """What is in no layer is copied once, under its own name."""
    checkpoint = Checkpoint.open(write_family(tmp_path / "bert", "bert", 1))
    config = checkpoint.config.as_bert(2)
    named = [(m, s) for m, s, _ in encoder_modules(checkpoint.family, config, (2, 0))]
    assert named[0] == ("embeddings.word_embeddings", "embeddings.word_embeddings")
    assert named[-1] == ("encoder.layer.1.output.LayerNorm", "encoder.layer.0.output.LayerNorm")
    assert ("encoder.layer.0.output.dense", "encoder.layer.2.output.dense") in named
    assert len(named) == 4 + 2 * 8


def test_the_first_layer_that_normalises_its_inputs_has_no_norm(tmp_path: Path) -> None:
    """Its input is normalised already; gated layers have twice as many rows."""
    config = Checkpoint.open(write_family(tmp_path / "m", "modernbert", 1)).config
    assert [lacks("attended_norm", layer, config) for layer in (0, 1)] == [True, False]
    assert module_size("inner", config) == (2 * INNER, HIDDEN)
    assert module_size("fused", config) == (3 * HIDDEN, HIDDEN)
    assert module_size("query", config) == (HIDDEN, HIDDEN)
