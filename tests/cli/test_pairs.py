"""Does `birchbark pairs` write training pairs, and report what it sampled and missed?"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import pytest
from click.testing import CliRunner

from birchbark.cli import group
from birchbark.collection.documents import read_collection
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.qrels import read_qrels
from birchbark.collection.runs import read_run
from birchbark.errors import InputError
from birchbark.pairs.best_passages import BestPassages
from birchbark.pairs.holdout import held_out_queries
from birchbark.pairs.read import read_pairs
from birchbark.records import Document, Pair, Query
from birchbark.score.load_scorer import load_scorer
from birchbark.score.scorer import score_texts
from conftest import DOCUMENTS, write_bert

JUDGED = ("docs.jsonl", "--queries", "q.tsv", "--qrels", "qrels.txt")
LONG = Document("long", {"title": "Long birch", "text": " ".join(f"w{i}" for i in range(23))})
RUN = {
    "1": ["bees", "canoe", "engine", "forest", "bridge", "long", "gone"],
    "2": ["engine", "bees", "canoe", "long"],
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with a collection, queries, judgments and a run."""
    monkeypatch.chdir(tmp_path)
    documents = [json.dumps({"id": d.doc_id, **d.fields}) for d in (*DOCUMENTS, LONG)]
    Path("docs.jsonl").write_text("\n".join(documents))
    Path("q.tsv").write_text("1\tbirch river\n2\tiron engine\n3\tzeppelin\n")
    Path("qrels.txt").write_text(
        "1 0 canoe 2\n1 0 forest 1\n2 0 engine 1\n2 0 bees -1\n2 0 lost 1\n9 0 canoe 1\n"
    )
    lines = [
        f"{query_id} Q0 {doc_id} {rank} {-rank} bm25\n"
        for query_id, ranked in RUN.items()
        for rank, doc_id in enumerate(ranked, 1)
    ]
    Path("bm25.run").write_text("".join(lines))
    return tmp_path


