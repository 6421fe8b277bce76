"""Do weights in fewer bits give nearly the same scores, and are bad ones refused?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from zoo import FAMILIES, write_family

from birchbark.checkpoint.heads import Pooling
from birchbark.checkpoint.packing import pack
from birchbark.checkpoint.reader import Checkpoint
from birchbark.checkpoint.weights import read_tensors
from birchbark.errors import CheckpointError, InputError
from birchbark.score.check import compared, kendall
from birchbark.score.model import load_scorer
from birchbark.score.scorer import score_texts
from birchbark.score.session import Session

Bert = Callable[..., Path]
IDS = [np.random.default_rng(7).integers(5, 25, n).tolist() for n in (3, 9, 17, 31)]
TYPES = [[0] * len(i) for i in IDS]
TEXTS = ["birch canoe", "the bees dance .", "iron bridge"]


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("family", FAMILIES)
def test_packed_models_agree(family: str, bits: int, tmp_path: Path) -> None:
    """For every family; the file is smaller, and packing it again changes no bit."""
    directory = write_family(tmp_path / family, family, 1)
    pack(directory, bits, tmp_path / "packed")
    exact = Session(Checkpoint.open(directory)).run(IDS, TYPES)
    found = Session(Checkpoint.open(tmp_path / "packed")).run(IDS, TYPES)
    tolerance = {8: 0.3, 16: 0.01}[bits]
    np.testing.assert_allclose(found, exact, rtol=0, atol=tolerance * np.abs(exact).max())
    pack(tmp_path / "packed", 16, tmp_path / "again")
    again = Session(Checkpoint.open(tmp_path / "again")).run(IDS, TYPES)
    np.testing.assert_allclose(again, found, rtol=0, atol=0.01 * np.abs(exact).max())


@pytest.mark.parametrize("bits", [8, 16])
def test_every_weight_is_within_its_rounding(bert: Bert, tmp_path: Path, bits: int) -> None:
    """Half a step of its row's scale, or of float16; vectors are as they were."""
    directory = bert(labels=1)
    pack(directory, bits, tmp_path / "packed")
    before, after = (
        read_tensors(d / "model.safetensors", "") for d in (directory, tmp_path / "packed")
    )
    assert before.keys() == after.keys()
    for name, value in before.items():
        if value.ndim < 2:
            assert np.array_equal(after[name], value)
        else:
            step = np.abs(value).max(axis=1, keepdims=True) / (127 if bits == 8 else 1024)
            assert (np.abs(after[name] - value) <= 0.501 * step).all()


def test_the_packed_directory_is_complete(bert: Bert, tmp_path: Path) -> None:
    """It loads as an embedding, with its own fingerprint, and is never put over something."""
    directory = bert()
    (directory / ".secret").write_text("")
    (directory / ".git").mkdir()
    (directory / ".git" / "object").write_text("")
    pack(directory, 8, tmp_path / "packed")
    names = {p.name for p in (tmp_path / "packed").rglob("*") if p.is_file()}
    assert names == {"config.json", "vocab.txt", "model.safetensors"}
    one, other = load_scorer(directory), load_scorer(tmp_path / "packed")
    np.testing.assert_allclose(
        score_texts(one, "bee", TEXTS), score_texts(other, "bee", TEXTS), atol=0.02
    )
    assert one.fingerprint != other.fingerprint
    with pytest.raises(InputError, match="already exists"):
        pack(directory, 8, tmp_path / "packed")
    with pytest.raises(InputError, match="unknown number of bits: expected 8 or 16, found 4"):
        pack(directory, 4, tmp_path / "other")


def test_bfloat16_is_read(bert: Bert) -> None:
    """As many published checkpoints are stored: the upper half of float32."""
    path = bert(labels=1) / "model.safetensors"
    stored = load_file(path)
    cut = {n: (v.view(np.uint32) & 0xFFFF0000).view(np.float32) for n, v in stored.items()}
    _write_bfloat16(cut, path)
    found = read_tensors(path, "")
    assert found.keys() == cut.keys()
    assert all(np.array_equal(found[n], cut[n]) for n in cut)
    assert np.isfinite(score_texts(load_scorer(path.parent), "bee", TEXTS)).all()


def _write_bfloat16(tensors: dict[str, np.ndarray], path: Path) -> None:
    import json

    header, data = {}, b""
    for name, value in tensors.items():
        half = (value.view(np.uint32) >> 16).astype("<u2").tobytes()
        places = [len(data), len(data) + len(half)]
        header[name] = {"dtype": "BF16", "shape": value.shape, "data_offsets": places}
        data += half
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def test_int8_without_good_scales_is_refused(bert: Bert, tmp_path: Path) -> None:
    """Missing, of another shape, not finite."""
    pack(bert(labels=1), 8, tmp_path / "packed")
    path = tmp_path / "packed" / "model.safetensors"
    stored = load_file(path)
    name = "bert.pooler.dense.weight"
    scale = stored[name + ".scale"]
    for bad in (None, scale[:-1], np.full_like(scale, np.nan)):
        changed = {n: v for n, v in stored.items() if n != name + ".scale"}
        if bad is not None:
            changed[name + ".scale"] = np.ascontiguousarray(bad)
        save_file(changed, path)
        with pytest.raises(CheckpointError, match=rf"int8 weights {name} without their scales"):
            load_scorer(tmp_path / "packed")


def test_what_float16_cannot_hold_is_refused(bert: Bert, tmp_path: Path) -> None:
    """Rather than stored as infinity; 8 bits have a scale for it."""
    path = bert(labels=1) / "model.safetensors"
    stored = load_file(path)
    stored["classifier.weight"] = np.full_like(stored["classifier.weight"], 1e5)
    save_file(stored, path)
    with pytest.raises(CheckpointError, match=r"classifier\.weight are too large.*use 8 bits"):
        pack(path.parent, 16, tmp_path / "packed")
    assert not (tmp_path / "packed").exists()
    pack(path.parent, 8, tmp_path / "packed")


def test_a_check_tells_of_every_precision(bert: Bert) -> None:
    """fp32 first, which agrees with itself; texts that were not cut."""
    found = list(compared(bert(labels=1), {"short": [("birch", TEXTS), ("bee", TEXTS)]}))
    assert [row.name.split()[-1] for row in found] == ["fp32", "bits", "bits", "arithmetic"]
    assert (found[0].tau, found[0].difference) == (1, 0)
    assert found[2].megabytes < found[1].megabytes < found[0].megabytes
    for row in found:
        assert row.speed["short"] > 0
        assert 0 <= row.difference < 0.3


def test_bare_encoders_are_packed(tmp_path: Path) -> None:
    """A directory without a head too; how it is read is for those to say who read it."""
    directory = write_family(tmp_path / "bare", "distilbert", None)
    pack(directory, 8, tmp_path / "packed")
    assert load_scorer(tmp_path / "packed", pooling=Pooling("mean"))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=12))
def test_tau_is_scipys(pairs: list[tuple[int, int]]) -> None:
    """τ-b, ties and all."""
    from scipy.stats import kendalltau

    one, other = (np.array(side, np.float32) for side in zip(*pairs, strict=True))
    expected = kendalltau(one, other).statistic
    if np.isfinite(expected):
        assert kendall(one, other) == pytest.approx(expected)
