"""Does an index survive the death of processes that change it, while its folder changes?"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("kill_writers.py")
KILLS = 15


@pytest.mark.slow
@pytest.mark.parametrize("shards", [0, 3])
def test_killed_writers(tmp_path: Path, shards: int) -> None:
    """Nothing is damaged, no part of a commit is seen, and a sync gives what the folder has."""
    command = [sys.executable, str(SCRIPT), str(tmp_path / "x"), str(KILLS), str(shards)]
    subprocess.run(command, check=True)