def make(*arguments: str, output: str = "p.tsv") -> tuple[list[Pair], str]:
    """Run `birchbark pairs`; return the pairs it wrote, and standard error."""
    command = ["pairs", *arguments, "--output", output]
    done = CliRunner().invoke(group, command, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return list(read_pairs(Path(output), Intake(), highest=9)), done.stderr


def error_of(*arguments: str) -> str:
    """Return the error message of `birchbark pairs`, which must write nothing."""
    before = sorted(Path().iterdir())
    command = ["pairs", *arguments, "--output", "p.tsv"]
    with pytest.raises(InputError) as caught:
        CliRunner().invoke(group, command, catch_exceptions=False)
    assert sorted(Path().iterdir()) == before
    return str(caught.value)


def test_each_judged_document_is_a_pair(here: Path) -> None:
    """Missing documents and queries are reported."""
    pairs, stderr = make(*JUDGED)
    assert {(p.query_id, p.doc_id, p.relevance) for p in pairs} == {
        ("1", "canoe", 2),
        ("1", "forest", 1),
        ("2", "engine", 1),
        ("2", "bees", 0),
    }
    assert pairs[0].text == "Birch canoe A canoe of birch bark. It rides the river."
    for line in (
        "wrote 4 pairs of 2 queries to p.tsv: 3 relevant, 9.8 words on average",
        "note: the highest relevance is 2: train with highest = 2",
        "note: judged document not in the collection",
        "note: judged query not among the queries",
        "note: queries that have no pair: 1 (3)",
    ):
        assert line in stderr


def test_run_negatives_are_unjudged_and_of_the_ranks(here: Path) -> None:
    """Documents that the collection lacks are reported."""
    pairs, stderr = make(*JUDGED, "--run", "bm25.run", "--ranks", "3-7", "--negatives", "9")
    qrels = read_qrels(Path("qrels.txt")).grades
    added = {(p.query_id, p.doc_id) for p in pairs if p.doc_id not in qrels[p.query_id]}
    assert added == {("1", "engine"), ("1", "bridge"), ("1", "long"), ("2", "canoe"), ("2", "long")}
    assert all(p.relevance == max(0, qrels[p.query_id].get(p.doc_id, 0)) for p in pairs)
    assert (
        "sampled 6 documents from ranks 3-7 of bm25.run for 2 queries; fewer than 9 for 2 of them"
        in stderr
    )
    assert "note: judged document not in the collection (2 times)" in stderr


def test_the_same_seed_writes_the_same_bytes(here: Path) -> None:
    """The same seed gives the same file, another seed other documents."""
    chosen = (*JUDGED, "--run", "bm25.run", "--negatives", "1", "--random-negatives", "1")
    files = []
    for seed in "778":
        make(*chosen, "--seed", seed, "--holdout", "0.9")
        files.append((Path("p.tsv").read_bytes(), Path("p.held.tsv").read_bytes()))
    assert files[0] == files[1] != files[2]


def test_random_negatives_are_unjudged(here: Path) -> None:
    """No judged document is sampled, and over many seeds every unjudged one is."""
    drawn = set()
    for seed in range(12):
        pairs, stderr = make(*JUDGED, "--random-negatives", "2", "--seed", str(seed))
        assert "sampled 4 documents from the collection for 2 queries" in stderr
        drawn |= {(p.query_id, p.doc_id) for p in pairs if p.relevance == 0}
        assert len(pairs) == 8
    everything = {(q, d.doc_id) for q in "12" for d in (*DOCUMENTS, LONG)}
    assert drawn == everything - {("1", "canoe"), ("1", "forest"), ("2", "engine")}


def test_all_ranked_gives_every_window_its_documents_grade(here: Path) -> None:
    """Windows cover every word and have the document's grade, as in the passages paper."""
    pairs, stderr = make(
        *JUDGED, "--run", "bm25.run", "--ranks", "1-6", "--all-ranked", "--segments", "windows:8/3"
    )
    qrels = read_qrels(Path("qrels.txt")).grades
    assert {(p.query_id, p.doc_id) for p in pairs} == {
        (query_id, doc_id) for query_id, ranked in RUN.items() for doc_id in ranked[:6]
    }
    assert all(p.relevance == max(0, qrels[p.query_id].get(p.doc_id, 0)) for p in pairs)
    for document in (*DOCUMENTS, LONG):
        for query_id in "12":
            windows = [
                p.text for p in pairs if (p.query_id, p.doc_id) == (query_id, document.doc_id)
            ]
            if windows:
                assert set(document.contents.split()) == set(" ".join(windows).split())
                assert all(len(window.split()) <= 8 for window in windows)
    assert "used 10 documents from ranks 1-6 of bm25.run for 2 queries; fewer than 6" in stderr


def test_best_segments_by_a_model(here: Path) -> None:
    """The highest-scored segments of each document are used, in their original order."""
    cut = (*JUDGED, "--segments", "windows:4/1")
    every, _ = make(*cut)
    scorer = load_scorer()
    best, stderr = make(*cut, "--best-segments", "2", output="best.tsv")
    assert f"{scorer.name} scored" in stderr
    keys = list(dict.fromkeys((p.query_id, p.doc_id) for p in every))
    assert list(dict.fromkeys((p.query_id, p.doc_id) for p in best)) == keys
    for key in keys:
        mine, others = (
            [p for p in some if (p.query_id, p.doc_id) == key] for some in (best, every)
        )
        scores = score_texts(scorer, others[0].query, [p.text for p in others]).tolist()
        chosen = sorted(sorted(range(len(scores)), key=lambda n: (-scores[n], n))[:2])
        assert mine == [others[n] for n in chosen]
    assert any(len([p for p in every if (p.query_id, p.doc_id) == key]) > 2 for key in keys)


def test_best_segments_of_long_texts(here: Path, tmp_path: Path) -> None:
    """Long segments are truncated, with a message; a long query is an error before any work."""
    model = write_bert(tmp_path / "short", labels=1, positions=14)
    cut = (
        *JUDGED,
        "--segments",
        "windows:7/5",
        "--best-segments",
        "1",
        "--scoring-model",
        str(model),
    )
    with pytest.raises(InputError, match=r"query \d: query is too long for the model"):
        BestPassages(load_scorer(model), 1).check_queries([Query("1", "bee " * 9)])
    pairs, stderr = make(*cut)
    every, _ = make(*cut[:-4], output="every.tsv")
    scorer = load_scorer(model)
    several = [len(list(own)) for _, own in groupby(every, key=lambda p: (p.query_id, p.doc_id))]
    assert max(several) > 1
    truncated = [
        len(scorer.encode([p.text])[0]) > scorer.token_budget(p.query)
        for _, own in groupby(every, key=lambda p: (p.query_id, p.doc_id))
        for some in [list(own)]
        for p in some
        if len(some) > 1
    ]
    assert sum(truncated) > 0
    assert f"scored {len(truncated):,} segments, {sum(truncated):,} of them truncated" in stderr
    assert len(pairs) == len(several)


def test_holdout_separates_queries(here: Path) -> None:
    """No query is in both files, and together they hold all pairs."""
    whole, _ = make(*JUDGED, output="w.tsv")
    training, stderr = make(*JUDGED, "--holdout", "0.9")
    held_out = list(read_pairs(Path("p.held.tsv"), Intake(), highest=9))
    assert {p.query_id for p in training} & {p.query_id for p in held_out} == set()
    assert sorted(map(repr, training + held_out)) == sorted(map(repr, whole))
    assert len(re.findall(r"^wrote 2 pairs of 1 query to p(\.held)?\.tsv", stderr, re.M)) == 2


def test_queries_without_relevant_documents_are_reported(here: Path) -> None:
    """A note names queries without relevant documents, which are of little use in training."""
    Path("qrels.txt").write_text("1 0 canoe 1\n2 0 bees 0\n")
    assert "note: queries that have no relevant pair: 1 (2)" in make(*JUDGED)[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--ranks", "1-5"), "--ranks has no effect without --run"),
        (("--negatives", "1"), "--negatives has no effect without --run"),
        (("--all-ranked",), "--all-ranked has no effect without --run"),
        (("--run", "bm25.run"), "--run has no effect without --negatives or --all-ranked"),
        (("--run", "bm25.run", "--all-ranked", "--negatives", "1"), "combined with --negatives"),
        (
            ("--run", "bm25.run", "--all-ranked", "--random-negatives", "1"),
            "combined with --random-negatives",
        ),
        (("--run", "bm25.run", "--negatives", "1", "--ranks", "5-2"), "ranks are out of range"),
        (("--run", "bm25.run", "--negatives", "1", "--ranks", "0-2"), "ranks are out of range"),
        (("--run", "bm25.run", "--negatives", "1", "--ranks", "5"), "example 10-100, found '5'"),
        (
            ("--run", "bm25.run", "--negatives", "1", "--ranks", "8-9"),
            "bm25.run: the run does not reach these ranks: expected documents at ranks 8-9, found "
            "at most 7 documents per query (retrieve with a larger --depth, or choose ranks nearer "
            "the top)",
        ),
        (("--run", "empty.run", "--negatives", "1"), "empty.run: no ranked documents"),
        (("--run", "other.run", "--all-ranked"), "ranks nothing for the judged queries"),
        (
            ("--run", "bm25.run", "--all-ranked", "--ranks", "7-7"),
            "no judged document is in the collection",
        ),
        (("--run", "bm25.run", "--all-ranked", "--ranks", "5-6"), "no pair is relevant"),
        (("--holdout", "20"), "share of queries is out of range: expected above 0 and below 1"),
        (("--holdout", "0.1"), "leaves one side without queries"),
        (("--segments", "pages"), "unknown segments 'pages'"),
        (("--best-segments", "2"), "--best-segments has no effect with --segments whole"),
        (("--scoring-model", "x"), "--scoring-model has no effect without --best-segments"),
        (("--device", "cuda"), "--device has no effect without --best-segments"),
        (("--qrels", "zeros.txt"), "zeros.txt: no document is judged relevant for these queries"),
        (("--qrels", "others.txt"), "no judgment belongs to one of these queries"),
        (("--qrels", "absent.txt"), "no judged document is in the collection"),
        (("--queries", "blank.tsv"), "blank.tsv:1: query 1 has no text"),
    ],
)
def test_bad_input_is_refused(here: Path, options: tuple[str, ...], message: str) -> None:
    """The message says what is wrong, and nothing is written."""
    Path("empty.run").write_text("")
    Path("other.run").write_text("7 Q0 bees 1 2.5 bm25\n")
    Path("zeros.txt").write_text("1 0 canoe 0\n2 0 bees -1\n")
    Path("others.txt").write_text("7 0 canoe 1\n")
    Path("absent.txt").write_text("1 0 lost 1\n")
    Path("blank.tsv").write_text("1\t \n")
    assert message in error_of(*JUDGED, *options)


