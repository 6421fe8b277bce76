"""Write the tables of the documentation that show committed results again.

`make results` runs it from the root of the repository, after `birchbark study refresh`:
- the states of the recipes in docs/papers.md;
- the table of the default search in README.md and docs/explanation/default-model.md, which stands
  between the comments of MARKS;
- in each model card of CARDS the tables of its study, after the first paragraph under MEASURED;
- the tables of docs/explanation/checks.md, which show what tests/input_checks.py tries.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from runpy import run_path

from birchbark import defaults
from birchbark.checkpoint.locate import locate
from birchbark.collection.data_files import find_data_root
from birchbark.show.format_numbers import format_value, significance_mark
from birchbark.show.table import Cell, Style
from birchbark_studies.listing import State, list_recipe, read_as_measured
from birchbark_studies.markdown import STALE
from birchbark_studies.recipe_folder import RECIPES
from birchbark_studies.stored_results import read_results

ROOT = Path(__file__).parents[1]
STUDIES = ROOT / "studies"
PAPERS = ROOT / "docs" / "papers.md"
WITH_TABLE = (ROOT / "README.md", ROOT / "docs" / "explanation" / "default-model.md")
CHECKS = ROOT / "docs" / "explanation" / "checks.md"
MARKS = "<!-- default-search -->", "<!-- end -->"
MEASURED = "## Measured\n\n"
CARDS = {defaults.MODEL: "default-search", defaults.SMALL_MODEL: "small-model"}
MEASURES = {"TIME": "AP", "CACM": "AP", "Cranfield": "AP", "SciFact": "AP", "DL19": "nDCG@10"}
PIPELINES = {  # heading → row of the study
    "BM25": "first stage",
    "BM25+RM3": "BM25+RM3",
    "+ embedding": "embedding",
    "+ cross-encoder": "cross-encoder",
    "cross-encoder alone": "cross-encoder, alone",
    "default": "default",
    "default, vectors": "default, with stored vectors",
}


def states() -> dict[str, State]:
    """Return recipe → the state of its results, for those that have any.

    What cannot be checked for want of data is as its page says.
    """
    root = find_data_root()
    listings = [list_recipe(read_as_measured(path), root) for path in RECIPES.glob("*.toml")]
    return {
        x.recipe.name: _on_page(x.results) if x.state is State.UNCHECKED else x.state
        for x in listings
        if x.results.is_dir()
    }


def _on_page(results: Path) -> State:
    said = STALE.split("{")[0] in (results / "README.md").read_text("utf-8")
    return State.STALE if said else State.CURRENT


def with_states(text: str, state_of: Mapping[str, State]) -> str:
    """Return docs/papers.md with the state of each recipe that has results.

    In a row, recipes before and after a semicolon have a state each; of several, one that is stale.
    """
    return "\n".join(_with_state(line, state_of) for line in text.split("\n"))


def _with_state(line: str, state_of: Mapping[str, State]) -> str:
    cells = [cell.strip() for cell in line.strip("|").split(" |")]
    if not line.startswith("| ") or len(cells) < 3:
        return line
    named, shown = cells[1].split(";"), cells[-1].split("; ")
    for number, text in enumerate(named[: len(shown)]):
        names = re.findall(r"`([\w-]+)", text)
        found = [state_of[name] for name in names if name in state_of]
        if State.DAMAGED in found:
            raise SystemExit(f"damaged results of {', '.join(names)}")
        if found:
            shown[number] = str(State.STALE if State.STALE in found else State.CURRENT)
    before = line.rsplit("|", 2)[0]
    return f"{before}| {'; '.join(shown)} |"


def default_search() -> str:
    """Return the table of the default search on five collections."""
    (table,) = (
        t
        for t in read_results(STUDIES / "results" / "default-search").tables
        if t.name == "pipelines"
    )
    columns = [column.name for column in table.columns]
    headings = ["collection, measure", *PIPELINES]
    lines = [f"| {' | '.join(headings)} |", f"|{' --- |' * len(headings)}"]
    for group in table.groups:
        rows = {row.name: row for row in group.rows}
        measure = MEASURES[group.name]
        cells = [
            rows[name].cells[columns.index(measure)] if name in rows else Cell(None)
            for name in PIPELINES.values()
        ]
        shown = [format_value(x.value, Style.MEASURE) + significance_mark(x) for x in cells]
        lines.append(f"| {group.name}, {measure} | {' | '.join(shown)} |")
    return "\n".join(lines)


def with_table(text: str, table: str, marks: tuple[str, str] = MARKS) -> str:
    """Return the text with the table between two marks."""
    begin, end = marks
    before, rest = text.split(f"{begin}\n", 1)
    return f"{before}{begin}\n{table}\n{end}{rest.split(end, 1)[1]}"


def card(text: str, study: str) -> str:
    """Return a model card with a study's tables of effectiveness."""
    page = (STUDIES / "results" / study / "README.md").read_text("utf-8")
    tables = page.split("## Effectiveness\n\n")[1].split("\n## ")[0]
    before, measured = text.split(MEASURED)
    return f"{before}{MEASURED}{measured.split(chr(10), 1)[0]}\n\n{tables.rstrip()}\n"


def updated() -> dict[Path, str]:
    """Return file → its text with the tables of today's results."""
    table = default_search()
    texts = {path: with_table(path.read_text("utf-8"), table) for path in WITH_TABLE}
    for model, study in CARDS.items():
        of_model = locate(model) / "README.md"
        texts[of_model] = card(of_model.read_text("utf-8"), study)
    checks = run_path(str(ROOT / "tests" / "input_checks.py"))["tables"]()
    marks = "<!-- checks -->", "<!-- end -->"
    texts[CHECKS] = with_table(CHECKS.read_text("utf-8"), checks, marks)
    return texts | {PAPERS: with_states(PAPERS.read_text("utf-8"), states())}


if __name__ == "__main__":
    for path, text in updated().items():
        path.write_text(text, "utf-8")
