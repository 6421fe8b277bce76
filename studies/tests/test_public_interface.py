"""Do studies use only what Birchbark promises to everyone?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import birchbark
import birchbark_studies

PACKAGE = Path(birchbark_studies.__file__).parent
REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "submodules.md"


def imported() -> Iterator[str]:
    """Yield the full name of each thing that the package imports from Birchbark."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.ImportFrom)
                and (node.module or "").split(".")[0] == "birchbark"
            ):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            if isinstance(node, ast.Import):
                assert all(not alias.name.startswith("birchbark.") for alias in node.names)


def test_only_documented_names_are_imported() -> None:
    """Names at the top from there, others from the module that the reference names."""
    top = {f"birchbark.{name}" for name in birchbark.__all__}
    documented = re.findall(r"^::: (\S+)$", REFERENCE.read_text(), re.MULTILINE)
    assert len(documented) == len(set(documented))
    assert set(imported()) - top <= set(documented)


def test_both_packages_have_one_version() -> None:
    """They are released together."""
    assert version("birchbark-studies") == version("birchbark")
