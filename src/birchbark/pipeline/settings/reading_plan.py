"""Which segments of which candidates does BERT read?"""

from __future__ import annotations

from dataclasses import dataclass

from birchbark.errors import require_at_least


@dataclass(frozen=True, slots=True)
class ReadingPlan:
    """Which segments of which candidates are read. The default reads everything, as the papers do.

    The scorer reads the best `segments` segments of each of the best candidates: as many candidates
    as `pairs` suffices for, and at most `documents`. Candidates are ordered by their first-stage
    score and their evidence by the embedding, but every third place is for the best by the
    embedding alone. Segments are ordered by the embedding's scores or, if it has none, by those of
    the static embedding, or else by the query terms that they contain, weighted by idf. Candidates
    that are not read follow those that are, by first stage and embedding.

    Attributes:
        segments: Number of segments of each document that the scorer reads. Those of a document of
            more than 10,000 characters without stored vectors are chosen from the parts of it that
            contain most of the query's terms. Defaults to None: all segments.
        documents: Number of candidates that the scorer reads. Defaults to None: all.
        pairs: Number of query–segment pairs that the scorer reads in total, so that a query costs
            about the same for long documents as for short ones. The best candidate is always read.
            Defaults to None: no limit.
        embedded: Number of segments of each document that the embedding reads if the index has no
            vectors of the document. Stored vectors are always all used. Defaults to None: all.
        embedded_documents: Number of candidates without stored vectors that the embedding reads, if
            the index has static vectors of them; the others keep the evidence by the static
            embedding. Without static vectors it reads all of them. Defaults to None: all.
    """

    segments: int | None = None
    documents: int | None = None
    pairs: int | None = None
    embedded: int | None = None
    embedded_documents: int | None = None

    def __post_init__(self) -> None:
        for name in ("segments", "documents", "pairs", "embedded", "embedded_documents"):
            value = getattr(self, name)
            if value is not None:
                require_at_least(f"number of {name.replace('_', ' ')} to read", value, 1)

    def max_pairs(self, candidates: int) -> int | None:
        """Return how many pairs the scorer reads at most; None if the plan has no limit.

        Args:
            candidates: Number of candidates for the query.
        """
        if self.segments is None:
            return None
        pairs = self.segments * min(candidates, self.documents or candidates)
        return pairs if self.pairs is None else min(pairs, max(self.pairs, self.segments))
