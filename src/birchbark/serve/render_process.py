"""What is a document's markup, and which text of it is where? Run as a process of its own.

Hostile markup can need any amount of time and memory. `render_document.py` starts this process,
writes the document to its stdin, and reads the result from its stdout, both as JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def render(document: dict[str, Any]) -> dict[str, Any]:
    """Return markup, runs and links of a document; see `Rendered`."""
    from birchbark.collection.parsing.markup import page_markup
    from birchbark.serve.sanitised_html import markdown_markup, sanitised
    from birchbark.serve.shown_text import aligned_runs, shown_text

    source, text = document["source"], document["text"]
    markup = page_markup(source) if document["is_page"] else markdown_markup(source)
    safe, links = sanitised(markup, document["path"])
    return {"markup": safe, "runs": aligned_runs(shown_text(safe), text), "links": links}


def _limit(memory: int, seconds: int) -> None:
    """Limit memory in bytes and processor time of this process, where the system can."""
    try:
        import resource

        limits = {resource.RLIMIT_AS: memory, resource.RLIMIT_CPU: seconds, resource.RLIMIT_CORE: 0}
        for kind, limit in limits.items():
            _, most = resource.getrlimit(kind)
            limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
            resource.setrlimit(kind, (limit, limit))
    except (ImportError, ValueError, OSError):
        pass


def main() -> None:
    """Render the document within the limits of the command line."""
    _limit(*map(int, sys.argv[1:]))
    sys.stdout.write(json.dumps(render(json.load(sys.stdin))))


if __name__ == "__main__":
    main()
