"""How relevant is a segment when BERT reads it together with the query?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from birchbark.records import Float32s
from birchbark.score.checkpoint import Checkpoint
from birchbark.score.precision import Precision
from birchbark.score.scorer import check_room, too_long
from birchbark.score.session import Session
from birchbark.score.tokenizer import Pieces

QUERY_ROOM = 64


class CrossEncoderScorer:
    """Probability of relevance: sigmoid of the log-odds on [CLS] query [SEP] segment [SEP].

    The special tokens are the model's own: RoBERTa reads <s> query </s></s> segment </s>.
    Nogueira & Cho 2019; the birch paper's relevance classifier.
    """

    kind = "cross-encoder"

    def __init__(
        self,
        checkpoint: Checkpoint,
        threads: int | None = None,
        precision: Precision = Precision.FP32,
    ) -> None:
        """Load `checkpoint`, whose head is a Classifier."""
        self.name = f"{checkpoint.name} cross-encoder{precision.suffix}"
        self._checkpoint = checkpoint
        self._pieces = Pieces(checkpoint)
        self._room = checkpoint.max_length - self._pieces.extra_pair
        self._session = Session(checkpoint, threads, precision=precision)

    @cached_property
    def fingerprint(self) -> str:
        """The checkpoint's, with the arithmetic: see Session.fingerprint."""
        return self._session.fingerprint(self._checkpoint.fingerprint)

    def room(self, query: str) -> int:
        """Tokens left for a segment: 64 are kept for the query, more where it is longer.

        So all but very long queries cut over-long sentences at the same places. A query may take
        up to half of the input.
        """
        length, most = len(self.spans(query)), self._room
        if length > most // 2:
            raise too_long(query, length, most // 2)
        return most - max(length, min(QUERY_ROOM, most // 2))

    def spans(self, text: str) -> list[tuple[int, int]]:
        """See Scorer."""
        return self._pieces.spans(text)

    def score(self, query: str, texts: Sequence[str]) -> Float32s:
        """Probabilities in [0, 1], float32 (n,)."""
        logits = self.logits(query, texts)
        return (1 / (1 + np.exp(-logits.astype(np.float64)))).astype(np.float32)

    def logits(self, query: str, texts: Sequence[str]) -> Float32s:
        """Log-odds of relevance, float32 (n,); equal texts are run once."""
        distinct = list(dict.fromkeys(texts))
        head, *pieces = self._pieces.encode([query, *distinct])
        check_room([len(p) for p in pieces], distinct, self._room - len(head))
        inputs = [self._pieces.pair(head, p) for p in pieces]
        ids, types = [i for i, _ in inputs], [t for _, t in inputs]
        logit = dict(zip(distinct, self._session.run(ids, types), strict=True))
        return np.array([logit[text] for text in texts], np.float32)
