"""Do models come from the hub whole or not at all, and is a failure told at once?"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from imitation import COMMIT, ID, Imitation, imitation
from safetensors.numpy import load_file, save_file

from birchbark.checkpoint.named import locate
from birchbark.checkpoint.reader import Checkpoint
from birchbark.checkpoint.shelf import SOURCE, is_hub_id, shelf, shelved
from birchbark.errors import BirchbarkError, CheckpointError, HubError, InputError
from birchbark.hub.client import Hub
from birchbark.hub.fetch import fetch
from birchbark.score.describe import Description
from birchbark.score.model import load_scorer
from conftest import write_bert

SHARDS = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """What the hub has: a cross-encoder, among much that ranking needs not."""
    directory = write_bert(tmp_path / "there", labels=1)
    (directory / "README.md").write_text("A model card.")
    for name in ("pytorch_model.bin", "tf_model.h5", "training_args.bin", "onnx/model.onnx"):
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_bytes(b"x" * 5000)
    (directory / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    return directory


@pytest.fixture
def hub(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Imitation]:
    """The hub, and an empty folder for models."""
    monkeypatch.setenv("BIRCHBARK_MODELS", str(tmp_path / "models"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with imitation(model) as server:
        yield server


def bring(hub: Imitation, revision: str = "main", *, replace: bool = False) -> Description:
    """Fetch to where ranking looks."""
    client = Hub(hub.url, timeout=1)
    watch = lambda total: nullcontext(lambda count: None)  # noqa: E731
    return fetch(client, ID, revision, shelf(ID), watch, replace=replace)


def refused(hub: Imitation, error: type[BirchbarkError], message: str) -> None:
    """Fetching fails so, and leaves nothing behind."""
    with pytest.raises(error, match=message) as raised:
        bring(hub)
    assert ".tmp-" not in str(raised.value)
    folder = shelf(ID).parent
    assert not folder.exists() or not list(folder.iterdir())


def split(model: Path) -> None:
    """The weights in two shards with an index."""
    tensors = load_file(model / "model.safetensors")
    place = {name: SHARDS[i % 2] for i, name in enumerate(tensors)}
    for shard in SHARDS:
        save_file({n: t for n, t in tensors.items() if place[n] == shard}, model / shard)
    (model / "model.safetensors").unlink()
    (model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": place}))


def test_a_fetched_model_ranks_without_the_network(hub: Imitation, model: Path) -> None:
    """By its hub id, as the directory on the hub would."""
    said = str(bring(hub))
    assert said == (
        "bert, 2 layers of 16, cross-encoder of one logit, reads 32 tokens, 0.0 MB of weights"
    )
    asked = len(hub.asked)
    assert load_scorer(ID).fingerprint == load_scorer(model).fingerprint
    assert load_scorer(ID).name == "birch cross-encoder"
    assert len(hub.asked) == asked


def test_only_what_ranking_needs_is_fetched(hub: Imitation) -> None:
    """Configuration, vocabulary, safetensors: no pickle, no other format, no card."""
    bring(hub)
    wanted = {"config.json", "vocab.txt", "tokenizer_config.json", "model.safetensors"}
    assert set(hub.names()) == wanted
    assert {p.name for p in shelf(ID).iterdir()} == wanted | {SOURCE}


def test_where_it_came_from_is_recorded(hub: Imitation, model: Path) -> None:
    """The commit, not the branch alone; all files are asked for at that commit."""
    import hashlib

    bring(hub, "refs/pr/1")
    assert hub.asked[0] == f"/api/models/{ID}/revision/refs%2Fpr%2F1?blobs=true"
    assert all(COMMIT in path for path in hub.asked if "/resolve/" in path)
    record = json.loads((shelf(ID) / SOURCE).read_text())
    assert (record["id"], record["commit"], record["revision"]) == (ID, COMMIT, "refs/pr/1")
    for name, sha256 in record["sha256"].items():
        assert hashlib.sha256((model / name).read_bytes()).hexdigest() == sha256


def test_shards_are_fetched(hub: Imitation, model: Path) -> None:
    """All that the index lists."""
    split(model)
    bring(hub)
    assert set(SHARDS) <= set(hub.names())
    assert load_scorer(ID).fingerprint == load_scorer(model).fingerprint


def test_sentence_transformers_are_fetched(hub: Imitation, model: Path, tmp_path: Path) -> None:
    """The encoder in a folder of its own, the pooling in another."""
    home = write_bert(tmp_path / "embedding")
    home.rename(model / "0_Transformer")
    (model / "0_Transformer" / "1_Pooling").rename(model / "1_Pooling")
    for name in ("config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json"):
        (model / name).unlink()
    kinds = {"0_Transformer": "Transformer", "1_Pooling": "Pooling"}
    listed = [{"path": p, "type": f"sentence_transformers.models.{k}"} for p, k in kinds.items()]
    (model / "modules.json").write_text(json.dumps(listed))
    assert "embedding by mean" in str(bring(hub))
    assert load_scorer(ID).fingerprint == load_scorer(model).fingerprint


def test_an_encoder_without_a_head_is_kept(hub: Imitation, model: Path, tmp_path: Path) -> None:
    """It ranks by a pooling that the user chooses."""
    bare = write_bert(tmp_path / "bare")
    (bare / "model.safetensors").rename(model / "model.safetensors")
    assert "no head (rank by --pooling" in str(bring(hub))


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
@pytest.mark.parametrize("part", [0, 0.5])
def test_interrupted_transfers_leave_nothing(hub: Imitation, name: str, part: float) -> None:
    """Small files and large ones; a second try succeeds."""
    hub.cut[name] = int((hub.directory / name).stat().st_size * part)
    refused(hub, HubError, rf"{name} .*(broke off|did not arrive whole).*try again")
    hub.cut.clear()
    bring(hub)
    assert locate(ID) == shelf(ID)


@pytest.mark.parametrize("name", ["vocab.txt", "model.safetensors"])
def test_a_hub_that_gives_no_checksums(hub: Imitation, name: str) -> None:
    """What breaks off is noticed all the same."""
    hub.terse = True
    hub.cut[name] = 100
    refused(hub, HubError, f"transfer of {name} broke off.*try again")
    hub.cut.clear()
    bring(hub)
    assert load_scorer(ID)


def test_what_a_kill_leaves_is_no_model(hub: Imitation) -> None:
    """It is never read, nor listed."""
    bring(hub)
    (shelf(ID).parent / ".tmp-x").mkdir()
    (shelf(ID).parent / ".tmp-x" / SOURCE).write_text("{}")
    assert shelved() == [(ID, shelf(ID))]


def test_a_stalled_transfer_ends(hub: Imitation) -> None:
    """After the timeout, here of a second, not of minutes."""
    hub.stalled = "model.safetensors"
    before = time.monotonic()
    refused(hub, HubError, "transfer of model.safetensors broke off.*timed out")
    assert time.monotonic() - before < 5


@pytest.mark.parametrize(
    ("name", "what"), [("config.json", "git's SHA-1"), ("model.safetensors", "SHA-256")]
)
def test_changed_bytes_are_noticed(hub: Imitation, name: str, what: str) -> None:
    """Of the right number, too."""
    data = bytearray((hub.directory / name).read_bytes())
    data[-3] ^= 1
    hub.sent[name] = bytes(data)
    refused(hub, HubError, rf"{name} did not arrive whole: expected {what}")
    hub.sent[name] = bytes(data) + b"more"
    refused(hub, HubError, rf"{name} did not arrive whole: expected \d+ bytes")


def test_pickles_alone_are_refused(hub: Imitation, model: Path) -> None:
    """With the reason, before anything is fetched."""
    (model / "model.safetensors").unlink()
    refused(hub, CheckpointError, r"pickles.*run any code.*found pytorch_model\.bin.*refs/pr/1")
    assert not hub.names()
    for name in ("pytorch_model.bin", "training_args.bin"):
        (model / name).unlink()
    refused(hub, CheckpointError, r"no weights: expected model\.safetensors or")


@pytest.mark.parametrize(
    ("missing", "error", "message"),
    [
        ("config.json", CheckpointError, rf"{ID} at main: not a model.*no config\.json"),
        ("vocab.txt", CheckpointError, rf"{ID} at main: no tokenizer\.json and no vocab\.txt"),
    ],
)
def test_missing_files_are_told(
    hub: Imitation, missing: str, error: type[BirchbarkError], message: str
) -> None:
    """By the model's name, not by that of a folder that is gone."""
    hub.hidden.add(missing)
    refused(hub, error, message)


