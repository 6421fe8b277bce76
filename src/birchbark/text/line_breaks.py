"""Where are the line breaks and blank lines of a text?"""

from __future__ import annotations

import re

BLANK_LINES = re.compile(r"\n[^\S\n]*(?:\n[^\S\n]*)+")  # with the line breaks around them


def with_line_feeds(text: str) -> str:
    """Return a text of the same length whose line breaks are line feeds."""
    return text.replace("\r\n", " \n").replace("\r", "\n")
