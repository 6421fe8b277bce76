"""How does a whole collection become an index on disk?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from birchbark.artifact import new_directory
from birchbark.errors import InputError
from birchbark.index.layout import DEFAULT_FIELDS, VOCABULARY, Manifest
from birchbark.index.reader import Index
from birchbark.index.writer import PART_TOKENS, IndexWriter
from birchbark.records import Document
from birchbark.text.analyzer import analyzer

MOST_FIELDS = 1000


def build_index(
    documents: Iterable[Document],
    directory: Path | str,
    *,
    analyzer_name: str = "english",
    vocabulary: Sequence[str] | None = None,
    fields: Mapping[str, Sequence[str]] | None = None,
    replace: bool = False,
    part_tokens: int = PART_TOKENS,
) -> Index:
    """Index `documents` under `directory` and open the result; it appears whole or not at all.

    vocabulary: WordPieces for the analyzers wordpiece and porter+wordpiece; the index keeps them.
    fields: indexed field → the document fields whose texts it joins; one field `contents` of title
    and text where not given. part_tokens: a part is closed when it holds this many tokens, which
    bounds the memory needed (about 20 bytes a token).

    Raises InputError if `directory` exists and `replace` is false, if two documents share an id, or
    if there are no documents.
    """
    sources = {name: tuple(names) for name, names in (fields or DEFAULT_FIELDS).items()}
    if len(sources) > MOST_FIELDS:
        raise InputError(
            "too many indexed fields", wanted=f"at most {MOST_FIELDS}", found=str(len(sources))
        )
    directory = Path(directory)
    if replace and directory.exists():
        Manifest.read(directory)  # only an index may be replaced
    with new_directory(directory, replace=replace) as scratch:
        Manifest(analyzer(analyzer_name, vocabulary).name, sources, ()).write(scratch)
        if vocabulary is not None:
            (scratch / VOCABULARY).write_text("\n".join(vocabulary), "utf-8")
        with IndexWriter(scratch, part_tokens=part_tokens) as writer:
            for document in documents:
                if document.doc_id in writer:
                    raise InputError(f"a second document with the id {document.doc_id}")
                writer.add(document)
            if not len(writer):
                raise InputError("no documents to index")
    return Index(directory)
