"""Which figures describe an index?"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from birchbark.index.attachment_schema import AttachmentSchema
from birchbark.index.index import Index
from birchbark.index.layout import FieldTotals
from birchbark.index.merge import union_of_terms
from birchbark.index.shards import read_manifest, shard_folders
from birchbark.text.analyzer import WORDPIECE


def describe(index: Index) -> dict[str, str | int]:
    """Return name → figure, in the order of display.

    The figures are totals such as documents, parts and bytes, then those of each attachment and of
    each indexed field. Terms of deleted documents count until a merge removes them.
    """
    manifest = read_manifest(index.directory)
    sizes = {}
    for folder, _, names in os.walk(index.directory):  # passes over what a writer has deleted
        for path in (Path(folder, name) for name in names):
            with suppress(FileNotFoundError):
                sizes[path] = path.stat().st_size
    stored = sum(size for path, size in sizes.items() if path.name.startswith("texts."))
    forward = sum(size for path, size in sizes.items() if path.name.startswith("forward"))
    figures: dict[str, str | int] = {
        "documents": len(index),
        "deleted, not yet merged away": sum(p.documents - len(p) for p in index.parts),
        **({"shards": len(folders)} if (folders := shard_folders(index.directory)) else {}),
        "parts": len(index.parts),
        "generation": manifest.generation,
        "analyzer": manifest.analyzer,
        "read by models": ", ".join(("title", *manifest.read_fields)),
        "bytes": sum(sizes.values()),
        "bytes of stored texts": stored,
        "bytes of forward index": forward,
    }
    for name, schema in index.attachments.items():
        figures |= _describe_attachment(index, name, schema, sizes)
    for number, field in enumerate(manifest.fields):
        totals = sum((part.totals[number] for part in index.parts), FieldTotals(0, 0))
        lengths = np.concatenate(
            [p.lengths[number] for p in index.parts] or [np.zeros(0, np.uint32)]
        )
        terms = len(union_of_terms([p.fields[number] for p in index.parts]))
        figures |= {
            f"{field}: made of": "+".join(manifest.fields[field]),
            **(
                {f"{field}: steps per 1 of weight": manifest.weighted[field]}
                if field in manifest.weighted
                else {}
            ),
            f"{field}: documents with terms": totals.documents,
            f"{field}: tokens": totals.tokens,
            f"{field}: distinct terms": terms,
            f"{field}: average length": f"{totals.tokens / max(1, totals.documents):.1f}",
            f"{field}: longest": int(lengths.max(initial=0)),
        }
        has_text = field not in manifest.keywords and field not in manifest.weighted
        if index.analyzer.name in WORDPIECE and has_text:
            unknown = _unknown_words(index, manifest.fields[field])
            figures[f"{field}: unknown words"] = unknown.total()
            figures[f"{field}: distinct unknown words"] = len(unknown)
    return figures


def _describe_attachment(
    index: Index, name: str, schema: AttachmentSchema, sizes: Mapping[Path, int]
) -> dict[str, str | int]:
    """Return the config, arrays, number of documents and size of an attachment.

    sizes: file → size in bytes, for all files of the index.
    """
    folders = [
        part.path / rows.name for part in index.parts for rows in part.entry.attached.get(name, ())
    ]
    size = sum(size for path, size in sizes.items() if path.parent in folders)
    forms = (f"{array} {form}" for array, form in schema.arrays.items())
    return {
        f"attachment {name}: made by": json.dumps(schema.config, ensure_ascii=False),
        f"attachment {name}: arrays": ", ".join(forms),
        f"attachment {name}: documents": len(index) - index.missing_rows().get(name, 0),
        f"attachment {name}: MB": f"{size / 1e6:.1f}",
    }


def _unknown_words(index: Index, sources: Iterable[str]) -> Counter[str]:
    """Count the words of the stored texts that the analyzer's vocabulary does not contain."""
    analyzer = index.analyzer
    words: Counter[str] = Counter()
    for document in index:
        for source in sources:
            words.update(analyzer.tokens(document.fields.get(source, "")))
    return Counter({word: count for word, count in words.items() if analyzer.unknown(word)})
