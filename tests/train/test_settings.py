"""Is a training's file read strictly, each fault told with its key, and a grid multiplied out?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tiny_trainings import settings, toml

from birchbark.errors import InputError
from birchbark.train.config import Aim, Schedule, Teacher, Training, read_training
from birchbark.train.examples import Draw
from birchbark.train.grid import read_variants
from birchbark.train.objectives import LOSSES, Objective
from birchbark.train.shaping import Shaping


def read(**changes: Any) -> Training:
    dotted = {key.replace("__", "."): value for key, value in changes.items()}
    return read_training(settings("base", dotted), Path("tiny.toml"))


def test_what_is_not_said_has_a_usual_value() -> None:
    """The papers' optimiser, one pass over nothing that was not asked for."""
    training = read(model=None, schedule={"epochs": 2})
    assert training.schedule == Schedule(2, None, 32, 1, 2e-5, 0.1, True, 0.01, 1.0, "fp32", None)
    assert training.shaping == Shaping(None, "all", 0.1)
    assert (training.seed, training.validation.measure) == (0, "AP")
    (data,) = training.data
    assert (data.draw, data.aims) == (Draw(), (Aim(Objective()),))
    assert (data.highest, data.unjudged, data.chunk, data.weight) == (1, None, None, 1.0)


def test_a_data_set_may_have_its_own_objective() -> None:
    """And lists of its own, beside those of all others."""
    own = {"kind": "soft", "teacher": "big", "scale": 20, "shift": 0.4}
    values = settings("base", {"objective.kind": "ranknet", "lists": {"each": "positive"}})
    values["data"] += [values["data"][0] | {"name": "soft", "objective": own, "lists": {}}]
    first, second = read_training(values, Path("x")).data
    assert (first.aims, first.draw) == ((Aim(Objective("ranknet")),), Draw("positive", 8))
    assert second.aims == (Aim(Objective("soft"), Teacher(("big",), 20.0, 0.4)),)
    assert second.draw == Draw()


def test_several_losses_are_added_up() -> None:
    """Labels and what several teachers say, each with a weight; a loss has its own settings."""
    soft = {"kind": "soft-labels", "teacher": ["a", "b"], "temperature": 2, "weight": 0.5}
    (data,) = read(objective=[{"kind": "pointwise"}, soft]).data
    mild = Objective("soft-labels", temperature=2.0)
    assert data.aims == (Aim(Objective()), Aim(mild, Teacher(("a", "b")), 0.5))
    assert data.teachers == (Teacher(("a", "b")),)


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"title": None}, "tiny.toml: title: key is missing"),
    ({"sede": 1}, "tiny.toml: sede: unknown key .*seed"),
    ({"seed": -1}, "seed: out of range: expected 0 or more, found -1"),
    ({"seed": True}, "seed: wrong type: expected a whole number, found True"),
    ({"max_length": 7}, "max_length: out of range: expected 8 or more"),
    ({"schedule__steps": None}, "schedule: how long is learnt.*epochs or steps"),
    ({"schedule__epochs": 1}, "schedule: how long is learnt"),
    ({"schedule__precision": "fp8"}, "schedule: unknown precision: expected fp32 or bf16"),
    ({"schedule__learning_rate": 0}, "schedule.learning_rate: out of range: expected above 0"),
    ({"schedule__learning_rate": float("inf")}, "learning_rate: .*expected a finite number"),
    ({"schedule__warmup": -0.1}, "schedule.warmup: out of range: expected 0 or more, found -0.1"),
    ({"schedule__warmup": float("nan")}, "schedule.warmup: .*expected a finite number"),
    ({"schedule__weight_decay": -1}, "schedule.weight_decay: out of range: expected 0 or more"),
    ({"schedule__clip": 0}, "schedule.clip: out of range: expected above 0"),
    ({"schedule__batch": 0}, "schedule.batch: out of range: expected 1 or more"),
    ({"schedule__decay": 1}, "schedule.decay: wrong type: expected true or false"),
    ({"model__dropout": 1}, "model: dropout is out of range"),
    ({"model__learns": "tail"}, "model: unknown part 'tail'"),
    ({"model__layers": 0}, "model.layers: out of range"),
    ({"objective__kind": "hinge"}, "objective: unknown objective 'hinge'"),
    ({"objective__kind": "soft"}, "objective: objective soft needs a teacher"),
    ({"objective__teacher": "big"}, "objective: objective pointwise has no teacher"),
    ({"objective__kind": "ranknet"}, r"data\[1\]: objective ranknet compares texts.*positive"),
    ({"lists": {"each": "query", "texts": 1}}, "lists: 1 texts in a list"),
    ({"data": []}, "data: data sets are missing"),
    ({"data": [1]}, "data: wrong type: expected tables, found 1"),
    ({"data__files": []}, r"data\[1\].files: is empty or repeats"),
    ({"data__files": "x.tsv"}, r"data\[1\].files: wrong type: expected a list"),
    ({"data__validation": 1.0}, r"data\[1\]: share of queries is out of range.*found 1.0"),
    ({"data__weight": 0}, r"data\[1\].weight: out of range: expected above 0"),
    ({"data__columns": {"grade": "g"}}, r"data\[1\].columns.grade: unknown key"),
    ({"data__objective": {"kind": "soft"}}, r"data\[1\].objective: objective soft needs a teacher"),
    ({"objective": {"kind": "softmax", "margin": 3}}, "objective.margin: unknown key"),
    ({"objective": {"kind": "softmax", "scale": 3}}, "objective.scale: unknown key"),
    ({"objective": {"kind": "ranknet", "teacher": "x"}}, "objective ranknet has no teacher"),
    ({"objective": []}, r"tiny.toml: no objective: expected one, or a table \[match\]"),
    ({"match": {"teacher": "x", "hidden": -1}}, "match: hidden is out of range"),
    (
        {"match": {"teacher": "x", "embeddings": 0, "hidden": 0, "attention": 0}},
        "match: nothing is matched",
    ),
    ({"model": {"layers": 1, "from_layers": [2]}}, "model: layers and from_layers say the same"),
    ({"objective": "soft"}, "objective: wrong type: expected a table"),
    (
        {"objective": [{}, {"kind": "soft-labels", "teacher": "x", "temperature": 0}]},
        r"objective\[2\]: temperature is out of range: expected above 0, found 0",
    ),
    ({"validation": {"patience": 0}}, "validation.patience: out of range"),
]


