"""What lies where in an index on disk?

    INDEX/
      manifest.json          version, analyzer, indexed fields, and the list of parts
      vocab.txt              WordPieces, a line each, where the analyzer needs them
      part-000000/           an immutable piece of the index, with statistics of its own
        doc_ids.*            a string table (strings.py): document number → doc_id
        texts.*              the stored fields (texts.py): document number → fields
        terms.*              a string table: the terms of each indexed field, sorted, end to end
        fields.npy           (fields + 1): number of each field's first term
        postings.*           a list of documents and frequencies for each term (postings.py)
        lengths.npy          (fields, documents): terms in each field of each document
        forward.*            optional: for each document and field, its terms and frequencies
        deleted-000007.npy   numbers of documents deleted by then; the manifest names the file
        attached-NAME-000008/  rows that others computed from some of the documents
          docs.npy           uint32 (n,): numbers of these documents, rising
          starts.npy         (n + 1, arrays): where the rows of each document start in each array
          checks.npy         uint32 (n,): a checksum of each document's rows (attachment_reader.py)
          rows.ARRAY         the rows of one array, end to end

An index is what its manifest says: files that the manifest does not name do not exist. Files never
change; a change writes new ones and then swaps the manifest by one atomic rename. Readers keep the
files they have opened.
(Lucene says "segment" for a part; here a segment is a piece of a document.)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from birchbark.artifact import origin, read_json, write_json
from birchbark.errors import ArtifactError
from birchbark.index.attachment_schema import AttachedEntry, AttachmentSchema
from birchbark.text.analyzer import Analyzer, analyzer, keyword

FORMAT, VERSION = "birchbark index", 2
WITH_ATTACHMENTS = 3  # the version of an index that has any; without, older readers can read it
MANIFEST = "manifest.json"
VOCABULARY = "vocab.txt"
CONTENTS = "contents"
DEFAULT_FIELDS = {CONTENTS: ("title", "text")}


def is_index(directory: Path) -> bool:
    """Whether `directory` says that it is an index, of any version; or has said so, and is damaged.

    A folder of documents may hold a manifest.json of its own.
    """
    path = directory / MANIFEST
    try:
        said = json.loads(path.read_bytes())
    except ValueError:
        return True
    except OSError:
        return path.is_file()
    return isinstance(said, dict) and said.get("format") == FORMAT


@dataclass(frozen=True, slots=True)
class FieldTotals:
    """Statistics of one indexed field: over a part, or summed over an index.

    documents: those with at least one term in the field (Lucene's docCount). tokens: all terms of
    all documents. BM25's average length is tokens / documents.
    """

    documents: int
    tokens: int

    def __add__(self, other: FieldTotals) -> FieldTotals:
        return FieldTotals(self.documents + other.documents, self.tokens + other.tokens)


@dataclass(frozen=True, slots=True)
class PartEntry:
    """One line of the manifest: a part's folder and what is in it.

    documents: as stored, the deleted ones included. fields: totals without the deleted ones.
    checksum: over the files written with the part. deleted: the file of deleted documents, empty if
    there are none, and its checksum. attached: attachment → folders of its rows; a document is in
    one of them at most.
    """

    name: str
    documents: int
    fields: tuple[FieldTotals, ...]
    checksum: str
    deleted: str = ""
    deleted_checksum: str = ""
    attached: dict[str, tuple[AttachedEntry, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Manifest:
    """All that must be known before a part is opened.

    fields: indexed field → names of the document fields whose texts it joins. generation: how many
    times the index was changed. keywords: fields whose whole text is one term, to filter by.
    forward: whether parts have a forward index. vocabulary: the checksum of that file, if any.
    attachments: name → what it keeps and what made it.
    """

    analyzer: str
    fields: dict[str, tuple[str, ...]]
    parts: tuple[PartEntry, ...]
    generation: int = 0
    keywords: tuple[str, ...] = ()
    forward: bool = False
    vocabulary: str = ""
    attachments: dict[str, AttachmentSchema] = field(default_factory=dict)

    def texts_of(self, document: Mapping[str, str]) -> list[str]:
        """The text of each indexed field, out of the fields of a document."""
        return [
            "\n".join([document.get(source, "") for source in sources])
            for sources in self.fields.values()
        ]

    def field_analyzers(self, directory: Path) -> dict[str, Analyzer]:
        """Field → the analyzer its text goes through."""
        chosen = self.load_analyzer(directory)
        return {name: keyword() if name in self.keywords else chosen for name in self.fields}

    def load_analyzer(self, directory: Path) -> Analyzer:
        """The analyzer of the index in `directory`, with the vocabulary kept there."""
        path = directory / VOCABULARY
        kept = path.read_text("utf-8").split("\n") if path.exists() else None
        return analyzer(self.analyzer, kept)

    def write(self, directory: Path) -> None:
        """Put this manifest in the place of the present one, whole or not at all."""
        version = WITH_ATTACHMENTS if self.attachments else VERSION
        values: dict[str, Any] = {"format": FORMAT, "version": version, "made_by": origin()}
        values |= asdict(self)
        for holder, key in ((values, "attachments"), *((p, "attached") for p in values["parts"])):
            if not holder[key]:  # so an index without any is written as it always was
                del holder[key]
        write_json(directory / MANIFEST, values | {"checksum": _checksum(values)})

    @classmethod
    def read(cls, directory: Path) -> Manifest:
        """The manifest in `directory`; InputError if there is none, ArtifactError if damaged."""
        values = read_json(directory / MANIFEST, "index")
        if not isinstance(values, dict) or values.get("format") != FORMAT:
            raise ArtifactError("not an index", where=str(directory))
        if values.get("version") not in (VERSION, WITH_ATTACHMENTS):
            raise ArtifactError(
                "index of another version",
                where=str(directory),
                wanted=f"{VERSION} or {WITH_ATTACHMENTS}",
                found=str(values.get("version")),
                remedy="build it again with this birchbark",
            )
        if values.pop("checksum", "") != _checksum(values):
            raise ArtifactError("damaged manifest: its checksum is wrong", where=str(directory))
        try:
            return cls._from(values)
        except (KeyError, TypeError, AttributeError) as broken:
            raise ArtifactError(f"damaged manifest: {broken!r}", where=str(directory)) from broken

    @classmethod
    def _from(cls, values: dict[str, Any]) -> Manifest:
        fields = {name: tuple(sources) for name, sources in values["fields"].items()}
        return cls(
            values["analyzer"],
            fields,
            tuple(map(_part, values["parts"])),
            values["generation"],
            tuple(values["keywords"]),
            values["forward"],
            values["vocabulary"],
            {n: AttachmentSchema.read(s) for n, s in values.get("attachments", {}).items()},
        )


def _part(values: dict[str, Any]) -> PartEntry:
    fields = tuple(FieldTotals(**totals) for totals in values["fields"])
    attached = {
        name: tuple(map(AttachedEntry.read, entries))
        for name, entries in values.get("attached", {}).items()
    }
    return PartEntry(**values | {"fields": fields, "attached": attached})


def _checksum(values: dict[str, Any]) -> str:
    """Over the manifest's own content, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
