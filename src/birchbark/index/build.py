"""How does a whole collection become an index on disk?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from pathlib import Path

from birchbark.artifact import fingerprint, lock, new_directory
from birchbark.errors import InputError
from birchbark.index.layout import DEFAULT_FIELDS, VOCABULARY, Manifest
from birchbark.index.reader import Index
from birchbark.index.writer import LOCK, PART_TOKENS, IndexWriter
from birchbark.records import Document
from birchbark.text.analyzer import analyzer

MOST_FIELDS = 1000


@dataclass(frozen=True, slots=True)
class Schema:
    """How documents are indexed.

    analyzer: its name. vocabulary: WordPieces for the analyzers wordpiece and porter+wordpiece; the
    index keeps them. fields: indexed field → the document fields whose texts it joins. keywords:
    document fields to filter by; each becomes a field whose whole text is one term. forward: also
    keep the terms of each document, which RM3 otherwise reads out of the stored text.
    """

    analyzer: str = "english"
    vocabulary: Sequence[str] | None = None
    fields: Mapping[str, Sequence[str]] = field(default_factory=lambda: DEFAULT_FIELDS)
    keywords: Sequence[str] = ()
    forward: bool = False

    def manifest(self) -> Manifest:
        """The manifest of an empty index; InputError for a schema that contradicts itself."""
        if clash := set(self.fields).intersection(self.keywords):
            raise InputError(f"field {min(clash)!r} is both searched and filtered by")
        sources = {name: tuple(names) for name, names in self.fields.items()}
        sources |= {name: (name,) for name in self.keywords}
        if len(sources) > MOST_FIELDS:
            raise InputError(
                "too many indexed fields", wanted=f"at most {MOST_FIELDS}", found=str(len(sources))
            )
        chosen = analyzer(self.analyzer, self.vocabulary)
        return Manifest(
            chosen.name, sources, (), keywords=tuple(self.keywords), forward=self.forward
        )


def build_index(
    documents: Iterable[Document],
    directory: Path | str,
    schema: Schema = Schema(),
    *,
    replace: bool = False,
    part_tokens: int = PART_TOKENS,
) -> Index:
    """Index `documents` under `directory` and open the result; it appears whole or not at all.

    schema: by default one field `contents` of title and text, in English. part_tokens: a part is
    closed when it holds this many tokens, which bounds the memory needed (about 20 bytes a token).

    Raises InputError if `directory` exists and `replace` is false or it is no index, if two
    documents share an id, or if there are no documents; ArtifactError if the index to be replaced
    is being written to.
    """
    manifest = schema.manifest()
    directory = Path(directory)
    made = new_directory(directory, replace=replace, check=Manifest.read)
    with ExitStack() as held, made as scratch:
        if directory.exists():
            held.enter_context(lock(directory / LOCK, "index"))  # nobody may be writing to it
        if schema.vocabulary is not None:
            kept = scratch / VOCABULARY
            kept.write_text("\n".join(schema.vocabulary), "utf-8")
            manifest = replaced(manifest, vocabulary=fingerprint(kept))
        manifest.write(scratch)
        with IndexWriter(scratch, part_tokens=part_tokens) as writer:
            for document in documents:
                if document.doc_id in writer:
                    raise InputError(f"a second document with the id {document.doc_id}")
                writer.add(document)
            if not len(writer):
                raise InputError("no documents to index")
    return Index(directory)
