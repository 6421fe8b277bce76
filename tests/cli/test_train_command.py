"""Does `birchbark train` write a model, report errors in one line, and print a grid's table?"""

from __future__ import annotations

import builtins
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from birchbark.cli import group, main
from birchbark.errors import BirchbarkError, InputError, MissingPackageError, TrainingError
from birchbark.score.load_scorer import load_scorer
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
    """Change to a folder with a base model, pairs and a configuration."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BIRCHBARK_DATA", raising=False)
    write_bert(tmp_path / "base", labels=1)
    (tmp_path / "pairs.tsv").write_text(PAIRS)
    (tmp_path / "tiny.toml").write_text(CONFIG)
    return tmp_path


def birchbark(*arguments: str) -> Result:
    return CliRunner().invoke(group, arguments, catch_exceptions=False)


def run_main(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[Any, str]:
    """Run the command; return its exit code and standard error."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as left:
        patch.setattr(sys, "argv", ["birchbark", *arguments])
        main()
    return left.value.code, capsys.readouterr().err


def needs_torch() -> None:
    pytest.importorskip("torch", reason="torch is not installed")


def test_model_is_written(here: Path) -> None:
    """Its curve is written as a plot and in numbers; standard output stays empty."""
    needs_torch()
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    done = birchbark("train", "tiny.toml", "--output", "out")
    assert done.exit_code == 0
    assert done.stdout == ""
    assert "words: 14 pairs of 7 queries to train on" in done.stderr
    assert "words: 6 pairs of 3 queries to validate on" in done.stderr
    assert "step 4: AP words" in done.stderr
    assert "model: out/model, of step 4 (all steps)" in done.stderr
    assert load_scorer(here / "out" / "model").kind == "cross-encoder"
    lines = [json.loads(line) for line in (here / "out" / "curve.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if "loss" in line] == [1, 2, 3, 4]
    for name in ("loss", "measure"):
        assert "<svg" in (here / "out" / f"{name}.svg").read_text()
    again = birchbark("train", "tiny.toml", "--output", "out")
    assert "resuming after step 4 of 4" in again.stderr


def test_model_is_written_without_plots(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without matplotlib, a message replaces the plots."""
    needs_torch()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = birchbark("train", "tiny.toml", "--output", "out")
    assert done.exit_code == 0
    assert "no plot of the loss: plots need matplotlib (pip install" in done.stderr
    assert "model: out/model" in done.stderr


def test_grid_prints_a_table(here: Path) -> None:
    """Results are printed on standard output, best first; each combination has its own folder."""
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


def test_grid_scores_with_its_teacher_once(here: Path) -> None:
    """All training runs share the teacher's scores."""
    needs_torch()
    write_bert(here / "teacher", labels=1, seed=9)
    taught = 'max_length = 32\nobjective = { kind = "soft", teacher = "teacher" }'
    config = CONFIG.replace("max_length = 32", taught) + "[grid]\nseed = [0, 1]\n"
    (here / "tiny.toml").write_text(config)
    done = birchbark("train", "tiny.toml", "--output", "out")
    assert done.exit_code == 0, done.output
    assert [path.parent for path in here.rglob("*.scores")] == [here / "out" / "teachers"]


def test_distilling_needs_a_teacher(here: Path) -> None:
    """A configuration without a teacher is rejected."""
    needs_torch()
    config = f'kind = "distillation"\n{CONFIG}'
    (here / "tiny.toml").write_text(config)
    with pytest.raises(InputError, match=r"tiny.toml: kind: this is no distillation: expected a"):
        birchbark("train", "tiny.toml", "--output", "out")
    write_bert(here / "teacher", labels=1, seed=9)
    (here / "tiny.toml").write_text(f'{config}[match]\nteacher = "teacher"\n')
    done = birchbark("train", "tiny.toml", "--output", "out")
    assert done.exit_code == 0, done.output
    assert (here / "out" / "model" / "model.safetensors").exists()


def test_a_failed_training_is_the_last_of_a_grid(capsys: pytest.CaptureFixture[str]) -> None:
    """It is the last even if the lowest value is the best."""
    needs_torch()
    from birchbark.cli import train as module
    from birchbark.train.training_state import Progress

    for sign in (1.0, -1.0):
        measured = SimpleNamespace(lowest_is_best=sign > 0)
        training = SimpleNamespace(validation=measured)
        results = [
            (
                SimpleNamespace(settings={"seed": best}, training=training),
                Progress(measures={} if best is None else {"words": {"mean": best}}),
                1.0,
            )
            for best in (0.5, None, 0.25, -1.0)
        ]
        module._print_grid(results)  # type: ignore[arg-type]
        seeds = [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()[1:]]
        assert seeds == (["-1.0", "0.25", "0.5"] if sign > 0 else ["0.5", "0.25", "-1.0"]) + [
            "None"
        ]


def test_grid_continues_after_a_failed_training(here: Path) -> None:
    """The others are trained and shown; the final error says that one has failed."""
    needs_torch()
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    (here / "tiny.toml").write_text(CONFIG + '[grid]\n"schedule.learning_rate" = [1e38, 1e-2]\n')
    with pytest.raises(TrainingError, match="1 of 2 training runs failed: found learning_rate=1e"):
        birchbark("train", "tiny.toml", "--output", "out")
    kept = json.loads((here / "out" / "grid.json").read_text())
    assert [row["best"] is None for row in kept] == [True, False]


def test_a_grid_shows_the_model_that_is_kept(here: Path) -> None:
    """With keep = "last", its measure is that of the last validation, not the best one."""
    needs_torch()
    config = CONFIG.replace("1e-3", "1e-1").replace("steps = 4", "steps = 12")
    end = '[validation]\nkeep = "last"\nevery = 1\n[grid]\nseed = [0, 1]\n'
    (here / "tiny.toml").write_text(config + end)
    assert birchbark("train", "tiny.toml", "--output", "out").exit_code == 0
    bests = []
    for row in json.loads((here / "out" / "grid.json").read_text()):
        log = here / "out" / f"seed={row['settings']['seed']}" / "curve.jsonl"
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        measured = [line["values"]["words"] for line in lines if "values" in line]
        assert (row["step"], row["best"]) == (12, measured[-1])
        bests.append(max(measured))
    assert bests != [row["best"] for row in json.loads((here / "out" / "grid.json").read_text())]


def test_a_grid_is_checked_before_its_first_training(here: Path) -> None:
    """A variant whose base or layers are none is refused at once."""
    needs_torch()
    for grid, message in (
        ('base = ["base", "gone"]', "gone: no such model"),
        ('"model.from_layers" = [[1], [7]]', "the base has fewer layers"),
    ):
        (here / "tiny.toml").write_text(f"{CONFIG}[grid]\n{grid}\n")
        with pytest.raises(BirchbarkError, match=message):
            birchbark("train", "tiny.toml", "--output", "out")
        assert not (here / "out").exists()


def test_results_of_an_interrupted_grid_are_kept(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each training run, grid.json has the results so far."""
    needs_torch()
    from birchbark.train import training as module

    trained, train = [], module.train

    def once(*given: Any, **options: Any) -> Any:
        if trained:
            raise KeyboardInterrupt
        trained.append(train(*given, **options))
        return trained[0]

    monkeypatch.setattr(module, "train", once)
    (here / "tiny.toml").write_text(CONFIG + "[grid]\nseed = [3, 4]\n")
    CliRunner().invoke(group, ["train", "tiny.toml", "--output", "out"])
    kept = json.loads((here / "out" / "grid.json").read_text())
    assert [row["settings"] for row in kept] == [{"seed": 3}]


def test_another_training_is_replaced_only_on_request(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder that does not hold a training run is never removed."""
    needs_torch()
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    birchbark("train", "tiny.toml", "--output", "out")
    (here / "tiny.toml").write_text("seed = 1\n" + CONFIG)
    code, stderr = run_main(capsys, "train", "tiny.toml", "--output", "out")
    assert code == 2
    assert "out: the folder holds a training run with other inputs" in stderr
    assert birchbark("train", "tiny.toml", "--output", "out", "--replace").exit_code == 0
    code, stderr = run_main(capsys, "train", "tiny.toml", "--output", ".", "--replace")
    assert (code, stderr) == (
        2,
        "birchbark: .: not the folder of a training run (choose another folder)\n",
    )
    assert (here / "pairs.tsv").exists()


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (
            ("steps = 4", "step = 4"),
            2,
            "tiny.toml: schedule: exactly one of epochs",
        ),
        (("title", "tittle"), 2, "birchbark: tiny.toml: title: key is missing"),
        (("[[data]]", "[[[data]]"), 2, "birchbark: tiny.toml: not a TOML file"),
        (("pairs.tsv", "gone.tsv"), 2, "birchbark: gone.tsv: no such file"),
        (('"base"', '"gone"'), 2, "birchbark: gone: no such model"),
        (("max_length = 32", "max_length = 99"), 2, "tiny.toml: max_length exceeds"),
    ],
)
def test_errors_are_one_line(
    change: tuple[str, str],
    code: int,
    message: str,
    here: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Errors are printed on standard error, with exit code 2 for invalid input."""
    needs_torch()
    (here / "tiny.toml").write_text(CONFIG.replace(*change))
    found, stderr = run_main(capsys, "train", "tiny.toml", "--output", "out")
    assert found == code
    assert message in stderr
    assert stderr.count("\n") == 1


def test_missing_files(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing configuration or data file is named."""
    code, stderr = run_main(capsys, "train", "gone.toml", "--output", "out")
    assert (code, stderr) == (2, "birchbark: gone.toml: no such file: expected a TOML file\n")
    needs_torch()
    code, stderr = run_main(capsys, "train", "tiny.toml", "--output", "out", "--data", "elsewhere")
    assert code == 2
    assert "elsewhere/pairs.tsv: no such file" in stderr


def test_without_torch(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to install, and no folder is created."""
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        MissingPackageError, match=r"needs torch \(pip install 'birchbark\[train\]'"
    ):
        birchbark("train", "tiny.toml", "--output", "out")
    assert not (here / "out").exists()


def test_help_shows_an_example() -> None:
    """--help does not import torch."""
    real = builtins.__import__

    def light(name: str, *others: Any) -> Any:
        assert name.partition(".")[0] != "torch"
        return real(name, *others)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builtins, "__import__", light)
        shown = birchbark("train", "--help").output
    assert "Example: birchbark train training/mb-quick.toml --output mb" in shown
    assert "--replace" in shown


def test_the_training_example_of_the_documentation_works(tmp_path: Path) -> None:
    """Its commands make the pairs, its configuration trains on them, and the model ranks."""
    needs_torch()
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "train-a-model.md").read_text()
    (shell,) = re.findall(r"^```sh\n(.*?)^```", page, re.S | re.M)
    (config,) = re.findall(r"^```toml\n(.*?)^```", page, re.S | re.M)
    (tmp_path / "shop.toml").write_text(config)
    indented = re.findall(r"^    (birchbark .*)$", page, re.M)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    out = subprocess.run(
        ["bash", "-euc", "\n".join([shell, *indented])],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "returns.txt" in out
