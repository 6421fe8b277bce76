"""Which trainings does one file ask for? Every combination of the settings that its grid lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from birchbark.errors import InputError
from birchbark.section import Section, with_settings
from birchbark.train.config import Training, read_training


@dataclass(frozen=True, slots=True)
class Variant:
    """One training of a grid. settings: dotted key → value; name: of its folder."""

    name: str
    settings: Mapping[str, Any]
    training: Training


def read_variants(path: Path) -> list[Variant]:
    """The trainings of the file at `path`, in the order of its grid; one where it has none.

    A grid is a table of dotted keys with lists of values: "schedule.learning_rate" = [1e-5, 3e-5],
    seed = [0, 1, 2]. Raises InputError for any fault, naming the file and the key.
    """
    values = Section.table(path)
    grid = values.pop("grid", {})
    if not isinstance(grid, dict) or not all(isinstance(v, list) and v for v in grid.values()):
        raise InputError(
            "wrong grid",
            where=f"{path}: grid",
            wanted='keys in quotes with lists: "schedule.learning_rate" = [1e-5, 3e-5]',
        )
    for key, choices in grid.items():
        if any(one in choices[:place] for place, one in enumerate(choices)):
            raise InputError("a value repeats", where=f"{path}: grid.{key}")
    found = []
    for choice in product(*grid.values()):
        settings = dict(zip(grid, choice, strict=True))
        name = ", ".join(f"{key.rpartition('.')[2]}={value}" for key, value in settings.items())
        found.append(Variant(name.replace("/", "_"), settings, changed(values, settings, path)))
    return found


def changed(values: Mapping[str, Any], settings: Mapping[str, Any], path: Path) -> Training:
    """The training that `values`, the contents of the file at `path`, ask for with other settings.

    settings: dotted key → value; a data set goes by its name: "data.mb.weight". Raises InputError.
    """
    return read_training(with_settings(values, settings, path), path)
