"""How long does a training loop take, measured in a separate process?

Run as `python -m benchmarks.training_worker ENGINE MODEL CORES`; CORES are numbers separated by
commas. Requests and answers are lines of JSON. A request has the fields of `TrainingTask` except
`model`, an answer has the fields of `TrainingResult`.
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
    os.dup2(2, 1)  # so that output of an engine is not taken for an answer
    name, model, cores = sys.argv[1:]
    os.sched_setaffinity(0, map(int, cores.split(",")))

    import torch

    from benchmarks.training_engines import TRAINING_ENGINES, TrainingTask

    torch.set_num_threads(len(cores.split(",")))
    train = TRAINING_ENGINES[name].train
    for line in sys.stdin:
        request = json.loads(line)
        task = TrainingTask(Path(model), Path(request.pop("pairs")), **request)
        answers.write(json.dumps(asdict(train(task))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
