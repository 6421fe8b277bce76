"""How does one speak with the Hugging Face hub? Two requests: what is there, and one file.

Plain HTTP by the standard library: one attempt, an answer within seconds or an error, and every
file is held against the checksum that the hub gives. The hub's own client has a cache of its own,
retries, and checks sizes alone.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from ssl import SSLError
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

from birchbark._version import __version__
from birchbark.errors import HubError, InputError

ENDPOINT = "https://huggingface.co"
TIMEOUT = 30.0  # seconds without a byte
LISTING_BYTES = 50_000_000
CHUNK = 1 << 20
REMEDIES = {
    401: "there is no such model, or it is private or gated: then set HF_TOKEN",
    403: "accept the model's terms on the hub, and set HF_TOKEN",
    404: "no such model, or no such revision of it",
    429: "too many requests: wait, or set HF_TOKEN",
}


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file as the hub lists it: its size, and SHA-256 or git's SHA-1, None where not given."""

    name: str
    size: int | None
    sha256: str | None
    git_sha1: str | None


@dataclass(frozen=True, slots=True)
class Listing:
    """What a model's repository holds at one commit, by name."""

    hub_id: str
    commit: str
    files: Mapping[str, HubFile]


@dataclass(frozen=True, slots=True)
class Hub:
    """The hub at `endpoint`. token: sent to the endpoint, but to nobody it redirects to."""

    endpoint: str = ENDPOINT
    token: str | None = None
    timeout: float = TIMEOUT

    def __post_init__(self) -> None:
        if urlsplit(self.endpoint).scheme not in ("http", "https"):
            raise InputError("not the address of a hub", found=self.endpoint, wanted=ENDPOINT)

    def listing(self, hub_id: str, revision: str) -> Listing:
        """The files of a model at a branch, tag or commit; HubError if there is none."""
        path = f"api/models/{hub_id}/revision/{quote(revision, safe='')}?blobs=true"
        with self._answer(path, f"{hub_id} at {revision}") as answer:
            body = answer.read(LISTING_BYTES)
        try:
            return _parse(hub_id, json.loads(body))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as broken:
            raise HubError(
                "the answer is no listing of a model",
                where=self._url(path),
                found=repr(body[:60]),
                remedy="is this a hub? HF_ENDPOINT may say where it is",
            ) from broken

    def copy(
        self, listing: Listing, name: str, target: Path, advance: Callable[[int], object]
    ) -> str:
        """Write a listed file to `target`, and give its SHA-256.

        advance: called with the number of bytes of each piece. Raises HubError if it does not
        arrive whole; `target` is then no good.
        """
        file = listing.files[name]
        digest, git = hashlib.sha256(), hashlib.sha1(usedforsecurity=False)
        git.update(b"blob %d\0" % (file.size or 0))
        received = 0
        path = f"{listing.hub_id}/resolve/{listing.commit}/{quote(name)}"
        with self._answer(path, name) as answer, target.open("wb") as out:
            while piece := answer.read(CHUNK):
                out.write(piece)
                digest.update(piece)
                git.update(piece)
                received += len(piece)
                advance(len(piece))
                if file.size is not None and received > file.size:
                    break
            if file.size is None and answer.length:  # bytes that were announced, and did not come
                raise http.client.IncompleteRead(b"", answer.length)
        _check(file, received, digest.hexdigest(), git.hexdigest(), self._url(path))
        return digest.hexdigest()

    def _url(self, path: str) -> str:
        return f"{self.endpoint.rstrip('/')}/{path}"

    @contextmanager
    def _answer(self, path: str, what: str) -> Iterator[Any]:
        """The hub's answer; whatever goes wrong until it is read is a HubError."""
        request = Request(self._url(path), headers={"User-Agent": f"birchbark/{__version__}"})
        if self.token:
            request.add_unredirected_header("Authorization", f"Bearer {self.token}")
        try:
            answer = urlopen(request, timeout=self.timeout)
        except HTTPError as refused:
            with refused:
                raise _refusal(refused, what, self.endpoint) from None
        except (OSError, http.client.HTTPException, ValueError) as broken:
            raise HubError(
                "the hub cannot be reached",
                where=self.endpoint,
                found=str(getattr(broken, "reason", "") or broken or type(broken).__name__),
                remedy="only fetching needs the network: a model directory that was fetched "
                "elsewhere can be copied here",
            ) from broken
        with answer:
            try:
                yield answer
            except (TimeoutError, ConnectionError, SSLError, http.client.HTTPException) as broken:
                raise HubError(
                    f"the transfer of {what} broke off",
                    where=self.endpoint,
                    found=str(broken) or type(broken).__name__,
                    remedy="nothing was kept; try again",
                ) from broken


def _refusal(refused: HTTPError, what: str, endpoint: str) -> HubError:
    said = str(refused.headers.get("X-Error-Message") or refused.reason or "")[:200]
    return HubError(
        f"the hub does not give {what}",
        where=endpoint,
        found=f"{refused.code} {said}".strip(),
        remedy=REMEDIES.get(refused.code, "try again later"),
    )


def _parse(hub_id: str, answer: Mapping[str, Any]) -> Listing:
    """The listing in the hub's JSON; any of several errors if it is none."""
    commit = answer["sha"]
    if not re.fullmatch(r"[0-9a-f]{40,64}", commit):
        raise ValueError(f"no commit: {commit}")
    files = {}
    for entry in answer["siblings"]:
        name, large = str(entry["rfilename"]), entry.get("lfs") or {}
        size = large.get("size", entry.get("size"))
        sha256, blob = large.get("sha256"), entry.get("blobId")
        stored = large or entry.get("xetHash")  # elsewhere: then the blob is but a pointer to it
        files[name] = HubFile(
            name,
            None if size is None else int(size),
            str(sha256) if sha256 else None,
            str(blob) if blob and size is not None and not stored else None,
        )
    return Listing(hub_id, commit, files)


def _check(file: HubFile, received: int, sha256: str, git_sha1: str, where: str) -> None:
    """Raise HubError unless what was received is the file that was listed."""
    pairs = [
        ("bytes", file.size, received),
        ("SHA-256", file.sha256, sha256),
        ("git's SHA-1", file.git_sha1, git_sha1),
    ]
    for what, wanted, found in pairs:
        if wanted is not None and wanted != found:
            raise HubError(
                f"{file.name} did not arrive whole",
                where=where,
                wanted=f"{wanted} {what}" if what == "bytes" else f"{what} {wanted}",
                found=str(found),
                remedy="nothing was kept; try again",
            )
