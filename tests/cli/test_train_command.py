"""Does `birchbark train` train, tell what is wrong in one line, and print a grid's table?"""

from __future__ import annotations

import builtins
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from birchbark.cli import group, main
from birchbark.errors import InputError, MissingPackageError, TrainingError
from birchbark.score.model import load_scorer
from conftest import write_bert

CONFIG = """
title = "tiny"
base = "base"
max_length = 32
schedule = { steps = 4, batch = 4, learning_rate = 1e-3 }
[[data]]
name = "words"
files = ["pairs.tsv"]
validation = 0.3
"""
PAIRS = "query\ttext\tlabel\n" + "".join(
    f"birch {word}\t{word} canoe\t1\nbirch {word}\tbee {word}\t0\n"
    for word in "river paddle tree forest honey dance flower stone bridge arch".split()
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a base, pairs, and what to do with them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BIRCHBARK_DATA", raising=False)
    write_bert(tmp_path / "base", labels=1)
    (tmp_path / "pairs.tsv").write_text(PAIRS)
    (tmp_path / "tiny.toml").write_text(CONFIG)
    return tmp_path


def birchbark(*arguments: str) -> Result:
    return CliRunner().invoke(group, arguments, catch_exceptions=False)


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[Any, str]:
    """Exit code and standard error of the whole command."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as left:
        patch.setattr(sys, "argv", ["birchbark", *arguments])
        main()
    return left.value.code, capsys.readouterr().err


def needs_torch() -> None:
    pytest.importorskip("torch", reason="torch is not installed: nothing to learn with")


def test_a_model_comes_out(here: Path) -> None:
    """Beside its curve, drawn and in numbers; standard output stays empty."""
    needs_torch()
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    done = birchbark("train", "tiny.toml", "--output", "out")
    assert done.exit_code == 0
    assert done.stdout == ""
    assert "words: 14 pairs of 7 queries to learn from" in done.stderr
    assert "words: 6 pairs of 3 queries to validate on" in done.stderr
    assert "step 4: AP words" in done.stderr
    assert "model: out/model (all steps, best at step 4)" in done.stderr
    assert load_scorer(here / "out" / "model").kind == "cross-encoder"
    lines = [json.loads(line) for line in (here / "out" / "curve.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if "loss" in line] == [1, 2, 3, 4]
    for name in ("loss", "measure"):
        assert "<svg" in (here / "out" / f"{name}.svg").read_text()
    again = birchbark("train", "tiny.toml", "--output", "out")
    assert "goes on after step 4 of 4" in again.stderr


def test_a_model_comes_out_without_plots(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where matplotlib is missing."""
    needs_torch()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = birchbark("train", "tiny.toml", "--output", "out")
    assert done.exit_code == 0
    assert "no plot of the loss: plots need matplotlib (pip install" in done.stderr
    assert "model: out/model" in done.stderr


def test_a_grid_prints_a_table(here: Path) -> None:
    """On standard output, best first; each combination in a folder of its own."""
    needs_torch()
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    (here / "tiny.toml").write_text(
        CONFIG + '[grid]\nseed = [0, 1]\n"schedule.learning_rate" = [1e-3, 1e-2]\n'
    )
    done = birchbark("train", "tiny.toml", "--output", "out")
    head, *rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert head == ["seed", "schedule.learning_rate", "best", "step", "steps", "seconds"]
    assert sorted(row[:2] for row in rows) == [[s, r] for s in "01" for r in ("0.001", "0.01")]
    best = [float(row[2]) for row in rows]
    assert best == sorted(best, reverse=True)
    kept = json.loads((here / "out" / "grid.json").read_text())
    assert [k["settings"]["seed"] for k in kept] == [0, 0, 1, 1]
    assert (here / "out" / "seed=1, learning_rate=0.01" / "model" / "model.safetensors").exists()


def test_a_grid_asks_its_teacher_once(here: Path) -> None:
    """All its trainings find there what the first asked."""
    needs_torch()
    write_bert(here / "teacher", labels=1, seed=9)
    taught = 'max_length = 32\nobjective = { kind = "soft", teacher = "teacher" }'
    config = CONFIG.replace("max_length = 32", taught) + "[grid]\nseed = [0, 1]\n"
    (here / "tiny.toml").write_text(config)
    done = birchbark("train", "tiny.toml", "--output", "out")
    assert done.exit_code == 0, done.output
    assert [path.parent for path in here.rglob("*.scores")] == [here / "out" / "teachers"]


def test_distilling_needs_a_teacher(here: Path) -> None:
    """The same files as train reads, which may have none."""
    needs_torch()
    with pytest.raises(InputError, match=r"tiny.toml: nobody teaches.*birchbark train learns"):
        birchbark("distill", "tiny.toml", "--output", "out")
    write_bert(here / "teacher", labels=1, seed=9)
    (here / "tiny.toml").write_text(f'{CONFIG}[match]\nteacher = "teacher"\n')
    done = birchbark("distill", "tiny.toml", "--output", "out")
    assert done.exit_code == 0, done.output
    assert (here / "out" / "model" / "model.safetensors").exists()


def test_a_grid_outlives_a_training_that_fails(here: Path) -> None:
    """The others are trained and shown; the end says that one has failed."""
    needs_torch()
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    (here / "tiny.toml").write_text(CONFIG + '[grid]\n"schedule.learning_rate" = [1e38, 1e-2]\n')
    with pytest.raises(TrainingError, match="1 of 2 trainings failed: found learning_rate=1e"):
        birchbark("train", "tiny.toml", "--output", "out")
    kept = json.loads((here / "out" / "grid.json").read_text())
    assert [one["best"] is None for one in kept] == [True, False]


def test_another_training_is_replaced_only_if_asked(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And what is no training is never removed."""
    needs_torch()
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    birchbark("train", "tiny.toml", "--output", "out")
    (here / "tiny.toml").write_text("seed = 1\n" + CONFIG)
    code, said = told(capsys, "train", "tiny.toml", "--output", "out")
    assert code == 2
    assert "out: the folder holds a training that was begun otherwise" in said
    assert birchbark("train", "tiny.toml", "--output", "out", "--replace").exit_code == 0
    code, said = told(capsys, "train", "tiny.toml", "--output", ".", "--replace")
    assert (code, said) == (
        2,
        "birchbark: .: is no training's folder (choose another, or a new one)\n",
    )
    assert (here / "pairs.tsv").exists()


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (("steps = 4", "step = 4"), 2, "tiny.toml: schedule: how long is learnt"),
        (("title", "tittle"), 2, "birchbark: tiny.toml: title: key is missing"),
        (("[[data]]", "[[[data]]"), 2, "birchbark: tiny.toml: not a TOML file"),
        (("pairs.tsv", "gone.tsv"), 2, "birchbark: gone.tsv: no such file"),
        (('"base"', '"gone"'), 1, "birchbark: gone: no such model"),
        (("max_length = 32", "max_length = 99"), 2, "tiny.toml: max_length is more than"),
    ],
)
def test_what_is_wrong_is_one_line(
    change: tuple[str, str],
    code: int,
    message: str,
    here: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On standard error, with exit code 2 for input."""
    needs_torch()
    (here / "tiny.toml").write_text(CONFIG.replace(*change))
    found, said = told(capsys, "train", "tiny.toml", "--output", "out")
    assert found == code
    assert message in said
    assert said.count("\n") == 1


def test_files_that_are_not_there(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The configuration, or a data folder."""
    code, said = told(capsys, "train", "gone.toml", "--output", "out")
    assert (code, said) == (2, "birchbark: gone.toml: no such file: expected a TOML file\n")
    needs_torch()
    code, said = told(capsys, "train", "tiny.toml", "--output", "out", "--data", "elsewhere")
    assert code == 2
    assert "elsewhere/pairs.tsv: no such file" in said


def test_without_torch(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what to install, and leaves nothing behind."""
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        MissingPackageError, match=r"needs torch \(pip install 'birchbark\[train\]'"
    ):
        birchbark("train", "tiny.toml", "--output", "out")
    assert not (here / "out").exists()


def test_help_shows_an_example_at_once() -> None:
    """Without torch."""
    real = builtins.__import__

    def light(name: str, *others: Any) -> Any:
        assert name.partition(".")[0] != "torch"
        return real(name, *others)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builtins, "__import__", light)
        shown = birchbark("train", "--help").output
    assert "Example: birchbark train training/mb.toml --output mb" in shown
    assert "--replace" in shown
