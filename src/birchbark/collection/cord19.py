"""How is CORD-19 (metadata.csv and full texts in JSON) read as Documents?"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from birchbark.artifact import can_exist
from birchbark.collection.files.open_below import open_files_in
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.parsing.lines import (
    OpenFile,
    decode,
    open_decompressed,
    read_decompressed,
)
from birchbark.errors import InputError
from birchbark.records import Document

METADATA = "metadata.csv"
ID = "cord_uid"
FULL_TEXTS = ("pmc_json_files", "pdf_json_files")  # PMC first: XML has fewer errors than PDF
MAX_VALUE = 1 << 24  # characters; a longer value is due to a quote that is not closed

Row = dict[str, str]  # column → value, without empty values


def read_cord19(path: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """Yield location and Document of each paper in `metadata.csv`.

    The field `title` is the title, `text` the abstract, and `body` the paragraphs of the full text,
    which is read from the first of the listed JSON files that exists (PubMed Central before PDF).
    Releases before May 2020 do not list files; there they have the names of `sha` and `pmcid`, in
    the folder `full_text_file`. Other columns are fields under their own names.

    Rows with the same cord_uid describe one paper from several sources. They are merged: each value
    is taken from the first row that has one. Notes count the merged rows, and the titles and
    abstracts that differ. A paper is yielded at its last row.

    A row without cord_uid or with the wrong number of values is a bad record, and so is an
    unreadable full text. If bad records are skipped, the paper is yielded without that full text.

    path: the file, or the folder that contains it.
    """
    path = path / METADATA if path.is_dir() else path
    silent = Intake(skip_bad=True, encoding=intake.encoding)
    remaining = Counter(row[ID] for _, row in _rows(path, silent))  # rows of each paper
    if remaining.total() > len(remaining):
        intake.notes["additional row of a paper"] += remaining.total() - len(remaining)
    incomplete: dict[str, Row] = {}
    for location, row in _rows(path, intake):
        doc_id = row[ID]
        remaining[doc_id] -= 1
        row = _merged(incomplete.pop(doc_id, {}), row, intake)
        if remaining[doc_id]:
            incomplete[doc_id] = row
        else:
            yield location, _document(row, path, location, intake)


def is_release(folder: Path) -> bool:
    """Return whether a folder is a release of CORD-19: its metadata.csv has the column of ids."""
    try:
        with open_decompressed(folder / METADATA) as stream:
            header = stream.readline(MAX_VALUE).decode("utf-8-sig", "replace")
            return ID in next(csv.reader([header]), [])
    except (InputError, csv.Error):
        return False


def _rows(path: Path, intake: Intake) -> Iterator[tuple[str, Row]]:
    """Yield the location and the values of each row; report bad rows to `intake`."""
    # csv has no other limit than this one, which applies to the whole process.
    csv.field_size_limit(max(MAX_VALUE, csv.field_size_limit()))
    try:
        with open_decompressed(path) as stream:
            yield from _parsed_rows(stream, path, intake)
    except InputError as error:
        raise error.at(str(path)) from None


def _parsed_rows(
    stream: io.BufferedReader, path: Path, intake: Intake
) -> Iterator[tuple[str, Row]]:
    lines = csv.reader(_text(stream, path, intake.encoding), strict=True)
    try:
        columns = next(lines, [])
        if ID not in columns:
            names = ", ".join(columns) or "nothing"
            raise InputError("no id column", where=f"{path}:1", wanted=ID, found=names)
        begin = lines.line_num + 1
        for values in lines:
            location, begin = f"{path}:{begin}", lines.line_num + 1
            row = {c: v.strip() for c, v in zip(columns, values, strict=False) if v.strip()}
            if not row:
                continue
            if fault := _fault(columns, values, row):
                intake.bad(fault.at(location))
            else:
                yield location, row
    except csv.Error as error:
        raise InputError(
            f"broken CSV: {error}",
            where=f"{path}:{lines.line_num}",
            remedy="close the open quote, or download the file again",
        ) from None


def _text(stream: io.BufferedReader, path: Path, encoding: str) -> Iterator[str]:
    """Yield the lines of the file with their line breaks, which can be part of a value."""
    for number, raw in enumerate(stream, 1):
        try:
            line = decode(raw, encoding)
            yield line.removeprefix("\ufeff") if number == 1 else line
        except InputError as fault:
            raise fault.at(f"{path}:{number}") from None


def _fault(columns: list[str], values: list[str], row: Row) -> InputError | None:
    if len(values) != len(columns):
        wanted = f"{len(columns)}, as in the first line"
        return InputError("wrong number of values", wanted=wanted, found=str(len(values)))
    return None if ID in row else InputError(f"row has no {ID}", found=row.get("title", "")[:60])


def _merged(first: Row, later: Row, intake: Intake) -> Row:
    """Return the values of `first`, and the values of `later` that `first` lacks."""
    for name in ("title", "abstract"):
        if first.get(name, later.get(name)) != later.get(name, first.get(name)):
            intake.note(f"row of a paper with a different {name}, which was ignored")
    return {**later, **first}


def _document(row: Row, path: Path, location: str, intake: Intake) -> Document:
    files = [name for column in FULL_TEXTS for name in _names(row.pop(column, ""))]
    files = files or _early_files(row, path.parent)
    fields = {"title": row.pop("title", ""), "text": row.pop("abstract", "")}
    doc_id = row.pop(ID)
    try:
        body = _body(path.parent, files, intake)
    except InputError as fault:
        intake.bad(InputError(f"{doc_id}: {fault}", where=location))
        body = ""
    return Document(doc_id, {**fields, **({"body": body} if body else {}), **row})


def _names(value: str) -> list[str]:
    return [name.strip() for name in value.split(";") if name.strip()]


def _early_files(row: Row, folder: Path) -> list[str]:
    """Return the full texts of a paper in a release before May 2020, as far as they exist.

    The archives of that time contain folders such as comm_use_subset/pdf_json; some unpack into a
    further folder of the same name.
    """
    home = row.get("full_text_file", "")
    names = [f"pmc_json/{pmcid}.xml.json" for pmcid in _names(row.get("pmcid", ""))]
    names += [f"pdf_json/{sha}.json" for sha in _names(row.get("sha", ""))]
    paths = (
        [f"{place}/{name}" for name in names for place in (home, f"{home}/{home}")] if home else []
    )
    return [path for path in paths if can_exist(folder / path) and (folder / path).is_file()]


def _body(folder: Path, files: list[str], intake: Intake) -> str:
    """Return the paragraphs of the first of `files` that exists; an empty string if none does."""
    root = folder.resolve()
    for number, name in enumerate(files, 1):
        if not can_exist(folder / name):
            continue
        file = (folder / name).resolve()
        if not file.is_relative_to(root):
            raise InputError("full text is outside the folder of the collection", where=name)
        if file.is_file():
            if others := len(files) - number:
                intake.notes["additional full text of a paper not read"] += others
            return "\n\n".join(_paragraphs(file, open_files_in(root)))
    if files:
        intake.note("full text that is listed, but does not exist")
    return ""


def _paragraphs(file: Path, open_file: OpenFile) -> Iterator[str]:
    """Yield the paragraphs of a full text."""
    wanted = '{"body_text": [{"text": "…"}, …], …}'
    try:
        content: Any = json.loads(read_decompressed(file, open_file))
    except (ValueError, RecursionError) as error:
        raise InputError(f"broken JSON: {error}", where=str(file)) from None
    paragraphs = content.get("body_text") if isinstance(content, Mapping) else None
    if not isinstance(paragraphs, list):
        raise InputError("no full text", where=str(file), wanted=wanted)
    for paragraph in paragraphs:
        text = paragraph.get("text") if isinstance(paragraph, Mapping) else None
        if not isinstance(text, str):
            raise InputError("paragraph without text", where=str(file), wanted=wanted)
        if text.strip():
            yield text.strip()
