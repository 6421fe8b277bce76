"""Which characters of documents, names and messages may reach a terminal?"""

from __future__ import annotations

import re

# Control characters other than tab and line break: they can move the cursor, change the title of
# the window or answer in the user's name. C1 codes (U+0080 to U+009F) do so as single characters.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """Return the text with each control character replaced by U+FFFD; its length stays the same."""
    return _CONTROL.sub("\ufffd", text)
