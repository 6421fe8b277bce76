"""Does the recipe of the answer probability find the weights that made its data?"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "training" / "answers" / "fit.py"


def test_weights_are_found_again() -> None:
    """Questions are drawn by known weights, and half of them are answered."""
    spec = importlib.util.spec_from_file_location("fit_answers", SCRIPT)
    assert spec
    assert spec.loader
    script = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = script  # dataclasses look it up
    spec.loader.exec_module(script)
    random = np.random.default_rng(1)
    cases = []
    for _ in range(20_000):
        case = {"passage": float(random.uniform()), "embedding": float(random.uniform())}
        log_odds, embedding = script.features(case)
        chance = 1 / (1 + np.exp(-(0.5 * log_odds + 2.0 * embedding - 1.0)))
        case["kind"] = script.ANSWERED if random.uniform() < chance else script.REMOVED
        cases.append(case)
    weights, constant = script.fit(cases)
    assert weights == pytest.approx([0.5, 2.0], abs=0.1)
    assert constant == pytest.approx(-1.0, abs=0.15)
    likely = {"passage": 0.9, "embedding": 0.9}
    assert script.score(likely, weights, constant) > 0.8
