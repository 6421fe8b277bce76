"""How is a student trained to match its teacher's hidden states, and not its scores alone?

The losses are TinyBERT's (Jiao et al. 2020): they compare embeddings, hidden states and attention
of chosen layers, token by token. If teacher and student differ in width, projections are trained as
well, but are not exported. Simplified TinyBERT (Chen et al. 2021) adds the losses on labels and
soft labels in the same stage, for a student that is initialised with layers of its teacher.

Shapes are those of network.py: T tokens of all inputs, N inputs, L tokens per input, H hidden
dimensions, A attention heads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.locate import open_named
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.errors import InputError
from birchbark.train.initialise import INIT_STD, Initialisation, open_network
from birchbark.train.network import Network
from birchbark.train.packed_inputs import Block, PackedInputs
from birchbark.train.transformer_layer import HiddenStates

STATES = ("embeddings", "hidden", "attention")


@dataclass(frozen=True, slots=True)
class HiddenStateSettings:
    """Which intermediate results of a teacher the student matches, and with which loss weights.

    embeddings, hidden, attention: the weights of the three losses; 0 omits a loss.
    layers: for each student layer, the teacher layer to match, counted from 1; empty for evenly
    spaced layers up to the last.
    steps: the number of first steps that match them; later steps learn from the objectives alone,
    and run no teacher. None for all steps.
    """

    teacher: str
    embeddings: float = 1.0
    hidden: float = 1.0
    attention: float = 1.0
    layers: tuple[int, ...] = ()
    steps: int | None = None

    def __post_init__(self) -> None:
        weights = {name: getattr(self, name) for name in STATES}
        for name, weight in weights.items():
            if not 0 <= weight < float("inf"):
                raise InputError(f"{name} is out of range", wanted="0 or more", found=str(weight))
        if not any(weights.values()):
            raise InputError("all weights are 0", wanted="at least one weight above 0")

    def teacher_layers(self, student_layers: int, teacher_layers: int) -> tuple[int, ...]:
        """Return the teacher layer to match, counted from 1, for each student layer.

        Raises InputError if the configured layers do not exist, or are not one per student layer.
        """
        layers = self.layers or tuple(
            (i + 1) * teacher_layers // student_layers for i in range(student_layers)
        )
        if len(layers) != student_layers or not all(1 <= n <= teacher_layers for n in layers):
            raise InputError(
                "the teacher's layers do not match the student's",
                where=self.teacher,
                wanted=f"{student_layers} layers between 1 and {teacher_layers}",
                found=", ".join(map(str, layers)),
            )
        return layers


class HiddenStateDistillation:
    """The losses between a student's intermediate results and its teacher's.

    projections: trainable weights (student's H, teacher's H) by name; none if widths are equal.
    keeps_attention: whether attention scores are compared. steps: see `HiddenStateSettings`.
    """

    def __init__(
        self,
        settings: HiddenStateSettings,
        student: Network,
        tokenizer: CheckpointTokenizer,
        max_length: int,
        seed: int,
    ) -> None:
        """Load the teacher, and initialise the projections from `seed`.

        tokenizer: the student's tokeniser.
        Raises InputError for a teacher that tokenises differently, has a smaller maximum length, or
        lacks a layer of `settings`.
        """
        import torch

        base = open_named(settings.teacher)
        _check_teacher(base, tokenizer, max_length, settings.teacher)
        device = next(iter(student.weights.values())).device
        frozen = Initialisation(trainable="head", dropout=0.0, head="new")  # only states are read
        self.teacher = open_network(base, frozen, 0, device)
        self._settings, self.keeps_attention = settings, settings.attention > 0
        self.steps = settings.steps
        self._layers = settings.teacher_layers(student.config.layers, base.config.layers)
        self.projections: dict[str, Any] = {}
        size = student.config.hidden, base.config.hidden
        rng = np.random.default_rng(seed)
        for name in STATES[:2]:
            if getattr(settings, name) and size[0] != size[1]:
                values = rng.normal(0, INIT_STD, size).astype(np.float32)
                self.projections[f"match.{name}"] = torch.tensor(values).to(device).requires_grad_()

    def losses(self, inputs: PackedInputs, student: HiddenStates) -> Any:
        """Return the loss of each input (N,), in the order before sorting.

        A loss term is the mean squared difference over all values of an input. The loss is the
        weighted sum of the terms of all layers and kinds.
        student: the student's intermediate results for `inputs`.
        """
        import torch

        settings, keeps_attention = self._settings, student.keeps_attention
        teacher = self.teacher.hidden_states(inputs, keeps_attention=keeps_attention)
        total = torch.zeros(len(inputs.order), device=inputs.order.device)  # (N,)
        if settings.embeddings:
            both = self._projected(student.embedded, "embeddings"), teacher.embedded
            total = total + settings.embeddings * _token_losses(*both, inputs)
        for index, layer in enumerate(self._layers):
            if settings.hidden:
                both = self._projected(student.hidden[index], "hidden"), teacher.hidden[layer - 1]
                total = total + settings.hidden * _token_losses(*both, inputs)
            if settings.attention:
                pair = student.attention[index], teacher.attention[layer - 1]
                by_block = _attention_losses(*pair, inputs.spans.blocks)
                total = total + settings.attention * torch.cat(list(by_block))
        return inputs.unsorted(total)

    def _projected(self, states: Any, name: str) -> Any:
        """Project the student's states from (T, student's H) to (T, teacher's H)."""
        projection = self.projections.get(f"match.{name}")
        return states.float() if projection is None else states.float() @ projection


def _check_teacher(
    teacher: Checkpoint, tokenizer: CheckpointTokenizer, max_length: int, name: str
) -> None:
    if not CheckpointTokenizer(teacher).encodes_like(tokenizer):
        raise InputError(
            "teacher and student have different tokenisers",
            where=name,
            wanted="the same tokens, because hidden states are matched token by token",
            remedy="distil the teacher's scores instead, with objective soft-labels",
        )
    if teacher.config.max_positions < max_length:
        raise InputError(
            "the teacher's maximum length is below the student's",
            where=name,
            wanted=f"max_length of at most {teacher.config.max_positions}",
            found=str(max_length),
        )


def _token_losses(student: Any, teacher: Any, inputs: PackedInputs) -> Any:
    """Return the mean squared difference (N,) per sorted input between states (T, H)."""
    import torch

    differences = ((student.float() - teacher.float()) ** 2).mean(1)  # (T,)
    offsets = inputs.spans.offsets
    lengths = offsets.diff()  # (N,)
    numbers = torch.arange(len(lengths), device=lengths.device).repeat_interleave(
        lengths, output_size=len(differences)
    )  # (T,): the input of each token
    sums = torch.zeros_like(lengths, dtype=torch.float32).index_add(0, numbers, differences)
    return sums / lengths


def _attention_losses(
    student: Sequence[Any], teacher: Sequence[Any], blocks: Sequence[Block]
) -> Iterator[Any]:
    """Yield, per block, the mean squared difference between its inputs' scores (inputs,).

    student, teacher: attention scores (inputs, A, L, L) per block. If the numbers of heads differ,
    the heads are averaged first. Scores outside the window of a layer (−∞) count as equal.
    """
    for ours, theirs, block in zip(student, teacher, blocks, strict=True):
        if ours.shape[1] != theirs.shape[1]:
            ours, theirs = (x.mean(1, keepdim=True) for x in (ours, theirs))  # (inputs, 1, L, L)
        seen = ours.isfinite() & theirs.isfinite()
        squares = ((ours - theirs).masked_fill(~seen, 0) ** 2).mean(1)  # (inputs, L, L)
        if block.padding:
            exists = (block.padding.mask[:, :, 0] == 0).float()  # (inputs, 1, L)
            weights = exists / exists.sum(2, keepdim=True)
            yield (squares * weights * weights.transpose(1, 2)).sum((1, 2))
        else:
            yield squares.mean((1, 2))
