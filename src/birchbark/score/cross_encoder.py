"""How relevant is a segment when BERT reads it together with the query?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from birchbark.checkpoint.reader import Checkpoint
from birchbark.records import Float32s, Ids
from birchbark.score.bert import BertScorer
from birchbark.score.scorer import check_room, too_long
from birchbark.score.session import NewSession, Session

QUERY_ROOM = 64


class CrossEncoderScorer(BertScorer):
    """Probability of relevance: sigmoid of the log-odds on [CLS] query [SEP] segment [SEP].

    The special tokens are the model's own: RoBERTa reads <s> query </s></s> segment </s>.
    Nogueira & Cho 2019; the birch paper's relevance classifier.
    """

    kind = called = "cross-encoder"

    def __init__(
        self,
        checkpoint: Checkpoint,
        threads: int | None = None,
        session: NewSession = Session,
    ) -> None:
        """Load `checkpoint`, whose head is the one that the class is for."""
        super().__init__(checkpoint, threads, session)
        self.name = f"{checkpoint.name} {self.called}"
        self._room = checkpoint.max_length - self._pieces.extra_pair

    def room(self, query: str) -> int:
        """Tokens left for a segment: 64 are kept for the query, more where it is longer.

        So all but very long queries cut over-long sentences at the same places. A query may take
        up to half of the input.
        """
        length, most = len(self.spans(query)), self._room
        if length > most // 2:
            raise too_long(query, length, most // 2)
        return most - max(length, min(QUERY_ROOM, most // 2))

    def score(self, query: str, pieces: Sequence[Ids]) -> Float32s:
        """Probabilities in [0, 1], float32 (n,)."""
        logits = self.logits(query, pieces)
        return (1 / (1 + np.exp(-logits.astype(np.float64)))).astype(np.float32)

    def logits(self, query: str, pieces: Sequence[Ids]) -> Float32s:
        """Log-odds of relevance, float32 (n,)."""
        return self._run(query, pieces)

    def _run(self, query: str, pieces: Sequence[Ids]) -> Float32s:
        """What the graph gives for each piece beside the query."""
        (head,) = self._pieces.encode([query])
        check_room(pieces, self._room - len(head))
        inputs = [self._pieces.pair(head, piece) for piece in pieces]
        return self._session.run([ids for ids, _ in inputs], [types for _, types in inputs])
