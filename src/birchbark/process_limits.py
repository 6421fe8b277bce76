"""How is a process run that reads what strangers have written? Within limits, where systems can."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from math import ceil
from pathlib import Path
from time import process_time
from weakref import finalize

from birchbark.systems import fcntl, resource

SECRETS = ("BIRCHBARK_API_KEY", "HF_TOKEN")  # variables that no such process inherits
PACKAGES = Path(__file__).parents[1]  # where birchbark is
HAS_SIGIO = sys.platform == "linux" and fcntl is not None  # for pipes; macOS has it for terminals


def start_limited(module: str, memory: int, seconds: int, stderr: int) -> subprocess.Popen[bytes]:
    """Start a module of birchbark as a process; it and what it starts are a group of their own.

    memory, seconds: its limits, which it asks for by `given_limits` and sets itself. stderr: see
    Popen. Raises OSError.
    """
    paths = filter(None, (str(PACKAGES), os.environ.get("PYTHONPATH")))
    inherited = {name: text for name, text in os.environ.items() if name not in SECRETS}
    inherited_end, kept_end = os.pipe()
    handles = (inherited_end,) if HAS_SIGIO else ()
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, *map(str, (memory, seconds, *handles))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            # numpy's library reserves memory for each thread that it may start
            env={**inherited, "PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"},
            pass_fds=handles,
            start_new_session=True,
        )
    except BaseException:
        os.close(kept_end)
        raise
    finally:
        os.close(inherited_end)
    finalize(process, os.close, kept_end)
    return process


def end_process(process: subprocess.Popen[bytes]) -> None:
    """End a process that `start_limited` has started, and programs that it waits for."""
    with suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:  # programs that it waits for end when they next write
            process.kill()
    process.communicate()


def ended_by(code: int, name: str) -> bool:
    """Return whether a process with this exit code was ended by a signal; not all systems have it.

    name: such as "SIGKILL".
    """
    return code < 0 and -code == getattr(signal, name, None)


def given_limits() -> tuple[int, int]:
    """Return the memory and seconds that `start_limited` has given to this process.

    From then on the process ends together with its parent, where systems can tell it.
    """
    memory, seconds, *handles = map(int, sys.argv[1:])
    for handle in handles:
        _end_with_parent(handle)
    return memory, seconds


def _end_with_parent(handle: int) -> None:
    """Let this process, and those that it starts, end together with the process that started it.

    handle: of a pipe to which nothing is ever written. The system sends SIGIO when the parent has
    ended and so closed it, also while a library keeps Python from running. The signal of
    PR_SET_PDEATHSIG would come when the parent's thread ends.
    """
    fcntl.fcntl(handle, fcntl.F_SETOWN, -os.getpid())  # the whole group
    fcntl.fcntl(handle, fcntl.F_SETFL, fcntl.fcntl(handle, fcntl.F_GETFL) | os.O_ASYNC)
    state = select.poll()  # select.select refuses handles above 1,023
    state.register(handle, select.POLLIN)
    if state.poll(0):  # it has been closed before
        sys.exit()


def limit_memory(size: int) -> None:
    """Let this process, and those that it starts, use `size` bytes of memory at most.

    When it ends by a fault, its memory is not written to a file.
    """
    if resource:
        _set(resource.RLIMIT_AS, size)
        _set(resource.RLIMIT_CORE, 0)


def limit_time(seconds: int) -> None:
    """End this process by SIGXCPU when it has used so many more seconds of processor time.

    Systems count whole seconds; it gets up to one more.
    """
    if resource:
        _set(resource.RLIMIT_CPU, ceil(process_time()) + seconds)


def result_of_child(work: Callable[[], bytes], seconds: int) -> bytes | None:
    """Return what `work` returns in a copy of this process, which then ends.

    None if it raises an error, ends the copy, or takes more `seconds` of processor time, and where
    processes cannot be copied. Only for a process with a single thread.
    """
    if not hasattr(os, "fork"):
        return None  # Windows
    readable, writable = os.pipe()
    child = os.fork()
    if not child:
        try:
            limit_time(seconds)
            with os.fdopen(writable, "wb") as answer:
                answer.write(work())
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writable)
    with os.fdopen(readable, "rb") as answer:
        found = answer.read()
    _, status = os.waitpid(child, 0)
    return None if status else found


def _set(kind: int, limit: int) -> None:
    """Set a limit that can be changed again, unless a lower one is set for good."""
    _, most = resource.getrlimit(kind)
    limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
    resource.setrlimit(kind, (limit, most))
