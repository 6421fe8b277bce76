"""Are weights read as they are stored, and damaged ones refused?"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damaged_models import IDS, TYPES, Bert, load
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from test_quantize import TEXTS
from zoo import write_family

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.quantize import quantize_model
from birchbark.checkpoint.weights import quantize_rows, read_tensors
from birchbark.errors import CheckpointError
from birchbark.score.load_scorer import load_scorer
from birchbark.score.scorer import score_texts
from birchbark.score.session import OnnxSession


def test_weights_truncated_anywhere(bert: Bert) -> None:
    """Truncation in the header's length, the header or the data is detected."""
    weights = bert(labels=1) / "model.safetensors"
    content = weights.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    lengths = [*range(9), header - 1, header, header + 1, len(content) - 1]
    lengths += range(9, len(content), len(content) // 150)
    for length in lengths:
        weights.write_bytes(content[:length])
        with pytest.raises(CheckpointError, match=r"model\.safetensors: damaged weights"):
            load(weights.parent)
    weights.write_bytes(content + b"\0")
    with pytest.raises(CheckpointError, match="damaged weights"):
        load(weights.parent)


Header = dict[str, Any]
INVALID_HEADERS: dict[str, Callable[[Header, Header], object]] = {
    "beyond the file": lambda header, entry: entry.update(data_offsets=[0, 2**40]),
    "backwards": lambda header, entry: entry.update(data_offsets=[64, 0]),
    "negative": lambda header, entry: entry.update(data_offsets=[-64, 0]),
    "overlapping": lambda header, entry: [e.update(data_offsets=[0, 64]) for e in header.values()],
    "huge": lambda header, entry: entry.update(shape=[2**62, 2**62]),
    "huger than 64 bits": lambda header, entry: entry.update(shape=[2**80]),
    "negative sizes": lambda header, entry: entry.update(shape=[-1, 16]),
    "no sizes": lambda header, entry: entry.update(shape=16),
    "sizes of text": lambda header, entry: entry.update(shape=["sixteen"]),
    "flat": lambda header, entry: entry.update(shape=[]),
    "no offsets": lambda header, entry: entry.pop("data_offsets"),
    "offsets of text": lambda header, entry: entry.update(data_offsets="0"),
    "unknown type": lambda header, entry: entry.update(dtype="F33"),
    "type of another width": lambda header, entry: entry.update(dtype="F64"),
    "no entries": lambda header, entry: header.clear(),
    "an entry that is none": lambda header, entry: header.update({"x": None}),
    "a list": lambda header, entry: header.update({"x": []}),
}


@pytest.mark.parametrize("name", ["classifier.weight", "bert.embeddings.LayerNorm.bias"])
@pytest.mark.parametrize("change", INVALID_HEADERS)
def test_invalid_headers(bert: Bert, change: str, name: str) -> None:
    """Sizes and offsets are checked before anything is read at them."""
    weights = bert(labels=1) / "model.safetensors"
    content = weights.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header.pop("__metadata__", None)
    INVALID_HEADERS[change](header, header[name])
    written = json.dumps(header).encode()
    weights.write_bytes(struct.pack("<Q", len(written)) + written + content[8 + size :])
    with pytest.raises(CheckpointError, match=r"damaged weights|no supported head|do not fit"):
        load(weights.parent)


@pytest.mark.parametrize("header", [b"[" * 100_000, b"null", b"[]", b"{}", b'"x"', b"\xff\xfe"])
def test_headers_that_are_no_objects(bert: Bert, header: bytes) -> None:
    """A header of another JSON type, or nested too deeply for the parser, is rejected."""
    weights = bert(labels=1) / "model.safetensors"
    weights.write_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(CheckpointError, match=r"damaged weights|no supported head"):
        load(weights.parent)


@pytest.mark.parametrize("size", [0, 2**31, 2**63, 2**64 - 1])
def test_headers_of_impossible_sizes(bert: Bert, size: int) -> None:
    """The stated size of the header allocates no memory."""
    weights = bert(labels=1) / "model.safetensors"
    weights.write_bytes(struct.pack("<Q", size) + weights.read_bytes()[8:])
    with pytest.raises(CheckpointError, match="damaged weights"):
        load(weights.parent)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["embeddings.word_embeddings", "encoder.layer.1.output.dense"])
