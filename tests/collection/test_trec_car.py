"""Are TREC CAR's paragraphs streamed, and damaged files refused?"""

from __future__ import annotations

import builtins
import gzip
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.collection.documents import read_collection
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.queries import read_queries
from birchbark.collection.trec_car import read_car, section_text
from birchbark.errors import InputError, MissingPackageError
from birchbark.records import Document, Query

cbor2 = pytest.importorskip("cbor2", reason="the extra car is not installed")
pytestmark = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # test_lines

HEADER = ["CAR", [2], [["trec-car v2.0"], "a release", []]]
BEES = [
    0,
    b"0a1b",
    [[0, "The "], [1, [0, "Honey bee", [], b"enwiki:Honey%20bee", "bee"]], [0, "."]],
]
BARK = [0, b"0c2d", [[1, [0, "Birch", ["Bark"], b"enwiki:Birch", "Bark"]], [0, " burns."]]]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path for one file, rewritten by each example."""
    return tmp_path_factory.mktemp("car") / "p.cbor"


def packed(*paragraphs: object, header: object = HEADER) -> bytes:
    """Return a file as it is distributed: the header and a list of indefinite length."""
    items = b"".join(map(cbor2.dumps, paragraphs))
    return bytes(cbor2.dumps(header) + b"\x9f" + items + b"\xff")


def read(path: Path, raw: bytes, intake: Intake | None = None) -> list[Document]:
    path.write_bytes(raw)
    return [document for _, document in read_car(path, intake or Intake())]


@given(st.lists(st.lists(st.tuples(st.booleans(), st.text())), max_size=4), st.booleans())
def test_paragraphs_round_trip(
    file: Path, texts: list[list[tuple[bool, str]]], zipped: bool
) -> None:
    paragraphs = [
        [0, b"%d" % i, [[1, [0, "Page", [], b"id", s]] if link else [0, s] for link, s in bodies]]
        for i, bodies in enumerate(texts)
    ]
    raw = packed(*paragraphs)
    assert read(file, gzip.compress(raw) if zipped else raw) == [
        Document(str(i), {"text": "".join(s for _, s in bodies)}) for i, bodies in enumerate(texts)
    ]


@given(st.binary() | st.binary().map(lambda tail: packed(BEES)[:-1] + tail))
def test_any_bytes_are_paragraphs_or_an_input_error(file: Path, raw: bytes) -> None:
    try:
        read(file, raw, Intake(skip_bad=True))
    except InputError as error:
        assert str(error).startswith(f"{file}, paragraph ")


@given(st.integers(0, len(packed(BEES, BARK)) - 1))
def test_a_truncated_file_is_refused(file: Path, size: int) -> None:
    with pytest.raises(InputError, match=r"p\.cbor, paragraph [123]: "):
        read(file, packed(BEES, BARK)[:size])


def test_links_are_read_as_their_anchors(tmp_path: Path) -> None:
    documents = read(tmp_path / "p.cbor", packed(BEES, BARK))
    assert [(d.doc_id, d.text) for d in documents] == [
        ("0a1b", "The bee."),
        ("0c2d", "Bark burns."),
    ]


def test_older_files_have_no_header(tmp_path: Path) -> None:
    raw = cbor2.dumps(BEES) + cbor2.dumps(BARK)
    assert len(read(tmp_path / "p.cbor", raw)) == 2
    with pytest.raises(InputError, match=r"paragraph 2: damaged CBOR.*\(the file is incomplete"):
        read(tmp_path / "p.cbor", raw[:-1])


def test_a_truncated_file_is_read_up_to_the_damage(tmp_path: Path) -> None:
    (tmp_path / "p.cbor").write_bytes(packed(BEES, BARK)[:-1])
    documents = read_car(tmp_path / "p.cbor", Intake(skip_bad=True))
    assert [next(documents)[1].doc_id, next(documents)[1].doc_id] == ["0a1b", "0c2d"]
    with pytest.raises(InputError, match=r"paragraph 3: damaged CBOR"):
        next(documents)


def test_files_of_pages_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected paragraphs, found \['CAR', \[0\]\]"):
        read(tmp_path / "p.cbor", packed(header=["CAR", [0]]))


def test_text_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"p\.cbor, paragraph 1: not a paragraph|damaged CBOR"):
        read(tmp_path / "p.cbor", b'{"id": "1", "text": "x"}\n')


@pytest.mark.parametrize(
    "item",
    [7, [], [0, b"id"], [1, b"id", []], [0, "id", []], [0, b"\xff", []], [0, b"id", "text"]]
    + [[0, b"id", [body]] for body in (7, [], [0, 7], [1, "link"], [2, "x"], [1, [0, "P", []]])],
)
def test_other_cbor_is_a_bad_record(tmp_path: Path, item: Any) -> None:
    raw = packed(BEES, item, BARK)
    with pytest.raises(InputError, match=r"p\.cbor, paragraph 2: (not|neither) a "):
        read(tmp_path / "p.cbor", raw)
    intake = Intake(skip_bad=True)
    assert len(read(tmp_path / "p.cbor", raw, intake)) == 2
    assert len(intake.skipped) == 1


@pytest.mark.parametrize(
    ("section", "text"),
    [
        ("enwiki:Birch", "Birch"),
        ("enwiki:Birch%20bark/Uses/AC%2FDC%20power", "Birch bark Uses AC/DC power"),
        ("enwiki:Caf%C3%A9/100%/5%zz", "Café 100% 5%zz"),
        ("enwiki:%E9t%e9", "\ufffdt\ufffd"),
        ("Birch/enwiki:x", "Birch enwiki:x"),
    ],
)
def test_section_ids_are_decoded(section: str, text: str) -> None:
    assert section_text(section) == text


def test_sections_of_the_judgments_are_queries(tmp_path: Path) -> None:
    """The id spells out the page and the headings; other names of qrels are no queries."""
    qrels = tmp_path / "train.pages.cbor-hierarchical.qrels"
    qrels.write_text("enwiki:Birch%20bark/Uses 0 0c2d 1\nenwiki:Bee 0 0a1b 1\nenwiki:Bee 0 ff 1\n")
    queries = [
        Query("enwiki:Birch%20bark/Uses", "Birch bark Uses"),
        Query("enwiki:Bee", "Bee"),
    ]
    assert read_queries(qrels) == queries
    packed_file = tmp_path / "train.fold0.cbor.hierarchical.qrels.gz"
    packed_file.write_bytes(gzip.compress(qrels.read_bytes()))
    assert read_queries(packed_file) == queries
    with pytest.raises(InputError, match="wrong number of columns"):
        read_queries(qrels.rename(tmp_path / "qrels.txt"))


def test_car_is_a_collection(tmp_path: Path) -> None:
    """Its format is known by the file name."""
    (tmp_path / "dedup.articles-paragraphs.cbor").write_bytes(packed(BEES, BARK))
    documents = read_collection(tmp_path / "dedup.articles-paragraphs.cbor", Intake())
    assert [document.doc_id for document in documents] == ["0a1b", "0c2d"]


def test_paragraphs_are_streamed(tmp_path: Path) -> None:
    """The first is yielded although the rest of the file is damaged."""
    (tmp_path / "p.cbor").write_bytes(packed(BEES)[:-1] + b"\x1c")
    assert next(read_car(tmp_path / "p.cbor", Intake()))[1].doc_id == "0a1b"


def test_a_compressed_file_is_read_forward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To seek back in gzip is to decompress from the beginning, once for each paragraph."""

    def refuse(*_: object) -> int:
        raise AssertionError("seeks")

    monkeypatch.setattr(gzip.GzipFile, "seek", refuse)
    assert len(read(tmp_path / "p.cbor", gzip.compress(packed(BEES, BARK)))) == 2


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.cbor: no such file"):
        list(read_car(tmp_path / "none.cbor", Intake()))


def test_the_error_for_a_missing_package_has_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "cbor2":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingPackageError, match=r"pip install 'birchbark\[car\]'"):
        read(tmp_path / "p.cbor", packed(BEES))


def test_read_errors_are_input_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(stream: io.BufferedReader) -> object:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(cbor2, "load", refuse)
    with pytest.raises(InputError, match=r"p\.cbor: cannot be read: Input/output error"):
        read(tmp_path / "p.cbor", packed(BEES))
