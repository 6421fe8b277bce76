"""How is a trained network written as a model directory?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.export import TrainedModel
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.train.network import Network


def export(
    target: Path,
    network: Network,
    base: Checkpoint,
    tokenizer: CheckpointTokenizer,
    lineage: Mapping[str, Any],
    max_length: int | None = None,
) -> None:
    """Write `network`, trained from `base`, as a model directory that replaces `target`.

    lineage: the history of training runs for the model card; see checkpoint/model_card.py.
    max_length: of the inputs that it was trained with, in tokens, which the model then states; by
    default the base's.
    """
    from safetensors.torch import save

    masked = base.family.masked
    heads = (*base.family.heads, "parade.", masked.linear, masked.norm, masked.bias)
    tensors = {
        name if name.startswith(heads) else base.family.prefix + name: weight.detach().cpu()
        for name, weight in network.weights.items()
    }
    contiguous = {name: tensor.contiguous() for name, tensor in tensors.items()}
    weights = save(contiguous, metadata={"format": "pt"})
    model = TrainedModel(
        base,
        tokenizer,
        network.config,
        network.architecture,
        base.max_length if max_length is None else max_length,
        weights,
    )
    model.write(target, lineage)
