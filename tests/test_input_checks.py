"""Are faults of inputs refused, corrected or counted as docs/explanation/checks.md says?"""

from __future__ import annotations

from pathlib import Path

import pytest

from birchbark.errors import InputError
from input_checks import CHECKS, REFUSED, Check

ALL = [
    pytest.param(check, id=f"{kind}: {check.given}")
    for kind, checks in CHECKS.items()
    for check in checks
]


@pytest.mark.parametrize("check", ALL)
def test_checks(check: Check, tmp_path: Path) -> None:
    """What is refused is refused with this message; what is not has this value."""
    if check.outcome == REFUSED:
        with pytest.raises(InputError) as caught:
            check.attempt(tmp_path)
        assert check.result in str(caught.value)
    else:
        assert check.attempt(tmp_path) == check.value
