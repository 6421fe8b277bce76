"""Are models fetched completely or not at all, and are failures reported immediately?"""

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

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.locate import locate
from birchbark.checkpoint.model_folder import SOURCE, fetched_models, is_hub_id, model_path
from birchbark.errors import BirchbarkError, CheckpointError, HubError, InputError
from birchbark.hub.client import Hub
from birchbark.hub.fetch import fetch
from birchbark.score.describe import Description
from birchbark.score.load_scorer import load_scorer
from conftest import write_bert

SHARDS = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A cross-encoder on the hub, with files that ranking does not need."""
    directory = write_bert(tmp_path / "there", labels=1)
    (directory / "README.md").write_text("A model card.")
    for name in ("pytorch_model.bin", "tf_model.h5", "training_args.bin", "onnx/model.onnx"):
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_bytes(b"x" * 5000)
    (directory / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    return directory


@pytest.fixture
def hub(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Imitation]:
    """An imitation of the hub, and an empty folder for models."""
    monkeypatch.setenv("BIRCHBARK_MODELS", str(tmp_path / "models"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with imitation(model) as server:
        yield server


def fetch_model(hub: Imitation, revision: str = "main", *, replace: bool = False) -> Description:
    """Fetch to the folder where ranking finds models."""
    client = Hub(hub.url, timeout=1)
    watch = lambda total: nullcontext(lambda count: None)  # noqa: E731
    return fetch(client, ID, revision, model_path(ID), watch, replace=replace)


def assert_refused(hub: Imitation, error: type[BirchbarkError], message: str) -> None:
    """Check that fetching fails with this error and leaves nothing behind."""
    with pytest.raises(error, match=message) as raised:
        fetch_model(hub)
    assert ".birchbark-" not in str(raised.value)
    folder = model_path(ID).parent
    assert not folder.exists() or not list(folder.iterdir())


def split(model: Path) -> None:
    """Split the weights into two shards with an index."""
    tensors = load_file(model / "model.safetensors")
    weight_map = {name: SHARDS[i % 2] for i, name in enumerate(tensors)}
    for shard in SHARDS:
        save_file({n: t for n, t in tensors.items() if weight_map[n] == shard}, model / shard)
    (model / "model.safetensors").unlink()
    (model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))


def test_a_fetched_model_ranks_without_the_network(hub: Imitation, model: Path) -> None:
    """A fetched model is found by its hub id, and scores like the original directory."""
    assert str(fetch_model(hub)) == (
        "bert, 2 layers of 16, cross-encoder with one logit, reads 32 tokens, 0.0 MB of weights"
    )
    requests = len(hub.requested)
    assert load_scorer(ID).fingerprint == load_scorer(model).fingerprint
    assert load_scorer(ID).name == "birch cross-encoder"
    assert len(hub.requested) == requests


def test_only_what_ranking_needs_is_fetched(hub: Imitation) -> None:
    """Configuration, vocabulary and safetensors; no pickle, other format or model card."""
    fetch_model(hub)
    needed = {"config.json", "vocab.txt", "tokenizer_config.json", "model.safetensors"}
    assert set(hub.names()) == needed
    assert {p.name for p in model_path(ID).iterdir()} == needed | {SOURCE}


def test_the_origin_is_recorded(hub: Imitation, model: Path) -> None:
    """All files are requested at one commit, which is recorded."""
    import hashlib

    fetch_model(hub, "refs/pr/1")
    assert hub.requested[0] == f"/api/models/{ID}/revision/refs%2Fpr%2F1?blobs=true"
    assert all(COMMIT in path for path in hub.requested if "/resolve/" in path)
    record = json.loads((model_path(ID) / SOURCE).read_text())
    assert (record["id"], record["commit"], record["revision"]) == (ID, COMMIT, "refs/pr/1")
    for name, sha256 in record["sha256"].items():
        assert hashlib.sha256((model / name).read_bytes()).hexdigest() == sha256


def test_shards_are_fetched(hub: Imitation, model: Path) -> None:
    """All shards that the index lists are fetched."""
    split(model)
    fetch_model(hub)
    assert set(SHARDS) <= set(hub.names())
    assert load_scorer(ID).fingerprint == load_scorer(model).fingerprint


def test_sentence_transformers_are_fetched(hub: Imitation, model: Path, tmp_path: Path) -> None:
    """Encoder, pooling and layers are in separate folders; prompts are beside them."""
    home = write_bert(tmp_path / "embedding")
    home.rename(model / "0_Transformer")
    (model / "0_Transformer" / "1_Pooling").rename(model / "1_Pooling")
    for name in ("config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json"):
        (model / name).unlink()
    (model / "2_LayerNorm").mkdir()
    (model / "2_LayerNorm" / "config.json").write_text('{"dimension": 16}')
    norm = {f"norm.{name}": np.linspace(1, 2, 16, dtype=np.float32) for name in ("weight", "bias")}
    save_file(norm, model / "2_LayerNorm" / "model.safetensors")
    prompts = {"prompts": {"query": "birch "}, "default_prompt_name": None}
    (model / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    types = {"0_Transformer": "Transformer", "1_Pooling": "Pooling", "2_LayerNorm": "LayerNorm"}
    modules = [{"path": p, "type": f"sentence_transformers.models.{k}"} for p, k in types.items()]
    (model / "modules.json").write_text(json.dumps(modules))
    described = str(fetch_model(hub))
    assert "embedding by mean and LayerNorm, query prompt 'birch '" in described
    assert load_scorer(ID).fingerprint == load_scorer(model).fingerprint


def test_an_encoder_without_a_head_is_fetched(hub: Imitation, model: Path, tmp_path: Path) -> None:
    """The user chooses a pooling to rank with it."""
    bare = write_bert(tmp_path / "bare")
    (bare / "model.safetensors").rename(model / "model.safetensors")
    assert "no head (rank by pooling cls" in str(fetch_model(hub))


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
@pytest.mark.parametrize("part", [0, 0.5])
def test_interrupted_transfers_leave_nothing(hub: Imitation, name: str, part: float) -> None:
    """Interrupted transfers, large or small, leave nothing; a second attempt succeeds."""
    hub.truncated[name] = int((hub.directory / name).stat().st_size * part)
    assert_refused(hub, HubError, rf"{name} .*(was interrupted|was not received).*try again")
    hub.truncated.clear()
    fetch_model(hub)
    assert locate(ID) == model_path(ID)


@pytest.mark.parametrize("name", ["vocab.txt", "model.safetensors"])
def test_a_hub_without_checksums(hub: Imitation, name: str) -> None:
    """Without checksums, incomplete transfers are detected by their length."""
    hub.terse = True
    hub.truncated[name] = 100
    assert_refused(hub, HubError, f"transfer of {name} was interrupted.*try again")
    hub.truncated.clear()
    fetch_model(hub)
    assert load_scorer(ID)


def test_leftovers_of_a_kill_are_not_models(hub: Imitation) -> None:
    """Temporary folders that a killed process left are not listed."""
    fetch_model(hub)
    (model_path(ID).parent / ".birchbark-tmp-x").mkdir()
    (model_path(ID).parent / ".birchbark-tmp-x" / SOURCE).write_text("{}")
    assert fetched_models() == [(ID, model_path(ID))]


def test_a_stalled_transfer_ends(hub: Imitation) -> None:
    """A transfer without progress fails after the timeout, here one second."""
    hub.stalled = "model.safetensors"
    before = time.monotonic()
    assert_refused(hub, HubError, "transfer of model.safetensors was interrupted.*timed out")
    assert time.monotonic() - before < 5


@pytest.mark.parametrize(
    ("name", "checksum"), [("config.json", "git's SHA-1"), ("model.safetensors", "SHA-256")]
)
def test_changed_bytes_are_detected(hub: Imitation, name: str, checksum: str) -> None:
    """Changed bytes are detected even if the size is right."""
    data = bytearray((hub.directory / name).read_bytes())
    data[-3] ^= 1
    hub.sent[name] = bytes(data)
    assert_refused(hub, HubError, rf"{name} was not received correctly: expected {checksum}")
    hub.sent[name] = bytes(data) + b"more"
    assert_refused(hub, HubError, rf"{name} was not received correctly: expected \d+ bytes")


def test_pickles_are_refused(hub: Imitation, model: Path) -> None:
    """The error gives the reason, before anything is fetched."""
    (model / "model.safetensors").unlink()
    assert_refused(
        hub, CheckpointError, r"pickles.*run any code.*found pytorch_model\.bin.*refs/pr/1"
    )
    assert not hub.names()
    for name in ("pytorch_model.bin", "training_args.bin"):
        (model / name).unlink()
    assert_refused(hub, CheckpointError, r"no weights: expected model\.safetensors or")


@pytest.mark.parametrize(
    ("missing", "error", "message"),
    [
        ("config.json", CheckpointError, rf"{ID} at main: not a model.*contain config\.json"),
        ("vocab.txt", CheckpointError, rf"{ID} at main: no tokeniser.*json, or vocab\.txt"),
    ],
)
def test_missing_files_are_reported(
    hub: Imitation, missing: str, error: type[BirchbarkError], message: str
) -> None:
    """The error names the model, not the temporary folder."""
    hub.hidden.add(missing)
    assert_refused(hub, error, message)


def test_listed_files_that_are_missing(hub: Imitation, model: Path) -> None:
    """Files that the hub or the index of shards lists, but that are missing, are reported."""
    hub.status["/cdn/vocab.txt"] = 404
    assert_refused(hub, HubError, r"the hub refused vocab\.txt: found 404 reason given by the hub")
    hub.status.clear()
    split(model)
    hub.hidden.add(SHARDS[1])
    assert_refused(
        hub, CheckpointError, rf"no {SHARDS[1]}: expected all files that the index lists"
    )


def test_unsupported_models_are_rejected_before_their_weights_are_fetched(
    hub: Imitation, model: Path
) -> None:
    """Unsupported models are rejected after a few small files."""
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"model_type": "gpt2"}))
    assert_refused(hub, CheckpointError, "unsupported architecture: expected bert or .*found gpt2")
    assert "model.safetensors" not in hub.names()


def test_damaged_models_are_not_saved(hub: Imitation, model: Path) -> None:
    """The files match the hub's, but cannot be opened."""
    weights = (model / "model.safetensors").read_bytes()
    (model / "model.safetensors").write_bytes(weights[:100])
    assert_refused(hub, CheckpointError, rf"{ID} at main/model.safetensors: damaged weights")
    (model / "model.safetensors").write_bytes(weights[:-4])  # a valid header, too few bytes
    assert_refused(hub, CheckpointError, rf"{ID} at main/model.safetensors: damaged weights")


