"""Do the recipes for Robust04, Core17 and Core18 run on files as they are distributed?"""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from birchbark.experiments.recipe_file import read_recipe
from birchbark.study.outcome import Outcome
from birchbark.study.run import run_study
from conftest import DOCUMENTS
from small_study import table_of

RECIPES = Path(__file__).parents[2] / "studies"
MODELS = re.compile(r'= \["\.\./training[^\n]*')
QUERIES = [
    "birch river",
    "old iron engine",
    "the bees",
    "bridge over a wide stone river",
    "canoe",
    "wood",
]
QRELS = (
    "1 0 canoe 1\n1 0 forest 1\n2 0 engine 2\n3 0 bees 1\n4 0 bridge 1\n4 0 canoe 0\n5 0 canoe 1\n"
    "6 0 forest 1\n"
)


def write_topics(path: Path) -> None:
    """Write the queries as TREC's topics, whose elements are not closed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join(
            f"<top>\n\n<num> Number: {number}\n<title> {query}\n\n<desc> Description:\n"
            f"Of {query}.\n\n<narr> Narrative:\nAny.\n\n</top>\n\n"
            for number, query in enumerate(QUERIES, 1)
        )
    )


def run(root: Path, name: str, model: Path) -> tuple[Outcome, list[str]]:
    """Run a recipe with a tiny model in place of those that it trains; also return what it told."""
    text = MODELS.sub(f'= "{model}"', (RECIPES / f"{name}.toml").read_text())
    path, told = root / f"{name}.toml", list[str]()
    path.write_text(text)
    cache = root / "cache"
    outcome = run_study(read_recipe(path), root, root / name, cache=cache, progress=told.append)
    again = list[str]()
    repeated = run_study(
        read_recipe(path), root, root / "again", cache=cache, progress=again.append
    )
    assert repeated == outcome
    assert any(": indexing" in line for line in told)
    assert not any(": indexing" in line for line in again)  # it was kept
    notes = [line for line in told if line.startswith("note")]
    assert notes == [line for line in again if line.startswith("note")]
    return outcome, notes


def check_rows(outcome: Outcome, table: str = "evidence") -> list[str]:
    """Return the names of the measured rows, which all have values."""
    (measured,) = (group for group in table_of(outcome, table).groups if not group.published)
    assert all(cell.value is not None for row in measured.rows for cell in row.cells)
    assert len(table_of(outcome, table).groups) > 1  # with the paper's figures
    return [row.name for row in measured.rows]


def of_disc(doc_id: str, title: str, text: str) -> str:
    """Return a document as on TREC's discs."""
    return (
        f"<DOC>\n<DOCNO> {doc_id} </DOCNO>\n<PROFILE>_AN-BEOA7AAIFT</PROFILE>\n<HEADLINE>\n"
        f"{title}\n</HEADLINE>\n<TEXT>\n{text}\n</TEXT>\n</DOC>\n"
    )


