"""How is a process that measures one engine started, asked, and ended?"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).parents[1]


class Child:
    """A process that measures one engine (worker.py, score_worker.py)."""

    def __init__(self, *arguments: str, module: str = "worker") -> None:
        """Start the process for an engine (or one of the readers), `module` saying how."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"benchmarks.{module}", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def ask(self, **request: object) -> Any:
        """Send a request and wait for its answer."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise click.ClickException(f"the process died at {request}; its talk is above")
        return json.loads(line)

    def last(self, **request: object) -> Any:
        """As `ask`, and then the process ends."""
        answer = self.ask(**request)
        self.end()
        return answer

    def end(self) -> None:
        """Ask for nothing more."""
        self._process.communicate()


def say(text: str) -> None:
    """Progress, on standard error."""
    click.echo(text, err=True)
