"""Is every JSON object on a line read as a Document, and everything else refused?"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.collection.jsonl import json_object, parse_document, read_jsonl
from birchbark.collection.parsing.intake import Intake
from birchbark.errors import InputError
from birchbark.records import DOC_ID_NAMES, TEXT_NAMES, Document
from growth import FASTER_THAN_SQUARE, growth

NAMES = st.text(min_size=1).filter(lambda name: name not in {*DOC_ID_NAMES, *TEXT_NAMES})
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
            st.sampled_from([*DOC_ID_NAMES, *TEXT_NAMES, "title"]) | st.text(), inner, max_size=4
        )
    ),
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path for one file, rewritten by each example."""
    return tmp_path_factory.mktemp("jsonl") / "file.jsonl"


@given(documents=st.lists(DOCUMENTS), ascii_only=st.booleans())
def test_documents_round_trip(file: Path, documents: list[Document], ascii_only: bool) -> None:
    """Ids and texts are unchanged: tabs, line breaks, any script, escaped or not."""
    lines = [json.dumps({"id": d.doc_id, **d.fields}, ensure_ascii=ascii_only) for d in documents]
    file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    assert [document for _, document in read_jsonl(file, Intake())] == documents


@given(VALUES.map(json.dumps) | st.text() | st.text('{}[]":,\\ntrue019.-eE id'))
def test_any_line_is_a_document_or_an_input_error(line: str) -> None:
    """No line raises any other exception."""
    try:
        document = parse_document(line)
    except InputError:
        return
    assert isinstance(document.doc_id, str)
    assert all(isinstance(value, str) for value in document.fields.values())


@given(st.integers())
def test_a_number_is_an_id(number: int) -> None:
    """Integers are ids in decimal digits."""
    assert parse_document(json.dumps({"id": number, "text": ""})).doc_id == str(number)


@pytest.mark.parametrize("id_name", DOC_ID_NAMES)
@pytest.mark.parametrize("text_name", TEXT_NAMES)
def test_id_and_text_have_many_names(id_name: str, text_name: str) -> None:
    """The names of Anserini, BEIR and TREC all become doc_id and text."""
    line = json.dumps({id_name: "d1", "title": "T", text_name: "x"})
    assert parse_document(line) == Document("d1", {"title": "T", "text": "x"})


def test_the_first_name_wins_and_the_others_are_fields() -> None:
    """A second name for the id or the text is an ordinary field."""
    line = json.dumps({"docno": "b", "body": "y", "_id": "a", "contents": "x"})
    assert parse_document(line) == Document("a", {"docno": "b", "body": "y", "text": "x"})


def test_further_fields_are_kept() -> None:
    """Strings are unchanged, other values become JSON, null means absent."""
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
    """The text is the first name whose value is not null."""
    document = parse_document('{"id": "a", "text": null, "contents": "x"}')
    assert document == Document("a", {"text": "x"})


def test_null_id_gives_way_to_the_next_name() -> None:
    """Null means absent, for the id as for any field."""
    assert parse_document('{"id": null, "_id": "a", "text": "x"}').doc_id == "a"


def test_a_title_alone_is_a_document() -> None:
    """Some records of large collections have no abstract."""
    assert parse_document('{"id": "a", "title": "T"}') == Document("a", {"title": "T"})


def test_ids_are_unchanged() -> None:
    """Leading zeros, spaces and case are part of the id."""
    assert parse_document('{"id": " 007-A\\t", "text": ""}').doc_id == " 007-A\t"


def test_the_error_for_a_missing_id_lists_the_fields() -> None:
    """It has the accepted names and the names found."""
    with pytest.raises(
        InputError, match=r"no id: expected a field named id or _id.*found key, text"
    ):
        parse_document('{"text": "x", "key": "a"}')
    with pytest.raises(InputError, match=r"no id.*found an empty object"):
        parse_document("{}")


@pytest.mark.parametrize("value", ["true", "1.5", '["a"]', '{"a": 1}'])
def test_an_id_is_a_string_or_a_whole_number(value: str) -> None:
    """The error shows any other value as JSON."""
    with pytest.raises(InputError, match=rf"field _id is not an id.*found {re.escape(value)}"):
        parse_document(f'{{"_id": {value}, "text": "x"}}')


def test_the_error_for_a_missing_text_names_the_document() -> None:
    """It lists the fields of the document as well."""
    with pytest.raises(InputError, match=r"document a has no text: expected .*passage, found url"):
        parse_document('{"id": "a", "url": "x"}')
    with pytest.raises(InputError, match=r"document a has no text.*found no further field"):
        parse_document('{"id": "a"}')


def test_broken_json_names_line_and_column(tmp_path: Path) -> None:
    """The error names line and column."""
    path = tmp_path / "c.jsonl"
    path.write_text('{"id": "a", "text": "x"}\n{"id": "b" "text": "x"}\n')
    with pytest.raises(InputError, match=rf"^{re.escape(str(path))}:2: broken JSON at column 12: "):
        list(read_jsonl(path, Intake()))


@pytest.mark.parametrize(("line", "kind"), [("[1]", "list"), ('"a"', "str"), ("1", "int")])
def test_a_line_must_be_an_object(line: str, kind: str) -> None:
    """The error names the JSON type."""
    with pytest.raises(InputError, match=rf"not a JSON object: .*per line, found {kind}"):
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
    """Deep nesting and long numbers are bad records, which --skip-bad can skip."""
    with pytest.raises(InputError):
        parse_document(line)


def test_bad_lines_can_be_skipped(tmp_path: Path) -> None:
    """Good lines before and after a bad one are read."""
    path = tmp_path / "c.jsonl"
    path.write_text('{"id": "a", "text": "x"}\n{oops\n[]\n{"id": "b", "text": "y"}\n')
    intake = Intake(skip_bad=True)
    assert [document.doc_id for _, document in read_jsonl(path, intake)] == ["a", "b"]
    assert [error.where for error in intake.skipped] == [f"{path}:2", f"{path}:3"]


def test_a_key_that_stands_twice_is_found_in_linear_time() -> None:
    """It is found so, however many others stand before it."""

    def line(keys: int) -> str:
        return "{" + "".join(f'"{n}": 1, ' for n in range(keys)) + '"x": 1, "x": 2}'

    def refuse(text: str) -> None:
        with pytest.raises(InputError, match="the key 'x' occurs twice"):
            json_object(text)

    assert growth(refuse, line(2_000), line(8_000)) < FASTER_THAN_SQUARE
