"""Which commands does `birchbark` have, and how do errors become exit codes?

Data is printed on standard output, messages on standard error. Exit codes: 0 success, 1 failure, 2
invalid input, 130 interrupted. Each command has its own module. Only this package converts options
to the library's arguments.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from io import TextIOWrapper
from pathlib import Path
from types import FrameType

import click

from birchbark._version import __version__
from birchbark.cli.lazy_group import LazyGroup
from birchbark.cli.remedies import for_unknown_option, options_of
from birchbark.errors import BirchbarkError, applicable
from birchbark.show.printable import printable
from birchbark.systems import allow_open_files

SIGNALS = [  # all end alike; Windows lacks the last two
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM")
    if hasattr(signal, name)
]
IMPORTLIB = "<frozen importlib._bootstrap>"
AGAIN = 0.01  # seconds until an interruption of this is tried again, by SIGALRM
INTERRUPTED = (
    "birchbark: interrupted; no incomplete file was left. Training, studies, index attach, "
    "cluster and scores (--scores) resume with the same command."
)
COMMAND_NAMES = (
    "demo",
    "index",
    "retrieve",
    "rerank",
    "ranker",
    "cluster",
    "merge",
    "search",
    "serve",
    "mcp",
    "scores",
    "fuse",
    "tune",
    "evaluate",
    "bench",
    "study",
    "pairs",
    "train",
    "model",
)


@click.command(
    cls=LazyGroup,
    places={name: f"birchbark.cli.{name}:command" for name in COMMAND_NAMES},
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: birchbark demo",
)
@click.version_option(__version__, prog_name="birchbark")
def group() -> None:
    """Rank documents with BERT and show the evidence."""


def main() -> None:
    """Run the command line; print each expected error as one line on standard error."""
    interrupted = False

    def interrupt(_: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        is_importing = frame and frame.f_code.co_filename == IMPORTLIB
        if is_importing and hasattr(signal, "setitimer"):  # its locks would stay locked
            signal.setitimer(signal.ITIMER_REAL, AGAIN)
        else:
            raise KeyboardInterrupt

    caught = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    for number in caught:  # others are ignored, as SIGHUP by nohup
        signal.signal(number, interrupt)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed before this process began
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # what the terminal's encoding lacks
            stream.reconfigure(errors="backslashreplace")
    allow_open_files()
    warnings.showwarning = lambda message, *_, **__: click.echo(f"note: {message}", err=True)
    try:
        try:
            group.main(standalone_mode=False)
        finally:
            if hasattr(signal, "setitimer"):
                signal.setitimer(signal.ITIMER_REAL, 0)
            for number in caught:  # from now on, a signal ends the wait for threads
                signal.signal(number, signal.SIG_DFL)
    except (Exception, KeyboardInterrupt) as error:
        # compiled code and imports report an interruption as an error of their own
        if interrupted or isinstance(error, click.Abort):
            click.echo(INTERRUPTED, err=True)
            sys.exit(130)
        sys.exit(_told(error))


def _told(error: BaseException) -> int:
    """Print an expected error and return the exit code; raise any other error."""
    match error:
        case BirchbarkError():
            error.remedy = applicable(error.remedy, options_of(group, sys.argv[1:]))
            click.echo(f"birchbark: {printable(str(error))}", err=True)
            return error.exit_code
        case click.ClickException():
            error.show()
            if isinstance(error, click.NoSuchOption):
                click.echo(for_unknown_option(error, sys.argv[1:]), err=True, nl=False)
            return error.exit_code
        case BrokenPipeError():
            sys.stderr.close()
            return 1
        case OSError():
            where = printable(str(error.filename)) if error.filename else "system"
            click.echo(f"birchbark: {where}: {error.strerror}", err=True)
            return 1
    raise error
