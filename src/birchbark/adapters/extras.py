"""Which extra installs the library that an adapter is for?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from birchbark.errors import MissingPackageError


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Import a library in this block; MissingPackageError names the extra that installs it."""
    try:
        yield
    except ModuleNotFoundError as missing:
        raise MissingPackageError(
            f"{missing.name} is not installed", remedy=f"pip install 'birchbark[{name}]'"
        ) from missing
