"""How do several processes train one model? Each computes a share of the step's gradient.

`torchrun` starts the processes, and passes rank and world size in environment variables. Without it
there is a single process.
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

# Processes wait while the main one computes teacher scores; if one dies, torchrun ends the others.
TIMEOUT = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """The processes that train together, and this process's place among them.

    rank: the number of this process, from 0. size: the number of processes. device: what each of
    them computes on, such as `cpu`, `cuda`, or `cuda:N` for one GPU.
    """

    rank: int = 0
    size: int = 1
    device: str = "cpu"

    @property
    def is_main(self) -> bool:
        """Whether this is the process that writes files and reports progress: rank 0."""
        return self.rank == 0

    def sum_over_processes(self, tensors: Iterable[Any]) -> None:
        """Replace each tensor by its sum over all processes, in one all-reduce."""
        if self.size == 1:
            return
        import torch
        from torch import distributed

        targets = list(tensors)
        flat = torch.cat([tensor.reshape(-1) for tensor in targets])  # (all elements,)
        with _explained_failures():
            distributed.all_reduce(flat)
        sums = flat.split([tensor.numel() for tensor in targets])
        for tensor, total in zip(targets, sums, strict=True):
            tensor.copy_(total.view_as(tensor))

    def broadcast(self, value: T) -> T:
        """Return, in every process, the `value` that the main process passes."""
        if self.size == 1:
            return value
        from torch import distributed

        values = [value]
        with _explained_failures():
            distributed.broadcast_object_list(values)
        return values[0]

    def barrier(self) -> None:
        """Wait until all processes have reached this call."""
        if self.size > 1:
            from torch import distributed

            with _explained_failures():
                distributed.barrier()

    @contextmanager
    def main_process_first(self) -> Iterator[None]:
        """Run the block in the main process, then in the others, which can read its files."""
        if not self.is_main:
            self.barrier()
        yield
        if self.is_main:
            self.barrier()


@contextmanager
def _explained_failures() -> Iterator[None]:
    """Raise TrainingError instead of the RuntimeError of a lost connection."""
    try:
        yield
    except RuntimeError as error:
        raise TrainingError(
            "another process of this training run has ended",
            found=first_line(error),
            remedy="see the error message of that process",
        ) from error


def _select_gpu(device: str) -> None:
    """Select a separate GPU for each process on a machine.

    Raises InputError for a device such as `cuda:1`, which all processes would share.
    """
    import torch

    if device != "cuda":
        raise InputError(
            "processes cannot share a GPU",
            where=f"device {device}",
            remedy="use --device cuda, which gives each process its own GPU",
        )
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))


@contextmanager
def open_process_group(device: str) -> Iterator[ProcessGroup]:
    """Connect the processes that torchrun has started, or return a group of this process alone.

    They communicate by gloo on CPUs and by nccl on GPUs.
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield ProcessGroup(device=device)
        return
    from torch import distributed

    # The functions of this module take the default group as a default argument. If an optimiser
    # imports it while a group is open, they keep that group alive, and the threads of the group
    # sometimes abort the process at its end.
    from torch.distributed.nn import functional  # noqa: F401

    if device.startswith("cuda"):
        _select_gpu(device)
    backend = "nccl" if device.startswith("cuda") else "gloo"
    distributed.init_process_group(backend, timeout=TIMEOUT)
    processes = ProcessGroup(distributed.get_rank(), size, device)
    try:
        yield processes
        processes.barrier()  # a process that closes its connections early can abort
    finally:
        distributed.destroy_process_group()
