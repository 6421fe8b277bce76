"""Are queries read in every format, and is none lost or repeated?"""

from __future__ import annotations

import gzip
import html
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.collection.qrels import read_qrels
from birchbark.collection.queries import ID_NAMES, TEXT_NAMES, read_queries
from birchbark.errors import InputError
from birchbark.records import Query

WORD = st.text(
    st.characters(codec="utf-8", categories=("L", "N", "P", "S")), min_size=1, max_size=5
)
TEXT = st.lists(WORD, min_size=1, max_size=4).map(" ".join)
PIECES = st.sampled_from(
    [
        *b'<top> </top> <num> <title> <desc> Number: 1 a &amp; <query> </query> { : "id" "'.split(),
        *(b"<topic number='1'>", b"</topic>", b"\n", b"\t"),
    ]
)

CLASSIC = """
<top>

<num> Number: 301
<title> International Organized Crime

<desc> Description:
Identify organizations that participate
in R&amp;D.

<narr> Narrative:
A relevant document must: name one.

</top>
<top>
<num> Number: 302
<title> Topic: Poliomyelitis and Post-Polio
<desc> Description: Is the disease under control?
<narr> Narrative: none
</top>
"""
COVID = """<topics task="COVIDSearch 2020" batch="1">
  <topic number="1">
    <query>coronavirus origin</query>
    <question>what is the origin of COVID-19</question>
    <narrative>seeking information about
    its origin</narrative>
  </topic>
  <topic number="2"><query>weather</query><question>how does it respond?</question></topic>
</topics>
"""
MICROBLOG = """<top>
<num> Number: MB001 </num>
<title> BBC World Service staff cuts </title>
<querytime> Tue Feb 08 12:30:27 +0000 2011 </querytime>
<querytweettime> 34952194402811904 </querytweettime>
</top>
<top>
<num> Number: MB110 </num>
<query> water shortages </query>
<querytime> Fri Mar 29 18:56:02 +0000 2013 </querytime>
</top>
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path for one file, rewritten by each example."""
    return tmp_path_factory.mktemp("queries") / "queries"


def read(path: Path, text: str, topic_fields: tuple[str, ...] = ()) -> list[Query]:
    """Write `text` to a file and return its queries."""
    path.write_text(text, "utf-8", newline="")
    return read_queries(path, topic_fields)


def as_tsv(queries: list[Query]) -> str:
    """Write a line per query."""
    return "".join(f"{query.query_id}\t{query.text}\n" for query in queries)


def as_jsonl(queries: list[Query]) -> str:
    """Write an object per line."""
    return "".join(json.dumps({"id": q.query_id, "text": q.text}) + "\n" for q in queries)


def as_topics(queries: list[Query]) -> str:
    """Write TREC ad hoc topics, whose tags are not closed."""
    return "".join(
        f"<top>\n<num> Number: {q.query_id}\n<title> {html.escape(q.text)}\n\n<desc> x\n</top>\n\n"
        for q in queries
    )


def as_xml(queries: list[Query]) -> str:
    """Write topics in the format of TREC-COVID."""
    inner = "".join(
        f'<topic number="{q.query_id}">\n<query>{html.escape(q.text)}</query>\n</topic>\n'
        for q in queries
    )
    return f"<topics>\n{inner}</topics>\n"


@pytest.mark.parametrize("write", [as_tsv, as_jsonl, as_topics, as_xml])
@given(texts=st.lists(TEXT, min_size=1, max_size=4))
def test_queries_round_trip(
    file: Path, write: Callable[[list[Query]], str], texts: list[str]
) -> None:
    """Ids and texts come back in the order of the file, in every format."""
    queries = [Query(f"q{number}", text) for number, text in enumerate(texts)]
    assert read(file, write(queries)) == queries


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # test_lines: closed
@given(st.lists(PIECES | st.binary(max_size=3)).map(b"".join) | st.binary())
def test_any_bytes_are_queries_or_an_input_error(file: Path, raw: bytes) -> None:
    """Queries have distinct ids without white space, and a text."""
    file.write_bytes(raw)
    try:
        queries = read_queries(file)
    except InputError as error:
        assert str(file) in str(error)
        return
    assert 0 < len(queries) == len({query.query_id for query in queries})
    assert all(query.text.strip() and not re.search(r"\s|^$", query.query_id) for query in queries)


