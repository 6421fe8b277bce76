"""Is every JSON object on a line a Document, whatever its text, and all else refused?"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.collection.intake import Intake
from birchbark.collection.jsonl import ID_NAMES, TEXT_NAMES, parse_document, read_jsonl
from birchbark.errors import InputError
from birchbark.records import Document

NAMES = st.text(min_size=1).filter(lambda name: name not in {*ID_NAMES, *TEXT_NAMES})
DOCUMENTS = st.builds(
    lambda doc_id, text, further: Document(doc_id, {"text": text, **further}),
    st.text(),
    st.text(),
    st.dictionaries(NAMES, st.text(), max_size=3),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*ID_NAMES, *TEXT_NAMES, "title"]) | st.text(), inner, max_size=4
        )
    ),
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place for one file, written anew by each example."""
    return tmp_path_factory.mktemp("jsonl") / "file.jsonl"


@given(documents=st.lists(DOCUMENTS), ascii_only=st.booleans())
def test_documents_round_trip(file: Path, documents: list[Document], ascii_only: bool) -> None:
    """Ids and texts come back as they were: tabs, line ends, any script, escaped or not."""
    lines = [json.dumps({"id": d.doc_id, **d.fields}, ensure_ascii=ascii_only) for d in documents]
    file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    assert [document for _, document in read_jsonl(file, Intake())] == documents


@given(VALUES.map(json.dumps) | st.text() | st.text('{}[]":,\\ntrue019.-eE id'))
def test_any_line_is_a_document_or_an_input_error(line: str) -> None:
    """Whatever stands on a line, it is read or refused, never a crash."""
    try:
        document = parse_document(line)
    except InputError:
        return
    assert isinstance(document.doc_id, str)
    assert all(isinstance(value, str) for value in document.fields.values())


@given(st.integers())
def test_a_number_is_an_id(number: int) -> None:
    """Whole numbers are ids in their decimal digits."""
    assert parse_document(json.dumps({"id": number, "text": ""})).doc_id == str(number)


@pytest.mark.parametrize("id_name", ID_NAMES)
@pytest.mark.parametrize("text_name", TEXT_NAMES)
def test_id_and_text_have_many_names(id_name: str, text_name: str) -> None:
    """Anserini's, BEIR's and TREC's names all lead to doc_id and text."""
    line = json.dumps({id_name: "d1", "title": "T", text_name: "x"})
    assert parse_document(line) == Document("d1", {"title": "T", "text": "x"})


def test_the_first_name_wins_and_the_others_are_fields() -> None:
    """A second name for the id or the text is a further field like any other."""
    line = json.dumps({"docno": "b", "body": "y", "_id": "a", "contents": "x"})
    assert parse_document(line) == Document("a", {"docno": "b", "body": "y", "text": "x"})


def test_further_fields_are_kept() -> None:
    """Strings stay as they are, other values become JSON, null is the same as absent."""
    values = {"url": " http://a/\t", "year": 1999, "tags": ["é", 1], "more": {"a": None}}
    line = json.dumps({"id": "a", "text": "x", **values, "none": None, "yes": True})
    assert parse_document(line).fields == {
        "text": "x",
        "url": " http://a/\t",
        "year": "1999",
        "tags": '["é", 1]',
        "more": '{"a": null}',
        "yes": "true",
    }


def test_null_text_gives_way_to_the_next_name() -> None:
    """The text is the first of the names that says something."""
    document = parse_document('{"id": "a", "text": null, "contents": "x"}')
    assert document == Document("a", {"text": "x"})


def test_null_id_gives_way_to_the_next_name() -> None:
    """Null is the same as absent, for the id as for any field."""
    assert parse_document('{"id": null, "_id": "a", "text": "x"}').doc_id == "a"


def test_a_title_alone_is_a_document() -> None:
    """Some records of the big collections have no abstract."""
    assert parse_document('{"id": "a", "title": "T"}') == Document("a", {"title": "T"})


def test_ids_are_kept_to_the_letter() -> None:
    """Leading zeros, spaces and case belong to the id."""
    assert parse_document('{"id": " 007-A\\t", "text": ""}').doc_id == " 007-A\t"


def test_missing_id_lists_what_is_there() -> None:
    """The names that were looked for and those found stand side by side."""
    with pytest.raises(
        InputError, match=r"no id: expected a field named id or _id.*found key, text"
    ):
        parse_document('{"text": "x", "key": "a"}')
    with pytest.raises(InputError, match=r"no id.*found an empty object"):
        parse_document("{}")


@pytest.mark.parametrize("value", ["true", "1.5", '["a"]', '{"a": 1}'])
def test_an_id_is_a_string_or_a_whole_number(value: str) -> None:
    """Anything else is shown as it stands in the file."""
    with pytest.raises(InputError, match=rf"field _id is no id.*found {re.escape(value)}"):
        parse_document(f'{{"_id": {value}, "text": "x"}}')


def test_missing_text_names_the_document() -> None:
    """The document is named, and the fields that it does have."""
    with pytest.raises(InputError, match=r"document a has no text: expected .*body, found url"):
        parse_document('{"id": "a", "url": "x"}')
    with pytest.raises(InputError, match=r"document a has no text.*found no further field"):
        parse_document('{"id": "a"}')


def test_broken_json_names_line_and_column(tmp_path: Path) -> None:
    """An editor can jump to the place."""
    path = tmp_path / "c.jsonl"
    path.write_text('{"id": "a", "text": "x"}\n{"id": "b" "text": "x"}\n')
    with pytest.raises(InputError, match=rf"^{re.escape(str(path))}:2: broken JSON at column 12: "):
        list(read_jsonl(path, Intake()))


@pytest.mark.parametrize(("line", "kind"), [("[1]", "list"), ('"a"', "str"), ("1", "int")])
def test_a_line_must_be_an_object(line: str, kind: str) -> None:
    """JSON of another kind is refused by its kind."""
    with pytest.raises(InputError, match=rf"not a JSON object: .*on each line, found {kind}"):
        parse_document(line)


@pytest.mark.parametrize(
    "line",
    [
        '{"id": "a", "text": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"id": ' + "1" * 5_000 + ', "text": "x"}',
        '{"id": "a", "text": "x", "n": ' + "1" * 5_000 + "}",
    ],
    ids=["deep", "long id", "long number"],
)
def test_json_beyond_pythons_limits_is_an_input_error(line: str) -> None:
    """Nesting and digits without end are bad records, so that --skip-bad gets past them."""
    with pytest.raises(InputError):
        parse_document(line)


def test_bad_lines_can_be_skipped(tmp_path: Path) -> None:
    """Good lines on either side of a bad one are kept."""
    path = tmp_path / "c.jsonl"
    path.write_text('{"id": "a", "text": "x"}\n{oops\n[]\n{"id": "b", "text": "y"}\n')
    intake = Intake(skip_bad=True)
    assert [document.doc_id for _, document in read_jsonl(path, intake)] == ["a", "b"]
    assert [error.where for error in intake.skipped] == [f"{path}:2", f"{path}:3"]
