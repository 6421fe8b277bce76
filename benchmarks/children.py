"""How is the process that measures an engine started, sent requests, and ended?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("BIRCHBARK_DATA", ROOT.parent / "shared" / "data"))


class Child:
    """A process that measures one engine (worker.py, score_worker.py)."""

    def __init__(
        self, *arguments: str, module: str = "worker", python: str = sys.executable
    ) -> None:
        """Start benchmarks.`module` with `arguments`, the first of which names an engine.

        python: the interpreter to run it with.
        """
        self._process = subprocess.Popen(
            [python, "-m", f"benchmarks.{module}", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def ask(self, **request: object) -> Any:
        """Send a request and return its answer."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise click.ClickException(f"the process died at {request}; see its output above")
        return json.loads(line)

    def last(self, **request: object) -> Any:
        """Send a request, end the process, and return the answer."""
        answer = self.ask(**request)
        self.end()
        return answer

    def end(self) -> None:
        """End the process."""
        self._process.communicate()


def say(text: str) -> None:
    """Print progress on standard error."""
    click.echo(text, err=True)
