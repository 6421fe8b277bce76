"""How long does one loop take to learn, in a process of its own? Requests are lines of JSON.

Run as `python -m benchmarks.training_worker ENGINE MODEL CORES`; CORES are numbers with commas. A
request has the fields of a `Lesson`, but for its model, an answer those of what was `Learnt`.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path


def main() -> None:
    """Answer the requests on standard input until it ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever an engine prints is no answer
    name, model, cores = sys.argv[1:]
    os.sched_setaffinity(0, map(int, cores.split(",")))

    import torch

    from benchmarks.training_engines import TRAINING_ENGINES, Lesson

    torch.set_num_threads(len(cores.split(",")))
    learn = TRAINING_ENGINES[name].learn
    for line in sys.stdin:
        asked = json.loads(line)
        lesson = Lesson(Path(model), Path(asked.pop("pairs")), **asked)
        answers.write(json.dumps(asdict(learn(lesson))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
