"""How many texts a second does a GPU train on, and what takes the time?

    python -m benchmarks.training_gpu --device cuda

The model is birchbark-minilm-l6. It learns from lists of
eight texts of random words, about 100 tokens each with the query. The first steps, which allocate
memory, are not timed. Then as many steps run under torch's profiler, and the host's and the
device's costliest operations are printed.

A plain loop with padded batches sorted by length, which eight threads assembled, trained on 7,400
texts of such a length a second on an H200. The target is half of that.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

import click
import numpy as np

from benchmarks.training_engines import TrainingTask, open_learner

LIST, WORDS = 8, 80  # texts of a list; words of a text, each about a token
WARM, PROFILED = 5, 5  # steps
TARGET = 3_700  # texts per second on an H200


@click.command()
@click.option("--device", default="cuda", show_default=True)
@click.option("--lists", default=128, show_default=True, help="Lists per step.")
@click.option("--steps", default=40, show_default=True, help="Timed steps.")
@click.option("--precision", default="bf16", show_default=True, help="fp32, tf32 or bf16.")
@click.option("--rows", default=15, show_default=True, help="Operations to print.")
def main(device: str, lists: int, steps: int, precision: str, rows: int) -> None:
    """Measure the trainer's speed on DEVICE, and profile it."""
    import torch

    from birchbark.checkpoint.locate import locate

    with tempfile.TemporaryDirectory() as folder:
        pairs = Path(folder) / "pairs.jsonl"
        write_lists(pairs, lists * 4)
        task = TrainingTask(
            locate("birchbark-minilm-l6"), pairs, dropout=0.0, steps=WARM + steps + PROFILED
        )
        schedule = {"batch": lists, "precision": precision}
        learner, _ = open_learner(task, schedule, kind="softmax", texts=LIST, device=device)
        for number in range(WARM):
            learner.step(number, 0)
        seconds = -time.perf_counter()
        for number in range(WARM, WARM + steps):
            learner.step(number, 0)  # reads the loss, and so waits for the device
        seconds += time.perf_counter()
        speed = steps * lists * LIST / seconds
        click.echo(
            f"{device}, {precision}: {speed:,.0f} texts per second, target {TARGET:,} on an H200"
        )
        activities = [torch.profiler.ProfilerActivity.CPU]
        if device.startswith("cuda"):
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        with torch.profiler.profile(activities=activities) as profile:
            for number in range(WARM + steps, WARM + steps + PROFILED):
                learner.step(number, 0)
    orders = ["self_cpu_time_total"]
    if device.startswith("cuda"):
        orders.append("self_device_time_total")
    for order in orders:
        click.echo(profile.key_averages().table(sort_by=order, row_limit=rows))


def write_lists(path: Path, queries: int) -> None:
    """Write lists of LIST texts of random words as pairs, the first text of each relevant."""
    random = np.random.default_rng(0)
    vocabulary = [chr(97 + i % 26) * (1 + i // 26 % 3) for i in range(78)]  # a, b, …, aa, …, zzz
    with path.open("w") as file:
        for query in range(queries):
            for text in range(LIST):
                length = random.integers(WORDS // 2, WORDS * 3 // 2)
                words = " ".join(random.choice(vocabulary, length))
                row = {"query": f"question {query}", "text": words, "label": int(text == 0)}
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
