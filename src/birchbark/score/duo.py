"""Which of two texts is the more relevant one, says BERT when it reads both? duoBERT.

[CLS] query [SEP] text [SEP] other [SEP], both texts of the second type: most models know no third.
Nogueira et al. 2019.
"""

from __future__ import annotations

from pathlib import Path

from birchbark.checkpoint.heads import Classifier
from birchbark.errors import CheckpointError, InputError
from birchbark.records import Ids
from birchbark.score.cross_encoder import CrossEncoderScorer
from birchbark.score.model import open_model
from birchbark.score.precision import Precision
from birchbark.score.session import NewSession


class DuoScorer(CrossEncoderScorer):
    """Probability that the first of two joined texts is more relevant than the second.

    A pair of texts is a piece like any other (`joined`), so it is batched and kept as pieces are.
    """

    kind = called = "duo"

    def side_room(self, query: str) -> int:
        """Tokens that each of two texts may have beside `query`; InputError if it leaves none."""
        between = len(self.joined(*self.encode(["", ""])))
        both = self.room(query) - between
        if both < 2:
            raise InputError(
                f"{self.checkpoint.name} has no room for two texts beside the query",
                found=f"{max(0, both)} tokens",
            )
        return both // 2

    def joined(self, text: Ids, other: Ids) -> Ids:
        """What `score` reads of `text` and `other`, in this order."""
        return self._pieces.joined(text, other)


def load_duo(
    model: str | Path,
    threads: int | None = None,
    precision: Precision = Precision.FP32,
    session: NewSession | None = None,
) -> DuoScorer:
    """As load_scorer, of a model that compares; CheckpointError for any other."""
    checkpoint, run = open_model(model, None, precision, session)
    head = checkpoint.head
    if not (isinstance(head, Classifier) and head.compares):
        raise CheckpointError(
            "this model does not compare two texts",
            where=str(model),
            remedy="birchbark train makes one that does, with objective duo",
        )
    return DuoScorer(checkpoint, threads, run)
