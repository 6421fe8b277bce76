"""Do failures give clear errors, and leave the last good model and state intact?"""

from __future__ import annotations

import errno
import json
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny_trainings import prepare, some_pairs, write_pairs

from birchbark.checkpoint import export as export_module
from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.errors import ArtifactError, BirchbarkError, InputError, TrainingError
from birchbark.pairs.holdout import held_out_queries
from birchbark.records import Pair
from birchbark.score.load_scorer import load_scorer
from birchbark.train import training_state as state_module
from birchbark.train.distributed import ProcessGroup
from birchbark.train.learner import Learner
from birchbark.train.training import train
from birchbark.train.training_folder import explained_write_errors
from birchbark.train.training_log import TrainingLog
from birchbark.train.training_run import ProgressReporter
from conftest import write_bert

torch = pytest.importorskip("torch", reason="torch is not installed")

EVERY = {"validation": {"every": 2}, "data__validation": 0.4, "schedule__steps": 6}


def refused(error: type[BirchbarkError], message: str, folder: Path, **changes: Any) -> None:
    with pytest.raises(error, match=message):
        train(prepare(folder, **changes), folder, folder / "out")


PAIRS = [
    ("query\ttext\nbirch\ta canoe\n", r"pairs\.tsv:1: no column named label: found query, text"),
    ("query\ttext\tlabel\nbirch\ta canoe\t1\nbee\ta bee\t2\n", r"pairs\.tsv:3: .*0 to 1, found 2"),
    ("query\ttext\tlabel\nbirch\ta canoe\t0.5\n", r"pairs\.tsv:2: .*0\.5"),
    ("query\ttext\tlabel\nbirch\t\t1\n", r"pairs\.tsv:2: .*empty"),
    ("query\ttext\tlabel\n \ta canoe\t1\n", r"pairs\.tsv:2: .*empty"),
    ("query\ttext\tlabel\nbirch\ta canoe\n", r"pairs\.tsv:2: wrong number of columns"),
    ("", r"pairs\.tsv: no pairs: found an empty file"),
]


@pytest.mark.parametrize(("text", "message"), PAIRS)
def test_bad_pairs_are_reported_with_their_line(text: str, message: str, tmp_path: Path) -> None:
    """The message has a remedy if there is one; nothing is written."""
    prepare(tmp_path)
    (tmp_path / "pairs.tsv").write_text(text)
    refused(InputError, message, tmp_path, data__validation=0.0)
    assert not (tmp_path / "out" / "model").exists()


