"""Where are the data files of recipes and training configurations, and which are missing?"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from birchbark import defaults
from birchbark.artifact import files_in, fingerprint, json_checksum, read_json, write_json
from birchbark.collection.cord19 import METADATA
from birchbark.collection.ir_datasets import check_installed, dataset_id, is_installed
from birchbark.errors import ArtifactError, InputError

DATA_VARIABLE = "BIRCHBARK_DATA"
DEFAULT_DATA_ROOT = Path(defaults.DATA_ROOT)


def find_data_root(chosen: Path | None = None) -> Path | None:
    """Return the data root: `chosen`, else $BIRCHBARK_DATA, else ../shared/data if it exists."""
    if chosen is not None:
        return chosen
    if from_environment := os.environ.get(DATA_VARIABLE):
        return Path(from_environment)
    return DEFAULT_DATA_ROOT if DEFAULT_DATA_ROOT.is_dir() else None


def data_path(root: Path, name: str) -> Path:
    """Return the path of the file `name` below `root`; `ir_datasets:ID` is returned unchanged."""
    return Path(name) if dataset_id(name) else root / name


def data_fingerprint(path: Path) -> str:
    """Return the SHA-256 of the file at `path`, or of a folder's files and their names.

    For `ir_datasets:ID`, return the version of the package ir_datasets instead; for the metadata of
    CORD-19, the hash of the folder, which has the full texts.
    """
    if dataset_id(path):
        return f"ir_datasets {version('ir_datasets')}"
    source = path.parent if path.name == METADATA else path
    if not source.is_dir():
        return fingerprint(source)
    files = files_in(source)
    names = [file.relative_to(source).as_posix() for file in files]
    return json_checksum({"names": names, "contents": fingerprint(*files)})


class KnownFiles:
    """The fingerprints of files, which are read again only if their size or time has changed."""

    def __init__(self, path: Path) -> None:
        """path: the JSON file that remembers them between runs."""
        self._path = path
        self._known: dict[str, list[int | str]] = {}
        with suppress(InputError, ArtifactError):  # then the files are read again
            self._known = dict(read_json(path, "fingerprints"))

    def fingerprint(self, path: Path) -> str:
        """Return `data_fingerprint(path)`; InputError if there is no such file or folder."""
        if not path.exists() and not dataset_id(path):
            raise InputError("no such file", where=str(path))
        if not path.is_file() or path.name == METADATA:
            return data_fingerprint(path)
        state, name = path.stat(), str(path.absolute())
        size, time, known = self._known.get(name, (None, None, ""))
        if (size, time) != (state.st_size, state.st_mtime_ns):
            known = data_fingerprint(path)
            self._known[name] = [state.st_size, state.st_mtime_ns, known]
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_json(self._path, self._known)
        return str(known)


def missing_files(names: Iterable[str], root: Path | None) -> list[str]:
    """Return the `names` that do not exist below the data root, in order.

    Without a data root, all files are missing. `ir_datasets:ID` exists if the package ir_datasets
    is installed, since it downloads the data or explains how to obtain them.
    """
    return [name for name in names if not _exists(name, root)]


def _exists(name: str, root: Path | None) -> bool:
    if dataset_id(name):
        return is_installed()
    return root is not None and (root / name).exists()


def check_data(names: Iterable[str], root: Path | None, recipe: str) -> Path:
    """Return the data root; InputError unless all `names` exist below it.

    If all names are `ir_datasets:ID` and there is no data root, return an empty path. recipe: the
    recipe that needs the data, for the error. Raises MissingPackageError if a name needs
    ir_datasets and it is not installed.
    """
    names = list(names)
    for name in names:
        if dataset_id(name):
            check_installed(name)
    missing = missing_files(names, root)
    if root is None and not missing:
        return Path()
    if root is None or missing:
        raise InputError(
            "data files are missing" if root else "there is no data root",
            where=recipe,
            wanted=", ".join(missing) + (f" below {root}" if root else ""),
            remedy=f"set the folder that contains them with --data DIR or {DATA_VARIABLE}",
        )
    return root
