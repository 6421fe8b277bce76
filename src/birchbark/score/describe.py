"""What kind of model is in a directory, in a few words?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from birchbark.checkpoint.heads import Classifier, Head, Parade, Pooling, UnknownHeadError
from birchbark.checkpoint.model_json import read_object
from birchbark.checkpoint.reader import Checkpoint
from birchbark.checkpoint.tokenizer import Pieces
from birchbark.score.graph import build_graph
from birchbark.score.parade import Aggregator


@dataclass(frozen=True, slots=True)
class Description:
    """family: config.json's word. head: in words. bytes: of the weights on the disk."""

    family: str
    layers: int
    hidden: int
    head: str
    longest: int
    bytes: int

    def __str__(self) -> str:
        return (
            f"{self.family}, {self.layers} layers of {self.hidden}, {self.head}, "
            f"reads {self.longest} tokens, {self.bytes / 1e6:,.1f} MB of weights"
        )


def describe(directory: Path, name: str, *, whole: bool = False) -> Description:
    """Open a model directory, vocabulary included, and say what it is.

    An encoder without a head is one too: it ranks by a pooling that the user chooses. whole: read
    all weights as well, and hold them against config.json. Errors as load_scorer.
    """
    try:
        checkpoint = Checkpoint.open(directory, name)
        head = _head(checkpoint.head)
    except UnknownHeadError:
        checkpoint = Checkpoint.open(directory, name, Pooling())
        head = "no head (rank by --pooling cls, mean, max or tokens)"
    Pieces(checkpoint)
    if whole:
        build_graph(checkpoint)
        if isinstance(checkpoint.head, Parade):
            Aggregator(checkpoint)
    return Description(
        str(read_object(checkpoint.directory / "config.json")["model_type"]),
        checkpoint.shape.layers,
        checkpoint.shape.hidden,
        head,
        checkpoint.max_length,
        checkpoint.bytes,
    )


def _head(head: Head) -> str:
    if isinstance(head, Classifier) and head.compares:
        return "comparison of two texts (duoBERT)"
    if isinstance(head, Classifier):
        if head.logits == 2 and head.relevant == 0:
            return "next-sentence head"
        return f"cross-encoder of {'one logit' if head.logits == 1 else 'two logits'}"
    if isinstance(head, Parade):
        return f"PARADE by {head.how}"
    return f"embedding by {head.mode}"
