"""Which commands does `birchbark` have, and how do errors become exit codes?

Data is printed on standard output, messages on standard error. Exit codes: 0 success, 1 failure, 2
invalid input, 130 interrupted. Each command has its own module. Only this package converts options
to the library's arguments.
"""

from __future__ import annotations

import resource
import signal
import sys
import warnings
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper

import click

from birchbark._version import __version__
from birchbark.cli.remedies import for_unknown_option, options_of
from birchbark.cli.replaced import Group
from birchbark.errors import BirchbarkError, applicable
from birchbark.show.printable import printable

COMMAND_NAMES = (
    "demo",
    "index",
    "retrieve",
    "reformulate",
    "rerank",
    "cluster",
    "merge",
    "search",
    "serve",
    "mcp",
    "attention",
    "scores",
    "fuse",
    "tune",
    "evaluate",
    "study",
    "pairs",
    "train",
    "model",
)


class _LazyGroup(Group):
    """A group that imports a command's module only when it is used, so that --help is fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMAND_NAMES)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMAND_NAMES:
            return super().get_command(ctx, name)
        command: click.Command = import_module(f"birchbark.cli.{name}").command
        return command


@click.command(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: birchbark demo",
)
@click.version_option(__version__, prog_name="birchbark")
def group() -> None:
    """Rank documents with BERT and show the evidence."""


def allow_open_files() -> None:
    """Raise the limit on open files to what the system allows; an index may have many parts."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main() -> None:
    """Run the command line; print each expected error as one line on standard error."""
    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.default_int_handler)  # same clean-up as for Ctrl-C
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # what the terminal's encoding lacks
            stream.reconfigure(errors="backslashreplace")
    allow_open_files()
    warnings.showwarning = lambda message, *_, **__: click.echo(f"note: {message}", err=True)
    try:
        group.main(standalone_mode=False)
    except BirchbarkError as error:
        error.remedy = applicable(error.remedy, options_of(group, sys.argv[1:]))
        click.echo(f"birchbark: {printable(str(error))}", err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        if isinstance(error, click.NoSuchOption):
            click.echo(for_unknown_option(error, sys.argv[1:]), err=True, nl=False)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt, SystemError) as error:
        cause = error.__cause__ or error.__context__
        if isinstance(error, SystemError) and not isinstance(cause, KeyboardInterrupt):
            raise  # compiled code reports an interruption as a SystemError
        click.echo(
            "birchbark: interrupted; no incomplete file was left. Training, studies, index attach, "
            "cluster and scores (--scores) resume with the same command.",
            err=True,
        )
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        where = printable(str(error.filename)) if error.filename else "system"
        click.echo(f"birchbark: {where}: {error.strerror}", err=True)
        sys.exit(1)
