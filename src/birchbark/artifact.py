"""How does anything reach the disk whole or not at all, and say what it was made from?

Directories and files are written under a temporary name beside their place, flushed to the disk,
and renamed. What a killed process leaves behind starts with `.tmp-` and is never read.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from birchbark._version import __version__
from birchbark.errors import ArtifactError, InputError

TEMPORARY = ".tmp-"


@contextmanager
def new_directory(target: Path, *, replace: bool = False) -> Iterator[Path]:
    """A directory to fill; it appears at `target` when the block ends well, else it is removed.

    Raises InputError if `target` exists and `replace` is false.
    """
    if target.exists() and not replace:
        raise InputError(
            "already exists", where=str(target), remedy="choose another name, or replace it"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=target.parent))
    try:
        yield scratch
        scratch.chmod(0o755)
        for path in (*scratch.rglob("*"), scratch):
            flush(path)
        if target.exists():
            doomed = Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=target.parent))
            target.rename(doomed / target.name)
            scratch.rename(target)
            shutil.rmtree(doomed)
        else:
            scratch.rename(target)
        flush(target.parent)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


@contextmanager
def new_file(target: Path) -> Iterator[IO[str]]:
    """A UTF-8 text file to write; it takes `target`'s place when the block ends well."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=TEMPORARY, dir=target.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        scratch = Path(name)
        scratch.chmod(0o644)
        scratch.replace(target)
        flush(target.parent)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def flush(path: Path) -> None:
    """Ask the disk to keep the file or directory at `path`."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_json(path: Path, value: Any) -> None:
    """Write `value` as JSON that people can read, whole or not at all."""
    with new_file(path) as out:
        json.dump(value, out, indent=2, ensure_ascii=False)
        out.write("\n")


def read_json(path: Path, what: str) -> Any:
    """Read the JSON at `path`; ArtifactError names `what` if it is missing or broken."""
    try:
        return json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise ArtifactError(
            f"no {what} here", where=str(path.parent), remedy=f"{path.name} is missing"
        ) from None
    except (json.JSONDecodeError, UnicodeDecodeError) as broken:
        raise ArtifactError(f"damaged {what}: {broken}", where=str(path)) from broken


def fingerprint(*paths: Path) -> str:
    """SHA-256 in hex over the bytes of the files at `paths`, in the order given."""
    total = hashlib.sha256()
    for path in paths:
        with path.open("rb") as stream:
            total.update(hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()


def origin() -> dict[str, str]:
    """What made this artifact: versions of birchbark and Python."""
    return {"birchbark": __version__, "python": platform.python_version()}