@pytest.mark.parametrize("id_name", ID_NAMES)
@pytest.mark.parametrize("text_name", TEXT_NAMES)
def test_id_and_text_have_many_names(tmp_path: Path, id_name: str, text_name: str) -> None:
    """BEIR, Anserini and MS MARCO use different names."""
    line = json.dumps({id_name: 7, text_name: " birch ", "more": 1})
    assert read(tmp_path / "q", line) == [Query("7", "birch")]


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # test_lines: closed
def test_the_format_is_detected_from_the_contents(tmp_path: Path) -> None:
    """It is detected after blank lines, after a BOM and in gzip, too."""
    for text in ("1\tbirch\n", '{"id": 1, "text": "birch"}\n', as_topics([Query("1", "birch")])):
        (tmp_path / "q.txt").write_bytes(gzip.compress(b"\xef\xbb\xbf\n  \r\n" + text.encode()))
        assert read_queries(tmp_path / "q.txt") == [Query("1", "birch")]


def test_a_line_without_tab_is_refused(tmp_path: Path) -> None:
    """The error names the location, and what was expected and found."""
    with pytest.raises(
        InputError, match=r"q:2: wrong number of columns: expected 2: id TAB text, found 1"
    ):
        read(tmp_path / "q", "1\tbirch\n2 bark\n")


def test_white_space_around_ids_and_texts_is_removed(tmp_path: Path) -> None:
    """Carriage returns and alignment are not part of either."""
    assert read(tmp_path / "q", "1 \t birch bark \r\n") == [Query("1", "birch bark")]


def test_the_given_encoding_is_used(tmp_path: Path) -> None:
    """It is used for lines and for topics."""
    for text in (as_tsv([Query("1", "café")]), as_topics([Query("1", "café")])):
        (tmp_path / "q").write_bytes(text.encode("latin-1"))
        assert read_queries(tmp_path / "q", encoding="latin-1") == [Query("1", "café")]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("1\tx\n2\tcaf\xe9\n", 2),
        pytest.param(*("<top>\n<num> 1\n<title> caf\xe9\n</top>\n", 3)),
    ],
    ids=["tsv", "topics"],
)
def test_wrong_encoding_names_the_line(tmp_path: Path, text: str, line: int) -> None:
    """The position is within a line, so the error names the line."""
    (tmp_path / "q").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=rf"q:{line}: wrong encoding.*0xe9"):
        read_queries(tmp_path / "q")


def test_classic_topics_have_unclosed_tags_and_labels(tmp_path: Path) -> None:
    """Number:, Description: and Narrative: are labels; other colons are text."""
    assert read(tmp_path / "q", CLASSIC) == [
        Query("301", "International Organized Crime"),
        Query("302", "Poliomyelitis and Post-Polio"),
    ]
    description, _ = read(tmp_path / "q", CLASSIC, ("description",))
    assert description.text == "Identify organizations that participate in R&D."
    both, _ = read(tmp_path / "q", CLASSIC, ("title", "narrative"))
    assert both.text == "International Organized Crime A relevant document must: name one."


def test_tags_may_be_in_capitals(tmp_path: Path) -> None:
    """SGML tags are case-insensitive."""
    topic = "<TOP>\n<NUM> Number: 1\n<TITLE> birch\n</TOP>"
    assert read(tmp_path / "q", topic) == [Query("1", "birch")]


def test_trec_covid_parts_can_be_chosen(tmp_path: Path) -> None:
    """By default, the query is the title."""
    assert [q.text for q in read(tmp_path / "q", COVID)] == ["coronavirus origin", "weather"]
    assert read(tmp_path / "q", COVID, ("query", "question"))[0] == Query(
        "1", "coronavirus origin what is the origin of COVID-19"
    )


