"""Which models has huggingface_hub, the hub's own client, downloaded already?

In its cache, models--OWNER--NAME/refs/REVISION has the commit, and the files in snapshots/COMMIT
are links to blobs, whose names are their checksums: SHA-256 of large files, git's SHA-1 of others.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from birchbark.checkpoint.json_files import read_object
from birchbark.errors import BirchbarkError, HubError
from birchbark.hub.client import HubFile, Listing, save

COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class HubCache:
    """The cache, from which models are copied as from a Hub.

    Attributes:
        folder: Where it is.
    """

    folder: Path

    @classmethod
    def of_user(cls) -> HubCache:
        """Return the cache of this user, which may not exist."""
        cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        home = os.environ.get("HF_HOME") or f"{cache}/huggingface"
        return cls(Path(os.environ.get("HF_HUB_CACHE") or f"{home}/hub").expanduser())

    @property
    def endpoint(self) -> str:
        """Where its files come from, for errors and for a model's source.json."""
        return str(self.folder)

    def has(self, hub_id: str, revision: str) -> bool:
        """Return whether any file of a model is there, at a branch, tag or commit."""
        return self._snapshot(hub_id, revision) is not None

    def listing(self, hub_id: str, revision: str) -> Listing:
        """Return the files of a model that are there; HubError if there is none."""
        snapshot = self._snapshot(hub_id, revision)
        if snapshot is None:
            raise HubError("no such model or revision", where=self.endpoint, found=hub_id)
        files = {}
        for path in sorted(snapshot.rglob("*")):
            if path.is_file():
                name, blob = path.relative_to(snapshot).as_posix(), path.resolve().name
                sha256 = blob if re.fullmatch("[0-9a-f]{64}", blob) else None
                git_sha1 = blob if COMMIT.fullmatch(blob) else None
                files[name] = HubFile(name, path.stat().st_size, sha256, git_sha1)
        if "modules.json" not in files and self._lacks_modules(hub_id, snapshot):
            raise HubError(
                "what an embedding states of pooling and lengths may be missing",
                where=str(snapshot),
                wanted="modules.json, which transformers alone never asks for",
            )
        return Listing(hub_id, snapshot.name, files)

    def _lacks_modules(self, hub_id: str, snapshot: Path) -> bool:
        """Return whether a model may be an embedding whose modules.json was never asked for."""
        with suppress(BirchbarkError):
            classes = read_object(snapshot / "config.json").get("architectures")
            encoder = isinstance(classes, list) and any(str(c).endswith("Model") for c in classes)
            known = self._model(hub_id) / ".no_exist" / snapshot.name / "modules.json"
            return encoder and not known.exists()
        return False

    def copy(
        self, listing: Listing, name: str, target: Path, advance: Callable[[int], object]
    ) -> str:
        """Copy a listed file to `target`, and return its SHA-256; see `Hub.copy`."""
        path = self._model(listing.hub_id) / "snapshots" / listing.commit / name
        with path.open("rb") as stream, target.open("wb") as out:
            return save(stream, listing.files[name], out, advance, str(path))

    def _model(self, hub_id: str) -> Path:
        return self.folder / f"models--{hub_id.replace('/', '--')}"

    def _snapshot(self, hub_id: str, revision: str) -> Path | None:
        """Return the folder of a revision's files; None if it is not there."""
        model, names = self._model(hub_id), PurePosixPath(revision)
        if names.is_absolute() or ".." in names.parts:
            return None
        commit = revision
        if not COMMIT.fullmatch(revision):
            try:
                commit = (model / "refs" / names).read_text("utf-8").strip()
            except (OSError, ValueError):
                return None
        snapshot = model / "snapshots" / commit
        return snapshot if COMMIT.fullmatch(commit) and snapshot.is_dir() else None
