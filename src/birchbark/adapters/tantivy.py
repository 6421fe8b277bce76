"""How does tantivy, a search engine in Rust, serve as the first stage?

Tantivy's BM25 has k1 = 1.2 and b = 0.75, which are constants in its code, and rounds document
lengths to one byte, as Lucene does. Text is analysed by birchbark's English analyser, so that terms
are the same as in birchbark's own index.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from birchbark import defaults
from birchbark.artifact import new_directory
from birchbark.errors import ArtifactError, InputError, extra, require_at_least
from birchbark.records import Document, Ranking
from birchbark.text.analyzer import analyzer

TERMS, DOC_ID, FIELDS, READ = "terms", "doc_id", "fields", "read_fields"
MAX_ID_BYTES = 60_000  # tantivy drops terms over 65,530 bytes
EXTRA_HITS = 64  # requested beyond the depth, to find hits that tie with the last one


class TantivyEngine:
    """An `Engine` (retrieve/engine.py) over a tantivy index of title and text as one field."""

    def __init__(self, directory: Path | str) -> None:
        """Open the index in `directory`; InputError if there is none."""
        self._tantivy = _package()
        try:
            index = self._tantivy.Index.open(str(directory))
        except ValueError as error:
            raise InputError(f"not a tantivy index: {error}", where=str(directory)) from error
        self._analyzer = analyzer("english")
        self._schema, self._searcher = index.schema, index.searcher()
        self._directory = str(directory)

    @classmethod
    def build(
        cls, documents: Iterable[Document], directory: Path | str, *, replace: bool = False
    ) -> TantivyEngine:
        """Index `documents` in `directory` and open the index.

        The directory is written completely or not at all. replace: whether a tantivy index that is
        already there may be replaced. Raises InputError if `directory` exists and may not be
        replaced, if a document cannot be indexed, if two documents have the same id, and if there
        are no documents.
        """
        english, seen = analyzer("english"), set[str]()
        with new_directory(Path(directory), replace=replace, check=cls) as scratch:
            writer = _new_index(scratch).writer(num_threads=1)
            for document in documents:
                if fault := document.fault or _id_fault(document.doc_id, seen):
                    raise InputError(fault, where=f"document {document.doc_id[:100]!r}")
                seen.add(document.doc_id)
                stored = _package().Document()
                stored.add_text(DOC_ID, document.doc_id)
                stored.add_text(TERMS, "\n".join(english.terms(document.contents)))
                stored.add_text(FIELDS, json.dumps(dict(document.fields)))
                stored.add_text(READ, json.dumps(document.read_fields))
                writer.add_document(stored)
            if not seen:
                raise InputError("no documents to index")
            writer.commit()
            writer.wait_merging_threads()
        return cls(directory)

    def rank(self, query: str, depth: int) -> Ranking:
        """See `Engine.rank`."""
        require_at_least("depth", depth, 1)
        query_type = self._tantivy.Query
        clauses = [
            (self._tantivy.Occur.Should, query_type.term_query(self._schema, TERMS, term, "freq"))
            for term in self._analyzer.terms(query)
        ]
        hits = self._with_ties(query_type.boolean_query(clauses), depth) if clauses else []
        doc_ids = [self._searcher.doc(address).get_first(DOC_ID) for _, address in hits]
        return Ranking.of(doc_ids, [score for score, _ in hits], depth)

    def documents(self, doc_ids: Sequence[str]) -> list[Document]:
        """See `DocumentStore.documents`."""
        return [self._document(doc_id) for doc_id in doc_ids]

    def _with_ties(self, query: Any, depth: int) -> list[tuple[float, Any]]:
        """Return at least the `depth` best hits, and all hits that tie with the last of these.

        Tantivy breaks ties by position in the index, the project by document id.
        """
        count = max(1, self._searcher.num_docs)
        limit = min(depth + EXTRA_HITS, count)
        while True:
            hits = self._searcher.search(query, limit, count=False).hits
            if len(hits) < limit or limit == count or hits[-1][0] < hits[depth - 1][0]:
                return hits  # type: ignore[no-any-return]
            limit = min(2 * limit, count)

    def _document(self, doc_id: str) -> Document:
        query = self._tantivy.Query.term_query(self._schema, DOC_ID, doc_id, "basic")
        hits = self._searcher.search(query, 1, count=False).hits
        if not hits:
            raise InputError(f"no document {doc_id}", where=self._directory)
        stored = self._searcher.doc(hits[0][1])
        fields = json.loads(stored.get_first(FIELDS) or "")
        if not isinstance(fields, dict):
            raise ArtifactError("damaged index", where=self._directory)
        read = stored.get_first(READ)  # None in an index of version 0.2 or before
        return Document(doc_id, fields, tuple(json.loads(read)) if read else defaults.READ_FIELDS)


def _id_fault(doc_id: str, seen: set[str]) -> str:
    """Return why tantivy cannot index a document with this id; empty if it can."""
    if doc_id in seen:
        return "a second document with this id"
    return "the id is too long for tantivy" if len(doc_id.encode()) > MAX_ID_BYTES else ""


def _package() -> Any:
    with extra("tantivy"):
        import tantivy
    return tantivy


def _new_index(directory: Path) -> Any:
    tantivy = _package()
    schema = tantivy.SchemaBuilder()
    schema.add_text_field(TERMS, tokenizer_name=TERMS, index_option="freq")
    schema.add_text_field(DOC_ID, stored=True, tokenizer_name="raw", index_option="basic")
    for name in (FIELDS, READ):
        schema.add_text_field(name, stored=True, tokenizer_name="raw", index_option="basic")
    index = tantivy.Index(schema.build(), path=str(directory))
    lines = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.regex(r"[^\n]+")).build()
    index.register_tokenizer(TERMS, lines)
    return index
