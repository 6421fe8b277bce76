"""How do several processes learn as one? Each takes its share of a step's lists; gradients add up.

`torchrun` starts them and says in the environment who is who; without it there is one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from birchbark.errors import InputError, TrainingError, first_line

T = TypeVar("T")

PATIENCE = timedelta(days=7)  # for the first to ask a teacher; torchrun ends all when one dies


@dataclass(frozen=True, slots=True)
class World:
    """This process among `size`, the first of which (`rank` 0) writes and talks."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the process that writes and talks."""
        return self.rank == 0

    def add_up(self, tensors: Iterable[Any]) -> None:
        """Put the sum over all processes in the place of each tensor."""
        if self.size == 1:
            return
        import torch
        from torch import distributed

        found = list(tensors)
        flat = torch.cat([tensor.reshape(-1) for tensor in found])
        with _together():
            distributed.all_reduce(flat)
        for tensor, part in zip(found, flat.split([t.numel() for t in found]), strict=True):
            tensor.copy_(part.view_as(tensor))

    def agreed(self, value: T) -> T:
        """What the first process says, to all."""
        if self.size == 1:
            return value
        from torch import distributed

        said = [value]
        with _together():
            distributed.broadcast_object_list(said)
        return said[0]

    def wait(self) -> None:
        """Go on when all processes have come here."""
        if self.size > 1:
            from torch import distributed

            with _together():
                distributed.barrier()

    @contextmanager
    def in_turn(self) -> Iterator[None]:
        """The first process goes through the block, then all others: they find what it made."""
        if not self.first:
            self.wait()
        yield
        if self.first:
            self.wait()


@contextmanager
def _together() -> Iterator[None]:
    """What is raised where another process has died, in plain words."""
    try:
        yield
    except RuntimeError as lost:
        raise TrainingError(
            "another process of this training has ended",
            found=first_line(lost),
            remedy="its own message says why",
        ) from lost


def _take_gpu(device: str) -> None:
    """Each process of a machine computes on a GPU of its own."""
    import torch

    if device != "cuda":
        raise InputError(
            "processes cannot share a GPU",
            where=f"device {device}",
            remedy="--device cuda gives each its own",
        )
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))


@contextmanager
def open_world(device: str) -> Iterator[World]:
    """The world that torchrun made, or one process. On `device` cpu it talks by gloo, else nccl."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield World()
        return
    from torch import distributed

    if device.startswith("cuda"):
        _take_gpu(device)
    backend = "nccl" if device.startswith("cuda") else "gloo"
    distributed.init_process_group(backend, timeout=PATIENCE)
    try:
        yield World(distributed.get_rank(), size)
    finally:
        distributed.destroy_process_group()
