"""How are the rows of CORD-19's metadata.csv, and the full texts beside it, Documents?"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from birchbark.collection.intake import Intake
from birchbark.collection.lines import decode, opened
from birchbark.errors import InputError
from birchbark.records import Document

METADATA = "metadata.csv"
ID = "cord_uid"
FULL_TEXTS = ("pmc_json_files", "pdf_json_files")  # from XML, which lacks the faults of PDFs
LONGEST = 1 << 24  # characters of one value; a quote that is not closed takes more

Row = dict[str, str]  # column → value; columns without one are left out


def read_cord19(path: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """Documents of `metadata.csv`, or of the folder that it lies in, with their full texts.

    title: the title. text: the abstract. body: the paragraphs of the full text, where a JSON file
    of it lies beside metadata.csv: of PubMed Central rather than of a PDF, the first that is
    there. Other columns are fields under their own names.

    Rows with one cord_uid are one paper, found in several places: each value is that of the first
    row that has one. How often that happened, and how often their titles or abstracts differed, is
    noted. A paper comes where its last row stands. A row without cord_uid, or with too many or too
    few values, is a bad record; so is a full text that cannot be read, without which its document
    is kept where bad records are passed over.
    """
    path = path / METADATA if path.is_dir() else path
    silent = Intake(skip_bad=True, encoding=intake.encoding)
    left = Counter(row[ID] for _, row in _rows(path, silent))
    if left.total() > len(left):
        intake.notes["row of a paper that has another"] += left.total() - len(left)
    waiting: dict[str, Row] = {}
    for place, row in _rows(path, intake):
        doc_id = row[ID]
        left[doc_id] -= 1
        row = _merged(waiting.pop(doc_id, {}), row, intake)
        if left[doc_id]:
            waiting[doc_id] = row
        else:
            yield place, _document(row, path, place, intake)


def _rows(path: Path, intake: Intake) -> Iterator[tuple[str, Row]]:
    """Place and values of each row; bad ones go to `intake`."""
    csv.field_size_limit(max(LONGEST, csv.field_size_limit()))  # of the process: csv has no other
    with opened(path) as stream:
        lines = csv.reader(_text(stream, path, intake.encoding), strict=True)
        try:
            columns = next(lines, [])
            if ID not in columns:
                found = ", ".join(columns) or "nothing"
                raise InputError("no column of ids", where=f"{path}:1", wanted=ID, found=found)
            begin = lines.line_num + 1
            for values in lines:
                place, begin = f"{path}:{begin}", lines.line_num + 1
                row = {c: v.strip() for c, v in zip(columns, values, strict=False) if v.strip()}
                if not row:
                    continue
                if fault := _fault(columns, values, row):
                    intake.bad(fault.at(place))
                else:
                    yield place, row
        except csv.Error as broken:
            raise InputError(
                f"broken CSV: {broken}",
                where=f"{path}:{lines.line_num}",
                remedy="a quote that is not closed? Fetch the file again",
            ) from None


def _text(stream: io.BufferedReader, path: Path, encoding: str) -> Iterator[str]:
    """The lines of the file, with their ends: they may stand within a value."""
    for number, raw in enumerate(stream, 1):
        try:
            line = decode(raw, encoding)
            yield line.removeprefix("\ufeff") if number == 1 else line
        except InputError as fault:
            raise fault.at(f"{path}:{number}") from None


def _fault(columns: list[str], values: list[str], row: Row) -> InputError | None:
    if len(values) != len(columns):
        wanted = f"{len(columns)}, as the first line has"
        return InputError("wrong number of values", wanted=wanted, found=str(len(values)))
    return None if ID in row else InputError(f"row has no {ID}", found=row.get("title", "")[:60])


def _merged(first: Row, later: Row, intake: Intake) -> Row:
    """The values of `first`, and those of `later` that it lacks."""
    for name in ("title", "abstract"):
        if first.get(name, later.get(name)) != later.get(name, first.get(name)):
            intake.note(f"row of a paper with another {name}, which was left out")
    return {**later, **first}


def _document(row: Row, path: Path, place: str, intake: Intake) -> Document:
    files = [name.strip() for c in FULL_TEXTS for name in row.pop(c, "").split(";") if name.strip()]
    fields = {"title": row.pop("title", ""), "text": row.pop("abstract", "")}
    doc_id = row.pop(ID)
    try:
        body = _body(path.parent, files, intake)
    except InputError as fault:
        intake.bad(InputError(f"{doc_id}: {fault}", where=place))
        body = ""
    return Document(doc_id, {**fields, **({"body": body} if body else {}), **row})


def _body(folder: Path, files: list[str], intake: Intake) -> str:
    """The paragraphs of the first of `files` that is there; empty if none is, or none was named."""
    root = folder.resolve()
    for place, name in enumerate(files, 1):
        file = (folder / name).resolve()
        if not file.is_relative_to(root):
            raise InputError("full text outside of the collection", where=name)
        if file.is_file():
            if further := len(files) - place:
                intake.notes["further full text of a paper, not read"] += further
            return "\n\n".join(_paragraphs(file))
    if files:
        intake.note("full text that is named, but not there")
    return ""


def _paragraphs(file: Path) -> Iterator[str]:
    wanted = '{"body_text": [{"text": "…"}, …], …}'
    try:
        with opened(file) as stream:
            parsed: Any = json.load(stream)
    except (ValueError, RecursionError) as broken:
        raise InputError(f"broken JSON: {broken}", where=str(file)) from None
    paragraphs = parsed.get("body_text") if isinstance(parsed, Mapping) else None
    if not isinstance(paragraphs, list):
        raise InputError("no full text", where=str(file), wanted=wanted)
    for paragraph in paragraphs:
        text = paragraph.get("text") if isinstance(paragraph, Mapping) else None
        if not isinstance(text, str):
            raise InputError("paragraph without text", where=str(file), wanted=wanted)
        if text.strip():
            yield text.strip()
