"""Does an adapter say which extra it needs?"""

from __future__ import annotations

import pytest

from birchbark.adapters.beir import BirchbarkSearch
from birchbark.errors import InputError, MissingPackageError, extra
from birchbark.retrieve.first_stage import FirstStage


def test_a_library_that_is_not_installed() -> None:
    """The message names it and the extra."""
    message = r"no_such_library .*birchbark\[langchain\]"
    with pytest.raises(MissingPackageError, match=message), extra("langchain"):
        import no_such_library  # noqa: F401


def test_a_first_stage_is_no_model() -> None:
    """It has a parameter of its own."""
    with pytest.raises(InputError, match="first_stage=FirstStage"):
        BirchbarkSearch(FirstStage())  # type: ignore[arg-type]
