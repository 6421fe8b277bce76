"""What do all BERT scorers have in common? A tokeniser, a session and a fingerprint."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.single_inputs import SingleInputs
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.records import Float32s, Ids
from birchbark.score.lazy_session import LazySession
from birchbark.score.session import OnnxSession, SessionFactory
from birchbark.score.token_limits import query_too_long


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

    def open(self) -> None:
        """Load the model now, if its session is one that loads it when it is needed."""
        if isinstance(self._session, LazySession):
            self._session.open()

    @property
    def fingerprint(self) -> str:
        """Hash of the outputs, and the scale that the model states."""
        return self.outputs_fingerprint + self.checkpoint.scale.fingerprint

    @cached_property
    def outputs_fingerprint(self) -> str:
        """Hash of the checkpoint and of the arithmetic, whatever the scale of the outputs is.

        See OnnxSession.fingerprint. The weights are hashed once.
        """
        return self._session.fingerprint(self.checkpoint.outputs_fingerprint)

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

    def outputs(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
        """Return what the model computes for encoded texts, before its scale: float32 (n,)."""
        raise NotImplementedError

    def spans(self, text: str) -> list[tuple[int, int]]:
        """See Scorer."""
        return self._tokenizer.spans(text)

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        """See Scorer."""
        return self._tokenizer.encode(texts)


class BiEncoderScorer(BertScorer, ABC):
    """A scorer that encodes query and segment separately, each as its own input.

    Each comes after the prompt that the model has for it.

    Attributes:
        kind: See Scorer.
        queries: Makes the inputs of queries.
        texts: Makes the inputs of segments.
    """

    kind: str

    def _prepare(self) -> None:
        checkpoint = self.checkpoint
        self.queries = SingleInputs(checkpoint, self._tokenizer, "query")
        self.texts = SingleInputs(checkpoint, self._tokenizer, "document")

    @property
    def encoding(self) -> str:
        """See Scorer. Texts after a prompt may be encoded differently."""
        prompt = self.checkpoint.prompts.document
        if not prompt:
            return super().encoding
        return hashlib.sha256(f"{super().encoding} {prompt}".encode()).hexdigest()

    def spans(self, text: str) -> list[tuple[int, int]]:
        """See Scorer."""
        return self.texts.spans(text)

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        """See Scorer. Queries are encoded by the methods that read them."""
        return self.texts.encode(texts)

    @property
    def max_query_tokens(self) -> int:
        """The maximum number of tokens of a query, without special ones and the prompt."""
        return self.queries.token_budget

    def token_budget(self, query: str) -> int:
        """Return the maximum length without special tokens; the query is an input of its own.

        Raises InputError if the query is too long for that input.
        """
        self._encode_query(query)
        return self.texts.token_budget

    def _encode_query(self, query: str) -> Ids:
        """Return the token ids of a query alone; InputError if there are too many."""
        [ids] = self.queries.encode([query])
        if len(ids) > self.max_query_tokens:
            raise query_too_long(query, len(ids), self.max_query_tokens)
        return ids

    @abstractmethod
    def score(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
        """See Scorer."""

    @abstractmethod
    def prefetch(self, queries: Sequence[str], texts: Sequence[Ids]) -> None:
        """Compute vectors of queries and encoded texts in full batches, for later `score` calls."""
