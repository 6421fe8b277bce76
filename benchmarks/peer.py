"""Is what a benchmark measures installed, and in which version?"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec


@dataclass(frozen=True, slots=True)
class Peer:
    """Something to measure.

    packages: the required packages; the version of the first one is reported.
    """

    packages: tuple[str, ...]

    @property
    def installed(self) -> bool:
        """Whether its packages are installed."""
        return all(find_spec(name.replace("-", "_")) for name in self.packages)

    @property
    def version(self) -> str:
        """The version of its first package."""
        return version(self.packages[0])