def test_document_without_text(here: Path) -> None:
    """A document without text is an error, or with --skip-bad a message."""
    with Path("docs.jsonl").open("a") as out:
        out.write('\n{"id": "lost", "text": ""}\n')
    assert "document lost: text is empty (correct it, or skip" in error_of(*JUDGED)
    for segments in ("whole", "sentences", "windows"):
        pairs, stderr = make(*JUDGED, "--segments", segments, "--skip-bad")
        assert {p.doc_id for p in pairs} == {"canoe", "forest", "engine", "bees"}
        assert "skipped 1 bad record" in stderr


def test_stream_with_holdout(here: Path) -> None:
    """--holdout needs a folder for a second file, which a stream does not have."""
    with pytest.raises(InputError, match=r"--holdout writes two files: found a stream"):
        CliRunner().invoke(
            group, ["pairs", *JUDGED, "--holdout", "0.5", "--output", "/dev/null"],
            catch_exceptions=False,
        )  # fmt: skip


def test_car(here: Path) -> None:
    """Sections of TREC CAR are paired with what BM25 finds, as in the Birch paper's recipe."""
    cbor2 = pytest.importorskip("cbor2", reason="the extra car is not installed")
    texts = ["Bees dance.", "Birch bark burns.", "The uses of bark.", "Iron.", "A bee is small."]
    paragraphs = [[0, f"{i:02x}".encode(), [[0, text]]] for i, text in enumerate(texts)]
    items = b"".join(map(cbor2.dumps, paragraphs))
    Path("p.cbor").write_bytes(cbor2.dumps(["CAR", [2], []]) + b"\x9f" + items + b"\xff")
    sections = "train.hierarchical.qrels"
    Path(sections).write_text("enwiki:Bee 0 00 1\nenwiki:Birch%20bark/Uses 0 02 1\n")
    for arguments in (
        ("index", "p.cbor", "--to", "car.index"),
        ("retrieve", "car.index", "--queries", sections, "--depth", "10", "--output", "car.run"),
    ):
        assert CliRunner().invoke(group, arguments).exit_code == 0
    chosen = ("p.cbor", "--queries", sections, "--qrels", sections)
    pairs, _ = make(*chosen, "--run", "car.run", "--ranks", "1-10", "--all-ranked")
    assert [(p.query, p.text, p.relevance) for p in pairs] == [
        ("Bee", "Bees dance.", 1),
        ("Birch bark Uses", "Birch bark burns.", 0),
        ("Birch bark Uses", "The uses of bark.", 1),
        ("Bee", "A bee is small.", 0),
    ]


