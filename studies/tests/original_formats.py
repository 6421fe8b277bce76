"""How are the collections of the papers written, small, in the formats of their publishers?"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

from birchbark_studies import recipe_folder
from conftest import DOCUMENTS

NEWS_QUERIES = [
    "birch river",
    "old iron engine",
    "the bees",
    "bridge over a wide stone river",
    "canoe",
    "wood",
]
NEWS_QRELS = (
    "1 0 canoe 1\n1 0 forest 1\n2 0 engine 2\n3 0 bees 1\n4 0 bridge 1\n4 0 canoe 0\n5 0 canoe 1\n"
    "6 0 forest 1\n"
)
COVID_QUERIES = [
    "birch river",
    "iron engine",
    "bees dance",
    "stone bridge",
    "river canoe",
    "forest",
]
COVID_JUDGMENTS = [
    "1 4.5 canoe 2", "1 5 forest 1", "1 5 bees 0", "2 1 engine 2",
    "2 1 bridge -1", "3 1 bees 2", "3 1 engine 0", "4 1 bridge 1",
    "4 1 canoe 0", "5 2 canoe 2", "6 2 forest 2", "6 2 engine 0",
]  # fmt: skip
TOPIC = """<topic number="{number}">
  <query>{query}</query>
  <question>what is known of {query}?</question>
  <narrative>papers on {query}</narrative>
</topic>
"""


_SUBJECTS = "birch bark canoe river bees dance flower bridge stone iron steam engine forest".split()
SUBJECT_QUERIES = [
    " ".join(_SUBJECTS[i : i + 1 + i % 4]) for i in range(len(_SUBJECTS))
]  # of one to four words; the first one occurs in some of DOCUMENTS


def write_marco(root: Path) -> None:
    """MS MARCO's documents, with queries for training and others, sampled as for the thesis."""
    marco = root / "msmarco"
    marco.mkdir()
    rows = []
    for number in range(320):
        document = DOCUMENTS[number % len(DOCUMENTS)]
        text = " ".join(document.text.split())
        rows.append(f"D{number}\thttps://example.org/{number}\t{document.title}\t{text}\n")
    write_gzip(marco / "msmarco-docs.tsv.gz", "".join(rows))
    for part, first in (("doctrain", 0), ("docdev", 100)):
        queries, qrels = "", ""
        for number, query in enumerate(SUBJECT_QUERIES, first):
            subject = query.split()[0]
            kind = next(i for i, d in enumerate(DOCUMENTS) if subject in d.text.lower())
            queries += f"{number}\t{query}\n"
            qrels += f"{number} 0 D{first + 5 * (number - first) + kind} 1\n"
        write_gzip(marco / f"msmarco-{part}-queries.tsv.gz", queries)
        write_gzip(marco / f"msmarco-{part}-qrels.tsv.gz", qrels)
    run_script("marco.sh", marco, root)


def run_script(name: str, *arguments: str | Path) -> None:
    """Run a script of training/passages, with the commands of this environment."""
    script = recipe_folder.RECIPES.parent / "training/passages" / name
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    subprocess.run(["bash", script, *arguments], env=os.environ | {"PATH": path}, check=True)


def write_gzip(path: Path, text: str) -> None:
    """Write compressed text."""
    path.write_bytes(gzip.compress(text.encode()))


def _write_topics(path: Path) -> None:
    """Write the queries as TREC's topics, whose elements are not closed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join(
            f"<top>\n\n<num> Number: {number}\n<title> {query}\n\n<desc> Description:\n"
            f"Of {query}.\n\n<narr> Narrative:\nAny.\n\n</top>\n\n"
            for number, query in enumerate(NEWS_QUERIES, 1)
        )
    )


def _of_disc(doc_id: str, title: str, text: str) -> str:
    """Return a document as on TREC's discs."""
    return (
        f"<DOC>\n<DOCNO> {doc_id} </DOCNO>\n<PROFILE>_AN-BEOA7AAIFT</PROFILE>\n<HEADLINE>\n"
        f"{title}\n</HEADLINE>\n<TEXT>\n{text}\n</TEXT>\n</DOC>\n"
    )


