"""Is a static embedding written and read, and one that does not fit refused?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from zoo import TABLE, TEXTS, load_table, write_table

from birchbark.checkpoint.score_scale import ScoreScale
from birchbark.checkpoint.static_embedding import write_static_embedding
from birchbark.errors import CheckpointError, InputError
from birchbark.score.describe import describe
from birchbark.score.load_scorer import load_scorer


def test_what_is_written_is_read_again_in_8_bits(tmp_path: Path) -> None:
    """The table is read with its scale, and is close to the vectors in full precision."""
    folder, scale = tmp_path / "written", ScoreScale(0.1, 0.8, stated=True)
    exact = load_table(write_table(tmp_path / "exact"))
    tokenizer = tmp_path / "exact" / "tokenizer.json"
    write_static_embedding(folder, TABLE, tokenizer, scale, "# card")
    written = load_table(folder)
    assert written.checkpoint.scale == scale
    ids = exact.encode(TEXTS[:-1])
    assert (written.embed(ids) * exact.embed(ids)).sum(axis=1) == pytest.approx(1.0, abs=1e-3)
    assert written.fingerprint != exact.fingerprint
    assert str(describe(folder, "x")).startswith("static embedding of 8 dimensions, 0.0 MB")


def test_what_is_unknown_is_refused(tmp_path: Path) -> None:
    """The weights and mapping of a quantised vocabulary are refused, and so are two tables."""
    folder = write_table(tmp_path / "model")
    for other in ({"weights": TABLE[:, 0].copy()}, {"embeddings": TABLE}):
        save_file({"embedding.weight": TABLE} | other, folder / "model.safetensors")
        with pytest.raises(CheckpointError, match="unsupported static embedding"):
            load_table(folder)


def test_a_table_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    """Fewer rows than tokens, numbers that are not finite, or a pooling."""
    folder = write_table(tmp_path / "model")
    with pytest.raises(InputError, match="no layers to pool"):
        load_scorer(folder, pooling="mean")
    save_file({"embedding.weight": TABLE[:9]}, folder / "model.safetensors")
    with pytest.raises(CheckpointError, match="vocabulary and weights do not match"):
        load_table(folder)
    save_file({"embedding.weight": TABLE * np.float32(np.nan)}, folder / "model.safetensors")
    with pytest.raises(CheckpointError, match="not finite"):  # read at the first use
        load_table(folder).embed_query("birch")
