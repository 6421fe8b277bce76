"""What do all layers of an encoder say of a text, pooled in several ways, by one reading of it?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from birchbark.checkpoint.heads import MODES, Pooling
from birchbark.checkpoint.reader import Checkpoint
from birchbark.checkpoint.tokenizer import Pieces
from birchbark.records import Float32s
from birchbark.score.session import Session


class LayerEncoder:
    """An encoder, whatever head it has, as all the bi-encoders that it can be.

    poolings: what each vector is, in their order: every layer from the embeddings (0) on, and
    within it every mode. cut: texts that lost their end so far, since a vector is of one input.
    """

    def __init__(
        self, model: Path, modes: Sequence[str] = MODES, threads: int | None = None
    ) -> None:
        """model: a directory; errors as `Checkpoint.open`."""
        checkpoint = Checkpoint.open(model, pooling=Pooling("mean"))
        layers = range(checkpoint.shape.layers + 1)
        self.poolings = tuple(Pooling(mode, layer) for layer in layers for mode in modes)
        self.cut = 0
        self._pieces = Pieces(checkpoint)
        self._room = checkpoint.max_length - self._pieces.extra_single
        self._session = Session(checkpoint, threads, poolings=self.poolings)

    def embed(self, texts: Sequence[str]) -> Float32s:
        """Unit vectors (n, poolings, hidden) of what one input holds of each text, one or more."""
        whole = self._pieces.encode(texts)
        self.cut += sum(len(ids) > self._room for ids in whole)
        return self._session.run([self._pieces.single(ids[: self._room]) for ids in whole])
