"""Where do the files lie that recipes and trainings name, and which of them are missing?"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from birchbark.collection.irds import check_installed, is_installed, named
from birchbark.errors import InputError

VARIABLE = "BIRCHBARK_DATA"
USUAL_ROOT = Path("../shared/data")


def find_root(chosen: Path | None = None) -> Path | None:
    """The data root: `chosen`, else BIRCHBARK_DATA, else ../shared/data if that is there."""
    if chosen is not None:
        return chosen
    if named := os.environ.get(VARIABLE):
        return Path(named)
    return USUAL_ROOT if USUAL_ROOT.is_dir() else None


def missing_files(files: Iterable[str], root: Path | None) -> list[str]:
    """Those of `files` that are not below the data root, in order; all of them without a root.

    What ir_datasets is to be asked for is there if the package is: it fetches, or says what to do.
    """
    return [file for file in files if not _is_here(file, root)]


def _is_here(file: str, root: Path | None) -> bool:
    if named(file):
        return is_installed()
    return root is not None and (root / file).exists()


def check_data(files: Iterable[str], root: Path | None, recipe: str) -> Path:
    """The data root, if all `files` are below it; else InputError says which are not."""
    for file in files:
        if named(file):
            check_installed(file)
    missing = missing_files(files, root)
    if root is None and not missing:
        return Path()
    if root is None or missing:
        raise InputError(
            "data is missing" if root else "no data root is known",
            where=recipe,
            wanted=", ".join(missing) + (f" below {root}" if root else ""),
            remedy=f"name the folder that holds them with --data DIR or {VARIABLE}",
        )
    return root
