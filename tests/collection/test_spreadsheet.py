"""Is each row of a spreadsheet read with the names of its columns, as people see it?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from birchbark.collection.file_readers import spreadsheet
from birchbark.collection.files.folder import read_folder
from birchbark.collection.parsing.intake import Intake
from birchbark.errors import InputError
from office_files import ods, xlsx

pytest.importorskip("python_calamine")
STOCK: Mapping[str, str | float] = {
    "A1": "Stock of  March",
    "A3": "Item", "B3": "Count", "C3": "Price", "D3": "Since", "E3": "Remark",
    "A4": "Lamp", "B4": 12.0, "C4": 0.1 + 0.2, "D4": "day 45352",
    "A6": "Chair", "D6": "day 45352.4375", "F6": "broken",
}  # fmt: skip


def read(folder: Path, raw: bytes, name: str = "a.xlsx", intake: Intake | None = None) -> str:
    """Return the text of the one spreadsheet that is written to `folder`."""
    (folder / name).write_bytes(raw)
    ((_, document),) = read_folder(folder, intake or Intake(skip_bad=False))
    assert document.fields["type"] == "spreadsheet"
    return document.text


def test_sheets_have_their_names_and_rows_those_of_their_columns(tmp_path: Path) -> None:
    """Numbers and dates are as people see them, a title precedes the names, and nothing is lost."""
    raw = xlsx({"March": STOCK, "Empty": {}, "Notes": {"B2": "Sell the chair & the lamp"}})
    assert read(tmp_path, raw).split("\n\n") == [
        "March",
        "Stock of March",
        "Remark",
        "Item: Lamp; Count: 12; Price: 0.3; Since: 2024-03-01",
        "Item: Chair; Since: 2024-03-01 10:30; broken",
        "Notes",
        "Sell the chair & the lamp",
    ]


def test_opendocument(tmp_path: Path) -> None:
    """It is read as .xlsx files are; a repeated cell or row counts as many times as it says."""

    def row(*cells: str) -> str:
        return f"<table:table-row>{''.join(cells)}</table:table-row>"

    def text(value: str) -> str:
        return (
            '<table:table-cell office:value-type="string">'
            f"<text:p>{value}</text:p></table:table-cell>"
        )

    price = (
        '<table:table-cell office:value-type="float" office:value="12"><text:p>12</text:p>'
        "</table:table-cell>"
    )
    empty = '<table:table-cell table:number-columns-repeated="16000"/>'
    rows = row(text("Item"), text("Price"), empty) + row(text("Lamp"), price, empty)
    rest = f'<table:table-row table:number-rows-repeated="1048000">{empty}</table:table-row>'
    assert read(tmp_path, ods(rows + rest), "a.ods") == "Prices\n\nItem: Lamp; Price: 12"


def test_what_exceeds_the_limit_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What precedes it is read."""
    monkeypatch.setattr(spreadsheet, "MOST_CELLS", 4)
    cells = {f"{column}{row}": f"{column}{row}" for row in range(1, 4) for column in "AB"}
    intake = Intake(skip_bad=False)
    assert read(tmp_path, xlsx({"S": cells}), intake=intake) == "S\n\nA1: A2; B1: B2"
    assert dict(intake.notes) == {"spreadsheet not read after 4 cells or 50,000,000 characters": 1}


def test_a_sheet_of_few_cells_far_apart_is_noted(tmp_path: Path) -> None:
    """A hundred million places of nothing between them would take minutes."""
    intake = Intake()
    raw = xlsx({"Far": {"A1": "a", "U1048576": "z"}, "Near": {"A1": "birch"}})
    assert read(tmp_path, raw, intake=intake) == "Near\n\nbirch"
    assert dict(intake.notes) == {"sheet not read with more than 20,000,000 places for cells": 1}


def test_names_of_columns_count_in_each_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long one would make a text of gigabytes."""
    monkeypatch.setattr(spreadsheet, "MOST_CHARACTERS", 300)
    cells = {"A1": "n" * 100, **{f"A{row}": "x" for row in range(2, 20)}, "B1": "b"}
    intake = Intake()
    text = read(tmp_path, xlsx({"S": cells}), intake=intake)
    assert 200 < len(text) <= 310
    assert dict(intake.notes) == {"spreadsheet not read after 5,000,000 cells or 300 characters": 1}


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"\xef\xbb\xbf\n<html><table><tr><td>Lamp</td><td>12</td></tr></table>", "Lamp 12"),
        (b"Item\tCount\nLamp\t12\n", "Item: Lamp; Count: 12"),
        ("Item\tCount\nLamp\t12\n".encode("utf-16"), "Item: Lamp; Count: 12"),
        ("<table><tr><td>Lamp".encode("utf-16"), "Lamp"),
    ],
)
def test_exports_with_the_suffix_of_a_workbook(tmp_path: Path, raw: bytes, text: str) -> None:
    """Many programs export web pages and tables in text so that Excel opens them."""
    assert read(tmp_path, raw, "a.xls") == text


def test_damage_is_an_error(tmp_path: Path) -> None:
    """The error has one line, which is the library's."""
    with pytest.raises(InputError, match=r"a\.xlsx: the spreadsheet cannot be read: .+"):
        read(tmp_path, xlsx({"S": {"A1": "a"}})[:200])
    with pytest.raises(InputError, match="it is damaged, or protected by a password"):
        read(tmp_path, b"\0\1\2")
