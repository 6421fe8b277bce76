"""Where do the sections of a document begin, if it says so?"""

from __future__ import annotations

from birchbark.records import SECTION_STARTS, Document


def section_starts(document: Document) -> list[int]:
    """Return the offsets in `Document.contents` of lines with which sections begin, in order.

    They are those of the field SECTION_STARTS, in which offsets of the text are separated by
    blanks. Offsets of anything but the beginning of a line do not count, nor does a field that has
    anything but numbers, or a document of which other fields are read before the text.
    """
    stated = document.fields.get(SECTION_STARTS, "")
    if not stated or document.read_fields[:1] != ("text",):
        return []
    try:
        offsets = sorted({int(number) for number in stated.split()})
    except ValueError:
        return []
    text = document.fields.get("text", "")
    begin = len(document.contents) - len(document.text)
    return [
        begin + offset
        for offset in offsets
        if offset == 0 or (0 < offset < len(text) and text[offset - 1] in "\r\n")
    ]
