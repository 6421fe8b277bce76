"""What is in an index, in figures?"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from birchbark.index.attachment_schema import AttachmentSchema
from birchbark.index.layout import FieldTotals, Manifest
from birchbark.index.merge import union
from birchbark.index.reader import Index
from birchbark.text.analyzer import WORDPIECE


def describe(index: Index) -> dict[str, str | int]:
    """Name → figure, in the order of reading: documents, parts, bytes, and each field's own.

    Terms of deleted documents count until they are merged away.
    """
    manifest = Manifest.read(index.directory)
    sizes = {path: path.stat().st_size for path in index.directory.rglob("*") if path.is_file()}
    stored = sum(size for path, size in sizes.items() if path.name.startswith("texts."))
    forward = sum(size for path, size in sizes.items() if path.name.startswith("forward"))
    found: dict[str, str | int] = {
        "documents": len(index),
        "deleted, not yet merged away": sum(p.documents - len(p) for p in index.parts),
        "parts": len(index.parts),
        "generation": manifest.generation,
        "analyzer": manifest.analyzer,
        "bytes": sum(sizes.values()),
        "bytes of stored texts": stored,
        "bytes of forward index": forward,
    }
    for name, schema in index.attachments.items():
        found |= _attachment(index, name, schema, sizes)
    for number, field in enumerate(manifest.fields):
        totals = sum((part.totals[number] for part in index.parts), FieldTotals(0, 0))
        lengths = np.concatenate(
            [p.lengths[number] for p in index.parts] or [np.zeros(0, np.uint32)]
        )
        found |= {
            f"{field}: made of": "+".join(manifest.fields[field]),
            f"{field}: documents with terms": totals.documents,
            f"{field}: tokens": totals.tokens,
            f"{field}: distinct terms": len(union([p.fields[number] for p in index.parts])),
            f"{field}: average length": f"{totals.tokens / max(1, totals.documents):.1f}",
            f"{field}: longest": int(lengths.max(initial=0)),
        }
        if index.analyzer.name in WORDPIECE and field not in manifest.keywords:
            unknown = _unknown(index, manifest.fields[field])
            found[f"{field}: unknown words"] = unknown.total()
            found[f"{field}: distinct unknown words"] = len(unknown)
    return found


def _attachment(
    index: Index, name: str, schema: AttachmentSchema, sizes: Mapping[Path, int]
) -> dict[str, str | int]:
    """What made it, how many documents have rows there, and its size. sizes: of all files."""
    held = [
        part.path / rows.name for part in index.parts for rows in part.entry.attached.get(name, ())
    ]
    size = sum(size for path, size in sizes.items() if path.parent in held)
    forms = (f"{array} {form}" for array, form in schema.arrays.items())
    return {
        f"attachment {name}: made by": json.dumps(schema.config, ensure_ascii=False),
        f"attachment {name}: arrays": ", ".join(forms),
        f"attachment {name}: documents": len(index) - index.incomplete().get(name, 0),
        f"attachment {name}: MB": f"{size / 1e6:.1f}",
    }


def _unknown(index: Index, sources: Iterable[str]) -> Counter[str]:
    """Words that the analyzer's vocabulary does not know, counted in the stored texts."""
    analyzer = index.analyzer
    words: Counter[str] = Counter()
    for document in index:
        for source in sources:
            words.update(analyzer.tokens(document.fields.get(source, "")))
    return Counter({word: count for word, count in words.items() if analyzer.unknown(word)})
