"""How does a recipe become a folder of results, whole or not at all?

OUTPUT/
  report.html     tables and plots, for people; needs no other file
  attention-*.html  what a model looked at, where the study looks at queries
  README.md       the tables alone
  results.json    every figure; the same bytes for the same inputs, like runs/, times aside
  runs/           every ranking, in TREC form
  manifest.json   what went in: fingerprints, versions, seed, machine, seconds
"""

from __future__ import annotations

import os
import platform
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from enum import Enum
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from birchbark.artifact import (
    fingerprint,
    new_directory,
    new_file,
    origin,
    read_json,
    write_json,
)
from birchbark.checkpoint.named import locate
from birchbark.collection import irds
from birchbark.collection.root import check_data
from birchbark.collection.runs import write_run
from birchbark.errors import InputError, MissingPackageError
from birchbark.records import Run
from birchbark.study.bench import Bench
from birchbark.study.markdown import markdown
from birchbark.study.outcome import Outcome, run_file_name
from birchbark.study.published import with_published
from birchbark.study.recipe import Recipe
from birchbark.study.report import report

FORMAT, MANIFEST = "birchbark study", "manifest.json"
EXTRAS = ("jinja2", "matplotlib", "scipy")
VERSIONS = (
    *("numpy", "scipy", "ir-measures", "pytrec_eval-terrier", "PyStemmer", "tokenizers"),
    *("matplotlib", "jinja2"),
)


def run_study(
    recipe: Recipe,
    root: Path | None,
    output: Path,
    *,
    replace_output: bool = False,
    kept: Path | None = None,
    device: str = "cpu",
    tell: Callable[[str], object] = lambda step: None,
) -> Outcome:
    """Run `recipe` on the data below `root` and write the folder `output`.

    kept: a folder for BERT's scores and trained models, so that an interrupted study goes on and
    nothing is computed twice. device: what is trained on, and scored
    on in float32; integers need the processors. tell: hears each step. Before any work,
    raises InputError for missing data and for an `output` that exists (or, if it may be replaced,
    is no study's), MissingPackageError for what is not installed, CheckpointError for a model that
    is not there.
    """
    check_packages()
    root = check_data(recipe.files, root, str(recipe.path))
    for model in recipe.experiment.models:
        locate(model)
    started = time.perf_counter()
    with (
        new_directory(output, replace=replace_output, check=_check_study) as folder,
        tempfile.TemporaryDirectory(prefix="birchbark-study-") as scratch,
    ):
        found = recipe.experiment.run(recipe, Bench(root, Path(scratch), tell, kept, device))
        tables = tuple(with_published(table, recipe.published) for table in found.tables)
        outcome = replace(found, tables=tables)
        tell("writing the report")
        inputs = _inputs(recipe, root)
        _write(folder, recipe, outcome, inputs)
        seconds = round(time.perf_counter() - started, 1)
        write_json(folder / MANIFEST, _manifest(recipe, outcome, inputs, seconds))
    return outcome


def check_packages() -> None:
    """Raise MissingPackageError if the extra `study` is not installed."""
    if missing := [name for name in EXTRAS if find_spec(name) is None]:
        raise MissingPackageError(
            f"studies need {' and '.join(missing)}", remedy="pip install 'birchbark[study]'"
        )


def _check_study(output: Path) -> None:
    """Only a study may be replaced."""
    manifest = read_json(output / MANIFEST, "study")
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise InputError("holds something else than a study", where=str(output))


def _write(folder: Path, recipe: Recipe, outcome: Outcome, inputs: dict[str, str]) -> None:
    write_json(folder / "results.json", _results(recipe, outcome))
    for name, text in (
        ("report.html", report(recipe, outcome, inputs)),
        ("README.md", markdown(recipe, outcome)),
        *outcome.pages.items(),
    ):
        with new_file(folder / name) as out:
            out.write(text)
    for name, run in outcome.runs.items():
        tag = run_file_name(name)
        if (folder / "runs" / f"{tag}.run").exists():
            raise InputError(f"two runs would be called {tag}", where=str(recipe.path))
        write_run(Run(run.rankings, tag), folder / "runs" / f"{tag}.run")


def _inputs(recipe: Recipe, root: Path) -> dict[str, str]:
    """Path below the data root → fingerprint of the file, or of all files in the folder."""
    return {name: irds.fingerprint(irds.place(root, name)) for name in recipe.files}


def _results(recipe: Recipe, outcome: Outcome) -> dict[str, Any]:
    return {
        "study": recipe.name,
        "kind": recipe.kind,
        "title": recipe.title,
        "source": recipe.source,
        "bm25": asdict(recipe.bm25),
        "depth": recipe.depth,
        "seed": recipe.seed,
        "tables": [plain(asdict(table)) for table in outcome.tables],
        "plots": [plain(asdict(plot)) for plot in outcome.plots],
    }


def plain(value: Any) -> Any:
    """`value` for JSON: six significant digits, choices by name, and what is None left out."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, tuple | list):
        return [plain(inner) for inner in value]
    return value


def _manifest(
    recipe: Recipe, outcome: Outcome, inputs: dict[str, str], seconds: float
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": 1,
        "recipe": {
            "name": recipe.path.name,
            "sha256": fingerprint(recipe.path),
            "larger": recipe.larger,
        },
        "inputs": inputs,
        "models": dict(outcome.models),
        "trainings": dict(outcome.settings),
        "seed": recipe.seed,
        "versions": {**origin(), **{name: version(name) for name in VERSIONS}},
        "machine": {
            "system": platform.system(),
            "architecture": platform.machine(),
            "processors": os.cpu_count(),
        },
        "seconds": seconds,
    }
