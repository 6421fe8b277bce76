"""Which loops train a cross-encoder, and how does each receive the same task?

An engine is a function: task → the seconds of its steps, from the first forward pass to the last
update of the weights; the losses; the order of the pairs. Reading, tokenising and loading the model
are not timed. The peer is used as documented, and imported on use.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peer import Peer

SEED, BATCH = 1, 32
MAX_TOKENS = 512  # per input, including special tokens
RATE, DECAY, CLIP = 2e-5, 0.01, 1.0  # the learning rate decays linearly to 0 without warm-up


@dataclass(frozen=True, slots=True)
class TrainingTask:
    """One epoch on the pairs of a JSONL file with query, text and label.

    dropout: the dropout probability of hidden states and of attention. steps: the number of steps,
    instead of an epoch. order: the numbers of the pairs in the order of training; None for a random
    order, which birchbark always uses.
    """

    model: Path
    pairs: Path
    dropout: float = 0.1
    steps: int | None = None
    order: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """The result of a task. losses: one per step, or empty. order: the pairs' order, or empty."""

    seconds: float
    losses: tuple[float, ...] = ()
    order: tuple[int, ...] = ()


Train = Callable[[TrainingTask], TrainingResult]


@dataclass(frozen=True, slots=True)
class TrainingEngine(Peer):
    """A way to train."""

    train: Train


def _birchbark(precision: str) -> Train:
    def train(task: TrainingTask) -> TrainingResult:
        learner, sampler = open_learner(task, {"batch": BATCH, "precision": precision})
        start = time.perf_counter()
        losses = tuple(learner.step(number, SEED) for number in range(sampler.steps))
        seconds = time.perf_counter() - start
        drawn = [lists for number in range(sampler.steps) for lists in sampler.lists_at(number)]
        order = tuple(number for _, numbers in drawn for number in numbers)
        return TrainingResult(seconds, losses, order)

    return train


def open_learner(
    task: TrainingTask,
    schedule: Mapping[str, Any],
    *,
    kind: str = "pointwise",
    texts: int | None = None,
    device: str = "cpu",
) -> tuple[Any, Any]:
    """Return the learner and sampler that `birchbark train` would use, without an output folder.

    schedule: further settings of the schedule. kind: the objective. texts: the number of texts of a
    list, with one relevant text each; None for single pairs.
    """
    from birchbark.checkpoint.checkpoint import open_any_head
    from birchbark.checkpoint.tokenizer import CheckpointTokenizer
    from birchbark.train.dataset import load_datasets
    from birchbark.train.distributed import ProcessGroup
    from birchbark.train.initialise import open_network
    from birchbark.train.learner import Learner
    from birchbark.train.read_config import read_training
    from birchbark.train.sampler import Sampler

    configuration = {
        "title": "speed",
        "base": str(task.model),
        "seed": SEED,
        "max_length": MAX_TOKENS,
        "model": {"dropout": task.dropout},
        "data": [{"name": "pairs", "files": [task.pairs.name], "objective": {"kind": kind}}],
        "schedule": {
            "learning_rate": RATE,
            "warmup": 0.0,
            "weight_decay": DECAY,
            "clip": CLIP,
            **schedule,
            **({"steps": task.steps} if task.steps else {"epochs": 1}),
        },
    }
    if texts:
        configuration["lists"] = {"each": "positive", "texts": texts}
    training = read_training(configuration, task.pairs)
    base = open_any_head(task.model, training.base)
    root = task.pairs.parent
    tokenizer, tokens = CheckpointTokenizer(base), task.pairs.with_suffix(".tokens")
    datasets = load_datasets(training, root, tokenizer, lambda text: None, tokens)
    sampler = Sampler(datasets, training.schedule, SEED, 1)
    network = open_network(base, training.initialisation, SEED, device)
    return Learner(network, datasets, sampler, ProcessGroup()), sampler


def _trainer(bf16: bool = False, sampling: str = "random") -> Train:
    """Train with the Trainer of transformers: its defaults, the shared settings, its own timer."""

    def train(task: TrainingTask) -> TrainingResult:
        from transformers import (
            AutoModelForSequenceClassification,
            AutoTokenizer,
            DataCollatorWithPadding,
            PrinterCallback,
            Trainer,
            TrainingArguments,
        )

        model = AutoModelForSequenceClassification.from_pretrained(
            task.model,
            problem_type="multi_label_classification",  # its name for BCE of each logit
            hidden_dropout_prob=task.dropout,
            attention_probs_dropout_prob=task.dropout,
        )
        tokenizer = AutoTokenizer.from_pretrained(task.model)
        ordered = task.order is not None
        with tempfile.TemporaryDirectory() as folder:
            trainer = Trainer(
                model,
                TrainingArguments(
                    output_dir=folder,
                    per_device_train_batch_size=BATCH,
                    learning_rate=RATE,
                    lr_scheduler_type="linear",
                    weight_decay=DECAY,
                    max_grad_norm=CLIP,
                    num_train_epochs=1,
                    max_steps=task.steps or -1,
                    train_sampling_strategy="sequential" if ordered else sampling,
                    bf16=bf16,
                    use_cpu=True,
                    logging_strategy="steps" if ordered else "no",
                    logging_steps=1,
                    save_strategy="no",
                    report_to="none",
                    disable_tqdm=True,
                    seed=SEED,
                ),
                train_dataset=_tokenised(task, tokenizer),
                data_collator=DataCollatorWithPadding(tokenizer),
            )
            trainer.remove_callback(PrinterCallback)
            seconds = trainer.train().metrics["train_runtime"]
        log = trainer.state.log_history
        return TrainingResult(seconds, tuple(entry["loss"] for entry in log if "loss" in entry))

    return train


def _tokenised(task: TrainingTask, tokenizer: Any) -> list[dict[str, Any]]:
    """Return the pairs as token ids for the Trainer, in the order of the task if it has one."""
    pairs = [json.loads(line) for line in task.pairs.read_text().splitlines()]
    if task.order is not None:
        pairs = [pairs[number] for number in task.order]
    encoded = tokenizer(
        [pair["query"] for pair in pairs],
        [pair["text"] for pair in pairs],
        truncation="only_second",
        max_length=MAX_TOKENS,
    )
    return [
        {name: values[i] for name, values in encoded.items()} | {"labels": [float(pair["label"])]}
        for i, pair in enumerate(pairs)
    ]


OURS, BASE = "birchbark fp32", "Trainer fp32"
_TRAINER = ("transformers", "torch", "accelerate")
TRAINING_ENGINES = {
    OURS: TrainingEngine(("birchbark", "torch"), _birchbark("fp32")),
    "birchbark bf16": TrainingEngine(("birchbark", "torch"), _birchbark("bf16")),
    BASE: TrainingEngine(_TRAINER, _trainer()),
    "Trainer bf16": TrainingEngine(_TRAINER, _trainer(bf16=True)),
    "Trainer fp32, grouped by length": TrainingEngine(
        _TRAINER, _trainer(sampling="group_by_length")
    ),
    "Trainer bf16, grouped by length": TrainingEngine(
        _TRAINER, _trainer(bf16=True, sampling="group_by_length")
    ),
}