@pytest.mark.parametrize(("changes", "message"), FAULTS)
def test_a_fault_is_told_with_its_key(changes: dict[str, Any], message: str) -> None:
    """File, key, what was found and what was wanted."""
    with pytest.raises(InputError, match=message):
        read(**changes)


def test_names_of_data_sets_differ() -> None:
    """They are the columns of measures."""
    values = settings("base")
    values["data"] *= 2
    with pytest.raises(InputError, match="data: data sets are missing or share a name"):
        read_training(values, Path("x"))


def variants(folder: Path, grid: dict[str, Any], text: str = "") -> list[Any]:
    rows = "".join(f'"{key}" = {value!r}\n' for key, value in grid.items())
    path = folder / "tiny.toml"
    path.write_text(toml(settings("base")) + text + "[grid]\n" + rows)
    return read_variants(path)


def test_a_grid_is_every_combination(tmp_path: Path) -> None:
    """The last key fastest; a data set's settings by its name; the rest as the file has it."""
    grid = {"seed": [1, 2], "data.words.weight": [0.5, 1.5], "lists.each": ["pair"]}
    found = variants(tmp_path, grid)
    assert [dict(v.settings) for v in found] == [
        {"seed": s, "data.words.weight": w, "lists.each": "pair"}
        for s in (1, 2)
        for w in (0.5, 1.5)
    ]
    assert [(v.training.seed, v.training.data[0].weight) for v in found] == [
        *((1, 0.5), (1, 1.5), (2, 0.5), (2, 1.5))
    ]
    assert [v.name for v in found][:2] == [f"seed=1, weight={w}, each=pair" for w in (0.5, 1.5)]
    assert all("grid" not in v.training.values for v in found)
    assert len({v.name for v in found}) == 4
    path = tmp_path / "plain.toml"
    path.write_text(toml(settings("base")))
    (plain,) = read_variants(path)
    assert plain.name == ""


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"seed": 1}, r"tiny\.toml: grid: wrong grid.*keys in quotes"),
        ({"seed": []}, "wrong grid"),
        ({"sede": [1]}, r"tiny\.toml: sede: unknown key"),
        ({"seed": [1, "x"]}, "seed: wrong type"),
        ({"seed": [1, 1]}, r"grid\.seed: .*repeats"),
        ({"data.letters.weight": [1]}, r"tiny\.toml: data\.letters\.weight: letters is no table"),
        ({"title.long": [1]}, r"title\.long: title is no table"),
        ({"data.words": [1]}, r"data\.words: words is no setting"),
    ],
)
def test_grids_that_are_none(grid: dict[str, Any], message: str, tmp_path: Path) -> None:
    """Are told with their key."""
    with pytest.raises(InputError, match=message):
        variants(tmp_path, grid)


def test_files_that_are_none(tmp_path: Path) -> None:
    """Missing, a folder, no TOML, no text."""
    (tmp_path / "bad.toml").write_text("seed = ")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    for name, message in (
        ("gone.toml", "no such file: expected a TOML file"),
        (".", "no such file"),
        ("bad.toml", "not a TOML file"),
        ("bytes.toml", "not a TOML file"),
    ):
        with pytest.raises(InputError, match=message):
            read_variants(tmp_path / name)


def test_every_key_is_documented(tmp_path: Path) -> None:
    """training/README.md names each key that a table takes, as the errors list them."""
    documented = (Path(__file__).parents[2] / "training" / "README.md").read_text()
    tables = ("", "model", "schedule", "validation", "lists", "data", "columns", "match")
    kinds = [("objective", kind) for kind in LOSSES]
    for table, kind in [*((table, "pointwise") for table in tables), *kinds]:
        objective = {"kind": kind} | ({"teacher": "x"} if LOSSES[kind].soft else {})
        values = settings(
            "base", {"objective": objective, "lists": {}, "data.columns": {}, "match.teacher": "x"}
        )
        place: Any = values
        if table in ("data", "columns"):
            place = values["data"][0]
        if table not in ("", "data"):
            place = place.setdefault(table, {})
        place["nonsense"] = 1
        with pytest.raises(InputError) as refused:
            read_training(values, tmp_path / "tiny.toml")
        keys = refused.value.remedy.removeprefix("one of ").split(", ")
        assert len(keys) > 1
        for key in set(keys) - {
            "model",
            "schedule",
            "data",
            "columns",
            "match",
        }:  # which are tables
            assert f"{key}`" in documented, f"{table}.{key}"
