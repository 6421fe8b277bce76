"""Do --pooling, --device and --threads work, and reject invalid values?"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from birchbark.cli import group
from birchbark.device.torch_session import session_factory
from birchbark.errors import BirchbarkError, CheckpointError, InputError
from birchbark.score.load_scorer import load_scorer
from conftest import DOCUMENTS, READ_EVERYTHING, write_bert


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with an index and a cross-encoder."""
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({"id": d.doc_id, **d.fields}) for d in DOCUMENTS]
    (tmp_path / "docs.jsonl").write_text("\n".join(lines))
    write_bert(tmp_path / "model", labels=1, positions=64)
    assert (
        CliRunner()
        .invoke(group, ["index", "docs.jsonl", "--to", "i", "--vectors", "none"])
        .exit_code
        == 0
    )
    return tmp_path


def search(*options: str) -> list[float]:
    """Return the scores of the hits."""
    command = ["search", "i", "birch river", "--model", "model", "--json", *options]
    done = CliRunner().invoke(group, command)
    if done.exception:
        raise done.exception
    return [json.loads(line)["score"] for line in done.stdout.splitlines()]


def test_pooling_turns_a_cross_encoder_into_a_biencoder(here: Path) -> None:
    """Every layer gives other scores; the message for a missing layer says how many there are."""
    choices = [(), *(("--set", f"pooling={p}") for p in ("cls", "mean", "max", "mean:0", "mean:1"))]
    assert len({tuple(search(*choice)) for choice in choices}) == 6
    assert search("--set", "pooling=mean") == search("--set", "pooling=mean:2")
    with pytest.raises(CheckpointError, match="no such layer: expected 0 to 2, found 3"):
        search("--set", "pooling=mean:3")


def test_devices(here: Path) -> None:
    """GPU and CPU agree; without a GPU or torch, the message says what is missing."""
    assert session_factory("cpu") is None
    assert search("--device", "cpu") == search()
    try:
        found = search("--device", "cuda")
    except BirchbarkError as error:
        assert "no GPU" in str(error) or "pip install 'birchbark[train]'" in str(error)
    else:
        assert found == pytest.approx(search(), abs=1e-3)


def test_cuda_without_torch(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the pip command."""
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(BirchbarkError, match=r"needs torch \(pip install 'birchbark\[train\]'\)"):
        search("--device", "cuda")


def test_two_roles_of_one_model_share_scores(here: Path) -> None:
    """A model that is both ranker and embedding has one score file, with each score stored once."""
    write_bert(here / "encoder", positions=64)
    everything = (*READ_EVERYTHING, "--precision", "fp32", "--model", "encoder")
    both = (*everything, "--set", "embed_segments=all", "--embedding", "encoder")
    scores = search(*both, "--scores", "kept")
    (file,) = (here / "kept").glob("*.scores")
    size = file.stat().st_size
    assert search(*both) == scores
    assert search(*everything, "--scores", "alone") == pytest.approx(scores)
    (alone,) = (here / "alone").glob("*.scores")
    assert alone.stat().st_size == size


@pytest.mark.parametrize("threads", ["0", "-1"])
def test_threads_are_at_least_1(here: Path, threads: str) -> None:
    """Other numbers are rejected before a model is loaded."""
    with pytest.raises(SystemExit):
        search("--threads", threads)
    with pytest.raises(InputError, match="number of threads is out of range"):
        load_scorer(here / "model", int(threads))
