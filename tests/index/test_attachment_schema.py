"""Are names and forms that cannot be stored refused?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from attached_words import SCHEMA, refuse

from birchbark.errors import InputError
from birchbark.index.attachment_schema import AttachmentSchema, RowForm
from birchbark.index.build_index import build_index
from birchbark.index.writer import IndexWriter
from conftest import DOCUMENTS


@pytest.mark.parametrize(
    ("name", "schema", "message"),
    [
        ("../up", SCHEMA, "invalid name"),
        ("", SCHEMA, "invalid name"),
        ("words", replace(SCHEMA, arrays={}), "at least one array"),
        ("words", replace(SCHEMA, arrays={"A": RowForm("int8")}), "invalid name"),
        ("words", replace(SCHEMA, arrays={"a": RowForm("object")}), "unsupported row form"),
        ("words", replace(SCHEMA, arrays={"a": RowForm("words")}), "unsupported row form"),
        ("words", replace(SCHEMA, arrays={"a": RowForm(">i4")}), "unsupported row form"),
        ("words", replace(SCHEMA, arrays={"a": RowForm("int8", (0,))}), "unsupported row form"),
        ("words", replace(SCHEMA, config={"a": {1, 2}}), "config is not JSON"),
        ("words", replace(SCHEMA, config={"a": float("nan")}), "config is not JSON"),
    ],
)
def test_invalid_names_and_schemas_are_refused(
    tmp_path: Path, name: str, schema: AttachmentSchema, message: str
) -> None:
    """Nothing is computed before the error."""
    build_index(DOCUMENTS[:1], tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer, pytest.raises(InputError, match=message):
        writer.attach(name, schema, refuse)
