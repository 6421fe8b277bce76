"""How are rows attached in small steps, while other programs may change the index in between?

The rows of a slice are computed without a writer, from a snapshot of the index. A writer is open
only while they are stored. Documents that were deleted or got their rows meanwhile are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from birchbark.index.attachment_folders import (
    folder_name,
    join_similar,
    with_attachment,
    with_folder,
)
from birchbark.index.attachment_reader import Numbers
from birchbark.index.attachment_writer import (
    AttachmentJob,
    NewRows,
    batches,
    checked_rows,
    new_rows,
)
from birchbark.index.index import Index
from birchbark.index.layout import Manifest
from birchbark.records import Document


@dataclass(frozen=True, slots=True)
class Slice:
    """Some documents of one part that lack rows of an attachment.

    part: name and checksum of the part; its name alone could be that of a part of a newer index.
    numbers: the documents' numbers in the part, ascending. documents: in the same order.
    """

    part: tuple[str, str]
    numbers: Numbers
    documents: Sequence[Document]


def next_slice(index: Index, name: str, max_documents: int, max_characters: int) -> Slice | None:
    """Return the first documents without rows of the attachment `name`; None if all have rows.

    For the limits see `batches`. Raises ArtifactError if the attachment is damaged.
    """
    attachment = index.attachment(name)
    for position, part in enumerate(index.parts):
        missing = attachment.missing(position) if attachment else part.live_numbers()
        for numbers, documents in batches(
            part, missing, index.read_fields, max_documents, max_characters
        ):
            return Slice((part.name, part.entry.checksum), numbers, documents)
    return None


def store_slice(
    index: Index, manifest: Manifest, job: AttachmentJob, computed: Slice, rows: Sequence[NewRows]
) -> Iterator[Manifest]:
    """Write the rows of a slice, and yield manifests that succeed `manifest`; none if none is new.

    index: the index that `manifest` describes. Raises InputError if the attachment has another
    schema, or the rows have the wrong form.
    """
    name, schema = job.name, job.schema
    schema.check_same(name, manifest.attachments, index.directory)
    parts = [(part.name, part.entry.checksum) for part in index.parts]
    if computed.part not in parts:  # it has been merged
        return
    position = parts.index(computed.part)
    part, attachment = index.parts[position], index.attachment(name)
    missing = attachment.missing(position) if attachment else part.live_numbers()
    lacking = np.isin(computed.numbers, missing)  # (n,)
    if not lacking.any():
        return
    if not attachment:
        manifest = with_attachment(manifest, name, schema)
    checked = checked_rows(job, computed.documents, rows)
    with new_rows(part.path / folder_name(name, manifest), schema) as writer:
        writer.add_rows(computed.numbers[lacking], [checked[i] for i in np.flatnonzero(lacking)])
        new = writer.close()
    yield (manifest := with_folder(manifest, position, name, new))
    yield from join_similar(part, position, name, manifest)
