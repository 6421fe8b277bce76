"""Does the documentation cover every command, option, public name, recipe and result?"""

from __future__ import annotations

import html
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import click
import pytest

import birchbark
from birchbark.cli import group
from birchbark_studies import recipe_folder

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAPERS = (DOCS / "papers.md").read_text()
RECIPES = {path.stem for path in recipe_folder.RECIPES.glob("*.toml")}
MEASURED = {path.name for path in (ROOT / "studies" / "results").iterdir()}


def test_every_public_name_is_on_the_api_page() -> None:
    """Each is there once, and nothing else is."""
    named = re.findall(r"^::: birchbark\.(\w+)$", (DOCS / "reference" / "api.md").read_text(), re.M)
    assert sorted(named) == sorted(set(birchbark.__all__) - {"__version__"})


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documentation, built strictly: a broken link fails."""
    if not find_spec("mkdocs"):
        pytest.skip("MkDocs is not installed: pip install 'birchbark[docs]' (make docs)")
    target = tmp_path_factory.mktemp("docs") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(target)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


def test_language_models_find_every_page(site: Path) -> None:
    """llms.txt lists each page of the site under its title; those of notebooks are pages, too."""
    listed = re.findall(r"^- \[.+\]\((\S+\.html)\)$", (site / "llms.txt").read_text(), re.M)
    assert all((site / path).is_file() for path in listed)
    assert {"tutorial.html", "how-to/agents.html", "skill/SKILL.html"} <= set(listed)
    assert "[None]" not in (site / "llms.txt").read_text()


def commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """A command and all below it, each with its full name."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands(inner, f"{path} {name}")


def test_every_request_is_in_the_reference(site: Path) -> None:
    """The page is generated from the service, with links to the objects of its answers."""
    text = (site / "reference" / "http.html").read_text()
    for request in ("POST /search", "GET /documents/{doc_id}", "POST /v2/rerank", "GET /readyz"):
        assert f">{request}<" in text
    for field in ("budget_ms", "return_evidence", "unsplit_characters"):
        assert f"<code>{field}</code>" in text
    targets = set(re.findall(r'href="#(\w+response|hit)"', text))
    assert targets
    assert all(f'id="{target}"' in text for target in targets)


def test_every_command_and_option_is_in_the_reference(site: Path) -> None:
    """The page is generated from the command line itself; no option is hidden."""
    text = (site / "reference" / "cli.html").read_text()
    text = html.unescape(re.sub(r"<[^>]+>", "", text))
    sections = dict(
        re.findall(r"Usage: (birchbark[\w -]*?) \[OPTIONS\](.*?)(?=Usage: |$)", text, re.S)
    )
    for path, command in commands(group, "birchbark"):
        for option in command.params:
            if isinstance(option, click.Option):
                for spelling in option.opts:
                    assert re.search(rf"(?<!\S){spelling}\b", sections[path]), f"{path} {spelling}"


def test_every_public_name_is_documented(site: Path) -> None:
    """The page that MkDocs builds has each name with its signature."""
    text = (site / "reference" / "api.html").read_text()
    for name in set(birchbark.__all__) - {"__version__"}:
        assert re.search(rf'id="birchbark\.(\w+\.)*{name}"', text), name


def test_every_recipe_is_on_the_papers_page() -> None:
    """Every recipe named on that page exists."""
    prefixes = "|".join(sorted({name.partition("-")[0] for name in RECIPES}))
    named = set(re.findall(rf"`((?:{prefixes})-[\w-]+)`", PAPERS))
    assert named - {"birchbark-minilm-l6"} == RECIPES


def test_states_on_the_papers_page_are_true() -> None:
    """Rows of recipes with results say current or stale; other rows do not."""
    for line in PAPERS.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        names = set(re.findall(r"`([\w-]+)`", line)) & RECIPES
        if not line.startswith("|") or not names:
            continue
        says_measured = bool(re.search(r"current|stale", cells[-1]))
        assert says_measured == bool(names & MEASURED), line


def test_tables_show_the_committed_results() -> None:
    """The states of recipes, and the table of the default search."""
    spec = spec_from_file_location("update_tables", DOCS / "update_tables.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    for path, text in module.updated().items():
        assert path.read_text("utf-8") == text, f"{path} is out of date; run: make results"
    changed = module.with_states(PAPERS, dict.fromkeys(MEASURED, "stale"))
    assert "| `default-search` | stale |" in changed
    assert changed.count("; stale |") > PAPERS.count("; stale |")
