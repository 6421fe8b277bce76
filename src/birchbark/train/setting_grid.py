"""Which training runs does a configuration with a grid of settings describe?"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from birchbark.errors import InputError
from birchbark.section import Section, with_settings
from birchbark.train.config import TrainingConfig
from birchbark.train.read_config import read_training

MOST = 1_000  # variants
LONGEST = 255  # bytes of a folder's name


@dataclass(frozen=True, slots=True)
class Variant:
    """One training run of a grid.

    name: the name of its folder; empty without a grid. settings: its values of the grid, by dotted
    key.
    """

    name: str
    settings: Mapping[str, Any]
    training: TrainingConfig


def read_variants(path: Path) -> list[Variant]:
    """Return a variant per combination of the grid's values; the last key varies fastest.

    A grid is a table of dotted keys with lists of values, such as "schedule.learning_rate" =
    [1e-5, 3e-5] and seed = [0, 1, 2]. A file without a grid describes one variant. Raises
    InputError, which names the file and the key, if a setting or the grid is invalid.
    """
    values = Section.table(path)
    grid = values.pop("grid", {})
    wanted = 'quoted keys with lists: "schedule.learning_rate" = [1e-5, 3e-5]'
    if not isinstance(grid, dict):
        raise InputError("malformed grid", where=f"{path}: grid", wanted=wanted)
    if math.prod(len(lists) for lists in grid.values() if isinstance(lists, list)) > MOST:
        raise InputError("too many combinations", where=f"{path}: grid", wanted=f"{MOST:,}")
    for key, choices in grid.items():
        if not isinstance(choices, list) or not choices:
            raise InputError("malformed grid", where=f"{path}: grid.{key}", wanted=wanted)
        if any(value in choices[:n] for n, value in enumerate(choices)):
            raise InputError("a value is repeated", where=f"{path}: grid.{key}")
    variants = []
    for choice in product(*grid.values()):
        settings = dict(zip(grid, choice, strict=True))
        name = ", ".join(f"{key.rpartition('.')[2]}={value}" for key, value in settings.items())
        training = read_with_settings(values, settings, path)
        variants.append(Variant(_folder_name(name), settings, training))
    return variants


def _folder_name(settings: str) -> str:
    """Return the name of a variant's folder; a checksum ends it if it is too long for one."""
    name = settings.replace("/", "_")
    if len(name.encode()) <= LONGEST:
        return name
    checksum = hashlib.sha256(settings.encode()).hexdigest()[:12]
    return f"{name.encode()[: LONGEST - 16].decode(errors='ignore')}… {checksum}"


def read_with_settings(
    values: Mapping[str, Any], settings: Mapping[str, Any], path: Path
) -> TrainingConfig:
    """Parse `values`, the contents of the file at `path`, after changing some `settings`.

    settings: new values by dotted key. A data set is referred to by its name, as in
    "data.mb.weight". Raises InputError if a setting is invalid or does not exist.
    """
    return read_training(with_settings(values, settings, path), path)
