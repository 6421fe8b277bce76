"""Do errors say what, where, found, wanted and remedy?"""

from collections.abc import Callable
from pathlib import Path

import pytest

from birchbark.errors import (
    ArtifactError,
    BirchbarkError,
    CheckpointError,
    InputError,
    reporting_damage,
    require_at_least,
)
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.rm3 import RM3
from birchbark.segment.passages import Passages
from birchbark.segment.windows import Windows


def test_message_has_all_parts() -> None:
    """All five parts are in one line."""
    error = InputError("wrong number of fields", wanted="6", found="5", remedy="missing tag?")
    message = "run.txt:31: wrong number of fields: expected 6, found 5 (missing tag?)"
    assert str(error.at("run.txt:31")) == message


def test_first_location_is_kept() -> None:
    """A location that is already set is not overwritten."""
    assert str(InputError("bad").at("a:1").at("a")) == "a:1: bad"


def test_invalid_input_has_exit_code_2() -> None:
    """So has a model that cannot be read. Other errors exit with code 1."""
    assert (InputError.exit_code, CheckpointError.exit_code) == (2, 2)
    assert (BirchbarkError.exit_code, ArtifactError.exit_code) == (1, 1)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0, "out of range: expected 1 or more"),
        (float("nan"), "not a whole number"),
        (2**31, "out of range: expected below 2,147,"),
    ],
)
def test_numbers_have_a_range(value: float, message: str) -> None:
    """Compiled code would fail at numbers beyond 32 bits, in other words."""
    require_at_least("depth", 2**31 - 1, 1)
    with pytest.raises(InputError, match=f"depth is {message}"):
        require_at_least("depth", value, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make",
    [
        lambda: BM25(k1=None),  # type: ignore[arg-type]
        lambda: BM25(b=None),  # type: ignore[arg-type]
        lambda: RM3(documents=None),  # type: ignore[arg-type]
        lambda: RM3(original_weight=None),  # type: ignore[arg-type]
        lambda: Passages(None),  # type: ignore[arg-type]
        lambda: Windows(None),  # type: ignore[arg-type]
    ],
)
def test_a_number_that_is_needed_is_not_none(make: Callable[[], object]) -> None:
    """It was accepted, or a TypeError."""
    with pytest.raises(InputError, match=r"is not a (whole )?number: found None"):
        make()


def test_damage_is_told_without_paths() -> None:
    """What a service tells its users is `what`; the place is in `where`."""
    with pytest.raises(ArtifactError) as error, reporting_damage("index", "/i", remedy="rebuild"):
        Path("/i/texts.blocks").read_bytes()
    assert error.value.what == "damaged index: No such file or directory: texts.blocks"
    assert str(error.value).startswith("/i: damaged index: No such file or directory: texts")