def test_bad_pairs_can_be_skipped(tmp_path: Path) -> None:
    """They are counted, also in the lineage."""
    training = prepare(tmp_path, data__skip_bad=True)
    with (tmp_path / "pairs.tsv").open("a") as out:
        out.write("q\tbirch\td\ta canoe\t7\nq\tbirch\td\t\t1\n")
    messages: list[str] = []
    train(training, tmp_path, tmp_path / "out", reporter=ProgressReporter(messages.append))
    assert "words: 2 bad records were skipped" in messages
    lineage = json.loads((tmp_path / "out" / "model" / "birchbark.json").read_text())
    assert lineage["trainings"][0]["data"][0]["skipped"] == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data__files": ["gone.tsv"]}, r"gone\.tsv: no such file"),
        ({"max_length": 33}, r"tiny\.toml: max_length .*expected at most 32, found 33"),
        ({"model__layers": 3}, "the base has fewer layers: expected 1 to 2, found 3"),
        ({"validation": {"measure": "speed"}}, "speed"),
        ({"data__validation": 0.01}, "words: no held-out query.*found 0 held-out queries"),
        (
            {"schedule__steps": None, "schedule__epochs": 1, "schedule__warmup": 99},
            r"tiny\.toml: schedule\.warmup: the training run has 7 steps: .* at most 6, found 99",
        ),
        ({"lists": {"each": "query", "texts": 2}, "data__files": ["one.tsv"]}, "words: no lists"),
        (
            {
                "validation": {"measure": "loss"},
                "data__files": ["held.tsv"],
                "objective": {"kind": "ranknet"},
                "lists": {"each": "query"},
                "data__validation": 0.5,
            },
            "no held-out list has a loss",
        ),
    ],
)
def test_impossible_trainings_are_refused(
    changes: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are refused before the first step."""
    monkeypatch.setattr(Learner, "step", lambda *_: pytest.fail("a step was taken"))
    write_pairs(tmp_path / "one.tsv", [Pair(f"q{n}", f"birch {n}", "d", "x", 1) for n in range(9)])
    held = held_out_queries({f"birch {n}" for n in range(9)}, 0.5)
    write_pairs(
        tmp_path / "held.tsv",
        [
            Pair(
                f"q{n}",
                f"birch {n}",
                f"d{grade}",
                f"x {grade}",
                max(grade, int(f"birch {n}" in held)),
            )
            for n in range(9)
            for grade in range(2)
        ],
    )
    refused(InputError, message, tmp_path, **changes)


def test_held_out_queries_need_relevant_texts(tmp_path: Path) -> None:
    """Without relevant texts, there is nothing to measure."""
    training = prepare(tmp_path)
    none = [Pair(p.query_id, p.query, p.doc_id, p.text, 0) for p in some_pairs(10)]
    write_pairs(tmp_path / "pairs.tsv", none)
    with pytest.raises(InputError, match="no held-out query has a relevant text"):
        train(training, tmp_path, tmp_path / "out")


@pytest.mark.parametrize("device", ["cuda", "cuda:7", "birch"])
def test_an_unknown_device_is_refused(device: str, tmp_path: Path) -> None:
    """It is refused before anything is read."""
    if device == "cuda" and torch.cuda.is_available():
        pytest.skip("a GPU is here")
    with pytest.raises(InputError, match=f"device {device}: .*--device cpu"):
        processes = ProcessGroup(device=device)
        train(prepare(tmp_path), tmp_path, tmp_path / "out", processes=processes)


def interrupted(folder: Path, **changes: Any) -> Any:
    """Train, and interrupt the run after its second validation."""
    training = prepare(folder, **EVERY | changes)

    def stop(done: int, steps: int, loss: float) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(training, folder, folder / "out", reporter=ProgressReporter(on_step=stop))
    return training


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    ("changes", "found"),
    [({"seed": 7}, "different settings"), ({"schedule__batch": 3}, "different settings")],
)
def test_the_folder_of_another_training_is_refused(
    changes: dict[str, Any], found: str, tmp_path: Path
) -> None:
    """A training run with other settings stays unchanged."""
    interrupted(tmp_path)
    before = contents(tmp_path / "out")
    message = f"a training run with other inputs: found {found} .*replace"
    refused(InputError, message, tmp_path, **EVERY | changes)
    assert contents(tmp_path / "out") == before


def test_other_data_or_another_base_is_refused(tmp_path: Path) -> None:
    """This holds even if the file names are the same."""
    interrupted(tmp_path)
    write_pairs(tmp_path / "pairs.tsv", some_pairs(10, seed=3))
    refused(InputError, "other inputs: found different data", tmp_path, **EVERY)
    write_bert(tmp_path / "new", labels=1, seed=4)
    (tmp_path / "new" / "model.safetensors").rename(tmp_path / "base" / "model.safetensors")
    refused(InputError, "other inputs: found different base and data", tmp_path, **EVERY)


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    """It is neither trained in nor removed; the same holds for a file."""
    training = prepare(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("years of work")
    (tmp_path / "file").write_text("more of it")
    for name in ("out", "file"):
        for replace in (False, True):
            with pytest.raises(InputError, match=rf"{name}: not the folder of a training run"):
                train(training, tmp_path, tmp_path / name, replace=replace)
    assert (tmp_path / "out" / "thesis.txt").exists()


def test_a_running_training_cannot_be_replaced(tmp_path: Path) -> None:
    """A finished run can be replaced; of it, only token ids and teacher scores are left."""
    training, out = prepare(tmp_path), tmp_path / "out"

    def meanwhile(done: int, steps: int, loss: float) -> None:
        with pytest.raises(ArtifactError, match="another process is writing"):
            train(training, tmp_path, out, replace=True)

    train(training, tmp_path, out, reporter=ProgressReporter(on_step=meanwhile))
    (out / "measure.svg").write_text("of the first run")
    tokens = contents(out / "tokens")
    other = prepare(tmp_path, seed=1, schedule__steps=2)
    assert train(other, tmp_path, out, replace=True).step == 2
    assert contents(out / "tokens") == tokens
    assert not (out / "measure.svg").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data__files": ["gone.tsv"]}, r"gone\.tsv: no such file"),
        ({"data__validation": 0.01}, "no held-out query"),
        ({"model__layers": 3}, "the base has fewer layers"),
        ({"base": "out/model"}, "out/model: the training run needs a model that it replaces"),
        (
            {"objective": {"kind": "soft", "teacher": "out/../out/model"}},
            "the training run needs a model that it replaces",
        ),
    ],
)
def test_a_training_is_replaced_by_a_possible_one_alone(
    changes: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise all of it stays as it is."""
    monkeypatch.chdir(tmp_path)
    train(prepare(tmp_path), tmp_path, tmp_path / "out")
    before = contents(tmp_path / "out")
    with pytest.raises(InputError, match=message):
        train(prepare(tmp_path, **changes), tmp_path, tmp_path / "out", replace=True)
    assert contents(tmp_path / "out") == before


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def flip_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-7] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "damage", [truncate, flip_bit, Path.unlink, lambda p: p.write_bytes(b"[1]")]
)
@pytest.mark.parametrize("file", ["weights.safetensors", "moments.safetensors", "state.json"])
def test_a_damaged_state_is_reported(
    file: str, damage: Callable[[Path], None], tmp_path: Path
) -> None:
    """This holds for any damage; the model stays unchanged."""
    interrupted(tmp_path)
    model = contents(tmp_path / "out" / "model")
    damage(tmp_path / "out" / "state" / file)
    with pytest.raises(BirchbarkError, match=r"state.*(remove the folder|missing)"):
        train(prepare(tmp_path, **EVERY), tmp_path, tmp_path / "out")
    assert contents(tmp_path / "out" / "model") == model


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_damaged_identity_is_reported(text: str, tmp_path: Path) -> None:
    """training.json must be a JSON object."""
    interrupted(tmp_path)
    (tmp_path / "out" / "training.json").write_text(text)
    refused(ArtifactError, r"training\.json: damaged training run", tmp_path, **EVERY)