def test_weights_that_are_not_finite(bert: Bert, name: str, value: float) -> None:
    """Rejected on loading, with the tensor's name, not when a rare token is first read."""
    weights = bert() / "model.safetensors"
    tensors = load_file(weights)
    tensors[f"{name}.weight"][-1, -1] = value
    save_file(tensors, weights)
    with pytest.raises(CheckpointError, match=rf"{name}\.weight are not finite"):
        load(weights.parent)


def test_bfloat16_is_read(bert: Bert) -> None:
    """Many published models are stored in it; it is the upper half of float32."""
    path = bert(labels=1) / "model.safetensors"
    stored = load_file(path)
    rounded = {n: (v.view(np.uint32) & 0xFFFF0000).view(np.float32) for n, v in stored.items()}
    _write_bfloat16(rounded, path)
    tensors = read_tensors(path, "")
    assert tensors.keys() == rounded.keys()
    assert all(np.array_equal(tensors[n], rounded[n]) for n in rounded)
    assert np.isfinite(score_texts(load_scorer(path.parent), "bee", TEXTS)).all()


def _write_bfloat16(tensors: dict[str, np.ndarray], path: Path) -> None:
    import json

    header, data = {}, b""
    for name, value in tensors.items():
        half = (value.view(np.uint32) >> 16).astype("<u2").tobytes()
        offsets = [len(data), len(data) + len(half)]
        header[name] = {"dtype": "BF16", "shape": value.shape, "data_offsets": offsets}
        data += half
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def test_int8_without_valid_scales_is_rejected(bert: Bert, tmp_path: Path) -> None:
    """Scales may be missing, of another shape, or not finite."""
    quantize_model(bert(labels=1), 8, tmp_path / "small")
    path = tmp_path / "small" / "model.safetensors"
    stored = load_file(path)
    name = "bert.pooler.dense.weight"
    scale = stored[name + ".scale"]
    for bad in (None, scale[:-1], np.full_like(scale, np.nan)):
        changed = {n: v for n, v in stored.items() if n != name + ".scale"}
        if bad is not None:
            changed[name + ".scale"] = np.ascontiguousarray(bad)
        save_file(changed, path)
        with pytest.raises(CheckpointError, match=rf"int8 weights {name} without their scales"):
            load_scorer(tmp_path / "small")


@given(st.integers(0, 2**32 - 1), st.sampled_from([64, 127]))
def test_rounded_weights_are_within_half_a_step(seed: int, max_value: int) -> None:
    """The rounding error is at most half of a row's scale; a row of zeros stays zero."""
    rng = np.random.default_rng(seed)
    weight = rng.normal(size=(5, 7)).astype(np.float32) * rng.lognormal(0, 3, (5, 1))
    weight = weight.astype(np.float32)
    weight[2] = 0
    quantized, scale = quantize_rows(weight, max_value)
    assert np.abs(quantized.astype(int)).max() <= max_value
    assert (np.abs(quantized * scale[:, None] - weight) <= 0.501 * scale[:, None]).all()


def test_weights_called_gamma_and_beta_are_read(tmp_path: Path) -> None:
    """Early BERT checkpoints call the weights of norms so."""
    from safetensors.numpy import load_file, save_file

    directory = write_family(tmp_path / "bert", "bert", 1)
    before = OnnxSession(Checkpoint.open(directory)).run(IDS, TYPES)
    weights = directory / "model.safetensors"
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): value
        for name, value in load_file(weights).items()
    }
    save_file(old, weights)
    assert np.array_equal(OnnxSession(Checkpoint.open(directory)).run(IDS, TYPES), before)


def test_pickles_are_never_loaded(bert: Bert) -> None:
    """The error gives the reason and a remedy."""
    directory = bert()
    (directory / "model.safetensors").rename(directory / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=r"pickle.*run any code.*save_pretrained"):
        load_scorer(directory)
    (directory / "pytorch_model.bin").unlink()
    with pytest.raises(CheckpointError, match=r"no model\.safetensors"):
        load_scorer(directory)


@pytest.mark.parametrize("keep", [0, 4, 100, -10])
def test_truncated_weights_are_rejected(bert: Bert, keep: int) -> None:
    """Weights from an interrupted download are rejected."""
    weights = bert(labels=1) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:keep])
    with pytest.raises(CheckpointError, match="damaged weights"):
        load_scorer(weights.parent)
