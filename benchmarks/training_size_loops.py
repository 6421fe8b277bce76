"""Which training loops read many pairs from a file, and how long until their first step?

Run as `python -m benchmarks.training_size_loops LOOP MODEL PAIRS CACHES`; prints the seconds until
the first step has ended, the largest resident size and the speed as a line of JSON.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peer import Peer

STEPS, BATCH = 6, 32
MAX_TOKENS = 160
Step = Callable[[], None]  # called after each step


@dataclass(frozen=True, slots=True)
class Loop(Peer):
    """A way to train.

    train: trains STEPS steps on a TSV file, given the model, the file, a folder for caches and what
    to call after each step.
    """

    train: Callable[[Path, Path, Path, Step], None]


def _birchbark(model: Path, pairs: Path, caches: Path, on_step: Step) -> None:
    from birchbark.train.read_config import read_training
    from birchbark.train.training import train
    from birchbark.train.training_run import ProgressReporter

    training = read_training(
        {
            "title": "size",
            "base": str(model),
            "max_length": MAX_TOKENS,
            "data": [{"name": "pairs", "files": [pairs.name]}],
            "schedule": {"batch": BATCH, "steps": STEPS},
        },
        pairs,
    )
    reporter = ProgressReporter(on_step=lambda step, steps, loss: on_step())
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        train(training, pairs.parent, out, shared=caches, reporter=reporter)


def _arguments() -> dict[str, Any]:
    return {
        "per_device_train_batch_size": BATCH,
        "max_steps": STEPS,
        "use_cpu": True,
        "save_strategy": "no",
        "logging_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
    }


def _callback(on_step: Step) -> Any:
    from transformers import TrainerCallback

    class Callback(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, *_: Any, **__: Any) -> None:
            on_step()

    return Callback()


def _rows(pairs: Path) -> Any:
    from datasets import load_dataset

    return load_dataset("csv", data_files=str(pairs), delimiter="\t", quoting=3, split="train")


def _trainer(model: Path, pairs: Path, caches: Path, on_step: Step) -> None:
    from transformers import (
        AutoModelForSequenceClassification,
        AutoTokenizer,
        DataCollatorWithPadding,
        Trainer,
        TrainingArguments,
    )

    network = AutoModelForSequenceClassification.from_pretrained(
        model, problem_type="multi_label_classification"
    )
    tokenizer = AutoTokenizer.from_pretrained(model)

    def encode(rows: dict[str, list[Any]]) -> dict[str, Any]:
        encoded = tokenizer(
            rows["query"], rows["text"], truncation="only_second", max_length=MAX_TOKENS
        )
        return {**encoded, "labels": [[float(label)] for label in rows["label"]]}

    rows = _rows(pairs)
    data = rows.map(encode, batched=True, remove_columns=rows.column_names)
    with tempfile.TemporaryDirectory() as folder:
        Trainer(
            network,
            TrainingArguments(output_dir=folder, **_arguments()),
            train_dataset=data,
            data_collator=DataCollatorWithPadding(tokenizer),
            callbacks=[_callback(on_step)],
        ).train()


def _cross_encoder_trainer(model: Path, pairs: Path, caches: Path, on_step: Step) -> None:
    from sentence_transformers.cross_encoder import (
        CrossEncoder,
        CrossEncoderTrainer,
        CrossEncoderTrainingArguments,
    )
    from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss

    network = CrossEncoder(str(model), num_labels=1, max_length=MAX_TOKENS, device="cpu")
    with tempfile.TemporaryDirectory() as folder:
        CrossEncoderTrainer(
            network,
            CrossEncoderTrainingArguments(output_dir=folder, **_arguments()),
            train_dataset=_rows(pairs),
            loss=BinaryCrossEntropyLoss(network),
            callbacks=[_callback(on_step)],
        ).train()


LOOPS = {
    "birchbark": Loop(("birchbark", "torch"), _birchbark),
    "Trainer": Loop(("transformers", "torch", "accelerate", "datasets"), _trainer),
    "CrossEncoderTrainer": Loop(
        ("sentence-transformers", "torch", "accelerate", "datasets"), _cross_encoder_trainer
    ),
}


def main() -> None:
    """Train with one loop, and print what was measured."""
    start = time.time() - _age()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # so that output of a loop is not taken for the answer
    name, model, pairs, caches = sys.argv[1:]
    ends: list[float] = []
    LOOPS[name].train(Path(model), Path(pairs), Path(caches), lambda: ends.append(time.time()))
    figures = {
        "first_step": ends[0] - start,
        "pairs_per_second": BATCH * (len(ends) - 1) / (ends[-1] - ends[0]),
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }
    answers.write(json.dumps(figures) + "\n")
    answers.flush()


def _age() -> float:
    """Return for how many seconds this process exists."""
    started = int(Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19])
    running = float(Path("/proc/uptime").read_text().split()[0])
    return running - started / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