def test_files_that_are_listed_but_not_there(hub: Imitation, model: Path) -> None:
    """On the hub, or in the index of shards."""
    hub.status["/cdn/vocab.txt"] = 404
    refused(hub, HubError, r"the hub does not give vocab\.txt: found 404 so said the hub")
    hub.status.clear()
    split(model)
    hub.hidden.add(SHARDS[1])
    refused(hub, CheckpointError, rf"no {SHARDS[1]}: expected all that the index lists")


def test_what_cannot_be_read_is_told_before_its_weights_come(hub: Imitation, model: Path) -> None:
    """A family that is not known costs no gigabytes."""
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"model_type": "gpt2"}))
    refused(hub, CheckpointError, "unknown architecture: expected bert or .*found gpt2")
    assert "model.safetensors" not in hub.names()


def test_damaged_models_are_not_kept(hub: Imitation, model: Path) -> None:
    """They came as they are on the hub, but cannot be opened."""
    weights = (model / "model.safetensors").read_bytes()
    (model / "model.safetensors").write_bytes(weights[:100])
    refused(hub, CheckpointError, rf"{ID} at main/model.safetensors: damaged weights")
    (model / "model.safetensors").write_bytes(weights[:-4])  # a good header, too few bytes
    refused(hub, CheckpointError, rf"{ID} at main/model.safetensors: damaged weights")


