"""How is an index built from a whole collection?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from pathlib import Path
from typing import Any

from birchbark import defaults
from birchbark.arguments import check_instance, iterated, mapping_of, names_of, path_of
from birchbark.artifact import fingerprint, lock, new_directory
from birchbark.errors import ArtifactError, InputError, require_at_least
from birchbark.index.build_shards import build_shards
from birchbark.index.index import Index
from birchbark.index.layout import CONTENTS, DEFAULT_FIELDS, VOCABULARY, Manifest
from birchbark.index.sharded_writer import Writer, open_writer
from birchbark.index.shards import check_replaceable, is_index, manifest_folders, write_shards
from birchbark.index.weighted_terms import MAX_IMPACT
from birchbark.index.writer import LOCK, PART_TOKENS, IndexWriter, as_document
from birchbark.records import Document
from birchbark.systems import HAS_FOLDER_HANDLES
from birchbark.text.analyzer import analyzer

MAX_FIELDS = 1000


@dataclass(frozen=True, slots=True)
class Schema:
    """How documents are indexed.

    Attributes:
        analyzer: The analyzer of all searched fields: one of `birchbark.text.analyzer.NAMES`, such
            as `english`, `german` or `plain`. Default `english`.
        vocabulary: The tokens of a BERT vocabulary in the order of their ids, for the analyzers
            `wordpiece` and `porter+wordpiece`; the index stores them. Default None.
        fields: Indexed field → names of the document fields whose texts it joins. Default
            `{"contents": ("title", "text")}`.
        keywords: Document fields to filter by; each is indexed as a single term. Default: none.
        read_fields: Document fields that models read after the title, in this order. Default
            `("text",)`.
        forward: Whether to store the terms of each document in a forward index. Without it, RM3
            analyzes the stored texts again. Default False.
        weighted: Document fields whose terms have weights, as JSON objects such as `{"bee": 1.5}`,
            for learned sparse retrieval → steps per 1 of weight, to which weights are rounded. Each
            is indexed as a field of its own. Default: none.
    """

    analyzer: str = defaults.ANALYZER
    vocabulary: Sequence[str] | None = None
    fields: Mapping[str, Sequence[str]] = field(default_factory=lambda: DEFAULT_FIELDS)
    keywords: Sequence[str] = ()
    forward: bool = False
    read_fields: Sequence[str] = defaults.READ_FIELDS
    weighted: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        fields = mapping_of(self.fields, "fields").items()
        sources = {name: names_of(of_field, "source field") for name, of_field in fields}
        object.__setattr__(self, "fields", sources)
        for name in ("keywords", "read_fields"):
            object.__setattr__(self, name, names_of(getattr(self, name), name.removesuffix("s")))
        mapping_of(self.weighted, "weighted")

    def reading(self, fields: Sequence[str]) -> Schema:
        """Return a copy for which models read these fields; the default field has them, too.

        The title is always read first; if it is among `fields`, that changes nothing.
        """
        read = tuple(dict.fromkeys(name for name in fields if name != "title"))
        indexed = dict(self.fields)
        if indexed.get(CONTENTS) == DEFAULT_FIELDS[CONTENTS]:
            indexed[CONTENTS] = ("title", *read)
        return replaced(self, read_fields=read, fields=indexed)

    def manifest(self) -> Manifest:
        """Return the manifest of an empty index with this schema.

        Raises:
            InputError: If the analyzer is unknown, its vocabulary is missing or not used, a field
                is indexed in two ways, a number of steps is below 1, or there are no fields or
                more than 1000.
        """
        if clash := set(self.fields).intersection(self.keywords):
            raise InputError(f"field {min(clash)!r} is both searched and filtered by")
        if clash := {*self.fields, *self.keywords}.intersection(self.weighted):
            raise InputError(f"field {min(clash)!r} is indexed with weights and without")
        for name, steps in self.weighted.items():
            require_at_least(f"steps of field {name!r}", steps, 1)
            require_at_least(f"largest weight of field {name!r}", MAX_IMPACT // steps, 1)
        sources = {name: tuple(names) for name, names in self.fields.items()}
        sources |= {name: (name,) for name in (*self.keywords, *self.weighted)}
        if not sources:
            raise InputError("no field to index", wanted="a field, keyword or weighted field")
        if len(sources) > MAX_FIELDS:
            raise InputError(
                "too many indexed fields", wanted=f"at most {MAX_FIELDS}", found=str(len(sources))
            )
        return Manifest(
            analyzer(self.analyzer, self.vocabulary).name,
            sources,
            (),
            keywords=tuple(self.keywords),
            forward=self.forward,
            read_fields=tuple(self.read_fields),
            weighted=dict(self.weighted),
        )


def build_index(
    documents: Iterable[Document | Mapping[str, Any]] | None,
    directory: Path | str,
    schema: Schema = Schema(),
    *,
    replace: bool = False,
    part_tokens: int = PART_TOKENS,
    shards: int | None = None,
    finish: Callable[[Writer], object] = lambda writer: None,
) -> Index:
    """Build an index of `documents` in `directory`, and open it.

    The index appears complete or not at all.

    Args:
        documents: Documents, or records such as `{"id": "d1", "title": "…", "text": "…"}` (see
            `Document.from_dict`); None for an index to which they will be added.
        directory: Where to write the index.
        schema: How to index the documents. Default `Schema()`: one field `contents`, made of title
            and text, with the analyzer `english`.
        replace: Whether to replace an existing index. Default False.
        part_tokens: Start another part of the index when the current one has this many tokens. This
            bounds the memory needed, at about 20 bytes per token. Default 40,000,000.
        shards: Divide the index into this many shards, which other processes build in parallel
            (a script must then call this below `if __name__ == "__main__"`). Searches give the same
            scores. Default None: an index in one piece.
        finish: Called with a writer of the index that has all documents, before the index
            appears: it may attach vectors, or tell the index where its documents come from.
            Default: does nothing.

    Raises:
        InputError: If `directory` exists and `replace` is false or it is not an index, if the
            schema or a record is invalid, if two documents have the same id, or if there are no
            documents.
        ArtifactError: If another process is writing to the index that is to be replaced.
    """
    check_instance(schema, Schema, "the schema")
    manifest = schema.manifest()
    directory = path_of(directory, "the directory of the index")
    new = new_directory(directory, replace=replace, check=check_replaceable)
    with ExitStack() as stack, new as scratch:
        for folder in _folders_to_lock(directory):
            stack.enter_context(lock(folder / LOCK, "index"))
        folders = [scratch] if shards is None else [scratch, *write_shards(scratch, shards)]
        if schema.vocabulary is not None:
            for folder in folders:
                (folder / VOCABULARY).write_bytes("\n".join(schema.vocabulary).encode())
            manifest = replaced(manifest, vocabulary=fingerprint(scratch / VOCABULARY))
        for folder in folders if shards is None else folders[1:]:
            manifest.write(folder)
        checked = map(as_document, iterated(() if documents is None else documents, "documents"))
        count = (
            _build(checked, scratch, part_tokens)
            if shards is None
            else build_shards(checked, folders[1:], part_tokens)
        )
        if not count and documents is not None:
            raise InputError("no documents to index")
        _finish(scratch, finish)
        if not HAS_FOLDER_HANDLES:  # the system replaces no folder in which a file is open
            stack.close()
    return Index(directory)


def _folders_to_lock(directory: Path) -> list[Path]:
    """Return the folders that a writer of the index to be replaced would lock, if there is one."""
    if not is_index(directory):
        return []
    try:
        return manifest_folders(directory)
    except ArtifactError:  # nobody can write to it
        return []


def _finish(directory: Path, finish: Callable[[Writer], object]) -> None:
    """Call `finish` with a writer, none of whose files is open when this returns."""
    with open_writer(directory) as writer:
        finish(writer)


def _build(documents: Iterable[Document], directory: Path, part_tokens: int) -> int:
    """Add documents to the new, empty index in `directory`; return how many there are."""
    with IndexWriter(directory, part_tokens=part_tokens) as writer:
        for document in documents:
            if document.doc_id in writer:
                raise InputError(f"a second document with the id {document.doc_id}")
            writer.add(document)
        return len(writer)
