"""Are the numbers of findings those of the tables of their study?"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from birchbark.errors import InputError
from birchbark.evaluate.significance import Difference
from birchbark.show.table import Cell, Column, Group, Row, Style, Table
from birchbark_studies.experiments.recipe_file import read_recipe
from birchbark_studies.findings import fill_in
from birchbark_studies.markdown import render_markdown
from birchbark_studies.recipe_folder import RECIPES, results_folder
from birchbark_studies.run import refresh
from birchbark_studies.stored_results import read_results
from small_study import write_small_study

RESULTS = results_folder(RECIPES)
FINISHED = [path for path in sorted(RECIPES.glob("*.toml")) if (RESULTS / path.stem).exists()]
# not those in names, such as nDCG@10 and L3-H384
NUMBER = re.compile(r"(?<![\w@.,-])[+−]?(?:\d{1,3}(?:,\d{3})+|\d*\.?\d+)(?: %)?(?![\w-])")
OTHERS = {  # of settings, collections and columns, or of the papers but in no published table
    "birch-codec": {".1", ".2903", ".3697", "1,000"},
    "birch-covid": {"0", ".2903", ".3025", ".3028", ".3408", ".3435"},
    "birch-data": {"0", "20", "59", "44,000"},
    "birch-loss": {"10", "15", "6,400", "665,000"},
    "birch-time": {
        "+.0005",
        ".003",
        ".013",
        ".020",
        "+.027",
        "4",
        "12",
        "15",
        "16",
        "27 %",
        "72",
        "83",
        "225",
        "1,000",
        "2,400",
        "9,600",
        "45,000",
    },
    "cord-adaptation": {"900", "1,000"},
    "cord-biencoder": {"0", ".07", "5", "6"},
    "cord-judged": {"0", "3", "10", "43", "70", "100", "129"},
    "cord-proportion": {".3", ".5", ".6", ".7"},
    "cord-reranking": {"3,200"},
    "default-answers": {"26"},
    "default-held-out": {"1,343"},
    "default-ingredients": {"0"},
    "default-search": {"0", ".4", ".9"},
    "default-segments": {"0", "60", "120", "200", "703"},
    "mined-negatives": {"0", "2"},
    "passages-aggregation": {"0"},
    "passages-depth": {"10", "15", "20", "40", "60", "100"},
    "passages-distil": {".044", "43"},
    "passages-duo": {"100"},
    "passages-parade": {"12", "83", "240"},
    "passages-settings": {"1.39", "4", "43", "349"},
    "passages-sizes": {"128"},
    "small-model": {"0", ".02"},
    "uva-depth": {".39", ".55", "2", "12"},
    "uva-layers": {".029"},
}
UP = Difference(0.0204, 0.001, 0.04, 0.012, 0.024, 0.31, 0.6, 0.2, True, 0.05)
DOWN = Difference(-0.1, -0.2, 0.003, 0.0001, 0.0002, -0.5, 0.1, 0.7, False, 0.07)
TABLES = (
    Table(
        "scores",
        "Scores",
        "ranked by",
        (Column("AP", Style.MEASURE), Column("speed", Style.COUNT), Column("part", Style.SHARE)),
        (
            Group(
                "News", (Row("up, alone", (Cell(0.5204, (0.4, 0.61), UP), Cell(1500), Cell(0.5))),)
            ),
            Group("News", (Row("down", (Cell(0.4, None, DOWN), Cell(None), Cell(None))),)),
            Group(
                "A paper", (Row("theirs", (Cell(".90†"), Cell(7), Cell("73.2 %"))),), published=True
            ),
        ),
    ),
    Table("notes", "", "", (Column("text", Style.TEXT),), (Group("", (Row.of("x", ["y"]),)),)),
)


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ("scores / News / up, alone / AP", ".5204"),
        ("scores/News/up, alone/AP", ".5204"),
        ("scores / News / up, alone / speed", "1,500"),
        ("scores / A paper / theirs / AP", ".90"),  # as it was printed
        ("scores / published / theirs / AP", ".90"),
        ("scores / published / theirs / part", "73.2 %"),
        ("scores / published / theirs / part - scores / News / up, alone / part", "+23.2 %"),
        ("scores / published / theirs / AP - scores / News / down / AP", "+.5000"),
        ("scores / News / up, alone / AP / interval", ".5204 [.400, .610]"),
        ("scores / News / up, alone / AP / difference", "+.020 [+.001, +.040]"),
        ("scores / News / up, alone / AP / gain", ".020"),
        ("scores / News / up, alone / AP / bounds", "[+.001, +.040]"),
        ("scores / News / up, alone / AP / p", "p = .024"),
        ("scores / News / down / AP / p", "p < .001"),
        ("scores / News / down / AP / loss", ".100"),
        ("scores / News / down / AP / detectable", ".0700"),
        ("scores / News / down / AP - scores / News / up, alone / AP", "−.1204"),
        ("scores / News / up, alone / AP - scores / News / down / AP", "+.1204"),
        ("max scores / * / * / AP", ".5204"),  # of measured rows only
        ("min scores / News / * / AP", ".4000"),
        ("max scores / News / * / AP / p", "p = .024"),
        ("max scores / News / * / AP / difference", "+.020 [+.001, +.040]"),
        ("median scores / News / * / AP / detectable", ".0600"),
    ],
)
def test_a_reference_is_written_as_its_table_shows_it(reference: str, value: str) -> None:
    """A cell, one of its parts, a difference of two, or one over several cells."""
    assert fill_in(f"A {{{reference}}}, b\n", TABLES, "x.toml") == f"A {value}, b\n"


def test_the_largest_of_several_losses_is_the_lowest_difference() -> None:
    """Losses are compared by their size, without the sign that their differences have."""
    means = (-0.125, -0.375, -0.25)
    rows = tuple(Row(str(mean), (Cell(0.5, None, replace(DOWN, mean=mean)),)) for mean in means)
    table = Table("s", "S", "", (Column("AP", Style.MEASURE),), (Group("News", rows),))
    for choice, value in (("max", ".375"), ("min", ".125"), ("median", ".250")):
        assert fill_in(f"{{{choice} s / News / * / AP / loss}}", [table], "x.toml") == value


def test_an_undefined_p_is_written_as_such() -> None:
    """The findings are not lost for it; it is no smaller than others."""
    cells = [Cell(0.5, None, replace(UP, corrected_p=p)) for p in (None, 0.02)]
    rows = tuple(Row(f"r{number}", (cell,)) for number, cell in enumerate(cells))
    table = Table("s", "S", "", (Column("AP", Style.MEASURE),), (Group("News", rows),))
    assert fill_in("{s / News / r0 / AP / p}", [table], "x.toml") == "p undefined"
    assert fill_in("{min s / News / * / AP / p}", [table], "x.toml") == "p = .020"


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("other / News / down / AP", "no such cell: expected one of the tables scores, notes"),
        (
            "scores / News / up / AP",
            "no such cell: expected of scores, a group of ['News', 'News', 'A paper'], a row of "
            "['up, alone', 'down', 'theirs'] and a column of ['AP', 'speed', 'part']",
        ),
        ("scores / News / down / speed", "the cell has no value"),
        ("scores / A paper / theirs / AP / p", "the cell has no p"),
        ("notes / * / x / text", "the cell has no value"),
        ("scores / published / down / AP", "no such cell"),
        ("scores / * / * / AP", "2 cells: expected one, or max, min, median before it"),
        ("scores / News / down / AP / gain", "no gain: found −.100 [−.200, +.003]"),
        ("scores / News / up, alone / AP / loss", "no loss: found +.020 [+.001, +.040]"),
        ("scores / News / down", "not a reference to a cell: expected {table / group / row /"),
        ("scores / News / down / AP / median", "not a reference to a cell"),
        ("", "not a reference to a cell"),
    ],
)
def test_a_reference_to_no_cell_is_an_error(reference: str, message: str) -> None:
    """It names recipe and reference, and what the table has. So does a change of sign."""
    with pytest.raises(InputError) as error:
        fill_in(f"{{{reference}}}", TABLES, "x.toml")
    assert str(error.value).startswith(f"x.toml: findings: {{{reference}}}: ")
    assert message in str(error.value)


def test_every_number_of_the_findings_is_in_their_tables() -> None:
    """Each one, published ones too, is a reference to a cell; the others are listed."""
    findings = {path.stem: read_recipe(path).findings for path in FINISHED}
    found = {name: NUMBER.findall(re.sub(r"\{[^{}]*\}", "", findings[name])) for name in findings}
    assert {name: set(others) for name, others in found.items() if others} == OTHERS


@pytest.mark.parametrize("path", FINISHED, ids=lambda path: path.stem)
def test_every_reference_of_the_findings_is_to_a_cell(path: Path) -> None:
    """The committed results have it, and gains are gains."""
    recipe = read_recipe(path)
    tables = read_results(RESULTS / path.stem).tables
    assert not re.search(r"[{}]", fill_in(recipe.findings, tables, path.name))


def test_findings_of_other_results_lose_none(tmp_path: Path) -> None:
    """Findings that do not fit the tables are left out, and told; `refresh` says why."""
    recipe = """
kind = "analyzers"
title = "Analyzers"
findings = "Without stems, P@2 is {measures / Tiny / plain / P@2}."
measures = ["P@2"]
[analyzers]
names = ["plain", "porter"]
example = "birch barks"
"""
    study = write_small_study(tmp_path, recipe)
    steps: list[str] = []
    study.run("right", progress=steps.append)
    for page in ("README.md", "report.html"):
        assert "Without stems, P@2 is .6250." in (tmp_path / "right" / page).read_text()
    assert not [step for step in steps if "findings" in step]

    study.replace("/ plain / P@2", "/ stems / P@2")
    study.run("wrong", progress=steps.append)
    (told,) = [step for step in steps if "findings" in step]
    assert told.startswith(f"the findings are left out: {study.path}: findings: {{measures / Tiny")
    assert "Without stems" not in (tmp_path / "wrong" / "README.md").read_text()
    with pytest.raises(InputError, match="a row of \\['plain', 'porter'\\]"):
        refresh(study.read(), tmp_path / "wrong", ())
    with pytest.raises(InputError, match="no such cell"):
        render_markdown(study.read(), read_results(tmp_path / "wrong"))
