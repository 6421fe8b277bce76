"""Is a model copied that the hub's own client has downloaded before?"""

from __future__ import annotations

import hashlib
import json
from contextlib import nullcontext
from pathlib import Path

import pytest
from click.testing import CliRunner

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.model_folder import SOURCE, model_path
from birchbark.cli import group
from birchbark.errors import CheckpointError, HubError
from birchbark.hub.cache import HubCache
from birchbark.hub.fetch import fetch
from conftest import write_bert

ID, COMMIT = "owner/model", "c" * 40


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_bert(tmp_path / "there", labels=1)


@pytest.fixture
def cache(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HubCache:
    """A cache with the model: links to blobs that are called by their checksums."""
    monkeypatch.setenv("BIRCHBARK_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # where nothing answers
    folder = tmp_path / "hub" / "models--owner--model"
    for name in ("blobs", "refs/pr", f"snapshots/{COMMIT}"):
        (folder / name).mkdir(parents=True)
    (folder / "refs" / "main").write_text(COMMIT)
    (folder / "refs" / "pr" / "1").write_text(COMMIT)
    for file in model.iterdir():
        raw = file.read_bytes()
        is_large = file.suffix == ".safetensors"
        blob = hashlib.sha256(raw) if is_large else hashlib.sha1(b"blob %d\0" % len(raw) + raw)
        (folder / "blobs" / blob.hexdigest()).write_bytes(raw)
        link = folder / "snapshots" / COMMIT / file.name
        link.symlink_to(f"../../blobs/{blob.hexdigest()}")
    return HubCache.of_user()


def copy(cache: HubCache, revision: str = "main") -> None:
    watch = lambda total: nullcontext(lambda count: None)  # noqa: E731
    fetch(cache, ID, revision, model_path(ID), watch, replace=True)


@pytest.mark.parametrize("revision", ["main", "pr/1", COMMIT])
def test_a_model_is_copied(cache: HubCache, model: Path, revision: str) -> None:
    """By branch, pull request or commit, which is recorded with where it comes from."""
    copy(cache, revision)
    assert Checkpoint.open(model_path(ID)).fingerprint == Checkpoint.open(model).fingerprint
    source = json.loads((model_path(ID) / SOURCE).read_text())
    assert (source["hub"], source["commit"]) == (str(cache.folder), COMMIT)
    assert not (model_path(ID) / "config.json").is_symlink()


def test_the_cache_is_that_of_the_hubs_own_client(cache: HubCache) -> None:
    """What is fabricated here is where that client looks for files."""
    client = pytest.importorskip("huggingface_hub")
    for name in cache.listing(ID, "main").files:
        found = client.try_to_load_from_cache(ID, name, cache_dir=cache.folder)
        assert Path(found).is_file()


@pytest.mark.parametrize("revision", ["dev", "../refs/main", "/etc/passwd", "d" * 40, "pr"])
def test_what_is_not_there(cache: HubCache, revision: str) -> None:
    """No other revision, and nothing outside of the cache."""
    assert cache.has(ID, "main")
    assert not cache.has(ID, revision)
    assert not cache.has("owner/other", "main")
    with pytest.raises(HubError, match="no such model or revision"):
        cache.listing(ID, revision)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_damaged_blob(cache: HubCache, name: str) -> None:
    """Its name is its checksum."""
    blob = (cache.folder / "models--owner--model" / "snapshots" / COMMIT / name).resolve()
    raw = bytearray(blob.read_bytes())
    raw[-2] ^= 1
    blob.write_bytes(raw)
    with pytest.raises(HubError, match=f"{name} was not received correctly"):
        copy(cache)
    assert not model_path(ID).exists()


def test_files_without_checksums(cache: HubCache, model: Path) -> None:
    """Where there are no links, as on Windows, snapshots have the files themselves."""
    snapshot = cache.folder / "models--owner--model" / "snapshots" / COMMIT
    for link in snapshot.iterdir():
        raw = link.read_bytes()
        link.unlink()
        link.write_bytes(raw)
    copy(cache)
    assert Checkpoint.open(model_path(ID)).fingerprint == Checkpoint.open(model).fingerprint


def test_an_incomplete_model_is_downloaded(cache: HubCache) -> None:
    """The command says why, and asks the hub."""
    done = CliRunner().invoke(group, ["model", "fetch", ID])
    assert "copied from" in done.stderr
    weights = cache.folder / "models--owner--model" / "snapshots" / COMMIT / "model.safetensors"
    weights.unlink()
    with pytest.raises(CheckpointError, match="no weights"):
        copy(cache)
    done = CliRunner().invoke(group, ["model", "fetch", ID, "--replace"])
    assert "but downloaded: owner/model" in done.stderr
    assert isinstance(done.exception, HubError)  # there is no hub here
    assert Checkpoint.open(model_path(ID))


def test_an_embedding_that_transformers_has_cached(cache: HubCache) -> None:
    """It reads no modules.json, without which the copy would be another model."""
    folder = cache.folder / "models--owner--model"
    config = folder / "snapshots" / COMMIT / "config.json"
    values = json.loads(config.read_text()) | {"architectures": ["BertModel"]}
    config.unlink()
    config.write_text(json.dumps(values))
    with pytest.raises(HubError, match=r"pooling and lengths may be missing: .*modules\.json"):
        copy(cache)
    (folder / ".no_exist" / COMMIT).mkdir(parents=True)
    (folder / ".no_exist" / COMMIT / "modules.json").touch()
    copy(cache)


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"HF_HUB_CACHE": "/a/hub", "HF_HOME": "/b"}, "/a/hub"),
        ({"HF_HOME": "/b", "XDG_CACHE_HOME": "/c"}, "/b/hub"),
        ({"XDG_CACHE_HOME": "/c"}, "/c/huggingface/hub"),
        ({"HOME": "/d"}, "/d/.cache/huggingface/hub"),
    ],
)
def test_where_the_cache_is(
    variables: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the hub's own client decides."""
    for name in ("HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert str(HubCache.of_user().folder) == folder
