"""How long do searches of one index take? `python -m benchmarks.scale_search INDEX TEXT COUNT`."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.scale import time_queries
from birchbark.index.index import Index


def main() -> None:
    """Print p50 and p95 in milliseconds, and the resident memory in MB."""
    directory, text, documents = sys.argv[1:]
    p50, p95 = time_queries(Index(directory), Path(text), int(documents))
    status = Path("/proc/self/status").read_text()
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]
    sys.stdout.write(f"{p50} {p95} {int(resident) / 1000}\n")


if __name__ == "__main__":
    main()
