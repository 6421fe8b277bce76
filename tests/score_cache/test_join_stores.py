"""Do joined stores have the scores of both, and is what differs told?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from birchbark.cli import group
from birchbark.errors import InputError
from birchbark.records import Float32s, Ids
from birchbark.score.scorer import score_texts
from birchbark.score_cache import store as store_module
from birchbark.score_cache.cached_scorer import CachedScorer
from birchbark.score_cache.join_stores import join_stores
from birchbark.score_cache.store import ScoreStore
from conftest import WordScorer

TEXTS = [f"text {n}" for n in range(30)]


class Shifted(WordScorer):
    """Adds a number to each score; has a fingerprint of its own if asked to."""

    def __init__(self, shift: float = 0.0, fingerprint: str = "words") -> None:
        super().__init__()
        self.shift, self.fingerprint = shift, fingerprint
        self.scored = 0

    def score(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
        self.scored += len(token_ids)
        return super().score(query, token_ids) + np.float32(self.shift)


def scored(folder: Path, texts: Sequence[str], scorer: Shifted | None = None) -> int:
    """Score texts with the store in `folder`; return how many were not in it."""
    scorer = scorer or Shifted()
    with ScoreStore(folder, scorer) as store:
        score_texts(CachedScorer(scorer, store), "text", texts)
    return scorer.scored


def test_the_scores_of_both_are_in_one_store(tmp_path: Path) -> None:
    """Nothing is scored again; pairs that both have are kept once; the other store is unchanged."""
    one, two, joined = (tmp_path / name for name in ("one", "two", "joined"))
    scored(one, TEXTS[:20])
    scored(two, TEXTS[10:])
    scored(two, TEXTS[:3], Shifted(fingerprint="other"))
    before = {path.name: path.read_bytes() for path in two.iterdir()}
    assert [(x.added, x.unequal) for x in join_stores(joined, one)] == [(20, 0)]
    added = {x.header.fingerprint: x.added for x in join_stores(joined, two)}
    assert added == {"words": 10, "other": 3}
    assert scored(joined, TEXTS) == 0
    assert scored(joined, TEXTS[:3], Shifted(fingerprint="other")) == 0
    assert {path.name: path.read_bytes() for path in two.iterdir()} == before
    assert [x.added for x in join_stores(joined, two)] == [0, 0]


def test_several_stores_at_once(tmp_path: Path) -> None:
    """They are added in their order; what an earlier one has is not new."""
    one, two, both = (tmp_path / name for name in ("one", "two", "both"))
    scored(one, TEXTS[:20])
    scored(two, TEXTS[10:])
    joined = join_stores(both, one, two)
    assert [(x.source, x.added) for x in joined] == [(one, 20), (two, len(TEXTS) - 20)]
    assert scored(both, TEXTS) == 0


def test_an_incomplete_record_is_not_added(tmp_path: Path) -> None:
    """The incomplete record of either store is left out."""
    one, two = tmp_path / "one", tmp_path / "two"
    scored(one, TEXTS[:5])
    scored(two, TEXTS[5:10])
    for folder in (one, two):
        (file,) = folder.glob("*.scores")
        file.write_bytes(file.read_bytes()[:-7])
    assert [x.added for x in join_stores(one, two)] == [4]
    assert scored(one, TEXTS[:10]) == 2


def test_what_differs_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores of an unlike processor can differ; the scores that were there first are kept."""
    one, two = tmp_path / "one", tmp_path / "two"
    scored(one, TEXTS[:4])
    monkeypatch.setattr(store_module, "processor", lambda: "riscv64")
    scored(two, TEXTS[2:6], Shifted(1.0))
    result = CliRunner().invoke(group, ["scores", str(one), "--add", str(two)])
    assert result.exit_code == 0, result.exception
    assert f"added 2 pairs of {Shifted().name} from {two}" in result.stderr
    assert "computed by unlike processors: " in result.stderr
    assert "; riscv64" in result.stderr
    assert "2 pairs had another score" in result.stderr
    with pytest.warns(UserWarning, match=r"another kind of processor .*here riscv64"):
        assert scored(one, TEXTS[:6]) == 0
    with pytest.raises(InputError, match="cannot be added to itself"):
        join_stores(one, one / ".." / "one")
    with pytest.raises(InputError, match="no score store here"):
        join_stores(one, tmp_path)
