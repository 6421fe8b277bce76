"""How does an index get attachments, and keep them while its parts change?

Rows are written in new folders, and each step is a manifest that names them, for the
writer to swap in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from birchbark.errors import InputError
from birchbark.index.attachment_reader import AttachedRows, Numbers, reading
from birchbark.index.attachment_schema import AttachedEntry
from birchbark.index.attachment_writer import Attaching, compute_rows, copy_rows
from birchbark.index.layout import Manifest, PartEntry
from birchbark.index.merge import FANOUT
from birchbark.index.part_reader import Part
from birchbark.index.reader import Index


def attached(
    index: Index,
    manifest: Manifest,
    attaching: Attaching,
    keep_every: int,
    advance: Callable[[int], object],
) -> Iterator[Manifest]:
    """Compute what the attachment lacks; the manifests that follow on `manifest`, one by one.

    index: what `manifest` names. keep_every: there is a manifest after so many documents of a part.
    The first to have rows of another schema names none of those before.
    """
    name, schema = attaching.name, attaching.schema
    found = index.attachment(name) if manifest.attachments.get(name) == schema else None
    if not found:
        fresh = [_holding(entry, name, ()) for entry in manifest.parts]
        manifest = replace(
            manifest, parts=tuple(fresh), attachments={**manifest.attachments, name: schema}
        )
        if not fresh:
            yield _next(manifest, manifest.parts)
    for position, part in enumerate(index.parts):
        missing = found.missing(position) if found else part.live()
        for begin in range(0, len(missing), keep_every):
            some = missing[begin : begin + keep_every]
            folder = part.path / _folder(name, manifest)
            new = compute_rows(folder, part, some, attaching, advance)
            held = manifest.parts[position].attached.get(name, ())
            yield (manifest := _with(manifest, position, name, (*held, new)))
        if len(manifest.parts[position].attached.get(name, ())) >= FANOUT:
            yield (manifest := _with(manifest, position, name, _joined(part, name, manifest)))


def detached(manifest: Manifest, name: str) -> Manifest:
    """The manifest without the attachment; InputError if there is none of this name."""
    if name not in manifest.attachments:
        known = ", ".join(manifest.attachments)
        remedy = f"there is {known}" if known else "it has none"
        raise InputError(f"no attachment {name!r} in this index", remedy=remedy)
    left = {key: schema for key, schema in manifest.attachments.items() if key != name}
    parts = tuple(_holding(entry, name, ()) for entry in manifest.parts)
    return replace(manifest, parts=parts, attachments=left)


def carried(
    index: Index,
    manifest: Manifest,
    positions: Sequence[int],
    numbers: Sequence[Numbers],
    target: Path,
) -> dict[str, tuple[AttachedEntry, ...]]:
    """What a part merged in `target` is to name: rows of the living documents of its parts, copied.

    index: what `manifest` names. positions: of these parts. numbers: their documents' new numbers,
    −1 for deleted. Documents that lacked rows lack them still. Raises ArtifactError if an
    attachment is damaged.
    """
    entries: dict[str, tuple[AttachedEntry, ...]] = {}
    for name, schema in index.attachments.items():
        attachment = index.attachment(name)
        held = [attachment.held[position] if attachment else [] for position in positions]
        sources = [pair for h, new in zip(held, numbers, strict=True) for pair in _sources(h, new)]
        folder = target / _folder(name, manifest)
        if entry := copy_rows(folder, schema, sources):
            entries[name] = (entry,)
    return entries


def _sources(held: Sequence[AttachedRows], new: Numbers) -> Iterator[tuple[AttachedRows, Numbers]]:
    """Folders of one part, and the new numbers of their documents. new: (documents,), or −1."""
    for rows in held:
        rows.check_order()
        with reading(rows.folder):
            numbers = new[rows.docs]
        yield rows, numbers


def _joined(part: Part, name: str, manifest: Manifest) -> tuple[AttachedEntry, ...]:
    """One folder of rows in the place of all that `manifest` names for `part`."""
    schema = manifest.attachments[name]
    (entry,) = (entry for entry in manifest.parts if entry.name == part.name)
    held = [AttachedRows(part.path / e.name, e, schema) for e in entry.attached[name]]
    numbers = np.full(part.documents, -1)
    numbers[part.live()] = part.live()
    joined = copy_rows(part.path / _folder(name, manifest), schema, [*_sources(held, numbers)])
    return (joined,) if joined else ()


def _folder(name: str, manifest: Manifest) -> str:
    """A folder's name that no manifest before had."""
    return f"attached-{name}-{manifest.generation + 1:06}"


def _with(
    manifest: Manifest, position: int, name: str, held: tuple[AttachedEntry, ...]
) -> Manifest:
    """The next manifest, in which these are the rows of the part at `position`."""
    parts = list(manifest.parts)
    parts[position] = _holding(parts[position], name, held)
    return _next(manifest, tuple(parts))


def _next(manifest: Manifest, parts: tuple[PartEntry, ...]) -> Manifest:
    return replace(manifest, parts=parts, generation=manifest.generation + 1)


def _holding(entry: PartEntry, name: str, held: tuple[AttachedEntry, ...]) -> PartEntry:
    """`entry`, with these as its rows in the attachment."""
    attached = {key: others for key, others in entry.attached.items() if key != name}
    return replace(entry, attached=attached | ({name: held} if held else {}))
