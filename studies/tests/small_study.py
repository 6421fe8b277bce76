"""How do tests write, change and run a small study?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from birchbark.records import Document
from birchbark.show.table import Table
from birchbark_studies import comparison
from birchbark_studies.experiments.recipe_file import read_recipe
from birchbark_studies.outcome import Outcome
from birchbark_studies.recipe import Recipe
from birchbark_studies.run import run_study
from conftest import DOCUMENTS, QUERIES

QRELS = "1 0 canoe 2\n1 0 forest 1\n2 0 engine 1\n3 0 bees 1\n4 0 bridge 1\n"
COLLECTION = """
[[collections]]
name = "Tiny"
documents = "docs.jsonl"
queries = "q.tsv"
qrels = "qrels.txt"
"""


@dataclass(frozen=True)
class SmallStudy:
    """A recipe in the folder of its small collection."""

    path: Path

    @property
    def root(self) -> Path:
        """The data root, where outputs are written, too."""
        return self.path.parent

    def replace(self, old: str, new: str) -> None:
        """Replace a part of the recipe, which must be there."""
        text = self.path.read_text()
        assert old in text
        self.path.write_text(text.replace(old, new))

    def append(self, text: str) -> None:
        """Add lines at the end of the recipe, which is the table of the collection."""
        self.path.write_text(self.path.read_text() + text)

    def read(self, larger: bool = False) -> Recipe:
        """Read the recipe."""
        return read_recipe(self.path, larger)

    def run(self, output: str = "out", larger: bool = False, **options: Any) -> Outcome:
        """Run the study. output: name of the folder of results."""
        return run_study(self.read(larger), self.root, self.root / output, **options)


def write_collection(
    folder: Path,
    documents: Sequence[Document] = DOCUMENTS,
    queries: Mapping[str, str] = QUERIES,
    qrels: str = QRELS,
) -> None:
    """Write docs.jsonl, q.tsv and qrels.txt."""
    lines = [json.dumps({"id": d.doc_id, **d.fields}) for d in documents]
    (folder / "docs.jsonl").write_text("\n".join(lines))
    (folder / "q.tsv").write_text("".join(f"{q}\t{text}\n" for q, text in queries.items()))
    (folder / "qrels.txt").write_text(qrels)


def write_small_study(
    folder: Path,
    recipe: str,
    *,
    documents: Sequence[Document] = DOCUMENTS,
    queries: Mapping[str, str] = QUERIES,
    qrels: str = QRELS,
    **replacements: object,
) -> SmallStudy:
    """Write a collection and a recipe for it. replacements: word in the recipe → model."""
    write_collection(folder, documents, queries, qrels)
    for word, value in replacements.items():
        recipe = recipe.replace(word, str(value))
    path = folder / "recipe.toml"
    path.write_text(recipe + COLLECTION)
    return SmallStudy(path)


def noted_families(patch: pytest.MonkeyPatch) -> list[int | None]:
    """Return a list to which each comparison adds the number of those that p is corrected for."""
    families, compare = list[int | None](), comparison.compare

    def noting(*given: Any, family: int | None = None, **options: Any) -> Any:
        families.append(family)
        return compare(*given, family=family, **options)

    patch.setattr(comparison, "compare", noting)
    return families


def table_of(outcome: Outcome, name: str) -> Table:
    """Return the table called `name`."""
    (table,) = (table for table in outcome.tables if table.name == name)
    return table


def values_of(outcome: Outcome, name: str) -> dict[str, list[Any]]:
    """Return row → values of the first group of a table."""
    rows = table_of(outcome, name).groups[0].rows
    return {row.name: [cell.value for cell in row.cells] for row in rows}
