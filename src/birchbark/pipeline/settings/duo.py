"""Which choices define how the best hits are compared in pairs (duoBERT)?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from birchbark import defaults
from birchbark.combine.pairwise import Pairwise
from birchbark.errors import InputError, require_at_least
from birchbark.score.duo import DuoScorer
from birchbark.score.scorer import Scorer


@dataclass(frozen=True, slots=True)
class Duo:
    """The settings of pairwise re-ranking (duoBERT).

    Attributes:
        model: The model that compares texts, from `load_duo_scorer`; it joins two texts into one
            input.
        scorer: Scores the inputs: `model` again, or a cache in front of it.
        depth: k1, the number of best documents that are compared with each other. At least 2.
            Defaults to 10.
        pairwise: How comparisons become one score per document. Defaults to `Pairwise()`: each
            document is compared with all others, and its probabilities are summed.
        max_comparisons: The largest number of comparisons allowed for all queries of a run
            together. Defaults to None: no limit.
    """

    model: DuoScorer
    scorer: Scorer
    depth: int = defaults.DUO_DEPTH
    pairwise: Pairwise = field(default_factory=Pairwise)
    max_comparisons: int | None = None

    def __post_init__(self) -> None:
        require_at_least("depth of pairwise re-ranking", self.depth, 2)

    def check_comparisons(self, candidates: Iterable[int]) -> int:
        """Return the number of comparisons for a run; InputError if it exceeds `max_comparisons`.

        candidates: the number of candidates of each query.
        """
        counts = [min(self.depth, number) for number in candidates]
        comparisons = sum(n * self.pairwise.comparisons_per_document(n) for n in counts)
        if self.max_comparisons is not None and comparisons > self.max_comparisons:
            raise InputError(
                "too many comparisons",
                wanted=f"at most {self.max_comparisons:,}",
                found=f"{comparisons:,}",
                remedy="a smaller depth, or sample:M",
            )
        return comparisons
