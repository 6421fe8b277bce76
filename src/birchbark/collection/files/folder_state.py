"""What is known of a folder whose files are in an index, so that only changed files are read again?

The state is kept in the file folder.json of the index. It is written after the index has changed:
if the process ends in between, files are read once more than necessary.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from os import stat_result
from pathlib import Path
from typing import Self

from birchbark import defaults
from birchbark._version import __version__
from birchbark.artifact import json_checksum, read_json, write_json
from birchbark.collection.files.file_types import OF_SUFFIX
from birchbark.collection.parsing.intake import Intake
from birchbark.errors import ArtifactError, InputError

FILE = "folder.json"


@dataclass(frozen=True, slots=True)
class FolderSource:
    """A folder, and how its files are read.

    Attributes:
        folder: Its path.
        include: Patterns of the files that are read; empty for all files (see `walk`). Default ().
        exclude: Patterns of files that are not read. Default ().
        encoding: See `Intake`. Default `utf-8`.
        strict: Whether a file that cannot be read is an error. Default False.
    """

    folder: str
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    encoding: str = defaults.ENCODING
    strict: bool = False

    def intake(self, remedy: str = "") -> Intake:
        """Return an intake that reads in the encoding, and raises bad files if `strict`."""
        return Intake(False if self.strict else None, self.encoding, remedy=remedy)


@dataclass(frozen=True, slots=True)
class FileState:
    """A file when it was last read.

    Attributes:
        size: Its size in bytes.
        modified: When it was changed, in nanoseconds since 1970.
        settled: Whether that was so long ago that any further change has a later time.
        digest: A hash of its contents; empty if it could not be read. Default: empty.
        doc_id: The id of its document; empty if it is none. Default: empty.
    """

    size: int
    modified: int
    settled: bool
    digest: str = ""
    doc_id: str = ""

    def describes(self, status: stat_result) -> bool:
        """Return whether the file has certainly not changed, by its size and time."""
        same = (status.st_size, status.st_mtime_ns) == (self.size, self.modified)
        return same and self.settled


@dataclass(frozen=True, slots=True)
class FolderState:
    """A folder whose files are the documents of an index.

    Attributes:
        source: The folder, and how its files are read.
        files: Path below the folder → its state, of all files of a type that is read.
    """

    source: FolderSource
    files: Mapping[str, FileState] = field(default_factory=dict)

    @classmethod
    def read(cls, index: Path) -> Self | None:
        """Return the state that is kept in an index; None if it was not built from a folder.

        Files that were no documents are unknown if this version of birchbark, or what is installed
        with it, may read more types of files. Raises ArtifactError if the state is damaged.
        """
        try:
            values = read_json(index / FILE, "folder")
        except InputError:
            return None
        except ArtifactError as error:
            raise _damaged(index, error.what) from None
        checksum = values.pop("checksum", None) if isinstance(values, dict) else None
        if checksum and checksum != json_checksum(values):
            raise _damaged(index, "damaged: its checksum is wrong")
        try:
            source = values["source"]
            patterns = {name: tuple(source[name]) for name in ("include", "exclude")}
            files = {path: FileState(*state) for path, state in values["files"].items()}
            if values["readers"] != _readers():
                files = {path: state for path, state in files.items() if state.doc_id}
            return cls(FolderSource(**{**source, **patterns}), files)
        except (AttributeError, KeyError, TypeError) as error:
            raise _damaged(index, f"damaged: {error!r}") from None

    def write(self, index: Path) -> None:
        """Keep the state in an index, in place of an earlier one."""
        files = {
            path: (state.size, state.modified, state.settled, state.digest, state.doc_id)
            for path, state in self.files.items()
        }
        values = {"readers": _readers(), "source": asdict(self.source), "files": files}
        write_json(index / FILE, values | {"checksum": json_checksum(values)})


def _damaged(index: Path, what: str) -> ArtifactError:
    remedy = "build the index again from the folder"
    return ArtifactError(what, where=str(index / FILE), remedy=remedy)


def _readers() -> str:
    """Return the version of birchbark, and which types of files cannot be read."""
    missing = sorted({kind.name for kind in OF_SUFFIX.values() if kind.missing()})
    return json.dumps([__version__, missing])
