"""Which loops train a cross-encoder, and how is each given the same lesson?

An engine is a function: lesson → seconds of its steps, from the first forward pass to the last
change of the weights; the losses; the order of the pairs. Reading, tokenising and loading the model
come before, in both. The peer is used as its documentation says, and imported where it is used.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SEED, BATCH, LONGEST = 1, 32, 512  # LONGEST: tokens of an input, special ones included
RATE, DECAY, CLIP = 2e-5, 0.01, 1.0  # falls linearly to 0 from the first step on


@dataclass(frozen=True, slots=True)
class Lesson:
    """What is learnt: the pairs of a file, JSONL with query, text and label, one epoch of them.

    dropout: of hidden values and of attention. steps: so many, in an epoch's stead. order: numbers
    of pairs, as they are to be taken; birchbark draws its own, and others by chance without one.
    """

    model: Path
    pairs: Path
    dropout: float = 0.1
    steps: int | None = None
    order: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Learnt:
    """What came of a lesson. losses: one a step, and order: of the pairs, where they are told."""

    seconds: float
    losses: tuple[float, ...] = ()
    order: tuple[int, ...] = ()


Learn = Callable[[Lesson], Learnt]


@dataclass(frozen=True, slots=True)
class TrainingEngine:
    """A way to train. packages: what must be installed; the first one's version is shown."""

    packages: tuple[str, ...]
    learn: Learn

    @property
    def installed(self) -> bool:
        """Whether it can be measured here."""
        return all(find_spec(name) for name in self.packages)

    @property
    def version(self) -> str:
        """Of its first package."""
        return version(self.packages[0])


def _birchbark(precision: str) -> Learn:
    def learn(lesson: Lesson) -> Learnt:
        learner, course = _learner(lesson, precision)
        start = time.perf_counter()
        losses = tuple(learner.step(number, SEED) for number in range(course.steps))
        seconds = time.perf_counter() - start
        tasks = [task for number in range(course.steps) for task in course.tasks(number)]
        return Learnt(seconds, losses, tuple(number for _, one in tasks for number in one))

    return learn


def _learner(lesson: Lesson, precision: str) -> tuple[Any, Any]:
    """As `train` makes its own, without a folder to write to."""
    from birchbark.checkpoint.reader import open_any
    from birchbark.checkpoint.tokenizer import Pieces
    from birchbark.train.config import read_training
    from birchbark.train.course import Course
    from birchbark.train.loop import Learner
    from birchbark.train.material import load_material
    from birchbark.train.shaping import open_network
    from birchbark.train.world import World

    training = read_training(_configuration(lesson, precision), lesson.pairs)
    base = open_any(lesson.model, training.base)
    root = lesson.pairs.parent
    materials = list(load_material(training, root, Pieces(base), lambda text: None))
    course = Course(materials, training.schedule, SEED, 1)
    network = open_network(base, training.shaping, SEED, "cpu")
    return Learner(network, materials, course, World()), course


def _configuration(lesson: Lesson, precision: str) -> dict[str, Any]:
    """The file that `birchbark train` would be given."""
    return {
        "title": "speed",
        "base": str(lesson.model),
        "seed": SEED,
        "max_length": LONGEST,
        "model": {"dropout": lesson.dropout},
        "data": [
            {"name": "pairs", "files": [lesson.pairs.name], "objective": {"kind": "pointwise"}}
        ],
        "schedule": {
            "batch": BATCH,
            "learning_rate": RATE,
            "warmup": 0.0,
            "weight_decay": DECAY,
            "clip": CLIP,
            "precision": precision,
            **({"steps": lesson.steps} if lesson.steps else {"epochs": 1}),
        },
    }


def _trainer(bf16: bool = False, sampling: str = "random") -> Learn:
    """The loop of transformers at its defaults, but for what both share, and by its own clock."""

    def learn(lesson: Lesson) -> Learnt:
        from transformers import (
            AutoModelForSequenceClassification,
            AutoTokenizer,
            DataCollatorWithPadding,
            PrinterCallback,
            Trainer,
            TrainingArguments,
        )

        model = AutoModelForSequenceClassification.from_pretrained(
            lesson.model,
            problem_type="multi_label_classification",  # its name for BCE of each logit
            hidden_dropout_prob=lesson.dropout,
            attention_probs_dropout_prob=lesson.dropout,
        )
        tokenizer = AutoTokenizer.from_pretrained(lesson.model)
        ordered = lesson.order is not None
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
                    max_steps=lesson.steps or -1,
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
                train_dataset=_tokenised(lesson, tokenizer),
                data_collator=DataCollatorWithPadding(tokenizer),
            )
            trainer.remove_callback(PrinterCallback)
            seconds = trainer.train().metrics["train_runtime"]
        told = trainer.state.log_history
        return Learnt(seconds, tuple(entry["loss"] for entry in told if "loss" in entry))

    return learn


def _tokenised(lesson: Lesson, tokenizer: Any) -> list[dict[str, Any]]:
    """The pairs as the Trainer takes them, in the lesson's order where it has one."""
    pairs = [json.loads(line) for line in lesson.pairs.read_text().splitlines()]
    if lesson.order is not None:
        pairs = [pairs[number] for number in lesson.order]
    encoded = tokenizer(
        [pair["query"] for pair in pairs],
        [pair["text"] for pair in pairs],
        truncation="only_second",
        max_length=LONGEST,
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
