"""Does the README tell the truth? Its commands are run, in order, as a reader would paste them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    """Fenced blocks of one language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.S | re.M)


def test_every_command_of_the_readme_works(tmp_path: Path) -> None:
    """In an empty folder; then the Python example on what they made."""
    shell = "\n".join(b for b in blocks("sh")).replace(". .venv/bin/activate\n", "")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    out = run(["bash", "-euc", shell], tmp_path, path)
    assert "1. returns.txt" in out
    assert "Parcels can be sent back within thirty days." in out
    assert "bm25+cross-encoder" in out
    (example,) = blocks("python")
    assert "returns.txt" in run([sys.executable, "-c", example], tmp_path, path)


def run(command: list[str], where: Path, path: str) -> str:
    """Standard output of `command`, which must end well."""
    done = subprocess.run(
        command,
        cwd=where,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_make_targets_of_the_readme_exist() -> None:
    """`.ci/run` runs them."""
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^    make (\w+)", README, re.M):
        assert re.search(rf"^{target}:", makefile, re.M)
    assert "make test" in (ROOT / ".ci" / "run").read_text()
    assert "make demo" in (ROOT / ".ci" / "run").read_text()


def test_files_named_in_the_readme_exist() -> None:
    """No dead ends."""
    for name in re.findall(r"[\w/-]*\b[A-Z-]+\.md\b", README):
        assert (ROOT / name).exists()
