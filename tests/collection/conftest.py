"""Fixtures of tests that read files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from birchbark.collection.file_readers.file import Fields, File
from birchbark.collection.file_readers.file_types import file_type
from birchbark.collection.files.file_documents import Part, parts_of
from birchbark.collection.files.isolated_reader import IsolatedReader


@pytest.fixture(autouse=True, scope="module")
def readers_in_this_process(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let readers run in this process, where tests can change them, and need not start another.

    Except in the tests of that process.
    """

    def parts(
        self: IsolatedReader, location: Path, raw: bytes, path: str, about: Fields
    ) -> Iterator[Part]:
        kind = file_type(Path(path))
        assert kind
        return parts_of(File(location, raw, self._intake), path, kind, about)

    with pytest.MonkeyPatch.context() as patch:
        if request.module.__name__ != "test_isolated_reader":
            patch.setattr(IsolatedReader, "parts", parts)
        yield
