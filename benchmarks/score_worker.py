"""How long does an engine take to score pairs, measured in a separate process?

Run as `python -m benchmarks.score_worker ENGINE MODEL PAIRS CORES`. ENGINE may be `peak`, for the
speed of a float32 matrix product on the same cores. CORES are numbers separated by commas. Requests
and answers are lines of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def main() -> None:
    """Answer the requests on standard input until it ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # so that output of an engine is not taken for an answer
    name, model, pairs, cores = sys.argv[1:]
    os.sched_setaffinity(0, map(int, cores.split(",")))
    threads = len(cores.split(","))
    run = _peak(threads) if name == "peak" else _engine(name, Path(model), Path(pairs), threads)
    for line in sys.stdin:
        answers.write(json.dumps(run(**json.loads(line))) + "\n")
        answers.flush()


def _engine(name: str, model: Path, pairs: Path, threads: int) -> Callable[..., Any]:
    from benchmarks.score_engines import SCORE_ENGINES

    score = SCORE_ENGINES[name].load(model, threads)
    requests = json.loads(pairs.read_text())

    def run(kind: str, limit: int | None = None) -> dict[str, Any]:
        """Return the seconds from strings to scores, and the scores. limit: number of queries."""
        start = time.perf_counter()
        scores = [score(query, texts) for query, texts in requests[kind][:limit]]
        seconds = time.perf_counter() - start
        return {"seconds": seconds, "scores": np.concatenate(scores).astype(float).tolist()}

    return run


def _peak(threads: int) -> Callable[..., Any]:
    """Measure GFLOP/s of ONNX Runtime's matrix product in MiniLM's largest shape, best of 100."""
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    rows, inner, out = 1024, 384, 1536
    random = np.random.default_rng(0)
    x, weight = (random.normal(size=s).astype(np.float32) for s in ((rows, inner), (inner, out)))
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "peak",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, inner])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, out])],
        [numpy_helper.from_array(weight, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )

    def run(kind: str, limit: int | None = None) -> float:
        times = []
        for _ in range(100):
            start = time.perf_counter()
            session.run(None, {"x": x})
            times.append(time.perf_counter() - start)
        return 2 * rows * inner * out / min(times) / 1e9

    return run


if __name__ == "__main__":
    main()
