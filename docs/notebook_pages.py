"""How does a notebook become a page of the documentation? As Markdown with its stored outputs."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterator, Mapping
from typing import Any

SHELL, FILE = "%%sh", "%%writefile "  # the first lines of cells that are no Python


def markdown(text: str, download: str) -> str:
    """Return a notebook's cells as Markdown, and its outputs as HTML.

    Args:
        text: The notebook, as JSON.
        download: Where the notebook is linked, below the heading.
    """
    heading, *cells = json.loads(text)["cells"]
    return "\n\n".join(
        [
            _joined(heading["source"]),
            f"[Download this notebook]({download}){{: download }}",
            *(part for cell in cells for part in _parts(cell)),
        ]
    )


def _parts(cell: Mapping[str, Any]) -> Iterator[str]:
    """Yield the Markdown of a cell and of each of its outputs."""
    source = _joined(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield _code(source)
    for output in cell["outputs"]:
        if not source.startswith(FILE):  # it says that the file was written
            yield _output(output)


def _code(source: str) -> str:
    """Return a cell's code as a block in its language, without the line that names it."""
    first, _, rest = source.partition("\n")
    if first.startswith(SHELL):
        return f"```sh\n{rest}\n```"
    if first.startswith(FILE):
        name = first.removeprefix(FILE)
        return f'```{name.rpartition(".")[2]} title="{name}"\n{rest}\n```'
    return f"```python\n{source}\n```"


def _output(output: Mapping[str, Any]) -> str:
    """Return an output as HTML: as a picture or HTML if it can be shown as such, or as text."""
    if output["output_type"] == "stream":
        kind = "output messages" if output["name"] == "stderr" else "output"
        return f'<pre class="{kind}">{_escaped(output["text"])}</pre>'
    data = output["data"]
    if "image/svg+xml" in data:
        svg = base64.b64encode(_joined(data["image/svg+xml"]).encode()).decode()
        return f'<div class="output"><img alt="Plot" src="data:image/svg+xml;base64,{svg}"></div>'
    if "text/html" in data:
        return f'<div class="output">{_joined(data["text/html"])}</div>'
    return f'<pre class="output">{_escaped(data["text/plain"])}</pre>'


def _escaped(text: str | list[str]) -> str:
    return html.escape(_joined(text).rstrip("\n"), quote=False)


def _joined(text: str | list[str]) -> str:
    """Join lines; a text in a notebook is one string or a list of its lines."""
    return text if isinstance(text, str) else "".join(text)
