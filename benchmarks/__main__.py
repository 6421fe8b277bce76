"""`python -m benchmarks NAME`: run one, and write its results (see README.md)."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

FOLDER = Path(__file__).parent
NAMES = (
    *("first-stage", "exact-topk", "tuning", "nearest", "search", "serving", "scale"),
    *("score", "score-families", "training", "training-size"),
)


def results(name: str) -> Path:
    """Return the file of the results of a benchmark."""
    return FOLDER / f"RESULTS-{name.upper()}.md"


def main() -> None:
    """Run the benchmark that the first argument names, with the other arguments as its options."""
    if sys.argv[1:2] not in [[name] for name in NAMES]:
        sys.exit(f"which benchmark? make bench NAME=NAME, one of {', '.join(NAMES)}")
    name, *options = sys.argv[1:]
    module = import_module(f"benchmarks.{name.replace('-', '_')}")
    module.main(["--output", str(results(name)), *options])


if __name__ == "__main__":
    main()
