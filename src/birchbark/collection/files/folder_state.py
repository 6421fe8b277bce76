"""What is known of folders whose files are in an index, so that only changed files are read again?

The state is what an index knows of where its documents come from. It is committed together with the
documents (`pipeline/upkeep/folder_index.py`).
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from os import stat_result
from pathlib import Path
from typing import Self

from birchbark import defaults
from birchbark._version import __version__
from birchbark.collection.file_readers.file_types import OF_SUFFIX
from birchbark.collection.file_readers.functions import installed_grammars
from birchbark.collection.file_readers.ocr import ocr_installed
from birchbark.collection.files.open_below import open_file
from birchbark.collection.parsing.intake import Intake
from birchbark.errors import ArtifactError, InputError, UnreadableError

SETTLED_NS = 2_000_000_000  # a file changed later than this ago may change without another time


@dataclass(frozen=True, slots=True)
class FolderSource:
    """A folder or several, and how their files are read.

    Attributes:
        folders: Their paths. In the paths of files of several folders, the name of the folder comes
            first, so that the names must be different.
        include: Patterns of the files that are read; empty for all files (see `walk`). Default ().
        exclude: Patterns of files that are not read. Default ().
        encoding: See `Intake`. Default `utf-8`.
        strict: Whether a file that cannot be read is an error. Default False.
        follow_links: Whether files are read to which links lead out of the folders. Default False.

    Raises:
        InputError: Two folders have the same name, or one is in another.
    """

    folders: tuple[str, ...]
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    encoding: str = defaults.ENCODING
    strict: bool = False
    follow_links: bool = False

    def __post_init__(self) -> None:
        problem = ""
        if len({Path(folder).name for folder in self.folders}) < len(self.folders):
            problem = "two folders have the same name"
        around = {parent for folder in self.folders for parent in Path(folder).parents}
        if len(self.folders) > 1 and not around.isdisjoint(map(Path, self.folders)):
            problem = "one folder is in another"
        if problem:
            remedy = "give a folder that contains both"
            raise InputError(problem, found=self.shown, remedy=remedy)

    @property
    def roots(self) -> dict[str, Path]:
        """The beginning of the paths of a folder's files → the folder; empty for a single one."""
        if len(self.folders) == 1:
            return {"": Path(self.folders[0])}
        return {Path(folder).name: Path(folder) for folder in self.folders}

    @property
    def shown(self) -> str:
        """The folders, for messages."""
        return ", ".join(self.folders)

    def locate(self, path: Path | str) -> tuple[Path, Path]:
        """Return the folder that a file is in, and its path below. path: see `FolderState`."""
        if len(self.folders) == 1:
            return Path(self.folders[0]), Path(path)
        name, *below = Path(path).parts
        return self.roots[name], Path(*below)

    def open(self, path: Path | str) -> io.BufferedReader:
        """Open a file, which is in one of the folders unless `follow_links` is set; see `locate`.

        Raises InputError for what is no plain file or outside of the folders, and UnreadableError.
        """
        root, below = self.locate(path)
        try:
            return open_file(root, below, follow_links=self.follow_links)
        except FileNotFoundError:
            raise UnreadableError("no such file", where=str(root / below)) from None
        except OSError as error:
            what = f"cannot be read: {error.strerror}"
            raise UnreadableError(what, where=str(root / below)) from None

    def moved(self, folders: Sequence[Path]) -> Self:
        """Return this source with the folders at these paths; () for where they are."""
        return replace(self, folders=tuple(map(str, folders))) if folders else self

    def intake(self) -> Intake:
        """Return an intake that reads in the encoding, and raises bad files if `strict`."""
        return Intake(False if self.strict else None, self.encoding)


@dataclass(frozen=True, slots=True)
class FileState:
    """What a file was when it was last read.

    Attributes:
        size: Its size in bytes.
        modified: When its contents last changed, in nanoseconds since 1970, as the file states.
        settled: Whether any further change has another time than this one.
        digest: A hash of all that its documents depend on; empty if it was never read.
        documents: The id of each document that it became → a hash of the document. Default: none.
        changed: When its contents, name or permissions last changed, as the file system states.
        inode: Its number in the file system.
        failed: Whether it, or a file in it, could not be read for a reason that is not in its
            bytes, so that it has to be read again. Default False.
    """

    size: int
    modified: int
    settled: bool
    digest: str = ""
    documents: Mapping[str, str] = field(default_factory=dict)
    changed: int = 0
    inode: int = 0
    failed: bool = False

    @classmethod
    def of(cls, status: stat_result, now: int) -> Self:
        """Return the state of a file that has not been read. now: the time, in nanoseconds.

        A file that has just been changed may change again without another time, as clocks are
        coarse. A time in the future does not come from a change that has just been made.
        """
        times = status.st_mtime_ns, status.st_ctime_ns
        settled = all(abs(now - time) > SETTLED_NS for time in times)
        return cls(status.st_size, times[0], settled, changed=times[1], inode=status.st_ino)

    def describes(self, status: stat_result) -> bool:
        """Return whether the file has certainly not changed, by its size, times and number.

        Two files that swap their names have the same size and time of contents, at worst, but not
        the same number.
        """
        found = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        return self.settled and found == (self.size, self.modified, self.changed, self.inode)

    def to_be_read(self) -> FileState:
        """Return a state that describes no file, so that it is read again."""
        return replace(self, settled=False, digest="")


@dataclass(frozen=True, slots=True)
class FolderState:
    """The folders whose files are the documents of an index.

    Attributes:
        source: The folders, and how their files are read.
        files: Path of a file, below its folder or with the name of its folder in front (see
            `FolderSource`) → its state, of all files of a type that is read.
    """

    source: FolderSource
    files: Mapping[str, FileState] = field(default_factory=dict)

    @classmethod
    def from_json(cls, text: bytes) -> Self:
        """Return what `as_json` has given.

        All files are to be read again if this version of birchbark, or what is installed with it,
        may read more of them. Raises ArtifactError if the text is not such a state.
        """
        try:
            values = json.loads(text)
            source = values["source"]
            patterns = {name: tuple(source[name]) for name in ("folders", "include", "exclude")}
            files = {path: FileState(*state) for path, state in values["files"].items()}
            if values["readers"] != _readers():
                files = {path: state.to_be_read() for path, state in files.items()}
            return cls(FolderSource(**{**source, **patterns}), files)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            remedy = "build the index again from the folder"
            raise ArtifactError(f"damaged folder: {error!r}", remedy=remedy) from None

    @property
    def paths(self) -> dict[str, str]:
        """The id of each document → the path of its file, as in `files`."""
        return {doc_id: path for path, file in self.files.items() for doc_id in file.documents}

    def as_json(self) -> bytes:
        """Return the state as text."""
        files = {path: astuple(state) for path, state in self.files.items()}
        values = {"readers": _readers(), "source": asdict(self.source), "files": files}
        text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
        return text.encode(errors="surrogatepass")  # names of folders may be in any encoding


def _readers() -> str:
    """Return the version, and what is installed that changes what is read of files."""
    missing = sorted({kind.name for kind in OF_SUFFIX.values() if kind.missing()})
    return json.dumps([__version__, missing, ocr_installed(), installed_grammars()])
