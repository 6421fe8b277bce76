"""What do all BERT scorers have in common? A tokeniser, a session and a fingerprint."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.records import Ids
from birchbark.score.scorer import query_too_long
from birchbark.score.session import OnnxSession, SessionFactory


class BertScorer:
    """Base class of scorers that run a checkpoint.

    Subclasses add `kind`, `token_budget` and `score`. Their attribute `title` is the scorer's name,
    with {} in place of the checkpoint's; the checkpoint's head must be one that they compute.
    """

    title = "{}"

    def __init__(
        self,
        checkpoint: Checkpoint,
        threads: int | None = None,
        session: SessionFactory = OnnxSession,
    ) -> None:
        """Load `checkpoint`. threads: see OnnxSession. session: opens the session that runs it."""
        self.checkpoint, self.name = checkpoint, self.title.format(checkpoint.name)
        self._tokenizer = CheckpointTokenizer(checkpoint)
        self._session = session(checkpoint, threads)
        self._prepare()

    def _prepare(self) -> None:
        """Set what a subclass needs beside the session."""

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the checkpoint and of the arithmetic; see OnnxSession.fingerprint."""
        return self._session.fingerprint(self.checkpoint.fingerprint)

    @property
    def encoding(self) -> str:
        """See Scorer."""
        return self._tokenizer.fingerprint

    @property
    def vocabulary(self) -> int:
        """See Scorer."""
        return self.checkpoint.config.vocabulary

    @property
    def width(self) -> int:
        """See Scorer."""
        return 1

    def spans(self, text: str) -> list[tuple[int, int]]:
        """See Scorer."""
        return self._tokenizer.spans(text)

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        """See Scorer."""
        return self._tokenizer.encode(texts)


class BiEncoderScorer(BertScorer, ABC):
    """A scorer that encodes query and segment separately, each as its own input."""

    def _prepare(self) -> None:
        self._token_budget = self.checkpoint.max_length - self._tokenizer.single_overhead

    def token_budget(self, query: str) -> int:
        """Return the maximum length without special tokens; the query is an input of its own.

        Raises InputError if the query is longer than that.
        """
        length = len(self.spans(query))
        if length > self._token_budget:
            raise query_too_long(query, length, self._token_budget)
        return self._token_budget

    @abstractmethod
    def prefetch(self, texts: Sequence[Ids]) -> None:
        """Compute vectors of encoded texts or queries in full batches, for later `score` calls."""
