"""Do the commands and programs of the README and the documentation work as shown?"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, *sorted(p for p in (ROOT / "docs").rglob("*.md") if "```sh" in p.read_text())]
PYTHON_PAGES = [ROOT / "docs" / "how-to" / name for name in ("rank-from-python.md", "extend.md")]


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of each fenced block of a page, in order."""
    return re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(), re.S | re.M)


def run(command: list[str], folder: Path) -> str:
    """Return the standard output of `command`, which must succeed."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_page(page: Path, folder: Path) -> str:
    """Run the shell and Python blocks of a page in order and return their output."""
    return "".join(
        run(["bash", "-euc", text] if language == "sh" else [sys.executable, "-c", text], folder)
        for language, text in blocks(page)
        if language in ("sh", "python")
    )


@pytest.fixture(scope="module")
def output_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], str]:
    """The output of a page, whose blocks are run once, in an empty folder."""
    return cache(lambda page: run_page(page, tmp_path_factory.mktemp(page.stem)))


def printed(text: str) -> list[str]:
    """The comments `# → …` of Python blocks: lines that the block prints."""
    return re.findall(r"^# → (.*)$", text, re.M)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=[pytest.mark.slow] * ("how-to" in page.parts))
        for page in PAGES + PYTHON_PAGES
    ],
)
def test_every_command_of_a_page_works(page: Path, output_of: Callable[[Path], str]) -> None:
    """It works in an empty folder, and prints what the page shows as printed."""
    out = output_of(page).splitlines()
    for line in printed(page.read_text()):
        assert line in out, f"{line!r} is not printed"


def test_the_result_at_the_top_is_what_is_printed(output_of: Callable[[Path], str]) -> None:
    """The README's first block shows the output of the search further down.

    Scores in int8, on processors with VNNI, differ a little from those in float32 on others.
    """
    (language, shown), *_ = blocks(README)
    assert not language
    _, *lines = shown.splitlines()
    out = output_of(README)
    first = out.index(lines[0].split("  ")[0])
    printed_lines = out[first:].splitlines()
    for wanted, found in zip(lines, printed_lines, strict=False):
        number = r"\b\d\.\d+"
        assert re.sub(number, "#", wanted) == re.sub(number, "#", found)
        scores, others = (list(map(float, re.findall(number, line))) for line in (wanted, found))
        assert scores == pytest.approx(others, abs=0.02)
    assert "bm25+cross-encoder" in out  # the tag of the re-ranked run


def test_the_make_targets_of_the_readme_exist() -> None:
    """`.ci/run` runs them, and all that `make test-all` does."""
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^    make ([\w-]+)|`make ([\w-]+)`", README.read_text(), re.M):
        assert re.search(rf"^{''.join(target)}:", makefile, re.M)
    [parts] = re.findall(r"^test-all: (.*)$", makefile, re.MULTILINE)
    commands = (ROOT / ".ci" / "run").read_text()
    run = {word for made in re.findall(r"\bmake ([\w ./-]+)", commands) for word in made.split()}
    assert {"test", "demo", "docs", "lint", *parts.split()} <= run


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_linked_files_exist(name: str) -> None:
    """No dead ends; links within docs/ are checked by MkDocs."""
    text = (ROOT / name).read_text()
    for target in re.findall(r"\]\(([^)#:]+)(?:#[\w-]+)?\)", text):
        assert (ROOT / target).exists(), target
    for path in re.findall(r"`((?:benchmarks|studies|training|tests|docs)/[\w/.-]+)`", text):
        assert (ROOT / path).exists(), path
    for path in re.findall(r"`(\w+/(?:\w+/)*\w+\.py)`", text):
        assert (ROOT / path).exists() or (ROOT / "src" / "birchbark" / path).exists(), path
