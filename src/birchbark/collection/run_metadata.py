"""What is recorded beside a run, so that others can tell how it was made?

The fields are those of ir_metadata 0.1 (Breuer, Keller and Schaer, SIGIR 2022), which other tools
read: platform, implementation, method and data. What only people know, the actor and the research
goal, is theirs to add. The file is JSON, which is YAML as well.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from birchbark._version import __version__
from birchbark.artifact import is_stream, new_file
from birchbark.collection.runs import write_run
from birchbark.records import Run

LIBRARIES = ("numpy", "numba", "onnxruntime", "tokenizers", "PyStemmer", "nupunkt")
TIES = "score descending as float32, then doc_id descending by bytes, as in trec_eval"
Stage = Mapping[str, Any]  # of a ranking pipeline: name, method, parameters, what it re-ranks


def metadata_path(run: Path) -> Path:
    """Return the path of a run's metadata: RUN.ir-metadata.yml."""
    return run.with_name(f"{run.name}.ir-metadata.yml")


def known_stages(runs: Iterable[tuple[Path, Run]]) -> list[Stage]:
    """Return the stages that the metadata of runs names.

    A run without metadata has none, nor has one whose metadata is of a run with another tag.
    """
    stages = list[Stage]()
    for path, run in runs:
        file = metadata_path(path)
        try:
            metadata = json.loads(file.read_text("utf-8")) if file.is_file() else {}
            known = metadata["method"]["retrieval"] if metadata["tag"] == run.tag else []
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            continue  # it may be another program's
        found = known if isinstance(known, list) else []
        stages += [stage for stage in found if isinstance(stage, dict) and stage not in stages]
    return stages


def write_described_run(
    run: Run,
    path: Path,
    stages: Sequence[Stage],
    *,
    indexing: Mapping[str, Any] | None = None,
    data: Mapping[str, Any] | None = None,
) -> None:
    """Write a run, and its metadata beside it; no metadata if the path is a pipe or a stream.

    stages: the ranking pipeline, in order. indexing: how the documents were indexed. data: what was
    ranked. Raises the errors of `write_run`.
    """
    if is_stream(path):
        write_run(run, path)
        return
    method: dict[str, Any] = {"automatic": True, "score ties": TIES}
    if indexing:
        method["indexing"] = dict(indexing)
    fields: dict[str, Any] = {
        "schema-version": 0.1,
        "run-version": 1.0,
        "tag": run.tag,
        "platform": _platform(),
        "implementation": {
            "executable": {"cmd": shlex.join(["birchbark", *sys.argv[1:]])},
            "source": {"lang": ["python"]},
        },
        "method": {**method, "retrieval": [dict(stage) for stage in stages]},
    }
    if data:
        fields["data"] = {"test collection": dict(data)}
    with new_file(metadata_path(path)) as out:
        json.dump(fields, out, indent=2)  # in ASCII, since paths may be in any encoding
        write_run(run, path)
        metadata_path(path).unlink(missing_ok=True)  # of the run that was replaced


def _platform() -> dict[str, Any]:
    system = platform.uname()
    cpu = {
        "model": _processor() or system.processor,
        "architecture": system.machine,
        "number of cores": os.cpu_count(),
    }
    libraries = [f"{name}=={version(name)}" for name in LIBRARIES]
    return {
        "hardware": {"cpu": cpu},
        "operating system": {
            "kernel": f"{system.system} {system.release}",
            "distribution": _distribution(),
        },
        "software": {
            "libraries": {"python": [f"python=={platform.python_version()}", *libraries]},
            "retrieval toolkit": [f"birchbark=={__version__}"],
        },
    }


def _processor() -> str:
    """Return the name of the processor, where Linux tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "")


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        return platform.platform()
