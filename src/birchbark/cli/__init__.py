"""How is birchbark used from a shell? One file a verb; options become arguments only here.

Standard output is data, standard error is talk. Exit codes: 0 done, 1 failed, 2 wrong input.
"""

from __future__ import annotations

import signal
import sys
import warnings
from importlib import import_module

import click

from birchbark._version import __version__
from birchbark.errors import BirchbarkError

VERBS = (
    "demo",
    "index",
    "retrieve",
    "reword",
    "rerank",
    "search",
    "serve",
    "attention",
    "scores",
    "evaluate",
    "study",
    "pairs",
    "train",
    "distill",
    "adapt",
    "pretrain",
    "model",
)


class _Verbs(click.Group):
    """Loads a verb's file when it is asked for, so that --help and errors come at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        command: click.Command = import_module(f"birchbark.cli.{name}").command
        return command


@click.command(
    cls=_Verbs,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: birchbark demo",
)
@click.version_option(__version__, prog_name="birchbark")
def group() -> None:
    """Rank documents with BERT and show the evidence."""


def main() -> None:
    """Run the command line; errors raised on purpose are told in one line on standard error."""
    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.default_int_handler)  # leave as tidily as after Ctrl-C
    warnings.showwarning = lambda message, *_, **__: click.echo(f"note: {message}", err=True)
    try:
        group.main(standalone_mode=False)
    except BirchbarkError as error:
        click.echo(f"birchbark: {error}", err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("birchbark: interrupted; nothing half done was kept", err=True)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        click.echo(f"birchbark: {error.filename or 'system'}: {error.strerror}", err=True)
        sys.exit(1)
