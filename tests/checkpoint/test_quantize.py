"""Do quantized weights give nearly the same scores, and are invalid ones rejected?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from zoo import FAMILIES, write_family

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.heads import Pooling
from birchbark.checkpoint.quantize import quantize_model
from birchbark.checkpoint.weights import read_tensors
from birchbark.errors import CheckpointError, InputError
from birchbark.score.load_scorer import load_scorer
from birchbark.score.scorer import score_texts
from birchbark.score.session import OnnxSession
from conftest import VOCABULARY, write_static

Bert = Callable[..., Path]
IDS = [np.random.default_rng(7).integers(5, 25, n).tolist() for n in (3, 9, 17, 31)]
TYPES = [[0] * len(i) for i in IDS]
TEXTS = ["birch canoe", "the bees dance .", "iron bridge"]


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("family", FAMILIES)
def test_quantized_models_agree(family: str, bits: int, tmp_path: Path) -> None:
    """Scores of all families stay close, even after quantizing twice."""
    directory = write_family(tmp_path / family, family, 1)
    quantize_model(directory, bits, tmp_path / "small")
    exact = OnnxSession(Checkpoint.open(directory)).run(IDS, TYPES)
    quantized = OnnxSession(Checkpoint.open(tmp_path / "small")).run(IDS, TYPES)
    tolerance = {8: 0.3, 16: 0.01}[bits]
    np.testing.assert_allclose(quantized, exact, rtol=0, atol=tolerance * np.abs(exact).max())
    quantize_model(tmp_path / "small", 16, tmp_path / "again")
    again = OnnxSession(Checkpoint.open(tmp_path / "again")).run(IDS, TYPES)
    np.testing.assert_allclose(again, quantized, rtol=0, atol=0.01 * np.abs(exact).max())


@pytest.mark.parametrize("bits", [8, 16])
def test_every_weight_is_within_its_rounding(bert: Bert, tmp_path: Path, bits: int) -> None:
    """A weight changes by at most half a step of its row's scale, or of float16; vectors stay."""
    directory = bert(labels=1)
    quantize_model(directory, bits, tmp_path / "small")
    before, after = (
        read_tensors(d / "model.safetensors", "") for d in (directory, tmp_path / "small")
    )
    assert before.keys() == after.keys()
    for name, value in before.items():
        if value.ndim < 2:
            assert np.array_equal(after[name], value)
        else:
            step = np.abs(value).max(axis=1, keepdims=True) / (127 if bits == 8 else 1024)
            assert (np.abs(after[name] - value) <= 0.501 * step).all()


def test_the_quantized_directory_is_complete(bert: Bert, tmp_path: Path) -> None:
    """The copy loads, has its own fingerprint, and overwrites nothing."""
    directory = bert()
    (directory / ".secret").write_text("")
    (directory / ".git").mkdir()
    (directory / ".git" / "object").write_text("")
    quantize_model(directory, 8, tmp_path / "small")
    names = {p.name for p in (tmp_path / "small").rglob("*") if p.is_file()}
    assert names == {"config.json", "vocab.txt", "model.safetensors"}
    one, other = load_scorer(directory), load_scorer(tmp_path / "small")
    np.testing.assert_allclose(
        score_texts(one, "bee", TEXTS), score_texts(other, "bee", TEXTS), atol=0.02
    )
    assert one.fingerprint != other.fingerprint
    with pytest.raises(InputError, match="already exists"):
        quantize_model(directory, 8, tmp_path / "small")
    with pytest.raises(InputError, match="unsupported number of bits: expected 8 or 16, found 4"):
        quantize_model(directory, 4, tmp_path / "other")


def test_weights_too_large_for_float16_are_rejected(bert: Bert, tmp_path: Path) -> None:
    """Such weights would become infinite; 8 bits can store them, with a scale per row."""
    path = bert(labels=1) / "model.safetensors"
    stored = load_file(path)
    stored["classifier.weight"] = np.full_like(stored["classifier.weight"], 1e5)
    save_file(stored, path)
    with pytest.raises(CheckpointError, match=r"classifier\.weight are too large.*use 8 bits"):
        quantize_model(path.parent, 16, tmp_path / "small")
    assert not (tmp_path / "small").exists()
    quantize_model(path.parent, 8, tmp_path / "small")


def test_a_static_embedding_in_a_folder_of_its_own(tmp_path: Path) -> None:
    """As sentence-transformers writes it beside other modules."""
    table = np.random.default_rng(0).normal(size=(len(VOCABULARY), 16)).astype(np.float32)
    whole = write_static(tmp_path / "static", table)
    folder = whole / "0_StaticEmbedding"
    folder.mkdir()
    for name in ("model.safetensors", "tokenizer.json"):
        (whole / name).rename(folder / name)
    modules = json.loads((whole / "modules.json").read_text())
    (whole / "modules.json").write_text(json.dumps([{**modules[0], "path": folder.name}]))
    quantize_model(whole, 8, tmp_path / "small")
    expected, scores = (
        score_texts(load_scorer(path), "birch canoe", TEXTS) for path in (whole, tmp_path / "small")
    )
    np.testing.assert_allclose(scores, expected, atol=0.02)


def test_encoders_without_a_head_are_quantized(tmp_path: Path) -> None:
    """Their pooling is chosen when they are opened."""
    directory = write_family(tmp_path / "bare", "distilbert", None)
    quantize_model(directory, 8, tmp_path / "small")
    assert load_scorer(tmp_path / "small", pooling=Pooling("mean"))
