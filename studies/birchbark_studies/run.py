"""How is a study run, and what is written to its output folder?

OUTPUT/
  report.html       tables and plots on a self-contained page
  attention-*.html  a model's attention for an example query, if the study shows example queries
  README.md         findings, tables and figures
  figures/          plots as SVG
  results.json      all figures; equal inputs give equal bytes except for measured times
  runs/             all rankings in TREC format
  manifest.json     fingerprints of the inputs, versions, seed, machine, seconds

The folder appears only when it is complete; a failed study leaves nothing behind.
"""

from __future__ import annotations

import os
import platform
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from birchbark import InputError, Run, defaults, write_run
from birchbark.artifact import (
    fingerprint,
    new_directory,
    new_file,
    read_json,
    software_versions,
    write_json,
)
from birchbark.checkpoint.locate import locate
from birchbark.collection.data_files import check_data, data_fingerprint, data_path
from birchbark.device.torch_session import name_of_device
from birchbark.show.draw_plot import draw_page
from birchbark.show.plot import Plot
from birchbark.show.table import Table
from birchbark_studies.findings import fill_in
from birchbark_studies.markdown import figure_file, render_markdown
from birchbark_studies.models import fingerprint_of
from birchbark_studies.outcome import Outcome, run_file_name
from birchbark_studies.published import with_published
from birchbark_studies.recipe import Recipe
from birchbark_studies.report import render_report
from birchbark_studies.staleness import MANIFEST, PUBLISHED
from birchbark_studies.stored_results import RESULTS, plain, read_results
from birchbark_studies.training_chains import base_models, train_all
from birchbark_studies.workspace import Workspace

FORMAT = "birchbark study"
README = "README.md"
VERSIONS = (
    *("numpy", "scipy", "ir-measures", "pytrec_eval-terrier", "PyStemmer", "tokenizers"),
    *("matplotlib", "jinja2", "birchbark-studies"),
)


def run_study(
    recipe: Recipe,
    root: Path | None,
    output: Path,
    *,
    replace_output: bool = False,
    cache: Path | None = None,
    device: str = defaults.DEVICE,
    progress: Callable[[str], object] = lambda step: None,
) -> Outcome:
    """Run `recipe` on the data below `root` and write the folder `output`.

    replace_output: whether an existing study at `output` may be replaced.
    cache: a folder for scores and trained models, so that an interrupted study resumes and nothing
        is computed twice; None for no cache.
    device: the device for training and scoring; int8 always runs on the CPU.
    progress: called with one line of text per step.

    Findings that refer to cells that the tables do not have are left out, which `progress` is told.

    Before any work, raises InputError for missing data, or if `output` exists and either may not
    be replaced or is not a study; and CheckpointError for a missing model.
    """
    root = check_data(recipe.files, root, str(recipe.path))
    for model in recipe.experiment.models:
        locate(model)
    device_name = name_of_device(device)
    started = time.perf_counter()
    with (
        new_directory(output, replace=replace_output, check=_check_study) as folder,
        tempfile.TemporaryDirectory(prefix="birchbark-study-") as scratch,
    ):
        inputs = _inputs(recipe, root)  # as they are before they are read
        required = {name: fingerprint_of(name) for name in recipe.experiment.models}
        workspace = Workspace(root, Path(scratch), progress, cache, device)
        measured = recipe.experiment.run(recipe, workspace)
        tables = tuple(with_published(table, recipe.published) for table in measured.tables)
        outcome = replace(measured, tables=tables)
        progress("writing the report")
        try:
            fill_in(recipe.findings, outcome.tables, str(recipe.path))
        except InputError as fault:  # of other results than these: nothing measured may be lost
            progress(f"the findings are left out: {fault}")
            recipe = replace(recipe, findings="")
        _write(folder, recipe, outcome, inputs, device_name)
        seconds = round(time.perf_counter() - started, 1)
        found = {"inputs": inputs, "required": required}
        write_json(folder / MANIFEST, _manifest(recipe, outcome, found, device_name, seconds))
    return outcome


def train_models(
    recipe: Recipe,
    root: Path | None,
    cache: Path,
    names: Sequence[str],
    *,
    device: str = defaults.DEVICE,
    progress: Callable[[str], object] = lambda step: None,
) -> None:
    """Train the models of a study called `names`, unless `cache` holds them; see `run_study`."""
    root = check_data(recipe.files, root, str(recipe.path))
    chains = {name: recipe.experiment.chains[name] for name in names}
    for model in base_models(chains.values()):
        locate(model)
    with tempfile.TemporaryDirectory(prefix="birchbark-study-") as scratch:
        train_all(chains, Workspace(root, Path(scratch), progress, cache, device))