def test_a_missing_model_is_reported(tmp_path: Path) -> None:
    """Without this check, a run could end without a model."""
    interrupted(tmp_path)
    (tmp_path / "out" / "model").rename(tmp_path / "elsewhere")
    refused(
        TrainingError,
        "out/model: the model of this training run is missing",
        tmp_path,
        **EVERY,
    )


def test_a_malformed_lineage_is_reported(tmp_path: Path) -> None:
    """It is reported before the first step."""
    prepare(tmp_path)
    (tmp_path / "base" / "birchbark.json").write_text('{"base": "x"}')
    refused(ArtifactError, r"birchbark\.json: not a lineage", tmp_path, schedule__learning_rate=1e9)


def disk_full(*_: object, **__: object) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


WRITES = [
    (Path, "write_bytes"),
    (export_module, "write_json"),
    (state_module, "write_json"),
    (state_module, "new_directory"),
]


@pytest.mark.parametrize(("owner", "name"), WRITES)
def test_a_full_disk_leaves_model_and_state_intact(
    owner: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With free space again, the run ends as if it had never been interrupted."""
    uninterrupted = prepare(tmp_path, **EVERY, schedule__learning_rate=1e-4)
    train(uninterrupted, tmp_path, tmp_path / "whole")
    training = interrupted(tmp_path, schedule__learning_rate=1e-4)
    before = {part: contents(tmp_path / "out" / part) for part in ("model", "state")}
    with monkeypatch.context() as patch:
        if owner is not state_module:  # otherwise this validation may write no model
            patch.setattr("birchbark.train.training_run.TrainingRun._validate", lambda *_: True)
        patch.setattr(owner, name, disk_full)
        message = r"out: cannot write the training run: No space left.*\(free disk space"
        with pytest.raises(TrainingError, match=message):
            train(training, tmp_path, tmp_path / "out")
    assert contents(tmp_path / "out" / "state") == before["state"]
    if owner is not state_module:
        assert contents(tmp_path / "out" / "model") == before["model"]
    load_scorer(tmp_path / "out" / "model")
    assert not list((tmp_path / "out").glob(".birchbark-tmp-*"))
    train(training, tmp_path, tmp_path / "out")
    for part in ("model/model.safetensors", "state/weights.safetensors", "curve.jsonl"):
        found, expected = (tmp_path / f / part for f in ("out", "whole"))
        assert found.read_bytes() == expected.read_bytes()


def test_errors_of_safetensors_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It raises a different error if the disk is full."""
    from safetensors import SafetensorError

    def fail(*_: object) -> None:
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("safetensors.torch.save_file", fail)
    refused(TrainingError, "out: cannot write the training run: I/O error: No space", tmp_path)


def test_an_unwritable_log_is_reported(tmp_path: Path) -> None:
    """/dev/full refuses all writes."""
    message = r"out: cannot write the training run: No space"
    with (
        pytest.raises(TrainingError, match=message),
        explained_write_errors(tmp_path / "out"),
        Path("/dev/full").open("w") as full,
    ):
        TrainingLog(full).add(step=1, loss=0.5)


@pytest.mark.parametrize("size", [2_000, 12_000, 30_000])
def test_writes_beyond_a_file_size_limit_are_reported(size: int, tmp_path: Path) -> None:
    """A limit on file sizes stops writing the model, the state, or both, like a full disk."""
    training = prepare(tmp_path)
    train(training, tmp_path, tmp_path / "whole")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    message = r"out(/tokens)?: cannot write the training run: .*large"
    try:
        with pytest.raises(TrainingError, match=message):
            train(training, tmp_path, tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not (tmp_path / "out" / "state").exists()
    assert not list((tmp_path / "out").glob(".birchbark-tmp-*"))
    train(training, tmp_path, tmp_path / "out")
    weights = [tmp_path / f / "model" / "model.safetensors" for f in ("out", "whole")]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_a_loss_that_is_not_finite_ends_the_training(tmp_path: Path) -> None:
    """The last model stays and loads."""
    changes = EVERY | {"schedule__clip": 1e38, "schedule__weight_decay": 0.0}
    training = prepare(tmp_path, **changes)
    real, steps = Learner.step, []

    def step(self: Learner, number: int, seed: int) -> float:
        if number == 4:
            with torch.no_grad():
                self.network.weights["classifier.weight"].fill_(float("nan"))
        steps.append(number)
        return real(self, number, seed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Learner, "step", step)
        with pytest.raises(TrainingError, match=r"step 5 has loss nan.*lower"):
            train(training, tmp_path, tmp_path / "out")
    assert Checkpoint.open(tmp_path / "out" / "model")
    assert train(training, tmp_path, tmp_path / "out").ended == "all steps"
