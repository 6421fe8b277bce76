"""What are the bytes of a file of scores, and which of them may be believed?

    head      one line of JSON: form, fingerprint, name and kind of the scorer, width
    records   24 bytes each, little-endian: key (16), score (float32), checksum (uint32)

Where a scorer has a vector for each pair (PARADE), `width` numbers stand in the score's place.

The key is a BLAKE2b hash over fingerprint, query and the segment's token ids, with their lengths in
front. Records
are only ever appended, so what a killed process leaves is a bad end: that is no damage, and no
score either. A bad record before a good one is damage, and so is a bad end too long for that.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from birchbark.artifact import new_file
from birchbark.errors import ArtifactError
from birchbark.records import Float32s, Ids

SUFFIX = ".scores"
FORM, VECTORS_FORM = "birchbark scores 2", "birchbark vectors 1"
WIDEST = 1 << 16
LONGEST_TORN_END = 1 << 16  # records; more than is written between two fsyncs
CHECKED_AT_ONCE = 1 << 18  # records; keeps what checking needs in the cache

Keys = NDArray[np.uint64]
Records = NDArray[np.void]


@dataclass(frozen=True, slots=True)
class FileHead:
    """Whose scores a file holds: the scorer's fingerprint, name, kind and width."""

    fingerprint: str
    name: str
    kind: str
    width: int = 1

    @property
    def form(self) -> str:
        """Of the file: scores have the one that they always had."""
        return FORM if self.width == 1 else VECTORS_FORM

    @property
    def record(self) -> np.dtype[np.void]:
        """The form of a record."""
        score = ("score", "<f4", shaped(self.width))
        return np.dtype([("key", "<u8", (2,)), score, ("checksum", "<u4")])

    def path(self, directory: Path) -> Path:
        """The file's place in the folder of a store."""
        return directory / (hashlib.sha256(self.fingerprint.encode()).hexdigest()[:16] + SUFFIX)

    def write(self, directory: Path) -> None:
        """Make a file without records, whole or not at all."""
        with new_file(self.path(directory)) as out:
            entries = asdict(self)
            if self.width == 1:
                del entries["width"]
            out.write(json.dumps({"form": self.form} | entries) + "\n")

    @classmethod
    def read(cls, path: Path) -> tuple[FileHead, int]:
        """The head of the file at `path`, and the byte where its records start.

        Raises ArtifactError if the head is damaged or of another form.
        """
        with path.open("rb") as stream:
            line = stream.readline(1 << 16)
        try:
            entries = json.loads(line)
            form = entries.pop("form")
            head = cls(**entries)
            if not isinstance(head.width, int) or not 1 <= head.width <= WIDEST:
                raise ValueError("width")
        except (ValueError, TypeError, KeyError, AttributeError) as broken:
            raise ArtifactError(
                "damaged file of scores: its head cannot be read",
                where=f"{path}, byte 0",
                wanted="a line of JSON",
                found=repr(line[:40]),
                remedy="remove the file: its pairs are then scored anew",
            ) from broken
        if form != head.form or head.path(path.parent) != path:
            raise ArtifactError(
                "not the file of scores that its name says",
                where=str(path),
                wanted=f"{head.form!r} in {head.path(path.parent).name}",
                found=repr(form),
                remedy="remove the file: its pairs are then scored anew",
            )
        return head, len(line)


def shaped(width: int) -> tuple[int, ...]:
    """What follows the number of pairs in the shape of an array of what is known of them."""
    return () if width == 1 else (width,)


def keys_of(fingerprint: str, query: str, pieces: Sequence[Ids]) -> Keys:
    """Keys (n, 2) of encoded texts for one query."""
    start = hashlib.blake2b(digest_size=16)
    for part in (fingerprint, query):
        start.update(_framed(part.encode("utf-8", "surrogatepass")))
    digests = []
    for piece in pieces:
        whole = start.copy()
        whole.update(_framed(piece.astype("<i4", copy=False).tobytes()))
        digests.append(whole.digest())
    return np.frombuffer(b"".join(digests), "<u8").reshape(-1, 2)


def _framed(coded: bytes) -> bytes:
    return len(coded).to_bytes(8, "little") + coded


def sealed(keys: Keys, scores: Float32s, head: FileHead) -> Records:
    """Records (n,) with their checksums."""
    records = np.empty(len(keys), head.record)
    records["key"], records["score"] = keys, scores
    records["checksum"] = _checksums(records)
    return records


def read_records(path: Path, start: int, head: FileHead) -> tuple[Records, int]:
    """All good records from byte `start` on, and how many bytes of a torn end follow them.

    Raises ArtifactError where a bad record stands before a good one, or too many are bad.
    """
    size, form = path.stat().st_size - start, head.record
    records = np.fromfile(path, form, size // form.itemsize, offset=start)
    good = np.empty(len(records), np.bool_)
    for first in range(0, len(records), CHECKED_AT_ONCE):
        some = records[first : first + CHECKED_AT_ONCE]
        good[first : first + len(some)] = some["checksum"] == _checksums(some)
    count = len(records) if good.all() else int(good.argmin())
    if good[count:].any() or len(good) - count > LONGEST_TORN_END:
        place = start + count * form.itemsize
        raise ArtifactError(
            "damaged score",
            where=f"{path}, byte {place}",
            remedy=f"truncate -s {place} keeps the {count:,} scores before it; "
            "birchbark scores --prune forgets all of this checkpoint",
        )
    return records[:count], size - count * form.itemsize


def _checksums(records: Records) -> NDArray[np.uint32]:
    """A mixing of all bits of key and score; that of zeros is not zero."""
    x = (records["key"][:, 0] + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(31)
    x = (x + records["key"][:, 1]) * np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(29)
    scores = np.ascontiguousarray(records["score"]).view("<u4").reshape(len(records), -1)
    for column in scores.T:
        x = (x + column) * np.uint64(0xD6E8FEB86659FD93)
        x ^= x >> np.uint64(32) if scores.shape[1] > 1 else np.uint64(0)
    checksums: NDArray[np.uint32] = (x >> np.uint64(32)).astype(np.uint32)
    return checksums
