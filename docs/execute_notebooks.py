"""How do the notebooks get the outputs that are stored with them? They are run, and tidied.

Run it in the root of the repository, with the environment that a notebook needs:
.venv/bin/python docs/execute_notebooks.py search-your-notes trec-experiment
.venv-train/bin/python docs/execute_notebooks.py train-distil-ship
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parent / "notebooks"
TIMEOUT = 1800  # seconds that a cell may take
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
FOLDER = re.compile(re.escape(tempfile.gettempdir()) + r"/[^/\s]+/")  # that a notebook works in
STYLE = re.compile(r"\x1b\[[\d;]*m")  # Jupyter asks commands for colours
# Lines that tell how far a command has come; see src/birchbark/cli/progress_lines.py.
PROGRESS = re.compile(r"^(.+: [\d,]+( of [\d,]+)?(, about .+ left)?|compiling \(.+\))\n", re.M)


def execute(path: Path, folder: Path) -> Any:
    """Run a notebook in `folder`, and return it with its outputs, tidied.

    Raises nbclient's CellExecutionError for the first cell that fails.
    """
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT,
        kernel_name="python3",  # that of the running Python
        coalesce_streams=True,
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute(env=environment())
    return tidied(notebook)


def environment() -> Mapping[str, str]:
    """Return the environment in which shell cells find the `birchbark` of the running Python.

    Threads do not spin while they wait, so that training is not slow beside other tests.
    """
    scripts = Path(sys.executable).parent
    path = f"{scripts}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "OMP_WAIT_POLICY": "PASSIVE"}


def tidied(notebook: Any) -> Any:
    """Remove folders, colours, progress, and metadata other than tags."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        tags = cell.metadata.get("tags")
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
        if cell.cell_type == "code":
            for output in cell.outputs:
                if output.output_type == "stream":
                    output.text = STYLE.sub("", FOLDER.sub("", output.text))
                if output.get("name") == "stderr":
                    output.text = PROGRESS.sub("", output.text)
            kept = [output for output in cell.outputs if output.get("text") != ""]
            cell.outputs = sorted(kept, key=lambda output: output.get("name") == "stderr")
    return notebook


def main(names: list[str]) -> None:
    """Run the named notebooks, and store their outputs."""
    for name in names:
        path = NOTEBOOKS / f"{name}.ipynb"
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(execute(path, Path(folder)), path)


if __name__ == "__main__":
    main(sys.argv[1:])
