"""How are the steps and validations of a training run logged?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Self

from birchbark.artifact import new_file


class TrainingLog:
    """A log with one JSON line per step and per validation, each flushed at once."""

    def __init__(self, file: IO[str] | None) -> None:
        """Write to `file`; None for processes that do not log."""
        self._file = file

    @classmethod
    @contextmanager
    def open(cls, path: Path, step: int, is_main: bool) -> Iterator[Self]:
        """Open the log at `path`, and remove the lines after `step`; those steps are repeated."""
        if not is_main:
            yield cls(None)
            return
        if path.exists():
            lines = [line for line in _lines(path) if line["step"] <= step]
            with new_file(path) as file:
                file.writelines(json.dumps(line) + "\n" for line in lines)
        with path.open("a", encoding="utf-8") as file:
            yield cls(file)

    def add(self, **values: Any) -> None:
        """Write a line."""
        if self._file is not None:
            self._file.write(json.dumps(values) + "\n")
            self._file.flush()


def read_log(path: Path) -> list[dict[str, Any]]:
    """Return the values of all lines, without invalid lines, such as one cut off by a crash."""
    return list(_lines(path))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_bytes().splitlines():
        try:
            values = json.loads(line)
        except ValueError:
            continue
        if isinstance(values, dict) and isinstance(values.get("step"), int):
            yield values
