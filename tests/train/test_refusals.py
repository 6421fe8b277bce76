"""Is what goes wrong in a training told clearly, with the last good checkpoint whole?"""

from __future__ import annotations

import errno
import json
import resource
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tiny_trainings import prepare, some_pairs, write_pairs

from birchbark.checkpoint.reader import Checkpoint
from birchbark.errors import ArtifactError, BirchbarkError, InputError, TrainingError
from birchbark.records import Pair
from birchbark.score.model import load_scorer
from birchbark.train import export as export_room
from birchbark.train import state as state_room
from birchbark.train.curve import Curve
from birchbark.train.folder import remove
from birchbark.train.loop import Learner
from birchbark.train.training import Talk, train
from conftest import write_bert

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to learn with")

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
def test_bad_pairs_are_told_with_their_line(text: str, message: str, tmp_path: Path) -> None:
    """And the advice to pass over them, where that helps; nothing is begun."""
    prepare(tmp_path)
    (tmp_path / "pairs.tsv").write_text(text)
    refused(InputError, message, tmp_path, data__validation=0.0)
    assert not (tmp_path / "out" / "model").exists()


def test_bad_pairs_can_be_passed_over(tmp_path: Path) -> None:
    """They are counted, in the card's facts as well."""
    training = prepare(tmp_path, data__skip_bad=True)
    with (tmp_path / "pairs.tsv").open("a") as out:
        out.write("q\tbirch\td\ta canoe\t7\nq\tbirch\td\t\t1\n")
    said: list[str] = []
    train(training, tmp_path, tmp_path / "out", talk=Talk(said.append))
    assert "words: 2 bad records were passed over" in said
    lineage = json.loads((tmp_path / "out" / "model" / "birchbark.json").read_text())
    assert lineage["trainings"][0]["data"][0]["skipped"] == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data__files": ["gone.tsv"]}, r"gone\.tsv: no such file"),
        ({"max_length": 33}, r"tiny\.toml: max_length .*expected at most 32, found 33"),
        ({"model__layers": 3}, "no such number of layers: expected 1 to 2, found 3"),
        ({"validation": {"measure": "speed"}}, "speed"),
        ({"data__validation": 0.01}, "words: no query that is kept apart.*found 0 queries"),
        ({"validation": {"patience": 2}, "data__validation": 0.0}, "patience needs queries kept"),
        ({"lists": {"each": "query", "texts": 2}, "data__files": ["one.tsv"]}, "words: no lists"),
    ],
)
def test_what_cannot_be_learnt_is_told_at_once(
    changes: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the first step."""
    monkeypatch.setattr(Learner, "step", lambda *_: pytest.fail("a step was taken"))
    write_pairs(tmp_path / "one.tsv", [Pair(f"q{n}", f"birch {n}", "d", "x", 1) for n in range(9)])
    refused(InputError, message, tmp_path, **changes)


def test_queries_kept_apart_need_relevant_texts(tmp_path: Path) -> None:
    """Else there is nothing to measure."""
    training = prepare(tmp_path)
    none = [Pair(p.query_id, p.query, p.doc_id, p.text, 0) for p in some_pairs(10)]
    write_pairs(tmp_path / "pairs.tsv", none)
    with pytest.raises(InputError, match="no query that is kept apart has a relevant text"):
        train(training, tmp_path, tmp_path / "out")


@pytest.mark.parametrize("device", ["cuda", "cuda:7", "birch"])
def test_a_device_that_there_is_not(device: str, tmp_path: Path) -> None:
    """Is told before anything is read."""
    if device == "cuda" and torch.cuda.is_available():
        pytest.skip("a GPU is here")
    with pytest.raises(InputError, match=f"device {device}: .*--device cpu"):
        train(prepare(tmp_path), tmp_path, tmp_path / "out", device=device)


def begun(folder: Path, **changes: Any) -> Any:
    """A training that was interrupted after its second checkpoint."""
    training = prepare(folder, **EVERY | changes)

    def stop(done: int, steps: int, loss: float) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(training, folder, folder / "out", talk=Talk(stepped=stop))
    return training


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    ("changes", "found"),
    [({"seed": 7}, "other settings"), ({"schedule__batch": 3}, "other settings")],
)
def test_another_training_s_folder_is_left_alone(
    changes: dict[str, Any], found: str, tmp_path: Path
) -> None:
    """Other settings."""
    begun(tmp_path)
    before = contents(tmp_path / "out")
    message = f"begun otherwise: found {found} .*replace"
    refused(InputError, message, tmp_path, **EVERY | changes)
    assert contents(tmp_path / "out") == before


def test_other_data_or_another_base_is_another_training(tmp_path: Path) -> None:
    """Even under the same names."""
    begun(tmp_path)
    write_pairs(tmp_path / "pairs.tsv", some_pairs(10, seed=3))
    refused(InputError, "begun otherwise: found other data", tmp_path, **EVERY)
    write_bert(tmp_path / "new", labels=1, seed=4)
    (tmp_path / "new" / "model.safetensors").rename(tmp_path / "base" / "model.safetensors")
    refused(InputError, "begun otherwise: found other base and data", tmp_path, **EVERY)


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    """By a training, and where one is to be removed; so is a file."""
    training = prepare(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("years of work")
    (tmp_path / "file").write_text("more of it")
    for name in ("out", "file"):
        for attempt in (lambda f: train(training, tmp_path, f), remove):
            with pytest.raises(InputError, match=rf"{name}: is no training's folder"):
                attempt(tmp_path / name)
    assert (tmp_path / "out" / "thesis.txt").exists()
    remove(tmp_path / "nothing")


def test_a_training_that_runs_is_not_removed(tmp_path: Path) -> None:
    """But one that has ended is."""
    training = prepare(tmp_path)

    def meanwhile(done: int, steps: int, loss: float) -> None:
        with pytest.raises(ArtifactError, match="another process is writing"):
            remove(tmp_path / "out")

    train(training, tmp_path, tmp_path / "out", talk=Talk(stepped=meanwhile))
    remove(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def flipped(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    whole[-7] ^= 1
    path.write_bytes(whole)


@pytest.mark.parametrize("harm", [torn, flipped, Path.unlink, lambda p: p.write_bytes(b"[1]")])
@pytest.mark.parametrize("file", ["weights.safetensors", "moments.safetensors", "state.json"])
def test_damaged_state_is_told(file: str, harm: Callable[[Path], None], tmp_path: Path) -> None:
    """Whatever happened to it; the model of before is still there."""
    begun(tmp_path)
    model = contents(tmp_path / "out" / "model")
    harm(tmp_path / "out" / "state" / file)
    with pytest.raises(BirchbarkError, match=r"state.*(damaged|missing)|damaged state"):
        train(prepare(tmp_path, **EVERY), tmp_path, tmp_path / "out")
    assert contents(tmp_path / "out" / "model") == model


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_damaged_identity_is_told(text: str, tmp_path: Path) -> None:
    """What the training was begun with."""
    begun(tmp_path)
    (tmp_path / "out" / "training.json").write_text(text)
    refused(ArtifactError, r"training\.json: damaged training", tmp_path, **EVERY)


def test_a_model_that_is_gone_is_told(tmp_path: Path) -> None:
    """Else a training could end without one."""
    begun(tmp_path)
    (tmp_path / "out" / "model").rename(tmp_path / "elsewhere")
    refused(TrainingError, "out/model: the training's best model is gone", tmp_path, **EVERY)


def test_a_lineage_that_is_none_is_told(tmp_path: Path) -> None:
    """Before anything is learnt."""
    prepare(tmp_path)
    (tmp_path / "base" / "birchbark.json").write_text('{"base": "x"}')
    refused(ArtifactError, r"birchbark\.json: no lineage", tmp_path, schedule__learning_rate=1e9)


def full(*_: object, **__: object) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


PLACES = [
    (Path, "write_bytes"),
    (export_room, "write_json"),
    (state_room, "write_json"),
    (state_room, "new_directory"),
]


@pytest.mark.parametrize(("owner", "name"), PLACES)
def test_a_full_disk_keeps_what_there_was(
    owner: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Model and state of before; with room again, it ends as if nothing had happened."""
    whole = prepare(tmp_path, **EVERY, schedule__learning_rate=1e-4)
    train(whole, tmp_path, tmp_path / "whole")
    training = begun(tmp_path, schedule__learning_rate=1e-4)
    kept = {part: contents(tmp_path / "out" / part) for part in ("model", "state")}
    with monkeypatch.context() as patch:
        if owner is not state_room:  # else this validation's model may be no better
            patch.setattr("birchbark.train.training._Running._validated", lambda *_: True)
        patch.setattr(owner, name, full)
        message = r"out: the training cannot be written: No space left.*\(make room"
        with pytest.raises(TrainingError, match=message):
            train(training, tmp_path, tmp_path / "out")
    assert contents(tmp_path / "out" / "state") == kept["state"]
    if owner is not state_room:
        assert contents(tmp_path / "out" / "model") == kept["model"]
    load_scorer(tmp_path / "out" / "model")
    assert not list((tmp_path / "out").glob(".tmp-*"))
    train(training, tmp_path, tmp_path / "out")
    for part in ("model/model.safetensors", "state/weights.safetensors", "curve.jsonl"):
        found, expected = (tmp_path / f / part for f in ("out", "whole"))
        assert found.read_bytes() == expected.read_bytes()


def test_safetensors_own_error_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not raise OSError where the disk is full."""
    from safetensors import SafetensorError

    def fail(*_: object) -> None:
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("safetensors.torch.save_file", fail)
    refused(TrainingError, "out: the training cannot be written: I/O error: No space", tmp_path)


def test_a_curve_that_is_refused_is_told() -> None:
    """On a device that is always full."""
    message = r"/dev/full: the curve cannot be written: No space.*goes on from the last checkpoint"
    out = Path("/dev/full").open("w")  # noqa: SIM115
    try:
        with pytest.raises(TrainingError, match=message):
            Curve(out).add(step=1, loss=0.5)
    finally:
        with suppress(OSError):
            out.close()


@pytest.mark.parametrize("size", [2_000, 12_000, 30_000])
def test_writes_that_the_system_refuses(size: int, tmp_path: Path) -> None:
    """As a full disk does, but by a limit on files' sizes: of the model, the state, or both."""
    training = prepare(tmp_path)
    train(training, tmp_path, tmp_path / "whole")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        with pytest.raises(TrainingError, match=r"out: the training cannot be written: .*large"):
            train(training, tmp_path, tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not (tmp_path / "out" / "state").exists()
    assert not list((tmp_path / "out").glob(".tmp-*"))
    train(training, tmp_path, tmp_path / "out")
    weights = [tmp_path / f / "model" / "model.safetensors" for f in ("out", "whole")]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_a_loss_that_is_no_number_ends_it(tmp_path: Path) -> None:
    """With the model of before, which loads."""
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
        with pytest.raises(TrainingError, match=r"the loss of step 5 is nan.*lower"):
            train(training, tmp_path, tmp_path / "out")
    assert Checkpoint.open(tmp_path / "out" / "model")
    assert train(training, tmp_path, tmp_path / "out").ended == "all steps"