@pytest.mark.parametrize(
    ("status", "remedy"),
    [(401, "HF_TOKEN"), (403, "terms"), (404, "no such"), (429, "wait"), (503, "try again later")],
)
def test_http_errors_are_reported(hub: Imitation, status: int, remedy: str) -> None:
    """The error contains the hub's message and a remedy."""
    hub.status["/api/"] = status
    assert_refused(hub, HubError, f"refused {ID} at main: found {status} reason given.*{remedy}")
    assert len(hub.requested) == 1  # no retries


@pytest.mark.parametrize(
    "listing",
    [b"", b"<html>", b"[]", b"{}", b'{"sha": 1}', b'{"sha": "x", "siblings": []}', b"[" * 100_000]
    + [json.dumps({"sha": COMMIT, "siblings": s}).encode() for s in (None, [1], [{}])],
)
def test_other_servers_are_rejected(hub: Imitation, listing: bytes) -> None:
    """A server that is not a hub, such as a hotel's login page, is rejected."""
    hub.listing = listing
    assert_refused(hub, HubError, "not a model's list of files")


def test_paths_outside_the_model_are_rejected(hub: Imitation, model: Path, tmp_path: Path) -> None:
    """Nothing is written outside the model's directory."""
    modules = [{"type": "sentence_transformers.models.Transformer", "path": "../../victim"}]
    (model / "modules.json").write_text(json.dumps(modules))
    assert_refused(hub, CheckpointError, "module outside the model directory")
    assert not (tmp_path / "victim").exists()