def test_help_shows_an_example() -> None:
    """The help ends with an example."""
    shown = CliRunner().invoke(group, ["pairs", "--help"]).output
    assert re.search(r"Examples: birchbark pairs ", shown)


def test_scifact_as_training_pairs(
    data: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Training queries, negatives from a BM25 run, windows and held-out queries fit together."""
    scifact = data("scifact")
    monkeypatch.chdir(tmp_path)
    files = {name: str(scifact / name) for name in ("corpus.jsonl", "queries.train.tsv")}
    qrels_file = scifact / "qrels.train.txt"
    queries = ("--queries", files["queries.train.tsv"])
    for command in (
        ("index", files["corpus.jsonl"], "--to", "i"),
        ("retrieve", "i", *queries, "--depth", "60", "--output", "bm25.run"),
    ):
        assert CliRunner().invoke(group, command).exit_code == 0
    training, stderr = make(
        files["corpus.jsonl"], *queries, "--qrels", str(qrels_file), "--run", "bm25.run",
        "--ranks", "10-50", "--negatives", "5", "--holdout", "0.2", "--segments", "windows",
    )  # fmt: skip
    held_out = list(read_pairs(Path("p.held.tsv"), Intake()))
    assert {p.query for p in held_out} == {
        *held_out_queries({p.query for p in training + held_out}, 0.2)
    }
    assert not {p.query for p in training} & {p.query for p in held_out}
    qrels, run = read_qrels(qrels_file).grades, read_run(Path("bm25.run")).rankings
    of_run = {q: set(ranking.doc_ids[9:50]) for q, ranking in run.items()}
    chosen: dict[str, set[str]] = {}
    texts: dict[str, list[str]] = {}
    for pair in training + held_out:
        chosen.setdefault(pair.query_id, set()).add(pair.doc_id)
        texts.setdefault(pair.doc_id, []).append(pair.text)
        assert pair.relevance == qrels[pair.query_id].get(pair.doc_id, 0)
    for query_id, doc_ids in chosen.items():
        assert qrels[query_id].keys() <= doc_ids
        assert doc_ids - qrels[query_id].keys() <= of_run[query_id]
        assert len(doc_ids - qrels[query_id].keys()) == 5
    assert f"sampled {809 * 5:,} documents from ranks 10-50 of bm25.run for 809 queries" in stderr
    for document in read_collection(files["corpus.jsonl"], Intake()):
        words = " ".join(texts.get(document.doc_id, ())).split()
        assert not words or set(document.contents.split()) <= set(words)
