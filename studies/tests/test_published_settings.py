"""Do recipes and training configurations have the hyper-parameters of the papers?"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from birchbark.section import Section
from birchbark.train.read_config import read_training
from birchbark_studies.experiments.recipe_file import read_recipe
from birchbark_studies.recipe_folder import RECIPES

PACKAGE = RECIPES.parent
SETTINGS = tomllib.loads(Path(__file__).with_name("published_settings.toml").read_text("utf-8"))
PREFIXES = {"birch": "birch", "passages": "passages", "cord": "cord", "covid": "cord", "uva": "uva"}
ENTRIES = [
    pytest.param(entry, id=f"{paper}, {entry['where']}")
    for paper, entries in SETTINGS.items()
    for entry in entries
]


@cache
def opened(name: str) -> Any:
    """Read a file below the package: a recipe, `--larger` after its name, or a training."""
    path = PACKAGE / name.removesuffix(" --larger")
    if path.parent == RECIPES:
        return read_recipe(path, larger=name.endswith("--larger"))
    if path.suffix == ".toml":
        values = Section.table(path)
        return read_training({key: values[key] for key in values if key != "grid"}, path)
    return path.read_text("utf-8")


def value_of(name: str, key: str) -> Any:
    """Return the value of a setting.

    A key with dots is an attribute of what was read, defaults included; one with slashes is a key
    of the TOML file; in a script, it is the text before the value. `FILE: MODEL` is the last
    training run of a recipe's model.
    """
    name, _, model = name.partition(": ")
    value = opened(name)
    if isinstance(value, str):  # a script
        lines = [line.partition(key)[2] for line in value.splitlines() if key in line]
        (word,) = {shlex.split(rest)[0] for rest in lines}
        return word
    if "/" in key:
        value, parts = tomllib.loads((PACKAGE / name).read_text("utf-8")), key.split("/")
    else:
        value, parts = value.experiment.chains[model][-1] if model else value, key.split(".")
    for part in parts:
        if isinstance(value, list | tuple):
            value = value[int(part)]
        else:
            value = value[part] if isinstance(value, Mapping) else getattr(value, part)
    return [*value] if isinstance(value, tuple) else value


def holds(found: Any, wanted: Any) -> bool:
    """Return whether a setting has a value, "none" for None."""
    return bool(found == (None if wanted == "none" else wanted))


@pytest.mark.parametrize("entry", ENTRIES)
def test_settings_are_the_papers(entry: dict[str, Any]) -> None:
    """Each file has the value of the paper, or the other one that the fixture states for it."""
    unlike: dict[str, dict[str, Any]] = entry.get("unlike", {})
    for name in (*entry["files"], *unlike):
        ours = unlike.get(name, {})
        assert ours.keys() <= entry["settings"].keys(), name
        for key, published in entry["settings"].items():
            found = value_of(name, key)
            assert holds(found, ours.get(key, published)), f"{name}, {key}: {found}"
            assert key not in ours or not holds(found, published), f"{name}, {key}: is the paper's"


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.toml")), ids=lambda p: p.stem)
def test_passages_of_trec_dl_are_relevant_from_grade_2(path: Path) -> None:
    """As in the track: passages of grade 1 are on the topic, but do not answer."""
    collections = read_recipe(path).collections
    of_track = [c for c in collections if re.search("trec-dl-?(20)?(19|2[0-2])", c.qrels)]
    assert [c.name for c in of_track if c.relevant != 2] == []


def files_of_recipes() -> Iterator[tuple[str, str]]:
    """Yield paper and file: each recipe of a paper, and each training that it may run."""
    for path in sorted(RECIPES.glob("*.toml")):
        if paper := PREFIXES.get(path.stem.split("-")[0]):
            yield paper, f"recipes/{path.name}"
            for larger in {False, "larger" in Section.table(path)}:
                for chain in read_recipe(path, larger).experiment.chains.values():
                    yield from ((paper, str(t.path.resolve().relative_to(PACKAGE))) for t in chain)


def test_no_file_is_left_out() -> None:
    """Each recipe and training of a paper is in one of its entries at least."""
    named = {
        (paper, name.partition(": ")[0].removesuffix(" --larger"))
        for paper, entries in SETTINGS.items()
        for entry in entries
        for name in (*entry["files"], *entry.get("unlike", {}))
    }
    without = (
        {  # studies that the report proposes, that only count, or that vary the loss; PARADE
            ("cord", f"recipes/{name}.toml")
            for name in ("cord-losses", "cord-reformulation", "cord-adaptation")
        }
        | {("cord", "training/losses.toml")}
        | {("birch", f"recipes/birch-{name}.toml") for name in ("data", "loss")}
        | {
            ("passages", f"training/{name}.toml")
            for name in ("marco/bert-base", "passages/robust04")
        }
    )
    assert set(files_of_recipes()) - named == without


def test_another_value_is_found() -> None:
    """A setting that a file has not, and a difference that is none, are."""
    (entry,) = (e for e in SETTINGS["passages"] if e["where"] == "table 4.1 and section 4.1")
    changed = {**entry, "settings": {**entry["settings"], "schedule.learning_rate": 6e-5}}
    with pytest.raises(AssertionError, match=r"marco\.toml, schedule\.learning_rate: 5e-06"):
        test_settings_are_the_papers(changed)
    same = {"training/passages/marco.toml": {"schedule.batch": 16}}
    with pytest.raises(AssertionError, match=r"schedule\.batch: is the paper's"):
        test_settings_are_the_papers({**entry, "files": [], "unlike": same})