def test_tokens_are_sent_to_the_hub_only(hub: Imitation) -> None:
    """The access token is not sent to the host that the hub redirects to."""
    watch = lambda total: nullcontext(lambda count: None)  # noqa: E731
    fetch(Hub(hub.url, token="secret"), ID, "main", model_path(ID), watch)
    for path, token in zip(hub.requested, hub.tokens, strict=True):
        assert token == (None if path.startswith("/cdn/") else "Bearer secret")


def test_a_token_is_never_printed(
    hub: Imitation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Line ends around it are no part of it; one that cannot be sent is refused without it."""
    monkeypatch.setenv("HF_TOKEN", "s3cr3t\nt0k3n")
    refused = birchbark(tmp_path, hub.url, "model", "fetch", ID)
    assert "HF_TOKEN: a key must be a single word" in refused.stderr
    assert not any(part in refused.stderr for part in ("s3cr3t", "t0k3n"))
    assert (refused.returncode, hub.tokens) == (2, [])
    monkeypatch.setenv("HF_TOKEN", "secret\n")
    assert birchbark(tmp_path, hub.url, "model", "fetch", ID).returncode == 0
    assert hub.tokens[0] == "Bearer secret"


def test_progress_adds_up(hub: Imitation, model: Path) -> None:
    """The reported progress adds up to the size of the weights."""
    split(model)
    advances: list[int] = []
    totals: list[int] = []

    def watch(total: int) -> nullcontext:
        totals.append(total)
        return nullcontext(advances.append)

    fetch(Hub(hub.url), ID, "main", model_path(ID), watch)
    assert totals == [sum(advances)] == [sum((model / s).stat().st_size for s in SHARDS)]


def test_heads_are_described(hub: Imitation, tmp_path: Path) -> None:
    """Classifiers and next-sentence heads are described as such."""
    from zoo import write_family

    from birchbark.score.describe import describe

    heads = {("classifier", 1): "with one logit", ("classifier", 2): "with two logits"}
    heads[("cls.seq_relationship", 2)] = "next-sentence head"
    for (name, logits), head in heads.items():
        directory = write_family(tmp_path / head, "bert", logits, name)
        assert head in str(describe(directory, "x"))
    config = tmp_path / "next-sentence head" / "config.json"
    values = json.loads(config.read_text()) | {"birchbark": {"relevant_label": 1}}
    config.write_text(json.dumps(values))
    assert "next-sentence head" in str(describe(config.parent, "x"))


def test_an_existing_model_stays(hub: Imitation, model: Path) -> None:
    """An existing model is replaced only on request, and only by a complete one."""
    fetch_model(hub)
    before = Checkpoint.open(model_path(ID)).fingerprint
    with pytest.raises(InputError, match="already exists"):
        fetch_model(hub)
    tensors = load_file(model / "model.safetensors")
    save_file(
        {name: value * np.float32(2) for name, value in tensors.items()},
        model / "model.safetensors",
    )
    hub.truncated["model.safetensors"] = 3000
    with pytest.raises(HubError):
        fetch_model(hub, replace=True)
    assert Checkpoint.open(model_path(ID)).fingerprint == before
    hub.truncated.clear()
    fetch_model(hub, replace=True)
    assert (
        Checkpoint.open(model_path(ID)).fingerprint == Checkpoint.open(model).fingerprint != before
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:{port}", "http://nowhere.invalid"])
def test_no_network_is_reported_at_once(endpoint: str, tmp_path: Path) -> None:
    """A missing network is reported in one line, without a traceback or retries."""
    before = time.monotonic()
    done = birchbark(tmp_path, endpoint.format(port=free_port()), "model", "fetch", ID)
    assert (done.returncode, done.stdout) == (1, "")
    assert "the hub cannot be reached: found" in done.stderr
    assert "only fetching needs the network" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert time.monotonic() - before < 20
    assert not (tmp_path / "models").exists() or not list((tmp_path / "models").iterdir())


def birchbark(folder: Path, endpoint: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if "proxy" not in k.lower()}
    environment |= {"HF_ENDPOINT": endpoint, "BIRCHBARK_MODELS": str(folder / "models")}
    command = [sys.executable, "-m", "birchbark", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_command_line(hub: Imitation, tmp_path: Path) -> None:
    """`model fetch` and `model list` work, and invalid arguments are rejected."""
    fetched = birchbark(tmp_path, hub.url, "model", "fetch", ID)
    assert fetched.returncode == 0, fetched.stderr
    assert f"{ID}: bert, 2 layers of 16, cross-encoder" in fetched.stderr
    assert f"--model {ID}" in fetched.stderr
    again = birchbark(tmp_path, hub.url, "model", "fetch", ID)
    assert again.returncode == 2
    assert "already exists (choose another path, or replace it: --replace" in again.stderr
    listed = birchbark(tmp_path, hub.url, "model", "list")
    assert f"{ID}\t{COMMIT[:12]}\tbert, 2 layers" in listed.stdout
    rows = json.loads(birchbark(tmp_path, hub.url, "model", "list", "--json").stdout)
    assert (ID, COMMIT[:12]) in [(row["model"], row["commit"]) for row in rows]
    other = birchbark(tmp_path, hub.url, "model", "fetch", ID, "--to", str(tmp_path / "other"))
    assert (tmp_path / "other" / SOURCE).exists(), other.stderr
    assert birchbark(tmp_path, hub.url, "model", "fetch", "../x").returncode == 2
    assert birchbark(tmp_path, "file:///etc", "model", "fetch", "a/b").returncode == 2


def test_missing_models_name_the_command_that_fetches_them(hub: Imitation) -> None:
    """The error suggests fetching, except for a path, which cannot be a hub id."""
    with pytest.raises(CheckpointError, match=r"no such model.*birchbark model fetch a/b"):
        locate("a/b")
    with pytest.raises(CheckpointError, match="no such model") as raised:
        locate("./a/b/c")
    assert "fetch" not in str(raised.value).replace("fetched model", "")
    assert not hub.requested
    assert fetched_models() == []


@pytest.mark.parametrize(
    ("name", "valid"),
    [("bert-base-uncased", True), ("BAAI/bge-m3", True), ("a/b.c_d-1", True), ("a/b/c", False)]
    + [
        (bad, False) for bad in ("", "/a", "a/", "a/..", "../a", "a--b/c", "a b", ".hidden/x", "-x")
    ],
)
def test_hub_ids(name: str, valid: bool) -> None:
    """Valid ids are names of folders too."""
    assert is_hub_id(name) is valid
