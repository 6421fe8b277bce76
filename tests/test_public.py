"""Are all public names available, and fast to import?"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import birchbark


def test_every_public_name_is_there() -> None:
    """Each public name exists, and is imported for type checkers."""
    for name in birchbark.__all__:
        assert getattr(birchbark, name) is not None
    tree = ast.parse(Path(birchbark.__file__).read_text())
    block = next(n for n in tree.body if isinstance(n, ast.If))
    typed = {alias.name for node in block.body for alias in node.names}  # type: ignore[attr-defined]
    assert typed | {"__version__"} == set(birchbark.__all__)


def loaded_after(code: str) -> set[str]:
    """Return the top-level modules that a new Python has loaded after `code`."""
    script = f"{code}\nimport sys; print(*{{m.split('.')[0] for m in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_import_loads_nothing_heavy() -> None:
    """Heavy libraries, even numpy, are imported only where they are used."""
    heavy = {"numpy", "numba", "onnx", "onnxruntime", "tokenizers", "scipy", "rich", "click"}
    heavy |= {"matplotlib", "jinja2"}
    assert not loaded_after("import birchbark") & heavy


def test_help_loads_nothing_heavy() -> None:
    """--help imports none of the library's packages."""
    code = "from click.testing import CliRunner; from birchbark.cli import group\n"
    code += "assert CliRunner().invoke(group, ['--help']).exit_code == 0"
    heavy = {"numpy", "numba", "onnx", "onnxruntime", "tokenizers", "scipy", "rich"}
    heavy |= {"matplotlib", "jinja2"}
    assert not loaded_after(code) & heavy