def test_microblog_ids_are_those_of_its_qrels(tmp_path: Path) -> None:
    """MB001 is judged as 1; since 2013 the title is called <query>."""
    assert read(tmp_path / "q", MICROBLOG) == [
        Query("1", "BBC World Service staff cuts"),
        Query("110", "water shortages"),
    ]
    assert (
        read(tmp_path / "q", MICROBLOG, ("querytime",))[0].text == "Tue Feb 08 12:30:27 +0000 2011"
    )


def test_the_error_for_a_missing_part_lists_the_parts(tmp_path: Path) -> None:
    """The list lets the user choose one."""
    with pytest.raises(
        InputError,
        match=r"q, topic 1: topic has no description: found title, query, question, narrative "
        r"\(name other parts as topic fields\)",
    ):
        read(tmp_path / "q", COVID, ("description",))
    with pytest.raises(InputError, match=r"topic 301: topic has no question: found title, desc"):
        read(tmp_path / "q", CLASSIC, ("title", "question"))


def test_a_topic_without_number_is_refused(tmp_path: Path) -> None:
    """Its results would have no id."""
    with pytest.raises(InputError, match=r"topic \?: topic has no number: found title"):
        read(tmp_path / "q", "<top>\n<title> birch\n</top>\n")


@pytest.mark.parametrize("write", [as_tsv, as_jsonl, as_topics, as_xml])
def test_a_repeated_id_is_refused(tmp_path: Path, write: Callable[[list[Query]], str]) -> None:
    """It is refused even if the text is the same."""
    with pytest.raises(InputError, match=r"q.*: a second query with the id 7"):
        read(tmp_path / "q", write([Query("7", "birch"), Query("8", "bark"), Query("7", "birch")]))


@pytest.mark.parametrize("line", ["1\t", "1\t  ", '{"id": 1, "text": " "}'])
def test_an_empty_text_is_refused(tmp_path: Path, line: str) -> None:
    """A query without words retrieves nothing."""
    with pytest.raises(InputError, match=r"q:1: query 1 has no text"):
        read(tmp_path / "q", line)


@pytest.mark.parametrize("line", ["\tbirch", "a b\tbirch", '{"id": "a\\tb", "text": "birch"}'])
def test_ids_must_not_contain_white_space(tmp_path: Path, line: str) -> None:
    """Runs and qrels are separated by white space."""
    with pytest.raises(InputError, match=r"query id is empty or contains white space"):
        read(tmp_path / "q", f"0\tx\n{line}\n" if line[0] != "{" else line)


@pytest.mark.parametrize("text", ["", "\n \n", "<topics>\n</topics>", "<html>"])
def test_a_file_without_queries_is_refused(tmp_path: Path, text: str) -> None:
    """An empty file is most likely the wrong file."""
    with pytest.raises(InputError, match=r"q: no queries"):
        read(tmp_path / "q", text)


