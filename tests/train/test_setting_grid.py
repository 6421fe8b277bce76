"""Are configurations validated strictly, and grids expanded to all combinations?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tiny_trainings import settings, toml

from birchbark.errors import InputError
from birchbark.train.config import LossTerm, Schedule, Teacher, TrainingConfig
from birchbark.train.initialise import Initialisation
from birchbark.train.lists import ListSampling
from birchbark.train.objectives import LOSSES, Objective
from birchbark.train.read_config import read_training
from birchbark.train.setting_grid import read_variants


def read(**changes: Any) -> TrainingConfig:
    dotted = {key.replace("__", "."): value for key, value in changes.items()}
    return read_training(settings("base", dotted), Path("tiny.toml"))


def test_defaults() -> None:
    """Schedule, initialisation, validation, lists and pair files have defaults."""
    training = read(model=None, schedule={"epochs": 2}, query_length=31)
    assert training.query_length == 31  # below the maximum length of an input, 32
    assert training.schedule == Schedule(
        2, None, 32, 1, 2e-5, 0.1, True, 0.01, 1.0, "fp32", 16_384, False, None
    )
    assert training.initialisation == Initialisation(None, "all", 0.1)
    assert (training.seed, training.validation.measure) == (0, "AP")
    (data,) = training.data
    assert (data.lists, data.loss_terms) == (ListSampling(), (LossTerm(Objective()),))
    assert (data.source.highest, data.source.unjudged, data.chunk, data.weight) == (
        1,
        None,
        None,
        1.0,
    )


def test_a_data_set_can_have_its_own_objective() -> None:
    """It can also have its own lists, instead of the default ones."""
    own = {"kind": "soft", "teacher": "big", "scale": 20, "shift": 0.4}
    values = settings("base", {"objective.kind": "ranknet", "lists": {"each": "positive"}})
    values["data"] += [values["data"][0] | {"name": "soft", "objective": own, "lists": {}}]
    first, second = read_training(values, Path("x")).data
    assert (first.loss_terms, first.lists) == (
        (LossTerm(Objective("ranknet")),),
        ListSampling("positive", 8),
    )
    assert second.loss_terms == (LossTerm(Objective("soft"), Teacher(("big",), 20.0, 0.4)),)
    assert second.lists == ListSampling()


def test_several_losses_can_be_summed() -> None:
    """Each loss, on labels or on scores of several teachers, has its weight and settings."""
    soft = {"kind": "soft-labels", "teacher": ["a", "b"], "temperature": 2, "weight": 0.5}
    (data,) = read(objective=[{"kind": "pointwise"}, soft]).data
    mild = Objective("soft-labels", temperature=2.0)
    assert data.loss_terms == (LossTerm(Objective()), LossTerm(mild, Teacher(("a", "b")), 0.5))
    assert data.teachers == (Teacher(("a", "b")),)


BY_LOSS = {"validation": {"measure": "loss"}}
MINED = {"objective": {"kind": "softmax"}, "lists": {"each": "positive"}}
FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"title": None}, "tiny.toml: title: key is missing"),
    ({"sede": 1}, "tiny.toml: sede: unknown key: expected .*seed"),
    ({"seed": -1}, "seed: out of range: expected 0 or more, found -1"),
    ({"seed": True}, "seed: wrong type: expected an integer, found True"),
    ({"max_length": 7}, "max_length: out of range: expected 8 or more"),
    (
        {"schedule__steps": None},
        "schedule: exactly one of epochs and steps must be set",
    ),
    ({"schedule__epochs": 1}, "schedule: exactly one of epochs and steps must be set"),
    (
        {"schedule__precision": "fp8"},
        "schedule: unsupported precision: expected fp32, tf32, bf16 or auto",
    ),
    ({"schedule__learning_rate": 0}, "schedule.learning_rate: out of range: expected above 0"),
    ({"schedule__learning_rate": float("inf")}, "learning_rate: .*expected a finite number"),
    ({"schedule__warmup": -0.1}, "schedule.warmup: out of range: expected 0 or more, found -0.1"),
    ({"schedule__warmup": float("nan")}, "schedule.warmup: .*expected a finite number"),
    ({"schedule__weight_decay": -1}, "schedule.weight_decay: out of range: expected 0 or more"),
    ({"schedule__clip": 0}, "schedule.clip: out of range: expected above 0"),
    ({"schedule__batch": 0}, "schedule.batch: out of range: expected 1 or more"),
    ({"schedule__batch_tokens": 0}, "schedule.batch_tokens: out of range: expected 1 or more"),
    (
        {"schedule__recompute": True, "match": {"teacher": "x"}},
        r"schedule.recompute: recompute cannot be combined with \[match\]",
    ),
    ({"schedule__decay": 1}, "schedule.decay: wrong type: expected true or false"),
    ({"model__dropout": 1}, "model: dropout is out of range"),
    ({"model__learns": "tail"}, "model: unknown part 'tail'"),
    ({"model__layers": 0}, "model.layers: out of range"),
    ({"objective__kind": "hinge"}, "objective: unknown objective 'hinge'"),
    ({"objective__kind": "soft"}, "objective: objective soft needs a teacher"),
    ({"objective__teacher": "big"}, "objective: objective pointwise takes no teacher"),
    ({"objective__kind": "ranknet"}, r"data\[1\]: objective ranknet compares texts.*positive"),
    ({"lists": {"each": "query", "texts": 1}}, "lists: 1 texts per list"),
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
    ({"objective": {"kind": "ranknet", "teacher": "x"}}, "objective ranknet takes no teacher"),
    ({"objective": []}, r"tiny.toml: no objective: expected an objective, or a table \[match\]"),
    (
        {
            "data": [
                {"name": "words", "files": ["pairs.tsv"]},
                {"name": "idle", "files": ["pairs.tsv"], "objective": []},
            ]
        },
        "data idle: nothing is learned from these pairs",
    ),
    (
        {"match": {"teacher": "x"}, "model__learns": "head"},
        r"model.learns: \[match\] trains layers, which stay as they are",
    ),
    ({"match": {"teacher": "x", "hidden": -1}}, "match: hidden is out of range"),
    (
        {"match": {"teacher": "x", "embeddings": 0, "hidden": 0, "attention": 0}},
        "match: all weights are 0",
    ),
    (
        {"model": {"layers": 1, "from_layers": [2]}},
        "model: layers and from_layers exclude each other",
    ),
    ({"objective": "soft"}, "objective: wrong type: expected a table"),
    (
        {"objective": [{}, {"kind": "soft-labels", "teacher": "x", "temperature": 0}]},
        r"objective\[2\]: temperature is out of range: expected a finite number above 0, found 0",
    ),
    (
        {"objective": {"kind": "soft", "teacher": "x"}, **BY_LOSS},
        "validation.measure: unsuitable measure: expected a ranking measure: held-out pairs have",
    ),
    (
        {"objective": [], "match": {"teacher": "x"}, **BY_LOSS},
        "validation.measure: unsuitable measure",
    ),
    ({"validation": {"patience": 0}}, "validation.patience: out of range"),
    (
        {"data__validation": 0, "data__validation_queries": 9},
        "data words: validation_queries needs held-out queries",
    ),
    (
        {"data__validation": 0, "validation": {"measure": "AP"}},
        "validation: measure needs held-out queries",
    ),
    (
        {"data__validation": 0, "validation": {"patience": 2}},
        "validation: patience needs held-out queries",
    ),
    (
        {"match": {"teacher": "x", "hidden": 0, "attention": 0, "layers": [1, 2]}},
        "match: layers has no effect without the losses",
    ),
    (
        {"query_length": 32},
        "query_length: query_length has no effect.*expected below max_length, 32, found 32",
    ),
    (
        {"objective": {"kind": "pointwise"}, "data__objective": {"kind": "pointwise"}},
        "tiny.toml: objective: the objective has no effect: every data set has its own",
    ),
    ({"schedule__warmup": 4}, "schedule.warmup: the training run has 4 steps: .*at most 3, found"),
    (
        {"mining": {"every": 4}, **MINED},
        "mining.every: the training run has 4 steps: expected at most 3, found 4",
    ),
    (
        {"mining": {"every": 1, "start": 4}, **MINED},
        "mining.start: the training run has 4 steps: expected at most 3, found 4",
    ),
    (
        {"match": {"teacher": "x", "steps": 5}},
        "match.steps: the training run has 4 steps: expected at most 4, found 5",
    ),
]


@pytest.mark.parametrize(("changes", "message"), FAULTS)
def test_a_fault_is_reported_with_its_key(changes: dict[str, Any], message: str) -> None:
    """The message has the file, the key, and the actual and expected value."""
    with pytest.raises(InputError, match=message):
        read(**changes)


def test_names_of_data_sets_are_distinct() -> None:
    """Validation results are reported by name."""
    values = settings("base")
    values["data"] *= 2
    with pytest.raises(InputError, match="data: data sets are missing or share a name"):
        read_training(values, Path("x"))


def variants(folder: Path, grid: dict[str, Any], text: str = "") -> list[Any]:
    rows = "".join(f'"{key}" = {value!r}\n' for key, value in grid.items())
    path = folder / "tiny.toml"
    path.write_text(toml(settings("base")) + text + "[grid]\n" + rows)
    return read_variants(path)


def test_a_grid_is_all_combinations(tmp_path: Path) -> None:
    """The last key varies fastest; keys contain the names of data sets; other settings stay."""
    grid = {"seed": [1, 2], "data.words.weight": [0.5, 1.5], "lists.each": ["pair"]}
    expanded = variants(tmp_path, grid)
    assert [dict(v.settings) for v in expanded] == [
        {"seed": s, "data.words.weight": w, "lists.each": "pair"}
        for s in (1, 2)
        for w in (0.5, 1.5)
    ]
    assert [(v.training.seed, v.training.data[0].weight) for v in expanded] == [
        *((1, 0.5), (1, 1.5), (2, 0.5), (2, 1.5))
    ]
    assert [v.name for v in expanded][:2] == [f"seed=1, weight={w}, each=pair" for w in (0.5, 1.5)]
    assert all("grid" not in v.training.values for v in expanded)
    assert len({v.name for v in expanded}) == 4
    path = tmp_path / "plain.toml"
    path.write_text(toml(settings("base")))
    (plain,) = read_variants(path)
    assert plain.name == ""


def test_long_settings_have_names_of_folders(tmp_path: Path) -> None:
    """A name has at most 255 bytes, and differs from those of other variants."""
    losses = [[{"kind": "pointwise", "weight": n / 3}] * 9 for n in range(1, 4)]
    path = tmp_path / "tiny.toml"
    path.write_text(toml(settings("base")) + toml({"grid": {"objective": losses}}))
    names = [variant.name for variant in read_variants(path)]
    assert len(set(names)) == 3
    for name in names:
        assert len(name.encode()) <= 255
        assert name.startswith("objective=[{'kind': 'pointwise', 'weight': ")
        (tmp_path / name).mkdir()


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"seed": 1}, r"tiny\.toml: grid\.seed: malformed grid.*quoted keys"),
        ({"seed": []}, "malformed grid"),
        ({"sede": [1]}, r"tiny\.toml: sede: unknown key"),
        ({"seed": [1, "x"]}, "seed: wrong type"),
        ({"seed": [1, 1]}, r"grid\.seed: a value is repeated"),
        (
            {"data.letters.weight": [1]},
            r"tiny\.toml: data\.letters\.weight: letters is not a table",
        ),
        ({"seed": [*range(40)], "schedule.epochs": [*range(1, 40)]}, "too many combinations"),
        ({"title.long": [1]}, r"title\.long: title is not a table"),
        ({"data.words": [1]}, r"data\.words: words is not a setting"),
    ],
)
def test_invalid_grids(grid: dict[str, Any], message: str, tmp_path: Path) -> None:
    """The error names the key."""
    with pytest.raises(InputError, match=message):
        variants(tmp_path, grid)


def test_invalid_files(tmp_path: Path) -> None:
    """They are missing, a folder, not TOML, or not text."""
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
    """training/README.md contains each key that error messages list as known."""
    documented = (Path(__file__).parents[2] / "training" / "README.md").read_text()
    tables = ("", "model", "schedule", "validation", "lists", "data", "columns", "match")
    kinds = [("objective", kind) for kind in LOSSES]
    for table, kind in [*((table, "pointwise") for table in tables), *kinds]:
        objective = {"kind": kind} | ({"teacher": "x"} if LOSSES[kind].needs_teacher else {})
        values = settings(
            "base", {"objective": objective, "lists": {}, "data.columns": {}, "match.teacher": "x"}
        )
        target: Any = values
        if table in ("data", "columns"):
            target = values["data"][0]
        if table not in ("", "data"):
            target = target.setdefault(table, {})
        target["nonsense"] = 1
        with pytest.raises(InputError) as refused:
            read_training(values, tmp_path / "tiny.toml")
        keys = refused.value.wanted.removeprefix("one of ").split(", ")
        assert len(keys) > 1
        for key in set(keys) - {
            "model",
            "schedule",
            "data",
            "columns",
            "match",
        }:  # which are tables
            assert f"{key}`" in documented, f"{table}.{key}"
