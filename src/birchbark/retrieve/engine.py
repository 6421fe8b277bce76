"""What must a search engine do, so that BERT can re-rank what it finds?

Two calls, and some promises that `contract.py` checks for any engine. Our own index keeps them as
`IndexEngine`; tantivy, as `TantivyEngine` (tantivy.py), shows that others can.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from birchbark.index.attachment_reader import Attachment
from birchbark.index.reader import Index
from birchbark.records import Document, Ranking
from birchbark.retrieve.first_stage import FirstStage, rank_query


class DocumentStore(Protocol):
    """Something that gives documents back. An `Index` is one."""

    def documents(self, doc_ids: Sequence[str]) -> list[Document]:
        """The documents with these ids, in this order, as they were indexed.

        Raises InputError for an id that is not there.
        """
        ...


class Engine(DocumentStore, Protocol):
    """A first stage: candidates for a query, and their documents."""

    def rank(self, query: str, depth: int) -> Ranking:
        """The `depth` best documents for the text `query`, under the tie rule (records.py).

        Deeper rankings begin like shallower ones, and the same query gives the same ranking. The
        query is text, never syntax. One without words, or that matches nothing, has an empty
        ranking. Raises InputError for a depth below 1.
        """
        ...


@dataclass(frozen=True, slots=True)
class IndexEngine:
    """Our own index, ranked by the choices in `stage`."""

    index: Index
    stage: FirstStage = field(default_factory=FirstStage)

    @property
    def name(self) -> str:
        """What runs of it are called."""
        return self.stage.name

    def filtered(self, filters: Mapping[str, str]) -> IndexEngine:
        """The same, for documents with these values besides."""
        return IndexEngine(self.index, self.stage.filtered(filters))

    def rank(self, query: str, depth: int) -> Ranking:
        """As `Engine.rank`."""
        return rank_query(self.index, query, self.stage, depth)

    def documents(self, doc_ids: Sequence[str]) -> list[Document]:
        """As `DocumentStore.documents`."""
        return self.index.documents(doc_ids)

    def attachment(self, name: str) -> Attachment | None:
        """As `Index.attachment`."""
        return self.index.attachment(name)
