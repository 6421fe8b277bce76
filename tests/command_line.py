"""How does a test run a command? In its own process, with what it prints and its exit code."""

from __future__ import annotations

import signal
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from unittest.mock import patch

from birchbark import cli

HIDDEN = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)


def birchbark(*arguments: str, status: int = 0, encoding: str = "utf-8") -> tuple[str, str]:
    """Run the command, which must end with `status`; return standard output and error.

    encoding: that of the terminal.
    """
    out, err = (TextIOWrapper(BytesIO(), encoding) for _ in range(2))
    handlers = {number: signal.getsignal(number) for number in cli.SIGNALS}
    code: object = 0
    with (
        patch.object(sys, "argv", ["birchbark", *arguments]),
        redirect_stdout(out),
        redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.resetwarnings()
        for category in HIDDEN:  # as Python does outside of tests
            warnings.simplefilter("ignore", category)
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
    for stream in (out, err):
        stream.seek(0)
    printed, messages = out.read(), err.read()
    assert code == status, messages
    return printed, messages