def write_robust04(root: Path) -> None:
    """The discs as they are: compressed files, read-me files, tables, the Congressional Record."""
    import ncompress

    discs = root / "disk45"
    by_id = {document.doc_id: document for document in DOCUMENTS}
    files = {
        "TREC_VOL4/FT/FT911/FT911_1.Z": _of_disc("bees", "FT 14 MAY 91 / Bees", by_id["bees"].text),
        "TREC_VOL4/FR94/01/FR940104.0z": (
            "<DOC>\n<DOCNO> engine </DOCNO>\n<PARENT> FR940104-0-00001 </PARENT>\n<TEXT>\n"
            "<!-- PJG FTAG 4700 -->\n<USDEPT>Department of iron&hyph;works</USDEPT>\n"
            f"{by_id['engine'].text} &blank;&sect; 2.\n</TEXT>\n</DOC>\n"
        ),
        "TREC_VOL4/CR/HFILES/CR93H1": _of_disc("canoe", "Record", "Not in this collection."),
        "TREC_VOL4/READMEFT": "Financial Times documents.\n",
        "TREC_VOL4/DTDS/FTDTD": "<!ELEMENT DOC - - (DOCNO, TEXT)>\n",
        "TREC_VOL5/FBIS/FB396001": (
            "<DOC>\n<DOCNO> bridge </DOCNO>\n<HEADER>\n<H3> <TI> A caf\xe9 </TI></H3>\n"
            f"</HEADER>\n<TEXT>\n<F P=106> [Text] </F>\n{by_id['bridge'].text}\n</TEXT>\n</DOC>\n"
        ),
        "TREC_VOL5/LATIMES/LA010189": (
            _of_disc("canoe", "<P>\nCANOES\n</P>", f"<P>\n{by_id['canoe'].text}\n</P>")
            + f"<DOC>\n<DOCNO> forest </DOCNO>\n<P>\n{by_id['forest'].text}\n</P>\n</DOC>\n"
        ),
    }
    for name, content in files.items():
        (discs / name).parent.mkdir(parents=True, exist_ok=True)
        raw = content.encode("latin-1")
        packed = name.lower().endswith("z")
        (discs / name).write_bytes(ncompress.compress(raw) if packed else raw)
    _write_topics(root / "checks/robust04/topics.robust04.txt")
    (root / "qrels.robust04.txt").write_text(NEWS_QRELS)
    folds = root / "checks/robust04/robust04-paper2-folds.json"
    folds.write_text(json.dumps([["1", "2", "3"], ["4", "5", "6"]]))


def write_core17(root: Path) -> None:
    """Monthly archives of articles; one article has neither headline nor text."""
    (root / "nyt" / "data" / "2000").mkdir(parents=True)
    with tarfile.open(root / "nyt" / "data" / "2000" / "01.tgz", "w:gz") as archive:
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
    (root / "nyt" / "docs").mkdir()
    (root / "nyt" / "docs" / "overview.pdf").write_bytes(b"%PDF")
    _write_topics(root / "topics.core17.txt")
    (root / "qrels.core17.txt").write_text(NEWS_QRELS)


def write_core18(root: Path) -> None:
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
    articles = root / "TREC_Washington_Post_collection.v2.jl"
    articles.write_text("\n".join(map(json.dumps, lines)))
    _write_topics(root / "checks/core18/topics.core18.txt")
    (root / "checks/core18/qrels.core18.txt").write_text(NEWS_QRELS)


def write_cord19(root: Path) -> None:
    """CORD-19 with topics and judgments of TREC-COVID; one paper has two rows of metadata."""
    folder = root / "cord19"
    (folder / "parses").mkdir(parents=True)
    columns = ["cord_uid", "title", "abstract", "publish_time", "source_x", "pdf_json_files"]
    with (folder / "metadata.csv").open("w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(columns)
        for document in DOCUMENTS:
            file = f"parses/{document.doc_id}.json" if document.doc_id != "bees" else ""
            source = "Medline; PMC" if document.doc_id == "canoe" else "PMC"
            rows.writerow(
                [document.doc_id, document.title, document.text, "2020-03-01", source, file]
            )
        rows.writerow(["forest", "Forest", "", "2020", "PMC", ""])
    for document in DOCUMENTS:
        body = [{"text": f"{document.text} Iron and stone by the river."}]
        (folder / "parses" / f"{document.doc_id}.json").write_text(json.dumps({"body_text": body}))
    topics = "".join(
        TOPIC.format(number=n, query=query) for n, query in enumerate(COVID_QUERIES, 1)
    )
    (folder / "topics-rnd5.xml").write_text(f'<topics task="COVIDSearch">\n{topics}</topics>\n')
    (folder / "qrels-covid_d5_j0.5-5.txt").write_text("\n".join(COVID_JUDGMENTS) + "\n")