def _write_figures(folder: Path, plots: Sequence[Plot]) -> bool:
    """Draw the plots that have no figure yet; return whether there are any."""
    missing = [plot for plot in plots if not (folder / figure_file(plot.name)).exists()]
    for plot in missing:
        with new_file(folder / figure_file(plot.name)) as out:
            out.write(draw_page(plot))
    return bool(missing)


def refresh(recipe: Recipe, results: Path, stale_because: Sequence[str]) -> bool:
    """Write the README.md of finished results again; return whether anything changed.

    It then has the recipe's present title, source and findings, and today's layout. Tables and
    plots stay those of results.json; figures that are missing are drawn. If nothing but published
    figures has changed, results.json gets those of the recipe first.

    results: the folder of the results. stale_because: why the figures are not those of this
    version, if they are not. Raises what `read_results` raises, and InputError if the findings
    refer to a cell that no table has.
    """
    if corrected := list(stale_because) == [PUBLISHED]:
        _write_published(recipe, results / RESULTS, read_results(results).tables)
        stale_because = ()
    stored, path = read_results(results), results / README
    drawn = _write_figures(results, stored.plots)
    text = render_markdown(recipe, stored, stale_because)
    if path.exists() and path.read_text("utf-8") == text:
        return corrected or drawn
    with new_file(path) as out:
        out.write(text)
    return True


def _write_published(recipe: Recipe, path: Path, tables: Sequence[Table]) -> None:
    """Write the recipe's published figures into results.json. tables: those that are there now."""
    shown = [plain(asdict(with_published(table, recipe.published))) for table in tables]
    write_json(path, {**read_json(path, "study"), "tables": shown})


def _check_study(output: Path) -> None:
    """Raise InputError unless `output` is a study."""
    manifest = read_json(output / MANIFEST, "study")
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise InputError("not a study", where=str(output))


def _write(
    folder: Path, recipe: Recipe, outcome: Outcome, inputs: dict[str, str], device: str
) -> None:
    write_json(folder / RESULTS, _results(recipe, outcome, device))
    for name, text in (
        ("report.html", render_report(recipe, outcome, inputs, device)),
        (README, render_markdown(recipe, read_results(folder))),
        *outcome.pages.items(),
    ):
        with new_file(folder / name) as out:
            out.write(text)
    _write_figures(folder, outcome.plots)
    for name, run in outcome.runs.items():
        tag = run_file_name(name)
        if (folder / "runs" / f"{tag}.run").exists():
            raise InputError(f"two runs are called {tag}", where=str(recipe.path))
        write_run(Run(run.rankings, tag), folder / "runs" / f"{tag}.run")


def _inputs(recipe: Recipe, root: Path) -> dict[str, str]:
    """Map each path below the data root to the fingerprint of the file or folder."""
    return {name: data_fingerprint(data_path(root, name)) for name in recipe.files}


def _results(recipe: Recipe, outcome: Outcome, device: str) -> dict[str, Any]:
    return {
        "study": recipe.name,
        "kind": recipe.kind,
        "title": recipe.title,
        "source": recipe.source,
        "bm25": asdict(recipe.bm25),
        "depth": recipe.depth,
        "seed": recipe.seed,
        "device": device,
        "tables": [plain(asdict(table)) for table in outcome.tables],
        "plots": [plain(asdict(plot)) for plot in outcome.plots],
    }


def _manifest(
    recipe: Recipe,
    outcome: Outcome,
    found: Mapping[str, Mapping[str, str]],
    device: str,
    seconds: float,
) -> dict[str, Any]:
    """Return what the results were measured with. found: the files and models, by kind."""
    return {
        "format": FORMAT,
        "version": 1,
        "recipe": {
            "name": recipe.path.name,
            "sha256": fingerprint(recipe.path),
            "settings": recipe.settings,
            "larger": recipe.larger,
        },
        **found,
        "models": dict(outcome.models),
        "trainings": dict(recipe.experiment.trainings),
        "seed": recipe.seed,
        "versions": {**software_versions(), **{name: version(name) for name in VERSIONS}},
        "machine": {
            "system": platform.system(),
            "architecture": platform.machine(),
            "processors": os.cpu_count(),
            "device": device,
        },
        "seconds": seconds,
    }
