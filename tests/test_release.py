"""Does everything that states the version state the same one?"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from birchbark._version import __version__

ROOT = Path(__file__).parents[1]


def test_versions_are_equal() -> None:
    """The package of the studies needs the package of the same version."""
    studies = tomllib.loads((ROOT / "studies" / "pyproject.toml").read_text())["project"]
    assert studies["version"] == __version__
    assert studies["dependencies"] == [f"birchbark[study]=={__version__}"]
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.M)
    assert cited
    assert cited[1] == __version__
    assert f"\n## {__version__}" in (ROOT / "CHANGELOG.md").read_text()