@pytest.mark.parametrize(
    ("status", "remedy"),
    [(401, "HF_TOKEN"), (403, "terms"), (404, "no such"), (429, "wait"), (503, "try again later")],
)
def test_refusals_are_told(hub: Imitation, status: int, remedy: str) -> None:
    """What the hub said, and what can be done."""
    hub.status["/api/"] = status
    refused(hub, HubError, f"does not give {ID} at main: found {status} so said.*{remedy}")
    assert len(hub.asked) == 1  # nothing is tried again


@pytest.mark.parametrize(
    "listing",
    [b"", b"<html>", b"[]", b"{}", b'{"sha": 1}', b'{"sha": "x", "siblings": []}', b"[" * 100_000]
    + [json.dumps({"sha": COMMIT, "siblings": s}).encode() for s in (None, [1], [{}])],
)
def test_what_is_no_hub_is_told(hub: Imitation, listing: bytes) -> None:
    """The page of a hotel's network, say."""
    hub.listing = listing
    refused(hub, HubError, "no listing of a model")


def test_names_that_lead_out_are_not_followed(hub: Imitation, model: Path, tmp_path: Path) -> None:
    """Nothing is written outside of the model's own directory."""
    modules = [{"type": "x.Transformer", "path": "../../victim"}]
    (model / "modules.json").write_text(json.dumps(modules))
    refused(hub, CheckpointError, "a module outside of the directory")
    assert not (tmp_path / "victim").exists()


def test_tokens_go_to_the_hub_alone(hub: Imitation) -> None:
    """Not to the host that it sends us to for the files."""
    watch = lambda total: nullcontext(lambda count: None)  # noqa: E731
    fetch(Hub(hub.url, token="secret"), ID, "main", shelf(ID), watch)
    for path, token in zip(hub.asked, hub.tokens, strict=True):
        assert token == (None if path.startswith("/cdn/") else "Bearer secret")


def test_progress_adds_up(hub: Imitation, model: Path) -> None:
    """To the bytes of the weights, told before."""
    split(model)
    seen: list[int] = []
    totals: list[int] = []

    def watch(total: int) -> nullcontext:
        totals.append(total)
        return nullcontext(seen.append)

    fetch(Hub(hub.url), ID, "main", shelf(ID), watch)
    assert totals == [sum(seen)] == [sum((model / s).stat().st_size for s in SHARDS)]


