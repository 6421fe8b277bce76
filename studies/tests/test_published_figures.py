"""Are the published figures in recipes those of the papers?"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import pytest

from birchbark_studies.recipe_folder import RECIPES, results_folder
from birchbark_studies.stored_results import read_results

PAPERS = tomllib.loads(Path(__file__).with_name("published_figures.toml").read_text("utf-8"))
SOURCES = {  # how sources begin → paper; None for figures of others
    "Akkalyoncu Yilmaz 2019": "birch",
    "Chen et al. 2021, as quoted in table 3.2": "passages",
    "CODEC's authors": None,
    "NIST": None,
    "NTNU report 2021": "cord",
    "Rau et al. 2020": "uva",
    "Steensland 2021": "passages",
}
TABLES_OF = {"Steensland 2021, MS MARCO documents, final evaluation loss": ["table 5.3"]}
UNITS = {"%": Decimal("0.01"), "M": Decimal(1_000_000)}

PUBLISHED = [
    pytest.param(path.stem, published, id=f"{path.stem}-{number}")
    for path in sorted(RECIPES.glob("*.toml"))
    for number, published in enumerate(tomllib.loads(path.read_text("utf-8")).get("published", ()))
]


def paper_of(source: str) -> str | None:
    """Return the paper of a published table, or None if it is of none of the five."""
    (paper,) = (name for begins, name in SOURCES.items() if source.startswith(begins))
    return paper


def tables_of(source: str) -> list[str]:
    """Return the names of a source's tables in its paper: `tables 5.2 to 5.4` are three."""
    if source in TABLES_OF:
        return TABLES_OF[source]
    found = re.search(r"(table|figure|section)s? (A?[\d.]*\d)(?: (to|and) ([\d.]*\d))?", source)
    assert found, source
    kind, first, joined, last = found.groups()
    if joined != "to":
        return [f"{kind} {number}" for number in (first, last) if number]
    chapter = first.split(".")[0]
    numbers = range(*(int(n.split(".")[1]) for n in (first, last)))
    return [f"{kind} {chapter}.{n}" for n in (*numbers, numbers.stop)]


def printed(paper: str, table: str) -> Iterator[tuple[list[str], Mapping[str, str]]]:
    """Yield the names of each row of a paper's table, and column → figure."""
    columns = PAPERS[paper][table]["columns"].split(" | ")
    for line in PAPERS[paper][table]["rows"].strip().splitlines():
        names, *figures = line.split(" | ")
        yield names.split(" = "), dict(zip(columns, figures, strict=True))


def equal(quoted: str, figure: str) -> bool:
    """Return whether a quoted figure is the paper's, rounded to as many decimals."""
    value, wanted = number(quoted), number(figure)
    if value is None or wanted is None:
        return quoted.split() == figure.split()
    return value == wanted.quantize(value, ROUND_HALF_UP)


def number(text: str) -> Decimal | None:
    """Read a figure such as .348†, 4.52E-3, 68.6 %, 109M or 15,401,102; None if it is a text."""
    digits = text.replace("†", "").replace(",", "")
    try:
        return Decimal(digits.rstrip(" %M")) * UNITS.get(digits[-1], 1)
    except InvalidOperation:
        return None


@pytest.mark.parametrize(("recipe", "published"), PUBLISHED)
def test_figures_are_the_papers(recipe: str, published: dict[str, Any]) -> None:
    """They are equal row by row and column by column, and so is what is marked as significant."""
    source = published["where"]
    if not (paper := paper_of(source)):
        return
    rows = [row for table in tables_of(source) for row in printed(paper, table)]
    marked = any("†" in figure for _, figures in rows for figure in figures.values())
    columns = [re.sub(r"_retrieved|\(.*\)", "", column) for column in published["columns"]]
    for name, *quoted in published["rows"]:
        for column, figure in zip(columns, map(str, quoted), strict=True):
            in_paper = [
                figures[column]
                for names, figures in rows
                if {name, f"{recipe}: {name}"} & set(names) and column in figures
            ]
            assert any(
                equal(figure, other) and (not marked or ("†" in figure) == ("†" in other))
                for other in in_paper or ["–"]
            ), f"{name}, {column}: {figure} is not in {in_paper}"


@pytest.mark.parametrize(
    ("recipe", "rows"),
    [
        ("birch-codec", {"BM25+RM3": "first stage", "BM25+RM3+T5": "T5"}),
        ("birch-covid", {"OHSU_R4_totalfusion": "first stage"}),
    ],
)
def test_figures_of_others_are_reproduced(recipe: str, rows: dict[str, str]) -> None:
    """Where the runs are published, our measures of them equal the figures, as findings say."""
    (published,) = (p.values[1] for p in PUBLISHED if p.values[0] == recipe)
    assert isinstance(published, dict)
    stored = read_results(results_folder(RECIPES) / recipe)
    (table,) = (table for table in stored.tables if table.name == published["table"])
    measured = {row.name: row for group in table.groups[:1] for row in group.rows}
    columns = [column.name for column in table.columns]
    assert {name for name, *_ in published["rows"]} == rows.keys()
    for name, *figures in published["rows"]:
        for column, figure in zip(published["columns"], figures, strict=True):
            value = measured[rows[name]].cells[columns.index(column)].value
            assert equal(figure, str(value)), f"{name}, {column}: {figure} is not {value}"


def test_a_miscopied_figure_is_found() -> None:
    """Digits that are swapped, another unit, and a missing † are; a rounded figure is none."""
    published = {"where": "Rau et al. 2020, table 3", "columns": ["AP"], "rows": [["english", ""]]}
    for figure, correct in ((".2819", True), (".282", True), (".2891", False), ("28.19", False)):
        published["rows"] = [["english", figure]]
        with nullcontext() if correct else pytest.raises(AssertionError, match="english, AP"):
            test_figures_are_the_papers("uva-analyzers", published)
    published |= {"where": "Steensland 2021, table 5.5", "columns": ["RR@10"]}
    published["rows"] = [["BERT-Base", ".613"]]
    with pytest.raises(AssertionError, match=r"BERT-Base, RR@10: \.613 is not in \['0\.613†'\]"):
        test_figures_are_the_papers("passages-sizes", published)


def test_each_table_is_quoted() -> None:
    """A table of the papers that no recipe quotes would check nothing."""
    quoted = {
        (paper_of(source), table)
        for param in PUBLISHED
        for source in [param.values[1]["where"]]  # type: ignore[index]
        if paper_of(source)
        for table in tables_of(source)
    }
    assert quoted == {(paper, table) for paper, tables in PAPERS.items() for table in tables}
