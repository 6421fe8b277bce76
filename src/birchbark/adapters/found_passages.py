"""How do the adapters hand the passages that a search found to other libraries?"""

from __future__ import annotations

from typing import Any, NamedTuple

from birchbark.pipeline.answers.hit_fields import place_fields
from birchbark.pipeline.searcher import Searcher
from birchbark.records import Places, Segment

OF_QUERY = ("score", "probability", "sentence")  # of the metadata, what depends on the query


class FoundPassage(NamedTuple):
    """The best passage of a document, what is known of it, and the document's score."""

    text: str
    metadata: dict[str, Any]
    score: float

    @property
    def passage_id(self) -> str:
        """Id that is the same whenever this passage is found: that of the document, and start."""
        return f"{self.metadata['doc_id']}:{self.metadata['start']}"


def found_passages(
    searcher: Searcher, query: str, top: int, budget: float | None
) -> list[FoundPassage]:
    """Search, and return the best passage of each of the `top` best documents, best first.

    The query is taken literally: in a question, quotation marks and colons are no operators.

    The metadata are the document's id, title and path, its score and the probability that it
    answers the query, the passage's offsets, page or line, and the sentence that is marked in it;
    without what is not known. A document that no model has read has its snippet, and
    one without text its title.
    """
    found = []
    for hit in searcher.search(searcher.parse(query, literal=True), top, budget).hits:
        best = hit.segments[0] if hit.segments else None
        passage = best.segment if best else hit.snippet.segment if hit.snippet else None
        if passage is None:  # the title is all that the document has
            contents = hit.document.contents
            passage = Segment(hit.document.doc_id, 0, len(contents), contents)
        known = {
            "doc_id": hit.document.doc_id,
            "title": hit.document.title or None,
            "path": hit.document.fields.get("path"),
            "score": hit.score,
            "probability": hit.probability,
            "start": passage.start,
            "end": passage.end,
            **place_fields(Places(hit.document), passage.start),
            "sentence": best.text if best else None,
        }
        metadata = {name: value for name, value in known.items() if value is not None}
        found.append(FoundPassage(passage.text, metadata, hit.score))
    return found
