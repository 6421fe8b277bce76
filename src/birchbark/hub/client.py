"""How are files of the Hugging Face hub listed and downloaded?

This client uses the standard library. It makes one attempt, fails after seconds without a response,
and compares every file with the hub's checksum. The hub's own client retries, compares only sizes,
and has its own cache (docs/decisions/0005-hub-client.md).
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
from typing import IO, Any
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

from birchbark._version import __version__
from birchbark.errors import HubError, InputError

ENDPOINT = "https://huggingface.co"
TIMEOUT = 30.0  # seconds without receiving a byte
LISTING_BYTES = 50_000_000
CHUNK = 1 << 20
REMEDIES = {
    401: "there is no such model, or it is private or gated: then set HF_TOKEN",
    403: "accept the model's terms on the hub, and set HF_TOKEN",
    404: "no such model or revision",
    429: "too many requests: wait, or set HF_TOKEN",
}


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file in the hub's listing of a model.

    Attributes:
        name: Path of the file in the repository.
        size: Size in bytes; None if the hub does not state it.
        sha256: SHA-256 of the file; None if the hub does not state it.
        git_sha1: Git's SHA-1 of the file; None if the hub does not state it.
    """

    name: str
    size: int | None
    sha256: str | None
    git_sha1: str | None


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a model's repository at one commit.

    Attributes:
        hub_id: The model's id on the hub.
        commit: Hash of the commit.
        files: Name → file.
    """

    hub_id: str
    commit: str
    files: Mapping[str, HubFile]


@dataclass(frozen=True, slots=True)
class Hub:
    """A hub, with the files of models.

    Attributes:
        endpoint: Address of the hub. Default: https://huggingface.co.
        token: Access token, sent to the endpoint but not to hosts that it redirects to.
            Default: None.
        timeout: Seconds without receiving a byte after which a request fails. Default: 30.
    """

    endpoint: str = ENDPOINT
    token: str | None = None
    timeout: float = TIMEOUT

    def __post_init__(self) -> None:
        if urlsplit(self.endpoint).scheme not in ("http", "https"):
            raise InputError("invalid address of a hub", found=self.endpoint, wanted=ENDPOINT)

    def listing(self, hub_id: str, revision: str) -> Listing:
        """Return the files of a model at a branch, tag or commit.

        Raises HubError if there is no such model or revision, or the hub cannot be reached.
        """
        path = f"api/models/{hub_id}/revision/{quote(revision, safe='')}?blobs=true"
        with self._answer(path, f"{hub_id} at {revision}") as answer:
            body = answer.read(LISTING_BYTES)
        try:
            return _parse(hub_id, json.loads(body))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as broken:
            raise HubError(
                "the response is not a model's list of files",
                where=self._url(path),
                found=repr(body[:60]),
                remedy="HF_ENDPOINT sets the hub's address",
            ) from broken

    def copy(
        self, listing: Listing, name: str, target: Path, advance: Callable[[int], object]
    ) -> str:
        """Download a listed file to `target`, and return its SHA-256.

        name: the file's name in the listing. advance: called with the size of each chunk in bytes.
        Raises HubError if the download fails or the size or checksum is wrong; `target` is then
        invalid.
        """
        file = listing.files[name]
        path = f"{listing.hub_id}/resolve/{listing.commit}/{quote(name)}"
        with self._answer(path, name) as answer, target.open("wb") as out:
            digest = save(answer, file, out, advance, self._url(path))
            if file.size is None and answer.length:  # fewer bytes than Content-Length
                raise http.client.IncompleteRead(b"", answer.length)
        return digest

    def _url(self, path: str) -> str:
        return f"{self.endpoint.rstrip('/')}/{path}"

    @contextmanager
    def _answer(self, path: str, name: str) -> Iterator[Any]:
        """Yield the hub's response; any failure before or while it is read becomes a HubError.

        name: what is requested, for the error message.
        """
        request = Request(self._url(path), headers={"User-Agent": f"birchbark/{__version__}"})
        if self.token:
            request.add_unredirected_header("Authorization", f"Bearer {self.token}")
        try:
            answer = urlopen(request, timeout=self.timeout)
        except HTTPError as refused:
            with refused:
                raise _http_error(refused, name, self.endpoint) from None
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
                    f"the transfer of {name} was interrupted",
                    where=self.endpoint,
                    found=str(broken) or type(broken).__name__,
                    remedy="nothing was saved; try again",
                ) from broken


def save(
    stream: IO[bytes], file: HubFile, out: IO[bytes], advance: Callable[[int], object], where: str
) -> str:
    """Write the bytes of a listed file to `out`; return their SHA-256.

    where: the address of the file, for errors. Raises HubError if size or checksum is wrong.
    """
    digest, git = hashlib.sha256(), hashlib.sha1(usedforsecurity=False)
    git.update(b"blob %d\0" % (file.size or 0))
    received = 0
    while chunk := stream.read(CHUNK):
        out.write(chunk)
        digest.update(chunk)
        git.update(chunk)
        received += len(chunk)
        advance(len(chunk))
        if file.size is not None and received > file.size:
            break
    _check(file, received, digest.hexdigest(), git.hexdigest(), where)
    return digest.hexdigest()


def _http_error(refused: HTTPError, name: str, endpoint: str) -> HubError:
    message = str(refused.headers.get("X-Error-Message") or refused.reason or "")[:200]
    return HubError(
        f"the hub refused {name}",
        where=endpoint,
        found=f"{refused.code} {message}".strip(),
        remedy=REMEDIES.get(refused.code, "try again later"),
    )


def _parse(hub_id: str, answer: Mapping[str, Any]) -> Listing:
    """Parse the hub's JSON.

    Raises ValueError, TypeError, KeyError or AttributeError if it is not a model's listing.
    """
    commit = answer["sha"]
    if not re.fullmatch(r"[0-9a-f]{40,64}", commit):
        raise ValueError(f"not a commit: {commit}")
    files = {}
    for entry in answer["siblings"]:
        name, lfs = str(entry["rfilename"]), entry.get("lfs") or {}
        size = lfs.get("size", entry.get("size"))
        sha256, blob = lfs.get("sha256"), entry.get("blobId")
        is_pointer = lfs or entry.get("xetHash")  # the blob only points to the file
        files[name] = HubFile(
            name,
            None if size is None else int(size),
            str(sha256) if sha256 else None,
            str(blob) if blob and size is not None and not is_pointer else None,
        )
    return Listing(hub_id, commit, files)


def _check(file: HubFile, received: int, sha256: str, git_sha1: str, where: str) -> None:
    """Raise HubError unless a downloaded file has the listed size and checksums.

    received: its size in bytes. where: its address, for the error message.
    """
    checks = [
        ("bytes", file.size, received),
        ("SHA-256", file.sha256, sha256),
        ("git's SHA-1", file.git_sha1, git_sha1),
    ]
    for quantity, wanted, found in checks:
        if wanted is not None and wanted != found:
            raise HubError(
                f"{file.name} was not received correctly",
                where=where,
                wanted=f"{wanted} bytes" if quantity == "bytes" else f"{quantity} {wanted}",
                found=str(found),
                remedy="nothing was saved; try again",
            )
