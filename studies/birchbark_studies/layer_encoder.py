"""How do we get, in one pass, a text's vector from every layer under several poolings?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.heads import POOLING_MODES, Pooling
from birchbark.checkpoint.single_inputs import SingleInputs
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.records import Float32s
from birchbark.score.session import OnnxSession


class LayerEncoder:
    """Treats one encoder as many bi-encoders, one for each combination of layer and pooling mode.

    The checkpoint's own head is ignored, its prompts are not.

    Attributes:
        poolings: The pooling behind each vector that `embed` returns, ordered by layer (0 is the
            embeddings), then by mode.
        truncated_count: Number of texts so far that were truncated to fit into one input.
    """

    def __init__(
        self, model: Path, modes: Sequence[str] = POOLING_MODES, threads: int | None = None
    ) -> None:
        """Open the model directory `model`; raises what `Checkpoint.open` raises."""
        checkpoint = Checkpoint.open(model, pooling=Pooling("mean"))
        layers = range(checkpoint.config.layers + 1)
        self.poolings = tuple(Pooling(mode, layer) for layer in layers for mode in modes)
        self.truncated_count = 0
        tokenizer = CheckpointTokenizer(checkpoint)
        self._queries = SingleInputs(checkpoint, tokenizer, "query")
        self._documents = SingleInputs(checkpoint, tokenizer, "document")
        self._session = OnnxSession(checkpoint, threads, poolings=self.poolings)

    def embed(self, texts: Sequence[str], *, queries: bool = False) -> Float32s:
        """Return the texts' unit vectors (n, poolings, hidden); long texts are truncated.

        There must be at least one text. queries: whether they are queries instead of documents.
        """
        side = self._queries if queries else self._documents
        encoded = side.encode(texts)
        self.truncated_count += sum(len(ids) > side.token_budget for ids in encoded)
        return self._session.run([side.input(ids[: side.token_budget]) for ids in encoded])
