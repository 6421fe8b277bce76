"""How does a student learn from what its teacher computes on the way, not from answers alone?

TinyBERT's losses (Jiao 2020): embeddings, hidden states and attention of chosen layers, token by
token. Where teacher and student differ in width, projections are learnt as well, and left out of
the model that is written. With labels and soft labels beside them, in one stage, and a student that
begins with layers of its teacher, it is Simplified TinyBERT (Chen 2021).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from birchbark.checkpoint.named import open_named
from birchbark.checkpoint.reader import Checkpoint
from birchbark.checkpoint.tokenizer import Pieces
from birchbark.errors import InputError
from birchbark.train.network import Inputs, Network, States
from birchbark.train.shaping import SPREAD, Shaping, open_network

PARTS = ("embeddings", "hidden", "attention")


@dataclass(frozen=True, slots=True)
class Matching:
    """What is matched with whom.

    embeddings, hidden, attention: weights of the three losses, 0 for none. layers: of the teacher,
    counted from 1, one for each of the student's; empty for evenly spread ones, the last with the
    last.
    """

    teacher: str
    embeddings: float = 1.0
    hidden: float = 1.0
    attention: float = 1.0
    layers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        weights = {part: getattr(self, part) for part in PARTS}
        for part, weight in weights.items():
            if not 0 <= weight < float("inf"):
                raise InputError(f"{part} is out of range", wanted="0 or more", found=str(weight))
        if not any(weights.values()):
            raise InputError("nothing is matched", wanted="a weight above 0")

    def spread(self, layers: int, most: int) -> tuple[int, ...]:
        """The teacher's layer, of `most`, for each of the student's; InputError if it has none."""
        found = self.layers or tuple((i + 1) * most // layers for i in range(layers))
        if len(found) != layers or not all(1 <= layer <= most for layer in found):
            raise InputError(
                "the teacher's layers do not fit",
                where=self.teacher,
                wanted=f"{layers} of its layers, 1 to {most}",
                found=", ".join(map(str, found)),
            )
        return found


class Matcher:
    """A teacher that shows what it computes, and what the student's is held against it by.

    projections: name → weights that learn besides the student's.
    """

    def __init__(
        self, matching: Matching, student: Network, pieces: Pieces, max_length: int, seed: int
    ) -> None:
        """pieces: of the student. Raises InputError for a teacher that reads other tokens, or less.

        Projections are drawn with `seed`.
        """
        import torch

        base = open_named(matching.teacher)
        _check(base, pieces, max_length, matching.teacher)
        device = next(iter(student.weights.values())).device
        self.teacher = open_network(base, Shaping(learns="head", dropout=0.0), 0, device)
        self._matching = matching
        self._layers = matching.spread(student.shape.layers, base.shape.layers)
        self.projections: dict[str, Any] = {}
        sizes = student.shape.hidden, base.shape.hidden
        chance = np.random.default_rng(seed)
        for part in PARTS[:2]:
            if getattr(matching, part) and sizes[0] != sizes[1]:
                drawn = chance.normal(0, SPREAD, sizes).astype(np.float32)
                self.projections[f"match.{part}"] = torch.tensor(drawn).to(device).requires_grad_()

    def losses(self, inputs: Inputs, shown: States) -> Any:
        """The loss of each input (inputs,), in the order given. shown: the student's states.

        Mean squared differences over what an input has of each kind, added up over layers.
        """
        import torch

        wanted, how = self.teacher.show(inputs), self._matching
        total = torch.zeros(len(inputs.order), device=inputs.order.device)
        if how.embeddings:
            both = self._projected(shown.embedded, "embeddings"), wanted.embedded
            total = total + how.embeddings * _over_tokens(*both, inputs)
        for own, layer in enumerate(self._layers):
            if how.hidden:
                both = self._projected(shown.hidden[own], "hidden"), wanted.hidden[layer - 1]
                total = total + how.hidden * _over_tokens(*both, inputs)
            if how.attention:
                both = shown.attention[own], wanted.attention[layer - 1]
                total = total + how.attention * torch.cat(list(_over_heads(*both)))
        return torch.empty_like(total).index_copy(0, inputs.order, total)

    def _projected(self, states: Any, part: str) -> Any:
        """The student's states in the teacher's width."""
        projection = self.projections.get(f"match.{part}")
        return states.float() if projection is None else states.float() @ projection


def _check(teacher: Checkpoint, pieces: Pieces, max_length: int, name: str) -> None:
    if not Pieces(teacher).reads_as(pieces):
        raise InputError(
            "the teacher reads other tokens than the student",
            where=name,
            wanted="the same vocabulary, for states are matched token by token",
            remedy="its scores can still be learnt from: objective soft-labels",
        )
    if teacher.shape.longest < max_length:
        raise InputError(
            "the teacher reads less than the student",
            where=name,
            wanted=f"max_length of at most {teacher.shape.longest}",
            found=str(max_length),
        )


def _over_tokens(own: Any, wanted: Any, inputs: Inputs) -> Any:
    """Mean squared difference of each input's tokens (inputs,), in the order they stand in."""
    import torch

    apart = ((own.float() - wanted.float()) ** 2).mean(1)
    parts = apart.split([count * length for count, length in inputs.groups])
    return torch.cat(
        [p.view(count, -1).mean(1) for p, (count, _) in zip(parts, inputs.groups, strict=True)]
    )


def _over_heads(own: Sequence[Any], wanted: Sequence[Any]) -> Iterator[Any]:
    """Mean squared difference of each input's attention, by groups.

    Heads that differ in number are averaged first.
    """
    for ours, theirs in zip(own, wanted, strict=True):
        same = ours.shape[1] == theirs.shape[1]
        one, other = (ours, theirs) if same else (x.mean(1, keepdim=True) for x in (ours, theirs))
        yield ((one - other) ** 2).mean((1, 2, 3))
