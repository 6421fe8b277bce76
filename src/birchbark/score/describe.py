"""How is the model in a directory summarised for users?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.heads import (
    Classifier,
    Head,
    Parade,
    Pooling,
    UnknownHeadError,
    is_per_token,
    layers_of,
)
from birchbark.checkpoint.json_files import read_object
from birchbark.checkpoint.prompts import Prompts
from birchbark.checkpoint.single_inputs import SingleInputs
from birchbark.checkpoint.static_embedding import token_vectors
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.score.graph import build_graph
from birchbark.score.parade import PassageAggregator


@dataclass(frozen=True, slots=True)
class Description:
    """A summary of a model; `str` gives one line.

    Attributes:
        family: `model_type` in config.json, or "static embedding".
        layers: Number of transformer layers; 0 for a static embedding.
        hidden: Hidden size.
        head: Kind of head, in words.
        max_length: Maximum number of tokens in an input.
        bytes: Size of the weights on disk.
        prompts: What is put before queries and documents.
    """

    family: str
    layers: int
    hidden: int
    head: str
    max_length: int
    bytes: int
    prompts: Prompts

    def __str__(self) -> str:
        named = (("query", self.prompts.query), ("document", self.prompts.document))
        prompts = [f"{name} prompt {prompt!r}, " for name, prompt in named if prompt]
        size = f"{self.bytes / 1e6:,.1f} MB of weights"
        if not self.layers:
            return f"{self.family} of {self.hidden} dimensions, {''.join(prompts)}{size}"
        return (
            f"{self.family}, {self.layers} layers of {self.hidden}, {self.head}, "
            f"{''.join(prompts)}reads {self.max_length} tokens, {size}"
        )


def describe(directory: Path, name: str, *, check_weights: bool = False) -> Description:
    """Open a model directory, including its tokeniser, and describe it.

    An encoder without a head is described too, since it can score with a pooling. check_weights:
    also read all weights and check them against config.json. Raises CheckpointError if the model
    cannot be read.
    """
    try:
        checkpoint = Checkpoint.open(directory, name)
        head = _describe_head(checkpoint.head, checkpoint.family.next_sentence)
        multi_vector = checkpoint.multi_vector
        if multi_vector and multi_vector.expanded:
            head += f", queries extended to {multi_vector.expanded} tokens"
    except UnknownHeadError:
        checkpoint = Checkpoint.open(directory, name, Pooling())
        head = "no head (rank by pooling cls, mean, max or tokens)"
    tokenizer = CheckpointTokenizer(checkpoint)
    SingleInputs(checkpoint, tokenizer, "query")
    SingleInputs(checkpoint, tokenizer, "document")
    static = checkpoint.family.static
    if check_weights and static:
        token_vectors(checkpoint.tensors(), checkpoint.config, str(checkpoint.weights))
    elif check_weights:
        build_graph(checkpoint)
        if isinstance(checkpoint.head, Parade):
            PassageAggregator(checkpoint)
    return Description(
        "static embedding"
        if static
        else str(read_object(checkpoint.directory / "config.json")["model_type"]),
        checkpoint.config.layers,
        checkpoint.config.hidden,
        head,
        checkpoint.max_length,
        checkpoint.bytes,
        checkpoint.prompts,
    )


def _describe_head(head: Head, next_sentence: str) -> str:
    """Describe a head. next_sentence: the name of the family's next-sentence head."""
    if isinstance(head, Classifier) and head.is_duo:
        return "comparison of two texts (duoBERT)"
    if isinstance(head, Classifier):
        if head.output.name == next_sentence:
            return "next-sentence head"
        logits = f"cross-encoder with {'one logit' if head.logit_count == 1 else 'two logits'}"
        return f"{logits} by {_steps(head.reads, head)}" if head.output.folder else logits
    if isinstance(head, Parade):
        return f"PARADE by {head.aggregation}{'' if head.layers else ' of [CLS]'}"
    kind = "late interaction of" if is_per_token(head) else "embedding by"
    return f"{kind} {_steps(head.mode, head)}"


def _steps(pooling: str, head: Head) -> str:
    """Return a pooling and the modules after it, in words."""
    *first, last = [pooling, *(type(layer).__name__ for layer in layers_of(head))]
    return f"{', '.join(first)} and {last}" if first else last