def test_the_error_for_json_without_text_lists_the_fields(tmp_path: Path) -> None:
    """It names the query."""
    with pytest.raises(
        InputError, match=r"q:1: query 1 has no text: .*question, found answer, text"
    ):
        read(tmp_path / "q", '{"id": 1, "text": 5, "answer": "x"}')


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    """They are refused as for any file."""
    with pytest.raises(InputError, match="is a folder"):
        read_queries(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        read_queries(tmp_path / "no")


def test_robust04_is_read(data: Callable[[str], Path]) -> None:
    """250 topics, each with title and description."""
    queries = read_queries(data("checks/robust04/topics.robust04.txt"))
    assert len(queries) == 250
    assert queries[0] == Query("301", "International Organized Crime")
    described = read_queries(data("checks/robust04/topics.robust04.txt"), ("description",))
    assert not [query for query in described if query.text.startswith("Description")]


def test_trec_covid_is_read(data: Callable[[str], Path]) -> None:
    """50 topics in the last round, with all three parts."""
    path = data("checks/trec-covid/topics.covid-round5.xml")
    queries = read_queries(path, ("query", "question", "narrative"))
    assert [query.query_id for query in queries] == [str(number) for number in range(1, 51)]


@pytest.mark.parametrize("year", [2011, 2012, 2013, 2014])
def test_microblog_topics_match_their_qrels(data: Callable[[str], Path], year: int) -> None:
    """Every judged id is that of a topic."""
    queries = read_queries(data(f"mb/topics.microblog{year}.txt"))
    judged = read_qrels(data(f"mb/qrels.microblog{year}.txt")).grades.keys()
    assert judged <= {query.query_id for query in queries}


def test_queries_can_be_read_from_pipes() -> None:
    """The file is read once, though its format is detected first."""
    reading, writing = os.pipe()
    os.write(writing, b"1\tbirch\n2\tbark\n")
    os.close(writing)
    queries = read_queries(Path(f"/dev/fd/{reading}"))
    assert [query.text for query in queries] == ["birch", "bark"]
    os.close(reading)


def test_fields_of_json_can_be_chosen(tmp_path: Path) -> None:
    """They are joined as those of topics; TSV has none, and a single name is no list."""
    line = '{"id": "301", "title": "bees", "description": "wasps sting", "query": "ants"}'
    path = tmp_path / "q"
    assert [q.text for q in read(path, line)] == ["ants"]
    assert [q.text for q in read(path, line, ("title",))] == ["bees"]
    assert [q.text for q in read(path, line, ("description",))] == ["wasps sting"]
    assert [q.text for q in read(path, line, ("title", "description"))] == ["bees wasps sting"]
    with pytest.raises(InputError, match=r"q:1: query 301 has no narrative: found description"):
        read(path, line, ("narrative",))
    with pytest.raises(InputError, match="TSV has no topic fields: found description"):
        read(path, "1\tbees\n", ("description",))
    with pytest.raises(InputError, match=r"topic fields are not a list: .*found str 'desc'"):
        read_queries(path, "desc")


def test_a_header_is_no_query(tmp_path: Path) -> None:
    """It names the columns; a query of such a word further down is one."""
    text = "qid\tquery\n1\tbees\nid\ttext\n"
    assert read(tmp_path / "q", text) == [Query("1", "bees"), Query("id", "text")]


def test_a_json_array_is_refused(tmp_path: Path) -> None:
    """The error says what is read instead."""
    with pytest.raises(InputError, match="not a JSON object: expected one complete object per"):
        read(tmp_path / "q", '[{"id": 1, "text": "a"}]')


def test_numbers_are_changed_only_for_microblogs(tmp_path: Path) -> None:
    """COMB12 does not begin with MB; entities in an attribute are resolved as elsewhere."""
    assert read(tmp_path / "q", "<top><num>COMB12</num><title>a</top>")[0].query_id == "COMB12"
    topic = '<topic number="R&amp;D-1">a</topic>'
    assert read(tmp_path / "q", topic)[0].query_id == "R&D-1"


@pytest.mark.parametrize("text", ["2020", '["a", "b"]', "{}"])
def test_the_text_of_json_is_not_replaced_by_another_field(tmp_path: Path, text: str) -> None:
    """A text that is no string is refused, although there is a title."""
    with pytest.raises(InputError, match="query 1 has no text: expected a string named text"):
        read(tmp_path / "q", f'{{"id": 1, "text": {text}, "title": "other"}}')
    assert read(tmp_path / "q", '{"id": 1, "text": null, "title": "a"}') == [Query("1", "a")]


@pytest.mark.parametrize("weight", ["-1", "NaN", "Infinity", '"1"', "true", "9" * 400])
def test_weights_that_are_no_numbers(weight: str, tmp_path: Path) -> None:
    """They are refused, and so are integers that are larger than any float."""
    path = tmp_path / "q.jsonl"
    path.write_text(f'{{"id": 1, "vector": {{"bee": {weight}}}}}')
    with pytest.raises(InputError, match=r"q\.jsonl:1: vector of query 1: invalid weight of term"):
        read_queries(path)
