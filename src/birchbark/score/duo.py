"""Which of two texts is more relevant to a query? duoBERT reads all three together.

The input is [CLS] query [SEP] text [SEP] other [SEP]. Both texts have token type 1, since most
models have only two types. Nogueira et al. 2019.
"""

from __future__ import annotations

from pathlib import Path

from birchbark.checkpoint.heads import Classifier
from birchbark.errors import CheckpointError, InputError
from birchbark.records import Ids
from birchbark.score.cross_encoder import CrossEncoderScorer
from birchbark.score.load_scorer import open_model
from birchbark.score.precision import Precision
from birchbark.score.session import SessionFactory


class DuoScorer(CrossEncoderScorer):
    """Returns the probability that the first of two joined texts is more relevant than the second.

    Two texts are joined into one (`join`), then batched, scored and cached like any other text.
    """

    kind, title = "duo", "{} duo"

    def side_token_budget(self, query: str) -> int:
        """Return how many tokens each of the two texts may have; InputError if below 1."""
        separators = len(self.join(*self.encode(["", ""])))
        both = self.token_budget(query) - separators
        if both < 2:
            raise InputError(
                f"the query leaves no room for two texts in an input of {self.checkpoint.name}",
                found=f"{max(0, both)} tokens",
                remedy="shorten the query, or have its beginning read: --set query_tokens=N, or "
                "query_tokens in Python",
            )
        return both // 2

    def join(self, text: Ids, other: Ids) -> Ids:
        """Join two encoded texts into one input for `score`; the order matters."""
        return self._tokenizer.join(text, other)


def load_duo_scorer(
    model: str | Path,
    threads: int | None = None,
    precision: Precision = Precision.FP32,
    session: SessionFactory | None = None,
) -> DuoScorer:
    """Load the scorer for a model that compares two texts (duoBERT), without using the network.

    Args:
        model: Name, hub id or path of a model with a duoBERT head; see load_scorer.
        threads: CPU threads, at least 1. Default: OMP_NUM_THREADS, or one per available
            processor.
        precision: Arithmetic of the linear layers, a `birchbark.score.precision.Precision`: FP32,
            or INT8, which is faster and approximate. Default: FP32.
        session: Opens the session that runs the model. Default: ONNX Runtime on the CPU.

    Raises:
        CheckpointError: The model does not exist, cannot be read, or does not compare two texts.
        MissingPackageError: The Python package that contains the model is not installed.
        InputError: The session does not support the precision, or `threads` is below 1.
    """
    checkpoint, open_session = open_model(model, None, precision, session)
    head = checkpoint.head
    if not (isinstance(head, Classifier) and head.is_duo):
        raise CheckpointError(
            "this model does not compare two texts",
            where=str(model),
            remedy="birchbark train with the objective duo trains one that does",
        )
    return DuoScorer(checkpoint, threads, open_session)
