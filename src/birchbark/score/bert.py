"""What do all scorers of a checkpoint have in common? Its tokeniser, its session, its identity."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property

from birchbark.checkpoint.reader import Checkpoint
from birchbark.checkpoint.tokenizer import Pieces
from birchbark.records import Ids
from birchbark.score.scorer import too_long
from birchbark.score.session import NewSession, Session


class BertScorer:
    """A checkpoint ready to score; how, its kinds say. checkpoint: what it was made of."""

    def __init__(
        self, checkpoint: Checkpoint, threads: int | None = None, session: NewSession = Session
    ) -> None:
        self.checkpoint = checkpoint
        self._pieces = Pieces(checkpoint)
        self._session = session(checkpoint, threads)

    @cached_property
    def fingerprint(self) -> str:
        """The checkpoint's, with the arithmetic: see Session.fingerprint."""
        return self._session.fingerprint(self.checkpoint.fingerprint)

    @property
    def encoding(self) -> str:
        """See Scorer."""
        return self._pieces.fingerprint

    @property
    def vocabulary(self) -> int:
        """See Scorer."""
        return self.checkpoint.shape.vocabulary

    @property
    def width(self) -> int:
        """See Scorer."""
        return 1

    def spans(self, text: str) -> list[tuple[int, int]]:
        """See Scorer."""
        return self._pieces.spans(text)

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        """See Scorer."""
        return self._pieces.encode(texts)


class ApartScorer(BertScorer, ABC):
    """A scorer that reads query and segment apart, each as an input of its own."""

    def __init__(
        self, checkpoint: Checkpoint, threads: int | None = None, session: NewSession = Session
    ) -> None:
        """Load `checkpoint`, whose head is a Pooling."""
        super().__init__(checkpoint, threads, session)
        self._room = checkpoint.max_length - self._pieces.extra_single

    def room(self, query: str) -> int:
        """The model's length without special tokens; the query has an input of its own."""
        length = len(self.spans(query))
        if length > self._room:
            raise too_long(query, length, self._room)
        return self._room

    @abstractmethod
    def read_ahead(self, texts: Sequence[Ids]) -> None:
        """Read encoded texts, queries among them, in full batches, before `score` asks for them."""