def test_heads_are_told(hub: Imitation, tmp_path: Path) -> None:
    """In words."""
    from zoo import write_family

    from birchbark.score.describe import describe

    heads = {("classifier", 1): "of one logit", ("classifier", 2): "of two logits"}
    heads[("cls.seq_relationship", 2)] = "next-sentence head"
    for (name, logits), head in heads.items():
        directory = write_family(tmp_path / head, "bert", logits, name)
        assert head in str(describe(directory, "x"))


def test_the_model_that_is_there_stays(hub: Imitation, model: Path) -> None:
    """Until it is to be replaced, and until the new one is whole."""
    bring(hub)
    before = Checkpoint.open(shelf(ID)).fingerprint
    with pytest.raises(InputError, match="already exists"):
        bring(hub)
    tensors = load_file(model / "model.safetensors")
    save_file(
        {name: value * np.float32(2) for name, value in tensors.items()},
        model / "model.safetensors",
    )
    hub.cut["model.safetensors"] = 3000
    with pytest.raises(HubError):
        bring(hub, replace=True)
    assert Checkpoint.open(shelf(ID)).fingerprint == before
    hub.cut.clear()
    bring(hub, replace=True)
    assert Checkpoint.open(shelf(ID)).fingerprint == Checkpoint.open(model).fingerprint != before


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:{port}", "http://nowhere.invalid"])
def test_no_network_is_told_at_once(endpoint: str, tmp_path: Path) -> None:
    """One line, no traceback, no minutes of trying again."""
    before = time.monotonic()
    done = birchbark(tmp_path, endpoint.format(port=free_port()), "model", "fetch", ID)
    assert (done.returncode, done.stdout) == (1, "")
    assert "the hub cannot be reached: found" in done.stderr
    assert "only fetching needs the network" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert time.monotonic() - before < 20
    assert not (tmp_path / "models").exists() or not list((tmp_path / "models").iterdir())


def birchbark(where: Path, endpoint: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if "proxy" not in k.lower()}
    environment |= {"HF_ENDPOINT": endpoint, "BIRCHBARK_MODELS": str(where / "models")}
    command = [sys.executable, "-m", "birchbark", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_command_line(hub: Imitation, tmp_path: Path) -> None:
    """fetch, list, and the way from --model to fetch."""
    told = birchbark(tmp_path, hub.url, "model", "fetch", ID)
    assert told.returncode == 0, told.stderr
    assert f"{ID}: bert, 2 layers of 16, cross-encoder" in told.stderr
    assert f"--model {ID}" in told.stderr
    again = birchbark(tmp_path, hub.url, "model", "fetch", ID)
    assert again.returncode == 2
    assert "already exists (choose another name, or --replace it)" in again.stderr
    listed = birchbark(tmp_path, hub.url, "model", "list")
    assert f"{ID}\t{COMMIT[:12]}\tbert, 2 layers" in listed.stdout
    other = birchbark(tmp_path, hub.url, "model", "fetch", ID, "--to", str(tmp_path / "other"))
    assert (tmp_path / "other" / SOURCE).exists(), other.stderr
    assert birchbark(tmp_path, hub.url, "model", "fetch", "../x").returncode == 2
    assert birchbark(tmp_path, "file:///etc", "model", "fetch", "a/b").returncode == 2


def test_what_is_not_here_tells_how_to_fetch_it(hub: Imitation) -> None:
    """And a path, which cannot be fetched, does not."""
    with pytest.raises(CheckpointError, match=r"no such model.*birchbark model fetch a/b"):
        locate("a/b")
    with pytest.raises(CheckpointError, match="no such model") as raised:
        locate("./a/b/c")
    assert "fetch" not in str(raised.value).replace("was fetched", "")
    assert not hub.asked
    assert shelved() == []


@pytest.mark.parametrize(
    ("name", "good"),
    [("bert-base-uncased", True), ("BAAI/bge-m3", True), ("a/b.c_d-1", True), ("a/b/c", False)]
    + [
        (bad, False) for bad in ("", "/a", "a/", "a/..", "../a", "a--b/c", "a b", ".hidden/x", "-x")
    ],
)
def test_hub_ids(name: str, good: bool) -> None:
    """Names that are folders too."""
    assert is_hub_id(name) is good
