"""Which files make up an index on disk, and what does each contain?

    INDEX/
      manifest.json          version, analyzer, indexed fields, and the list of parts
      vocab.txt              WordPiece tokens, one per line, if the analyzer needs them
      origin-000007.json     where the documents come from (origin.py), if that is known
      part-000000/           an immutable part of the index, with its own statistics
        doc_ids.*            a string table (string_table.py): document number → doc_id
        texts.*              stored fields (stored_fields.py): document number → fields
        terms.*              a string table: the sorted terms of each indexed field, end to end
        fields.npy           (fields + 1): the number of each field's first term
        postings.*           each term's documents and frequencies (postings.py)
        lengths.npy          (fields, documents): the number of terms in each
        forward.*            optional: each document's terms and frequencies, by field
        deleted-000007.npy   the numbers of deleted documents; the manifest names the file
        attached-NAME-000008/  an attachment: rows computed from some of the documents
          docs.npy           uint32 (n,): the numbers of these documents, ascending
          starts.npy         (n + 1, arrays): each document's first row in each array
          checks.npy         uint32 (n,): salted checksums of rows (attachment_reader.py)
          rows.ARRAY         the rows of one array
        graph-attached-NAME-000008/  optional: the graph of its vectors (retrieve/hnsw.py)

Files that the manifest does not name do not belong to the index. Files never change: an update
writes new files, then replaces the manifest by one atomic rename. Readers keep their files open.
A part is what Lucene calls a segment; here, a segment is a sentence or window of a document.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from shlex import quote
from typing import Any

from birchbark import defaults
from birchbark.artifact import fingerprint, json_checksum, read_json, software_versions, write_json
from birchbark.errors import ArtifactError, InputError
from birchbark.index.attachment_schema import AttachmentSchema, RowFolderEntry
from birchbark.index.weighted_terms import Impacts, parse_impacts
from birchbark.text.analyzer import Analyzer, analyzer, keyword

FORMAT = "birchbark index"
VERSION = 7  # since 7, the manifest names the origin; raise it when terms change, too
MANIFEST = "manifest.json"
NAMES_OF_FILES = ("path", "folder")  # fields that may look like a list, as a folder [2024] does
VOCABULARY = "vocab.txt"
ORIGIN_FILES = "origin-"  # the beginning of their names; a number and .json follow
SHARDS = "shards.json"  # of an index that is divided; see shards.py
CONTENTS = defaults.INDEXED_FIELD
FILE_NAMES = defaults.FILE_NAMES_FIELD
# The names of files and folders in a manifest, which never lead out of the index.
PART = re.compile(r"part-[0-9]+(-[0-9]+)?")
ORIGIN = re.compile(rf"({ORIGIN_FILES}[0-9]+\.json)?")
DELETED = re.compile(r"(deleted-[0-9]+\.npy)?")
ATTACHED = re.compile(r"attached-[a-z0-9_-]+-[0-9]+")
DEFAULT_FIELDS = {CONTENTS: defaults.INDEXED_FIELD_PARTS}


def is_undivided_index(directory: Path) -> bool:
    """Return whether `directory` is an index of any version or has a damaged manifest.

    A folder of documents that contains an unrelated manifest.json is not an index.
    """
    path = directory / MANIFEST
    try:
        manifest = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return True
    except OSError:
        return path.is_file()
    return isinstance(manifest, dict) and manifest.get("format") == FORMAT


@dataclass(frozen=True, slots=True)
class FieldTotals:
    """Statistics of one indexed field, for a part or summed over an index.

    documents: the number of documents with at least one term in the field (Lucene's docCount).
    tokens: the total number of terms in the field. BM25's average length is tokens / documents.
    """

    documents: int
    tokens: int

    def __add__(self, other: FieldTotals) -> FieldTotals:
        return FieldTotals(self.documents + other.documents, self.tokens + other.tokens)


@dataclass(frozen=True, slots=True)
class PartEntry:
    """The manifest's entry for one part.

    name: the name of the part's directory.
    documents: the number of stored documents, including deleted ones.
    fields: the totals of each indexed field, without deleted documents.
    checksum: the checksum of the files written with the part.
    deleted: the name of the file that lists the deleted documents; empty if there are none.
    deleted_checksum: the checksum of that file.
    attached: attachment → its folders of rows; a document is in at most one of them.
    """

    name: str
    documents: int
    fields: tuple[FieldTotals, ...]
    checksum: str
    deleted: str = ""
    deleted_checksum: str = ""
    attached: dict[str, tuple[RowFolderEntry, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of manifest.json.

    analyzer: the name of the analyzer of all searched fields.
    fields: indexed field → names of the document fields whose texts it joins.
    parts: the entries of the parts, in order.
    generation: incremented by each change to the index.
    keywords: indexed fields to filter by, each of which is a single term per document.
    forward: whether parts have a forward index.
    vocabulary: the checksum of vocab.txt; empty if there is none.
    attachments: name → schema.
    read_fields: the document fields that models read after the title.
    weighted: indexed field whose terms have weights → steps per 1 of weight (weighted_terms.py).
    origin: the name of the file that says where the documents come from; empty if there is none.
    origin_checksum: the checksum of that file.
    """

    analyzer: str
    fields: dict[str, tuple[str, ...]]
    parts: tuple[PartEntry, ...]
    generation: int = 0
    keywords: tuple[str, ...] = ()
    forward: bool = False
    vocabulary: str = ""
    attachments: dict[str, AttachmentSchema] = field(default_factory=dict)
    read_fields: tuple[str, ...] = defaults.READ_FIELDS
    weighted: dict[str, int] = field(default_factory=dict)
    origin: str = ""
    origin_checksum: str = ""

    @property
    def fields_beside_contents(self) -> tuple[str, ...]:
        """The document fields that are searched, but not part of a document's contents."""
        contents = {"title", *self.read_fields}
        searched = [self.fields[name] for name in self.fields if name not in self.keywords]
        sources = [source for of_field in searched for source in of_field]
        return tuple(dict.fromkeys(source for source in sources if source not in contents))

    @property
    def unread_fields(self) -> tuple[str, ...]:
        """The document fields that are searched, but not read by models.

        Fields to filter by, such as the path of a file, need not be read.
        """
        need_not = {*self.keywords, *self.weighted}
        return tuple(name for name in self.fields_beside_contents if name not in need_not)

    def texts_of(self, document: Mapping[str, str]) -> list[str]:
        """Return the text of each indexed field. document: the fields of a document."""
        return [
            "\n".join([document.get(source, "") for source in sources])
            for sources in self.fields.values()
        ]

    def impacts_of(self, document: Mapping[str, str], where: str) -> dict[str, Impacts]:
        """Return weighted field → its terms with impacts; InputError for invalid weights.

        document: the fields of a document. where: the document, for errors.
        """
        return {
            name: parse_impacts(document.get(name, ""), steps, f"{where}, field {name!r}")
            for name, steps in self.weighted.items()
        }

    def check_keywords(self, document: Mapping[str, str], where: str) -> None:
        """Raise InputError if a field to filter by has a list: filters compare whole values.

        document: the fields of a document. where: the document, for errors.
        """
        for name in (name for name in self.keywords if name not in NAMES_OF_FILES):
            text = document.get(name, "")
            if text.startswith("[") and is_json_list(text):
                raise InputError(
                    "a field to filter by has a list",
                    where=f"{where}, field {name!r}",
                    wanted="one value per document",
                    found=text[:60],
                    remedy="give the most important one, or index the field without filters",
                )

    def field_analyzers(self, directory: Path) -> dict[str, Analyzer]:
        """Return indexed field → its analyzer."""
        default = self.load_analyzer(directory)
        return {name: keyword() if name in self.keywords else default for name in self.fields}

    def load_analyzer(self, directory: Path) -> Analyzer:
        """Return the analyzer of the searched fields, with the vocabulary stored in `directory`.

        Raises ArtifactError if it is not the one that the index was built with.
        """
        path = directory / VOCABULARY
        if self.vocabulary and not (path.exists() and fingerprint(path) == self.vocabulary):
            raise ArtifactError(
                "damaged vocabulary: its checksum is wrong",
                where=str(path),
                remedy="build the index again",
            )
        vocabulary = path.read_text("utf-8").split("\n") if path.exists() else None
        return analyzer(self.analyzer, vocabulary)

    def write(self, directory: Path) -> None:
        """Write this manifest atomically, in place of the current one."""
        write_json(directory / MANIFEST, self.as_json())

    def as_json(self) -> dict[str, Any]:
        """Return what manifest.json contains."""
        values = {
            "format": FORMAT,
            "version": VERSION,
            "made_by": software_versions(),
            **asdict(self),
        }
        return values | {"checksum": json_checksum(values)}

    @classmethod
    def read(cls, directory: Path) -> Manifest:
        """Read the manifest of an index.

        Raises InputError if there is none, ArtifactError if it is damaged or its version is not
        supported.
        """
        try:
            values = read_json(directory / MANIFEST, "index")
        except InputError as error:
            error.remedy = _no_index(directory)
            raise
        return cls.from_json(values, directory)

    @classmethod
    def from_json(cls, values: Any, directory: Path) -> Manifest:
        """Return what `as_json` has given; ArtifactError, which names `directory`, if damaged."""
        if not isinstance(values, dict) or values.get("format") != FORMAT:
            raise ArtifactError("not an index", where=str(directory))
        if values.get("version") != VERSION:
            raise ArtifactError(
                "unsupported index version",
                where=str(directory),
                wanted=str(VERSION),
                found=str(values.get("version")),
                remedy="build it again: birchbark index build … --to "
                f"{quote(str(directory))} --replace",
            )
        if values.pop("checksum", "") != json_checksum(values):
            raise ArtifactError("damaged manifest: its checksum is wrong", where=str(directory))
        try:
            return cls._from(values)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ArtifactError(f"damaged manifest: {error!r}", where=str(directory)) from error

    @classmethod
    def _from(cls, values: dict[str, Any]) -> Manifest:
        fields = {name: tuple(sources) for name, sources in values["fields"].items()}
        if not ORIGIN.fullmatch(values["origin"]):
            raise ValueError(f"{values['origin']!r} is not the name of a file of an index")
        return cls(
            values["analyzer"],
            fields,
            tuple(map(_part_entry, values["parts"])),
            values["generation"],
            tuple(values["keywords"]),
            values["forward"],
            values["vocabulary"],
            {n: AttachmentSchema.read(s) for n, s in values["attachments"].items()},
            tuple(values["read_fields"]),
            {name: int(steps) for name, steps in values["weighted"].items()},
            values["origin"],
            values["origin_checksum"],
        )


def index_beside(folder: Path) -> Path:
    """Return the path of the index of a folder's files: FOLDER.index, beside the folder."""
    named = folder if folder.name not in ("", "..") else folder.resolve()
    return named.parent / f"{named.name}.index"  # of /, which has no name, /.index


def _no_index(directory: Path) -> str:
    """Say what to do about a path that is no index."""
    if (directory / SHARDS).exists():
        return (
            "it is divided into shards: birchbark.index.sharded_writer.open_writer changes such an "
            "index"
        )
    beside = index_beside(directory)
    if (beside / MANIFEST).exists():
        return f"the index of this folder is {beside}"
    if directory.is_dir():
        paths = f"{quote(str(directory))} --to {quote(str(beside))}"
        return f"make one of this folder: birchbark index {paths}"
    if directory.is_file():
        return "it is a file, not the folder of an index"
    return "there is no such folder"


def _part_entry(values: dict[str, Any]) -> PartEntry:
    fields = tuple(FieldTotals(**totals) for totals in values["fields"])
    attached = {
        name: tuple(map(RowFolderEntry.read, entries))
        for name, entries in values["attached"].items()
    }
    entry = PartEntry(**values | {"fields": fields, "attached": attached})
    names = [(PART, entry.name), (DELETED, entry.deleted)]
    names += [(ATTACHED, rows.name) for entries in attached.values() for rows in entries]
    for pattern, name in names:
        if not pattern.fullmatch(name):
            raise ValueError(f"{name!r} is not the name of a part or of its files")
    return entry


def is_json_list(text: str) -> bool:
    """Return whether a text is a list in JSON."""
    try:
        return isinstance(json.loads(text), list)
    except (ValueError, RecursionError):
        return False
