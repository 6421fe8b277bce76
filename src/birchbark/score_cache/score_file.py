"""What is the format of a score file, and which of its records are valid?

    header    one line of JSON: form, then the scorer's fingerprint, name, kind and width, and the
              processor that began the file
    records   24 bytes each, little-endian: key (16), score (float32), checksum (uint32)

A scorer with a vector per pair (PARADE) stores `width` float32 numbers instead of the score; its
records are longer accordingly. The header states `width` only for such scorers.

The key is a BLAKE2b hash of the fingerprint, the query and the segment's token ids, each preceded
by its length. Records are only appended, so a killed process can leave invalid records at the end;
these are ignored. The file is damaged if an invalid record precedes a valid one, or if more records
at the end are invalid than a killed process can leave.
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
MAX_WIDTH = 1 << 16
MAX_TORN_RECORDS = 1 << 16
MAX_UNSYNCED_RECORDS = MAX_TORN_RECORDS // 2  # then they are synced, with the rest of the batch
CHECK_BYTES = 1 << 22  # records checked together, few enough for the processor's cache

Keys = NDArray[np.uint64]
Records = NDArray[np.void]


@dataclass(frozen=True, slots=True)
class FileHeader:
    """The header of a score file, which describes the scorer.

    Attributes:
        fingerprint: The scorer's fingerprint.
        name: The scorer's name.
        kind: The scorer's kind.
        width: Numbers per pair: 1 for a score, otherwise the length of a vector.
        processor: The processor that computed the first scores; see `processor`. Empty in files
            of version 0.1.
    """

    fingerprint: str
    name: str
    kind: str
    width: int = 1
    processor: str = ""

    @property
    def form(self) -> str:
        """Name and version of the format, which differs between scores and vectors."""
        return FORM if self.width == 1 else VECTORS_FORM

    @property
    def record(self) -> np.dtype[np.void]:
        """The dtype of a record."""
        score = ("score", "<f4", row_shape(self.width))
        return np.dtype([("key", "<u8", (2,)), score, ("checksum", "<u4")])

    def path(self, directory: Path) -> Path:
        """Return the path of the scorer's file in a store's directory."""
        return directory / (hashlib.sha256(self.fingerprint.encode()).hexdigest()[:16] + SUFFIX)

    def write(self, directory: Path) -> None:
        """Write a file that contains only this header, atomically."""
        with new_file(self.path(directory)) as out:
            entries = asdict(self)
            if self.width == 1:
                del entries["width"]
            out.write(json.dumps({"form": self.form} | entries) + "\n")

    @classmethod
    def read(cls, path: Path) -> tuple[FileHeader, int]:
        """Return the header of the file at `path`, and the offset of the first record.

        Raises ArtifactError if the header is damaged, of another format, or of another scorer than
        the file's name.
        """
        line = b"not a plain file"  # a pipe would be waited for
        try:
            if path.is_file():
                with path.open("rb") as stream:
                    line = stream.readline(1 << 16)
            entries = json.loads(line)
            form = entries.pop("form")
            header = cls(**entries)
            texts = header.fingerprint, header.name, header.kind, header.processor
            if type(header.width) is not int or not 1 <= header.width <= MAX_WIDTH:
                raise ValueError("width")
            if not all(isinstance(text, str) for text in texts):
                raise ValueError("not a text")
            right = header.path(path.parent)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as broken:
            raise ArtifactError(
                "damaged score file: unreadable header",
                where=f"{path}, byte 0",
                wanted="a line of JSON",
                found=repr(line[:40]),
                remedy="delete the file; its pairs will be scored again",
            ) from broken
        if form != header.form or right != path:
            raise ArtifactError(
                "the header of this score file does not match its name",
                where=str(path),
                wanted=f"{header.form!r} in {right.name}",
                found=repr(form),
                remedy="delete the file; its pairs will be scored again",
            )
        return header, len(line)


def row_shape(width: int) -> tuple[int, ...]:
    """Return the shape of one pair's entry: () for a score, (width,) for a vector."""
    return () if width == 1 else (width,)


def pair_keys(fingerprint: str, query: str, token_ids: Sequence[Ids]) -> Keys:
    """Return the keys (n, 2) of encoded texts for one query."""
    prefix = hashlib.blake2b(digest_size=16)
    for text in (fingerprint, query):
        prefix.update(_length_prefixed(text.encode("utf-8", "surrogatepass")))
    digests = []
    for ids in token_ids:
        key = prefix.copy()
        key.update(_length_prefixed(ids.astype("<i4", copy=False).tobytes()))
        digests.append(key.digest())
    return np.frombuffer(b"".join(digests), "<u8").reshape(-1, 2)


def _length_prefixed(data: bytes) -> bytes:
    return len(data).to_bytes(8, "little") + data


def make_records(keys: Keys, scores: Float32s, header: FileHeader) -> Records:
    """Return records (n,) of keys (n, 2) and scores (n,) or vectors (n, width), with checksums."""
    records = np.empty(len(keys), header.record)
    records["key"], records["score"] = keys, scores
    records["checksum"] = _checksums(records)
    return records


def read_records(path: Path, start: int, header: FileHeader) -> tuple[Records, int]:
    """Return all valid records from byte `start` on, and the number of invalid bytes after them.

    Raises ArtifactError if an invalid record precedes a valid one, or if more than MAX_TORN_RECORDS
    records at the end are invalid.
    """
    record = header.record
    count, can_be_torn = _count_valid(path, start, record)
    if not can_be_torn:
        offset = start + count * record.itemsize
        raise ArtifactError(
            "damaged score",
            where=f"{path}, byte {offset}",
            remedy=f"truncate -s {offset} removes all but the {count:,} scores before it; "
            "birchbark scores --prune deletes all scores of this scorer",
        )
    records = np.fromfile(path, record, count, offset=start)
    return records, path.stat().st_size - start - records.nbytes


def _count_valid(path: Path, start: int, record: np.dtype[np.void]) -> tuple[int, bool]:
    """Return the number of valid records before the first invalid one, and what follows.

    This is whether it can be what a killed process leaves. If not, the rest is not read: a sparse
    file can be larger than the disk.
    """
    count = invalid = 0
    with path.open("rb") as file:
        file.seek(start)
        while len(block := np.fromfile(file, record, max(1, CHECK_BYTES // record.itemsize))):
            valid = block["checksum"] == _checksums(block)
            if not invalid:
                leading = len(valid) if valid.all() else int(valid.argmin())
                count, valid = count + leading, valid[leading:]
            invalid += len(valid)
            if valid.any() or invalid > MAX_TORN_RECORDS:
                return count, False
    return count, True


def _checksums(records: Records) -> NDArray[np.uint32]:
    """Return the checksum (n,) of each record: all bits of key and score, mixed into 32 bits.

    The checksum of a record of zeros is not zero.
    """
    x = (records["key"][:, 0] + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(31)
    x = (x + records["key"][:, 1]) * np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(29)
    bits = np.ascontiguousarray(records["score"]).view("<u4").reshape(len(records), -1)
    for column in bits.T:  # (width, n)
        x = (x + column) * np.uint64(0xD6E8FEB86659FD93)
        x ^= x >> np.uint64(32) if bits.shape[1] > 1 else np.uint64(0)
    checksums: NDArray[np.uint32] = (x >> np.uint64(32)).astype(np.uint32)
    return checksums
