"""Which characters of documents, names and messages may reach a terminal?"""

from __future__ import annotations

import json
import re

# Control characters other than tab and line break: they can move the cursor, change the title of
# the window or answer in the user's name. C1 codes (U+0080 to U+009F) do so as single characters.
# Separators of lines, controls of the direction of text, and annotations make a line look like
# another one; the marks of direction, which texts in Hebrew and Arabic need, do not.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u206f\ufff9-\ufffb]")


def printable(text: str) -> str:
    """Return the text with each control character replaced by U+FFFD; its length stays the same."""
    return _CONTROL.sub("\ufffd", text)


def printable_json(value: object, indent: int | None = None) -> str:
    """Return a value as JSON in which these characters are escaped, so that it stays the same."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
