"""Is a precision known by its name, and by where it is computed?"""

from __future__ import annotations

import pytest

from birchbark.score import precision as module
from birchbark.score.precision import Precision, fastest_precision


def test_a_precision_has_a_name() -> None:
    """That of float32 is left out of the name of a scorer."""
    assert [precision.suffix for precision in Precision] == ["", ", int8", ", bf16", ", fp16"]


def test_where_a_precision_is_computed() -> None:
    """Only float32 is computed by both."""
    assert [p.value for p in Precision if p.runs_on_cpu] == ["fp32", "int8"]
    assert [p.value for p in Precision if p.runs_on_gpu] == ["fp32", "bf16", "fp16"]


@pytest.mark.parametrize(("vnni", "fastest"), [(True, Precision.INT8), (False, Precision.FP32)])
def test_int8_is_fastest_where_integers_are_multiplied_at_once(
    vnni: bool, fastest: Precision, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without VNNI, its weights would have only 7 bits."""
    monkeypatch.setattr(module, "has_vnni", lambda: vnni)
    assert fastest_precision() is fastest
