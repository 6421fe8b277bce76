"""How is a model trained from a configuration, and resumed after an interruption?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.locate import open_named
from birchbark.checkpoint.model_card import lineage_of
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.device.torch_session import torch_session_factory
from birchbark.errors import InputError, MissingPackageError, TrainingError, first_line
from birchbark.train.check_config import check_steps
from birchbark.train.config import AUTO, BF16, FP32, TF32, TrainingConfig
from birchbark.train.dataset import TokenisedDataSet, load_datasets
from birchbark.train.distributed import ProcessGroup
from birchbark.train.export import export
from birchbark.train.hidden_state_distillation import HiddenStateDistillation
from birchbark.train.initialise import network_shape, open_network
from birchbark.train.learner import Learner
from birchbark.train.masked_lm import MaskedLearner
from birchbark.train.masking import Masker
from birchbark.train.sampler import Sampler
from birchbark.train.teacher_scores import (
    TeacherScores,
    check_precisions,
    with_teacher_targets,
)
from birchbark.train.training_folder import (
    IDENTITY,
    TEACHERS,
    TOKENS,
    check_identity,
    check_outside,
    explained_write_errors,
    open_folder,
    remove_training,
)
from birchbark.train.training_run import ProgressReporter, TrainingRun, training_versions
from birchbark.train.training_state import Progress
from birchbark.train.validation import check_validation

SLOW_BF16 = (
    "note: torch has no fast bf16 for this processor; "
    'schedule.precision = "fp32" or "auto" is probably faster'
)


def train(
    training: TrainingConfig,
    root: Path,
    folder: Path,
    *,
    shared: Path | None = None,
    replace: bool = False,
    processes: ProcessGroup = ProcessGroup(),
    reporter: ProgressReporter = ProgressReporter(),
) -> Progress:
    """Train a model, or resume if `folder` has a training state; write it to `folder`/model.

    root: the folder that data paths are relative to.
    shared: the folder of teacher scores and token ids, which several training runs can share;
    `folder` if None.
    replace: remove another training run in `folder`, once nothing can be wrong with this one's
    inputs.
    Raises InputError for invalid data, an unsuitable base or device, and a `folder` that holds
    anything else; CheckpointError for a damaged base; MissingPackageError without torch;
    ArtifactError while another process trains in `folder`; LossError if the loss is not finite; and
    TrainingError for a full disk, too little GPU memory or a damaged state.
    """
    device = processes.device
    check_device(device)
    check_precisions((teacher for data in training.data for teacher in data.teachers), device)
    shared = shared or folder
    if training.schedule.precision == AUTO:
        training = without_auto(training, device)
        reporter.log(f"precision: {training.schedule.precision}")
    elif training.schedule.precision == BF16 and not has_fast_bf16(device):
        reporter.log(SLOW_BF16)
    elif training.schedule.precision == TF32 and device == "cpu":
        raise InputError(
            "tf32 is computed by GPUs only",
            where=f"{training.path}: schedule.precision",
            remedy='use precision = "auto", or --device cuda',
        )
    base = _open_base(training)
    lineage = lineage_of(base, training.base)
    tokenizer = CheckpointTokenizer(base)
    network = open_network(base, training.initialisation, training.seed, device)
    distillation = None
    if settings := training.distillation:
        max_length, seed = training.max_length, training.seed
        distillation = HiddenStateDistillation(settings, network, tokenizer, max_length, seed)
    with open_folder(folder, processes):
        if replace:
            check_outside(shared, (training.base, *training.teachers))
        with processes.main_process_first():
            datasets = load_datasets(training, root, tokenizer, reporter.log, shared / TOKENS)
            check_validation(datasets, training.validation)
            sampler = Sampler(datasets, training.schedule, training.seed, processes.size)
            check_steps(training, sampler.steps)
            store, on_scores = shared / TEACHERS, reporter.on_teacher_scores
            scores = TeacherScores(store, device, processes.is_main, on_scores)
            unmined, steps = datasets, range(sampler.steps)
            if training.mining:
                steps = steps[: training.mining.start]
            datasets = with_teacher_targets(datasets, sampler, steps, scores, reporter.log)
        for dataset, count in zip(datasets, sampler.lists_per_epoch.tolist(), strict=True):
            each = dataset.config.lists.each
            reporter.log(f"{dataset.config.name}: {count:,} lists per epoch (each = {each})")
        if training.masking:
            masker = Masker.of(training.masking, tokenizer)
            learner: Learner = MaskedLearner(network, datasets, sampler, processes, masker)
        else:
            learner = Learner(network, datasets, sampler, processes, distillation)
        identity = _identity(training, base, datasets, processes)
        if replace:
            remove_training(folder, processes)
        check_identity(folder / IDENTITY, identity, processes)
        write = partial(export, network=network, base=base, tokenizer=tokenizer)
        if not training.masking:  # blocks of text, which have no length of their own
            write = partial(write, max_length=training.max_length)
        run = TrainingRun(
            training=training,
            folder=folder,
            base_lineage=lineage,
            write_model=write,
            datasets=datasets,
            unmined=unmined,
            teacher_scores=scores,
            sampler=sampler,
            learner=learner,
            processes=processes,
            reporter=reporter,
        )
        with explained_write_errors(folder), _explained_out_of_memory(), _products(training):
            return run.train()


def without_auto(training: TrainingConfig, device: str) -> TrainingConfig:
    """Return a training run with the precision that `auto` stands for on a device."""
    if training.schedule.precision != AUTO:
        return training
    return training.with_precision(BF16 if has_fast_bf16(device) else FP32)


def check_models(training: TrainingConfig) -> None:
    """Open the base and the teachers. Raises what `train` raises if one of them is unsuitable."""
    network_shape(_open_base(training), training.initialisation)
    for name in training.teachers:
        open_named(name)


def _open_base(training: TrainingConfig) -> Checkpoint:
    """Open the base. Raises InputError if its maximum length is below `max_length`."""
    base = open_named(training.base)
    if training.max_length > base.config.max_positions:
        raise InputError(
            "max_length exceeds the maximum length of the base",
            where=str(training.path),
            wanted=f"at most {base.config.max_positions}",
            found=str(training.max_length),
        )
    return base


def _identity(
    training: TrainingConfig,
    base: Checkpoint,
    datasets: Sequence[TokenisedDataSet],
    processes: ProcessGroup,
) -> dict[str, Any]:
    """Return everything that must stay the same for a training run to be resumed."""
    return {
        "settings": training.values,
        "base": base.outputs_fingerprint,
        "teachers": [open_named(name).outputs_fingerprint for name in training.teachers],
        "data": [dataset.facts for dataset in datasets],
        "processes": processes.size,
        "device": processes.device,
        "versions": training_versions(),
    }


@contextmanager
def _explained_out_of_memory() -> Iterator[None]:
    """Raise TrainingError instead of torch's error if the GPU's memory is full."""
    import torch

    try:
        yield
    except torch.OutOfMemoryError as full:
        raise TrainingError(
            "the GPU's memory is full",
            found=first_line(full),
            remedy="lower schedule.batch_tokens, or set schedule.recompute = true",
        ) from full


@contextmanager
def _products(training: TrainingConfig) -> Iterator[None]:
    """Let a GPU compute matrix products of float32 in TF32, or not, as configured."""
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if training.schedule.precision == TF32 else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def has_fast_bf16(device: str) -> bool:
    """Return whether the device computes products in bf16 faster than in fp32."""
    import torch

    if device != "cpu":
        with torch.cuda.device(device):
            return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if not torch.backends.mkldnn.is_available():
        return False
    supported = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: True)
    return bool(supported())


def check_device(device: str) -> None:
    """Raise MissingPackageError without torch, and InputError if torch has no such device."""
    try:
        import torch
    except ImportError:
        raise MissingPackageError(
            "training needs torch", remedy="pip install 'birchbark[train]'"
        ) from None
    torch_session_factory(device)
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as unknown:
        raise InputError(
            "torch does not have this device",
            where=f"device {device}",
            found=first_line(unknown),
            remedy="--device cpu is always available",
        ) from None
