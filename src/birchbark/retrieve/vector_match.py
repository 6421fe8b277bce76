"""Which documents do stored vectors make candidates, and what are candidates scored by?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from birchbark.arguments import is_count
from birchbark.errors import InputError, require_at_least
from birchbark.retrieve.match import OR, Match, parse_match


class CandidateScores(Enum):
    """What the scores of candidates are.

    FIRST_STAGE: those of the first stage's model, such as BM25.
    COSINE: the cosine of the query and the document's nearest segment, negative cosines set to 0.
    RRF: sums of the reciprocal ranks by FIRST_STAGE and by COSINE (Cormack et al. 2009).
    """

    FIRST_STAGE = "first stage"
    COSINE = "cosine"
    RRF = "rrf"


@dataclass(frozen=True, slots=True)
class VectorMatch:
    """How a `DenseEngine` chooses candidates and scores them.

    Attributes:
        count: Number of documents nearest to the query that become candidates. 0 for none.
            Defaults to None: as many as there are places for.
        terms: Documents that match the query's terms in this way (`OR`, `AND`, or another
            `Match`) become candidates as well. Defaults to None: no documents by terms.
        scores: How candidates are scored. Defaults to `CandidateScores.COSINE`. Since the model of
            the `FIRST_STAGE` may rank the nearest documents last, they are in its ranking in any
            case, but take at most half of its places. `RRF` needs `count` and `terms`.
        vectors: The name of the index's set of vectors, such as `vectors-2`. Defaults to None:
            the first one.
        query_tokens: Number of tokens at the beginning of a query that the model reads. Defaults to
            None: as many as the first ranker reads, or all, and a query that is too long is
            refused.
    """

    count: int | None = None
    terms: Match | None = None
    scores: CandidateScores = CandidateScores.COSINE
    vectors: str | None = None
    query_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.count is not None:
            require_at_least("number of nearest documents", self.count, 0)
        if self.query_tokens is not None:
            require_at_least("number of query tokens", self.query_tokens, 1)
        if self.count == 0 and self.terms is None:
            raise InputError("no document would be a candidate", wanted="a count above 0, or terms")
        if self.scores is CandidateScores.RRF and (self.count == 0 or self.terms is None):
            raise InputError(
                "reciprocal rank fusion needs candidates by vectors and by terms",
                wanted="a match such as nearest+or",
            )
        if self.vectors is not None and not self.used:
            raise InputError(
                "a set of vectors is given, but no vectors are used",
                found=self.vectors,
                wanted="nearest in the match, such as nearest+or",
            )

    @property
    def used(self) -> bool:
        """Whether vectors are used, whether to find candidates or to score them."""
        return self.scores is not CandidateScores.FIRST_STAGE or self.count != 0

    def nearest(self, depth: int) -> int:
        """Return how many of the nearest documents are candidates for a ranking of `depth`."""
        shared = self.terms is not None and self.scores is CandidateScores.FIRST_STAGE
        places = depth // 2 if shared else depth
        if self.count is None:
            return places
        return min(self.count, places) if shared else self.count


BY_TERMS = VectorMatch(0, OR, CandidateScores.FIRST_STAGE)
"""Candidates contain any of the query's terms; vectors are not used."""

HYBRID = VectorMatch(None, OR, CandidateScores.FIRST_STAGE)
"""Half of the candidates are the nearest documents, the others the best that contain any term."""

DEFAULT_MATCH = {
    CandidateScores.FIRST_STAGE: BY_TERMS,
    CandidateScores.COSINE: VectorMatch(),
    CandidateScores.RRF: VectorMatch(None, OR, CandidateScores.RRF),
}


def parse_vector_match(text: str, scores: CandidateScores) -> VectorMatch:
    """Parse MATCH (see `parse_match`), nearest, nearest:COUNT, nearest+MATCH, nearest:COUNT+MATCH.

    An empty text stands for DEFAULT_MATCH: documents with any query term, the nearest documents, or
    both for RRF.
    """
    if not text:
        return DEFAULT_MATCH[scores]
    before, plus, after = text.partition("+")
    name, colon, number = before.partition(":")
    nearest = name == "nearest"
    by_terms = after if nearest else text
    wrong = nearest and (is_count(number) != bool(colon) or bool(after) != bool(plus))
    try:
        terms = parse_match(by_terms) if by_terms else None
    except InputError:
        wrong = True
    if wrong:
        raise InputError(
            f"unknown match {text!r}",
            wanted="or, and, all, a number, nearest or nearest:COUNT; or both, as in nearest+or",
        )
    count = (int(number) if colon else None) if nearest else 0
    return VectorMatch(count, terms, scores)