def test_robust04(tmp_path: Path, bert: Callable[..., Path]) -> None:
    """The discs as they are: compressed files, read-me files, tables, the Congressional Record."""
    ncompress = pytest.importorskip("ncompress")
    discs = tmp_path / "disk45"
    by_id = {document.doc_id: document for document in DOCUMENTS}
    files = {
        "TREC_VOL4/FT/FT911/FT911_1.Z": of_disc("bees", "FT 14 MAY 91 / Bees", by_id["bees"].text),
        "TREC_VOL4/FR94/01/FR940104.0z": (
            "<DOC>\n<DOCNO> engine </DOCNO>\n<PARENT> FR940104-0-00001 </PARENT>\n<TEXT>\n"
            "<!-- PJG FTAG 4700 -->\n<USDEPT>Department of iron&hyph;works</USDEPT>\n"
            f"{by_id['engine'].text} &blank;&sect; 2.\n</TEXT>\n</DOC>\n"
        ),
        "TREC_VOL4/CR/HFILES/CR93H1": of_disc("canoe", "Record", "Not in this collection."),
        "TREC_VOL4/READMEFT": "Financial Times documents.\n",
        "TREC_VOL4/DTDS/FTDTD": "<!ELEMENT DOC - - (DOCNO, TEXT)>\n",
        "TREC_VOL5/FBIS/FB396001": (
            "<DOC>\n<DOCNO> bridge </DOCNO>\n<HEADER>\n<H3> <TI> A caf\xe9 </TI></H3>\n"
            f"</HEADER>\n<TEXT>\n<F P=106> [Text] </F>\n{by_id['bridge'].text}\n</TEXT>\n</DOC>\n"
        ),
        "TREC_VOL5/LATIMES/LA010189": (
            of_disc("canoe", "<P>\nCANOES\n</P>", f"<P>\n{by_id['canoe'].text}\n</P>")
            + f"<DOC>\n<DOCNO> forest </DOCNO>\n<P>\n{by_id['forest'].text}\n</P>\n</DOC>\n"
        ),
    }
    for name, content in files.items():
        (discs / name).parent.mkdir(parents=True, exist_ok=True)
        raw = content.encode("latin-1")
        packed = name.lower().endswith("z")
        (discs / name).write_bytes(ncompress.compress(raw) if packed else raw)
    write_topics(tmp_path / "checks/robust04/topics.robust04.txt")
    (tmp_path / "qrels.robust04.txt").write_text(QRELS)
    folds = tmp_path / "checks/robust04/robust04-paper2-folds.json"
    folds.write_text(json.dumps([["1", "2", "3"], ["4", "5", "6"]]))
    outcome, notes = run(tmp_path, "birch-robust04", bert(labels=1))
    assert notes == [
        "note: Robust04: file without <DOC> not read (2 times)",
        "note: Robust04: excluded folder not read (1 times)",
    ]
    assert len(check_rows(outcome)) == 2 + 3 * 6
    assert "† p < .01" in table_of(outcome, "evidence").note
    assert {len(check_rows(outcome, name)) for name in ("lengths", "pruned")} == {8, 7}
    lengths = table_of(outcome, "lengths").groups[0].rows[0]
    assert [cell.value for cell in lengths.cells] == ["3", "1", "1", "1"]


def test_core17(tmp_path: Path, bert: Callable[..., Path]) -> None:
    """Monthly archives of articles; one article has neither headline nor text."""
    (tmp_path / "nyt" / "data" / "2000").mkdir(parents=True)
    with tarfile.open(tmp_path / "nyt" / "data" / "2000" / "01.tgz", "w:gz") as archive:
        for document in DOCUMENTS:
            full = f'<block class="full_text"><p>{document.text}</p></block>'
            parts = (f"<hedline><hl1>{document.title}</hl1></hedline>", full)
            head, text = ("", "") if document.doc_id == "forest" else parts
            article = (
                f'<nitf><head><docdata><doc-id id-string="{document.doc_id}"/></docdata></head>'
                f"<body><body.head>{head}</body.head><body.content>{text}</body.content></body></nitf>"
            ).encode()
            member = tarfile.TarInfo(f"01/01/{document.doc_id}.xml")
            member.size = len(article)
            archive.addfile(member, io.BytesIO(article))
    (tmp_path / "nyt" / "docs").mkdir()
    (tmp_path / "nyt" / "docs" / "overview.pdf").write_bytes(b"%PDF")
    write_topics(tmp_path / "topics.core17.txt")
    (tmp_path / "qrels.core17.txt").write_text(QRELS)
    outcome, notes = run(tmp_path, "birch-core17", bert(labels=1))
    assert notes == [
        "note: Core17: document without text (1 times)",
        "note: Core17: file of another type not read: .pdf (1 times)",
    ]
    assert len(check_rows(outcome)) == 2 + 3 * 5


def test_core18(tmp_path: Path, bert: Callable[..., Path]) -> None:
    """Articles with parts that are null, not paragraphs or without contents, and without title."""
    lines = [
        {
            "id": document.doc_id,
            "title": None if document.doc_id == "bees" else document.title,
            "contents": [
                None,
                {"type": "byline", "content": "By A. Writer"},
                {"type": "sanitized_html", "content": f"<p>{document.text}</p>"},
                {"type": "sanitized_html", "content": None},
                {"type": "image", "fullcaption": "A canoe"},
            ],
        }
        for document in DOCUMENTS
    ]
    articles = tmp_path / "TREC_Washington_Post_collection.v2.jl"
    articles.write_text("\n".join(map(json.dumps, lines)))
    write_topics(tmp_path / "checks/core18/topics.core18.txt")
    (tmp_path / "checks/core18/qrels.core18.txt").write_text(QRELS)
    outcome, notes = run(tmp_path, "birch-core18", bert(labels=1))
    assert notes == []
    assert len(check_rows(outcome)) == 2 + 3 * 5
