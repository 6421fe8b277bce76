"""Which hits are copies of the same document, and shown as one?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from birchbark.pipeline.answers.answer import Hit

FILE = {"path", "folder", "size"}  # fields of a document that was read from a folder
PLACE = FILE | {"modified"}  # which tell where and when a file is


def without_copies(hits: Iterable[Hit]) -> list[Hit]:
    """Return the hits without copies of a better one, which names them in `copies`.

    Copies are equal in all fields but those that tell where a file is. A document without text is
    never a copy.
    """
    kept: dict[object, Hit] = {}
    for hit in hits:
        document = hit.document
        place = PLACE if document.fields.keys() >= FILE else set()
        content = {name: text for name, text in document.fields.items() if name not in place}
        is_text = document.contents.strip()
        key = frozenset(content.items()) if is_text else document.doc_id
        first = kept.get(key)
        kept[key] = replace(first, copies=(*first.copies, document.doc_id)) if first else hit
    return list(kept.values())
