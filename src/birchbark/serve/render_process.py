"""What is a document's markup, and which text of it is where? Run as a process of its own.

Hostile markup can need any amount of time and memory. `render_document.py` starts this process,
writes the document to its stdin, and reads the result from its stdout, both as JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from birchbark.process_limits import given_limits, limit_memory, limit_time


def render(document: dict[str, Any]) -> dict[str, Any]:
    """Return markup, runs and links of a document; see `Rendered`."""
    from birchbark.collection.parsing.markup import page_markup
    from birchbark.serve.sanitised_html import markdown_markup, sanitised
    from birchbark.serve.shown_text import aligned_runs, shown_text

    source, text = document["source"], document["text"]
    markup = page_markup(source) if document["is_page"] else markdown_markup(source)
    safe, links = sanitised(markup, document["path"])
    if len(safe) > document["most"]:  # which the caller refuses, and need not read
        return {"markup": safe[: document["most"] + 1], "runs": [], "links": []}
    return {"markup": safe, "runs": aligned_runs(shown_text(safe), text), "links": links}


def main() -> None:
    """Render the document within the limits of the command line."""
    memory, seconds = given_limits()
    limit_memory(memory)
    limit_time(seconds)
    sys.stdout.write(json.dumps(render(json.load(sys.stdin))))


if __name__ == "__main__":
    main()
