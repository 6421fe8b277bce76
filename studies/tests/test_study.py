"""Does a recipe give complete and reproducible results, or a clear error?"""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from dataclasses import asdict, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import small_study
from birchbark import defaults
from birchbark.artifact import fingerprint
from birchbark.checkpoint.locate import load_vocabulary
from birchbark.cli import group
from birchbark.collection.data_files import find_data_root
from birchbark.collection.documents import read_collection
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.qrels import read_qrels
from birchbark.collection.queries import read_queries
from birchbark.collection.runs import read_run
from birchbark.errors import ArtifactError, CheckpointError, InputError
from birchbark.evaluate.measures import measure
from birchbark.evaluate.tune import Tuning
from birchbark.index.build_index import Schema, build_index
from birchbark.index.describe import describe
from birchbark.records import Document, Qrels
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.first_stage import FirstStage, rank_queries
from birchbark.section import Section
from birchbark.show.table import Column, Group, Row, Style, Table, columns
from birchbark_studies.collections import CollectionFiles, open_collection
from birchbark_studies.experiments.analyzers import _sizes
from birchbark_studies.experiments.evidence.evidence_experiment import EvidenceExperiment
from birchbark_studies.experiments.fields import field_experiment
from birchbark_studies.experiments.fields.field_experiment import _judgments, _values
from birchbark_studies.experiments.fields.field_runs import FieldRuns, _counts
from birchbark_studies.experiments.recipe_file import read_recipe
from birchbark_studies.listing import State, list_recipe, read_as_measured
from birchbark_studies.markdown import render_markdown
from birchbark_studies.outcome import Outcome
from birchbark_studies.published import read_published, with_published
from birchbark_studies.recipe_folder import RECIPES, recipe_path, results_folder
from birchbark_studies.run import run_file_name, run_study
from birchbark_studies.staleness import PUBLISHED, stale_because
from birchbark_studies.stored_results import read_results
from birchbark_studies.workspace import _index_key
from conftest import QUERIES, write_bert
from small_study import QRELS, table_of, write_collection

KINDS = ("analyzers", "evidence", "fields")

ALL_QUERIES = {**QUERIES, "5": "not judged"}
COLLECTION = re.sub(r'"(?=\w+\.)', '"tiny/', small_study.COLLECTION)
ANALYZERS = f'''
kind = "analyzers"
title = "Analyses <of> text"
findings = """
First, `stems` & words.
Then <i>pieces</i>."""
measures = ["AP", "P@2"]
[analyzers]
names = ["plain", "porter", "wordpiece", "porter+wordpiece"]
vocabulary = "MODEL"
example = "birch barks"
{COLLECTION}
[[published]]
table = "measures"
where = "elsewhere & long ago"
columns = ["AP"]
rows = [["plain", ".123"], ["oracle", 1]]
'''
FIELDS = f"""
kind = "fields"
title = "Fields"
measures = ["nDCG@10", "AP"]
seed = 3
[bm25]
k1 = 1.2
b = 0.75
idf_documents = "all"
[fields]
names = {{ title = ["title"], abstract = ["text"] }}
tune = "AP"
step = 0.25
folds = 2
{COLLECTION}
"""
EVIDENCE = f"""
kind = "evidence"
title = "Evidence"
measures = ["AP", "nDCG@10"]
[evidence]
models = {{ tiny = "MODEL" }}
depth = 3
best = 2
step = 0.5
folds = 2
{COLLECTION}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A data root with the collection `tiny`, and recipes in the parent folder."""
    folder = tmp_path / "data" / "tiny"
    folder.mkdir(parents=True)
    write_collection(folder, queries=ALL_QUERIES, qrels=QRELS + "2 0 bees 0\n")
    model = write_bert(tmp_path / "model")
    (tmp_path / "analyzers.toml").write_text(ANALYZERS.replace("MODEL", str(model)))
    (tmp_path / "evidence.toml").write_text(EVIDENCE.replace("MODEL", str(model)))
    (tmp_path / "fields.toml").write_text(FIELDS)
    return tmp_path / "data"


def study(root: Path, kind: str, to: str = "out") -> tuple[Outcome, Path]:
    """Run the small recipe of a kind. Returns the outcome and the output folder."""
    output = root.parent / to
    return run_study(read_recipe(root.parent / f"{kind}.toml"), root, output), output


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_a_study(root: Path, kind: str) -> None:
    """The folder contains exactly the documented files."""
    outcome, output = study(root, kind)
    files = {str(p.relative_to(output)) for p in output.rglob("*") if p.is_file()}
    runs = {f"runs/{run_file_name(name)}.run" for name in outcome.runs}
    figures = {f"figures/{plot.name}.svg" for plot in outcome.plots}
    assert files == {"results.json", "report.html", "README.md", "manifest.json", *figures, *runs}
    manifest = json.loads((output / "manifest.json").read_text())
    assert manifest["inputs"]["tiny/q.tsv"] == fingerprint(root / "tiny/q.tsv")
    assert manifest["recipe"]["sha256"] == fingerprint(root.parent / f"{kind}.toml")
    device = json.loads((output / "results.json").read_text())["device"]
    assert device == manifest["machine"]["device"] == "cpu"
    assert str(root.parent) not in (output / "results.json").read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_recipe_gives_the_same_bytes(root: Path, kind: str) -> None:
    """All files except the manifest are equal after two runs."""
    (_, first), (_, second) = study(root, kind, "first"), study(root, kind, "second")
    for path in (p for p in first.rglob("*") if p.is_file() and p.name != "manifest.json"):
        assert path.read_bytes() == (second / path.relative_to(first)).read_bytes(), path


@pytest.mark.parametrize("kind", KINDS)
def test_figures_are_those_of_the_runs(root: Path, kind: str) -> None:
    """The means in each row equal those of its run file."""
    outcome, output = study(root, kind)
    main = table_of(outcome, "measures" if kind == "analyzers" else kind)
    for row in main.groups[0].rows:
        run = read_run(output / "runs" / f"{run_file_name(f'Tiny.{row.name}')}.run")
        results = measure(read_qrels(root / "tiny/qrels.txt"), run, [c.name for c in main.columns])
        assert [cell.value for cell in row.cells] == list(results.means.values())


def test_a_collection_names_its_lowest_relevant_grade(root: Path) -> None:
    """AP and P count it, nDCG does not, and the note below the table tells."""
    recipe = root.parent / "analyzers.toml"
    text = recipe.read_text().replace('["AP", "P@2"]', '["AP", "P@2", "nDCG@3"]')
    recipe.write_text(text.replace("\n[[published]]", "\nrelevant = 2\n[[published]]"))
    outcome, _ = study(root, "analyzers")
    table = table_of(outcome, "measures")
    names = ["AP(rel=2)", "P(rel=2)@2", "nDCG@3"]
    for row in table.groups[0].rows:
        run = outcome.runs[f"Tiny.{row.name}"]
        means = measure(read_qrels(root / "tiny/qrels.txt"), run, names).means
        assert [cell.value for cell in row.cells] == list(means.values())
    assert table.note.endswith(
        " In Tiny, documents are relevant from grade 2 on, but nDCG counts every grade."
    )


def test_p_can_be_left_uncorrected(root: Path) -> None:
    """Then it is that of each comparison by itself, and the note tells."""
    recipe = root.parent / "fields.toml"
    corrected = table_of(study(root, "fields")[0], "fields")
    recipe.write_text("bonferroni = false\n" + recipe.read_text())
    table = table_of(study(root, "fields", "uncorrected")[0], "fields")
    family = 2 * (len(table.groups[0].rows) - 1)  # two measures
    differences = [
        tuple(c.difference for row in t.groups[0].rows for c in row.cells if c.difference)
        for t in (corrected, table)
    ]
    assert len(differences[1]) == family
    assert any(0 < d.p < 1 for d in differences[1])
    for before, after in zip(*differences, strict=True):
        assert before.corrected_p == min(1, after.p * family)
        assert after == replace(
            before, corrected_p=after.p, significant=after.p < 0.05, detectable=after.detectable
        )
    assert "p from a paired t-test that is not corrected for the number of" in table.note
    assert "t-test after Bonferroni correction" in corrected.note


def test_runs_are_those_of_the_first_stage(root: Path) -> None:
    """The sum of fields equals `rank_queries` with weights of 1 and the recipe's k1 and b."""
    outcome, _ = study(root, "fields")
    names = {"title": ["title"], "abstract": ["text"]}
    documents = read_collection(str(root / "tiny/docs.jsonl"), Intake())
    index = build_index(documents, root.parent / "index", Schema(fields=names))
    queries = read_queries(root / "tiny/q.tsv")[:4]
    stage = FirstStage(BM25(1.2, 0.75, "all"), dict.fromkeys(names, 1.0))
    expected = rank_queries(index, queries, stage).rankings
    assert outcome.runs["Tiny.title + abstract"].rankings == expected


def test_counts_are_those_of_the_index(root: Path) -> None:
    """Counts of unknown words and distinct terms equal those of `describe`."""
    outcome, _ = study(root, "analyzers")
    schema = Schema("wordpiece", load_vocabulary(root.parent / "model"))
    documents = read_collection(str(root / "tiny/docs.jsonl"), Intake())
    description = describe(build_index(documents, root.parent / "index", schema))
    counts = {c.name: v for c, v in zip(*_row(outcome, "unknown", "wordpiece"), strict=True)}
    assert counts["unknown"] == description["contents: unknown words"]
    assert counts["distinct unknown"] == description["contents: distinct unknown words"]
    assert (counts["split"], counts["distinct split"]) == (3, 2)  # bee ##s twice, tree ##s
    sizes = {c.name: v for c, v in zip(*_row(outcome, "sizes", "wordpiece"), strict=True)}
    assert sizes["distinct terms"] == description["contents: distinct terms"]
    assert sizes["queries"] == 4


def test_words_are_counted_by_their_stems(root: Path) -> None:
    """Distinct words are counted in the form that is looked up in the vocabulary."""
    vocabulary = root.parent / "model" / "vocab.txt"
    text = vocabulary.read_text().replace("bridge", "br").replace("##ing", "##idg")
    vocabulary.write_text(text)
    text = "A bridge, a pair of bridges: bridging otters, an otter."
    write_collection(
        root / "tiny",
        [Document("d", {"title": "", "text": text})],
        {"1": "bridges", "2": "otters bark otter"},
        "1 0 d 1\n2 0 d 1\n",
    )
    columns, values = _row(study(root, "analyzers")[0], "unknown", "porter+wordpiece")
    assert {column.name: value for column, value in zip(columns, values, strict=True)} == {
        "words": 10,
        "unknown": 5,  # pair, of, otter twice, an
        "distinct unknown": 4,
        "split": 3,  # br ##idg
        "distinct split": 1,
        "unknown in queries": 2,
        "distinct unknown in queries": 1,
        "split in queries": 1,
    }


def _row(outcome: Outcome, name: str, row: str) -> tuple[tuple[Column, ...], list[object]]:
    table = table_of(outcome, name)
    cells = next(r.cells for r in table.groups[0].rows if r.name == row)
    return table.columns, [cell.value for cell in cells]


def test_published_figures_stand_in_their_columns() -> None:
    """Whatever the order of the recipe; columns that it leaves out are empty.

    Several tables of the literature may be beside one of ours.
    """
    layout = {"a": columns(Style.MEASURE, "AP", "RR", "P@5"), "b": columns(Style.COUNT, "pairs")}
    entries = [
        {"table": "a", "where": "X", "columns": ["P@5", "AP"], "rows": [["m", ".1", 0.2]]},
        {"table": "b", "where": "Y", "columns": ["pairs"], "rows": [["n", 7]]},
        {"table": "a", "where": "Z", "columns": ["RR"], "rows": [["o", 1], ["p", 2]]},
    ]
    found = read_published([Section(entry, "x.toml") for entry in entries], layout)
    assert found == {
        "a": (
            Group("X", (Row.of("m", [0.2, None, ".1"]),), published=True),
            Group("Z", (Row.of("o", [None, 1, None]), Row.of("p", [None, 2, None])), True),
        ),
        "b": (Group("Y", (Row.of("n", [7]),), published=True),),
    }
    ours = Group("Tiny", (Row.of("q", [1, 1, 1]),))
    table = Table("a", "A", "", layout["a"], (ours, Group("old", (), published=True)))
    assert with_published(table, found).groups == (ours, *found["a"])
    assert with_published(replace(table, name="c"), found).groups == (ours,)


def test_sizes_of_an_index_and_of_judged_queries(tmp_path: Path) -> None:
    """Terms are counted with repetitions, those of a query that is not judged are not."""
    documents = [
        Document("a", {"title": "Bees", "text": "Bees dance."}),
        Document("b", {"title": "", "text": "The river"}),
    ]
    queries = {"1": "bees", "2": "the bees dance", "3": "a river", "4": "not judged"}
    write_collection(tmp_path, documents, queries, "1 0 a 1\n2 0 a 0\n3 0 b 1\n")
    files = CollectionFiles("Tiny", "docs.jsonl", "q.tsv", "qrels.txt")
    index = build_index(documents, tmp_path / "index", Schema("plain"))
    group = _sizes(open_collection(files, tmp_path), {"plain": index})
    assert (group.name, group.rows) == ("Tiny", (Row.of("plain", (2, 5, 4, 2.5, 3, 2.0)),))


def test_an_index_belongs_to_what_it_is_made_from(tmp_path: Path) -> None:
    """Anything that changes it gives it another name; what does not, such as queries, the same."""
    write_collection(tmp_path)
    files = CollectionFiles("Tiny", "docs.jsonl", "q.tsv", "qrels.txt")
    schema, collection = Schema("wordpiece", ("a", "b")), open_collection(files, tmp_path)

    def key(schema: Schema = schema, extended_by: str = "", **changes: Any) -> str:
        changed = replace(collection, files=replace(files, **changes))
        return _index_key(changed, schema, extended_by)

    assert key() == key(name="Other", run="x.run", folds="f.json", relevant=2, topic_fields=("x",))
    others = [
        key(format="jsonl"),
        key(encoding="cp1252"),
        key(skip_bad=True),
        key(include=("*.txt",)),
        key(exclude=("*.txt",)),
        key(extended_by="vectors"),
        key(replace(schema, vocabulary=("b", "a"))),
        key(replace(schema, analyzer="porter+wordpiece")),
        key(replace(schema, fields={"contents": ("title",)})),
        key(replace(schema, fields={"contents": ("text",)})),
        key(replace(schema, read_fields=("abstract",))),
    ]
    assert len({key(), *others}) == 1 + len(others)


def test_published_figures_are_marked_everywhere(root: Path) -> None:
    """The report, the Markdown, the JSON and the terminal output mark them."""
    arguments = ["study", "run", str(root.parent / "analyzers.toml"), "--data", str(root)]
    done = CliRunner().invoke(group, [*arguments, "--output", str(root.parent / "out")])
    assert done.exit_code == 0, done.output
    assert "PUBLISHED, not measured here" in done.stdout
    report = (root.parent / "out/report.html").read_text()
    body = report[report.index('<tbody class="published">') :]
    assert re.search(r"published</b>elsewhere &amp; long ago.*?\.123", body, re.S)
    readme = (root.parent / "out/README.md").read_text()
    assert "*published:* elsewhere & long ago" in readme
    assert "\n\nFirst, `stems` & words.\n\nThen <i>pieces</i>.\n\n" in readme
    report = (root.parent / "out/report.html").read_text()
    assert (
        "<p>First, <code>stems</code> &amp; words.</p>\n<p>Then &lt;i&gt;pieces&lt;/i&gt;.</p>"
        in report
    )
    tables = json.loads((root.parent / "out/results.json").read_text())["tables"]
    assert [g["published"] for g in tables[-1]["groups"]] == [False, True]


class _Page(HTMLParser):
    """Collects ids, and URLs that a browser would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("src", "href", "xlink:href") and not (value or "").startswith("#"):
                self.fetched.append(value or "")


@pytest.mark.parametrize("kind", KINDS)
def test_the_report_is_self_contained(root: Path, kind: str) -> None:
    """It fetches nothing, has unique ids, escapes texts, and uses the page's colours in plots."""
    page = (study(root, kind)[1] / "report.html").read_text()
    parser = _Page()
    parser.feed(page)
    assert not parser.fetched
    assert "@import" not in page
    assert len(set(parser.ids)) == len(parser.ids) > 0
    assert "<of>" not in page
    assert page.count("<svg") >= 1
    assert not re.search(r"(fill|stroke): #(?!fff)", page[page.index("<svg") :])


def test_a_failed_study_leaves_nothing(root: Path) -> None:
    """An invalid document leaves neither output nor temporary files."""
    (root / "tiny/docs.jsonl").write_text('{"id": "1", "title": "a", "text": "b"}\nnot json\n')
    with pytest.raises(InputError, match=r"docs\.jsonl:2"):
        study(root, "fields")
    assert not [p for p in root.parent.iterdir() if p.name == "out" or p.name.startswith(".tmp")]


def test_fields_are_counted_in_all_and_in_judged_documents(root: Path) -> None:
    """Three of the five documents are judged; one of these has no title."""
    qrels = "1 0 canoe 2\n1 0 gone 1\n4 0 bridge -1\n4 0 canoe 1\n4 0 forest 0\n"
    write_collection(root / "tiny", qrels=qrels)
    recipe = root.parent / "fields.toml"
    settings = 'step = 0.25\ncounted = ["title"]\njudgments = true'
    recipe.write_text(recipe.read_text().replace("step = 0.25", settings))
    outcome, _ = study(root, "fields")
    presence = small_study.values_of(outcome, "presence")
    assert presence == {"title": [4, 0.8, 2 / 3], "text": [5, 1.0, 1.0]}
    titles = small_study.values_of(outcome, "values")
    assert titles["Birch canoe"] == titles["none"] == [1, 0.2, 1 / 3]
    assert titles["Bees"] == [1, 0.2, 0.0]
    assert small_study.values_of(outcome, "judgments") == {"1": [2, 2, 1], "4": [3, 1, 0]}


def test_values_of_lists_and_dates_are_counted(tmp_path: Path) -> None:
    """Each value of a list counts once for its document, and the year of a date."""
    fields = {
        "a": {"text": "x", "source": "PMC; WHO;PMC", "date": "2020-03-01"},
        "b": {"text": " ", "source": "WHO", "date": "2020-12-31T00:00"},
        "c": {"text": "x", "source": "", "date": "2020"},
        "d": {"text": "x", "date": "spring", "source": "10.1101/2020-03-22"},
    }
    documents = [Document(doc_id, values) for doc_id, values in fields.items()]
    index = build_index(documents, tmp_path / "index")
    presence, counted = _counts(index, ("text", "title"), ("source", "date"), {"a", "c", "gone"})
    assert presence == {"text": (3, 2), "title": (0, 0)}
    assert counted == {
        "source": {"PMC": (1, 1), "WHO": (2, 1), "": (1, 1), "10.1101/2020-03-22": (1, 0)},
        "date": {"2020": (3, 2), "spring": (1, 0)},
    }


def test_values_and_judgments_of_fields() -> None:
    """The most frequent values are shown, in the order of their names where they are equal.

    Relevant are grades from the lowest relevant one on, however high the highest is.
    """
    qrels = Qrels({"1": {"a": 1, "b": 2, "c": 3, "d": 0}, "2": {"a": 1}}, relevant=2)
    values = {"last": (1, 0), **{f"v{n:02}": (2, 1) for n in range(19, 0, -1)}, "": (8, 4)}
    tuning = Tuning(np.eye(2), np.eye(2), ("1", "2"), (("1",), ("2",)), (0, 1))
    counted = {"few": {"x": (5, 0)}, "many": values | {"lost": (1, 1)}}
    ranked = FieldRuns("Tiny", qrels, {}, tuning, {}, {}, {}, counted, 10, 5)
    group = _values(ranked, "many")
    assert group.name == "Tiny, many, 20 of 22 values"
    names = ["none", *(f"v{n:02}" for n in range(1, 20))]
    assert [row.name for row in group.rows] == names
    assert [c.value for c in group.rows[0].cells] == [8, 0.8, 0.8]
    assert [c.value for c in group.rows[19].cells] == [2, 0.2, 0.2]
    assert _values(ranked, "few") == Group("Tiny, few", (Row.of("x", (5, 0.5, 0.0)),))
    assert _judgments(ranked).rows == (Row.of("1", (4, 2, 1)), Row.of("2", (1, 0, 0)))


def test_match_ratios_count_documents_below_the_depth(root: Path) -> None:
    """Rankings end at the depth of the recipe; the shares of documents that match do not."""
    recipe = root.parent / "fields.toml"
    recipe.write_text("depth = 1\n" + recipe.read_text())
    outcome, _ = study(root, "fields")
    rows = {row.name: row.cells[0].value for row in table_of(outcome, "match").groups[0].rows}
    either = (3 + 2 + 1 + 1) / 4 / 5  # of five documents: birch river, iron engine, bees dance, …
    both = (2 + 1 + 1 + 1) / 4 / 5
    for name in ("tuned weights", "contents"):
        assert rows[f"{name}, or"] == pytest.approx(either)
        assert rows[f"{name}, and"] == pytest.approx(both)
        assert all(len(r) == 1 for r in outcome.runs[f"Tiny.{name}, or"].rankings.values())


def test_given_field_weights_are_a_row(root: Path) -> None:
    """They rank as the first stage does with them, also with each match."""
    recipe = root.parent / "fields.toml"
    text = recipe.read_text()
    given = "weights = [{title = 2}, {abstract = 2, title = 0.5}]"
    text = text.replace("step = 0.25", f"step = 0.25\n{given}")
    recipe.write_text(text)
    outcome, _ = study(root, "fields")
    documents = read_collection(str(root / "tiny/docs.jsonl"), Intake())
    names = {"title": ["title"], "abstract": ["text"]}
    index = build_index(documents, root.parent / "index", Schema(fields=names))
    stage = FirstStage(BM25(1.2, 0.75, "all"), {"abstract": 2.0, "title": 0.5})
    queries = read_queries(root / "tiny/q.tsv")[:4]
    expected = rank_queries(index, queries, stage).rankings
    assert outcome.runs["Tiny.2 abstract + .5 title"].rankings == expected
    assert outcome.runs["Tiny.2 abstract + .5 title, or"].rankings == expected
    assert outcome.runs["Tiny.2 title"].rankings.keys() == expected.keys()
    (scores,) = (table for table in outcome.tables if table.name == "scores")
    stage = FirstStage(BM25(1.2, 0.75, "all"), {"title": 1.0})
    ranked = rank_queries(index, queries, stage)
    every = [score for ranking in ranked.rankings.values() for score in ranking.scores[:10]]
    title = scores.groups[0].rows[0]
    assert (title.name, title.cells[0].value) == ("title", pytest.approx(sum(every) / len(every)))
    recipe.write_text(text.replace("abstract = 2", "abstarct = 2"))
    with pytest.raises(InputError, match=r"fields\.weights\[2\]: no field 'abstarct'"):
        read_recipe(recipe)
    for weight in ("-2", "1e40"):
        recipe.write_text(text.replace("abstract = 2", f"abstract = {weight}"))
        with pytest.raises(InputError, match=r"fields\.weights\[2\]: field weight is out of range"):
            read_recipe(recipe)


def test_folds_of_weights_are_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page says where they come from; too many are refused before any ranking."""
    path = root.parent / "fields.toml"
    drawn = "2 folds of queries, drawn with seed 3"
    assert f"{drawn}. Each fold" in table_of(study(root, "fields")[0], "weights").note
    text, judged = path.read_text(), sorted({line.split()[0] for line in QRELS.splitlines()})
    (root / "folds.json").write_text(json.dumps([judged[:1], judged[1:]]))
    path.write_text(f'{text}folds = "folds.json"\n')
    outcome, _ = study(root, "fields", "given")
    assert f"{drawn}, unless they are given. Each" in table_of(outcome, "weights").note
    path.write_text(text.replace("folds = 2", "folds = 99"))
    monkeypatch.setattr(field_experiment, "rank_by_fields", None)
    with pytest.raises(InputError, match="wrong number of folds"):
        study(root, "fields", "many")


def test_fields_that_no_document_has(root: Path) -> None:
    """A misspelled field raises InputError instead of ranking nothing."""
    path = root.parent / "fields.toml"
    path.write_text(path.read_text().replace('["text"]', '["txet"]'))
    with pytest.raises(InputError, match=r"fields\.names\.abstract: no document has .* txet"):
        study(root, "fields")


def test_judged_queries_without_text(root: Path) -> None:
    """They count as 0 in every mean, and their number is reported."""
    queries = {q: text for q, text in ALL_QUERIES.items() if q != "2"}
    write_collection(root / "tiny", queries=queries, qrels=QRELS + "2 0 bees 0\n")
    steps: list[str] = []
    recipe = read_recipe(root.parent / "fields.toml")
    run_study(recipe, root, root.parent / "out", progress=steps.append)
    assert "note: Tiny: 1 judged queries have no text and count as 0" in steps


def test_names_cannot_break_the_readme(root: Path) -> None:
    """They neither end a table's cell or line nor begin HTML."""
    path = root.parent / "fields.toml"
    path.write_text(path.read_text().replace('name = "Tiny"', 'name = "a|b\\n# <b>c"'))
    folder = root.parent / "out"
    run_study(read_recipe(path), root, folder)
    assert "| a&#124;b # &lt;b>c |" in (folder / "README.md").read_text()


def test_only_a_study_is_replaced(root: Path) -> None:
    """A study is replaced if requested; any other folder never is."""
    recipe = read_recipe(root.parent / "fields.toml")
    for _ in range(2):
        run_study(recipe, root, root.parent / "out", replace_output=True)
    with pytest.raises(InputError, match="no study here"):
        run_study(recipe, root, root, replace_output=True)
    with pytest.raises(InputError, match="already exists"):
        run_study(recipe, root, root.parent / "out")


FAULTS = [
    ('title = "Fields"', 'titel = "Fields"', r"fields\.toml: title: key is missing"),
    ("seed = 3", "sead = 3", r"fields\.toml: sead: unknown key.*seed"),
    ("seed = 3", "seed = true", r"seed: wrong type: expected an integer, found True"),
    ("seed = 3", "seed = -1", r"seed: out of range: expected 0 or more"),
    ("seed = 3", "seed = ", r"fields\.toml: not a TOML file"),
    ("seed = 3", "seed = " + 9999 * "[", r"fields\.toml: not a TOML file: too deeply nested"),
    ('name = "Tiny"', 'name = "/"', r"collections: the runs of two coll.*letters and digits"),
    ('kind = "fields"', 'kind = "feelds"', r"kind: unknown kind 'feelds'.* one of analyzers, a"),
    ("k1 = 1.2", 'k1 = "1.2"', r"bm25\.k1: wrong type: expected a number, found '1\.2'"),
    ("b = 0.75", "b = 2", r"bm25: b is out of range"),
    ("b = 0.75", "c = 2", r"bm25\.c: unknown key"),
    ('"nDCG@10", "AP"', '"nDCGG"', r"measures: unknown measure 'nDCGG'"),
    ('"nDCG@10", "AP"', '"NumRet"', r"measures: measure 'NumRet' is a count"),
    ('"nDCG@10", "AP"', '"AP", 3', r"measures: wrong type: expected strings, found 3"),
    ('"nDCG@10", "AP"', "", r"measures: is empty"),
    ('tune = "AP"', 'tune = "Bpref"', r"fields\.tune: cannot tune for measure 'Bpref'"),
    ("step = 0.25", "step = 0.3", r"fields\.step: invalid step"),
    ("step = 0.25", "step = 1e-6", r"fields\.step: too many combinations"),
    ("folds = 2", "folds = 1", r"fields\.folds: out of range"),
    ("folds = 2", 'match = ["nor"]', r"fields\.match: unknown match 'nor'"),
    ("folds = 2", 'analyzer = "klingon"', r"fields\.analyzer: unknown analyzer 'klingon'.*english"),
    ("folds = 2", 'baseline = "body"', r"fields\.baseline: unknown baseline 'body'.*contents"),
    (', abstract = ["text"]', "", r"fields\.names: too few fields: expected two or more, found 1"),
    ('["title"]', '"title"', r"fields\.names\.title: wrong type: expected a list"),
    ('qrels = "tiny/qrels.txt"', "", r"collections\[1\]\.qrels: key is missing"),
    ("[[collections]]", "[collections]", r"collections: wrong type: expected a list"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), FAULTS)
def test_invalid_recipes(root: Path, old: str, new: str, message: str) -> None:
    """Errors name the file and the key."""
    path = root.parent / "fields.toml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InputError, match=message):
        read_recipe(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"porter",', '"prtr",', r"analyzers\.names: unknown analyzer 'prtr'.*wordpiece"),
        ('table = "measures"', 'table = "ms"', r"published\[1\]\.table: the study has no 'ms'"),
        ('columns = ["AP"]', 'columns = ["AP@3"]', r"published\[1\]\.columns: the study has no"),
        ('["oracle", 1]', '["oracle"]', r"published\[1\]\.rows: a row has the wrong length"),
        ('["oracle", 1]', "3", r"published\[1\]\.rows: wrong type: expected lists"),
    ],
)
def test_invalid_analyzers_and_published_figures(
    root: Path, old: str, new: str, message: str
) -> None:
    """Published figures must fit a table of the study."""
    path = root.parent / "analyzers.toml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InputError, match=message):
        read_recipe(path)


def test_missing_inputs_are_named(root: Path) -> None:
    """A missing recipe, data root, data file or model is named."""
    with pytest.raises(InputError, match=r"none\.toml: no such file"):
        read_recipe(root / "none.toml")
    recipe = read_recipe(root.parent / "analyzers.toml")
    output = root.parent / "out"
    with pytest.raises(InputError, match=r"there is no data root.*--data DIR or BIRCHBARK_DATA"):
        run_study(recipe, None, output)
    (root / "tiny/q.tsv").unlink()
    with pytest.raises(InputError, match=r"data files are missing: expected tiny/q\.tsv below"):
        run_study(recipe, root, output)
    (root / "tiny/q.tsv").write_text("1\tx\n")
    (root.parent / "model").rename(root.parent / "gone")
    with pytest.raises(CheckpointError, match="no such model"):
        run_study(recipe, root, output)
    assert not output.exists()


def test_list_of_recipes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line each, with what is missing; files on request; and recipes that cannot be read."""
    (root.parent / "bad.toml").write_text("kind = 3")
    (root / "tiny/q.tsv").unlink()
    arguments = ["study", "list", str(root.parent)]
    result = CliRunner().invoke(group, [*arguments, "--data", str(root)])
    assert "bad cannot be read" in result.stderr
    assert re.search(r"^fields +.*\(lacks tiny/q\.tsv\)$", result.stdout, re.MULTILINE)
    assert len(result.stdout.splitlines()) == len(list(root.parent.glob("*.toml"))) - 1
    as_json = CliRunner().invoke(group, [*arguments, "--data", str(root), "--json"]).stdout
    (fields,) = [item for item in json.loads(as_json) if item["name"] == "fields"]
    assert (fields["state"], fields["needs"]["tiny/q.tsv"]) == ("no results", False)
    arguments.append("--files")
    shown = CliRunner().invoke(group, [*arguments, "--data", str(root)]).stdout
    assert re.search(r"^ +here +tiny/docs", shown, re.MULTILINE)
    assert re.search(r"^ +missing +tiny/q\.tsv$", shown, re.MULTILINE)
    monkeypatch.chdir(root.parent)
    monkeypatch.delenv("BIRCHBARK_DATA", raising=False)
    assert "no data root" in CliRunner().invoke(group, arguments).stderr
    nothing = CliRunner().invoke(group, ["study", "list", "nowhere"])
    assert (nothing.exit_code, nothing.stdout) == (1, "")
    assert "nowhere: no such folder: expected a folder of recipes" in str(nothing.exception)


def test_recipes_have_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name means a recipe of the package, also if a folder is called so; others are paths."""
    monkeypatch.chdir(tmp_path)
    listed = CliRunner().invoke(group, ["study", "list"]).stdout
    assert {line.split()[0] for line in listed.splitlines()} == {x.stem for x in RECIPES.iterdir()}
    assert recipe_path("birch-time") == RECIPES / "birch-time.toml"
    Path("birch-time").mkdir()
    assert recipe_path("birch-time") == RECIPES / "birch-time.toml"
    assert recipe_path("./birch-time") == Path("birch-time")
    assert results_folder(RECIPES) == RECIPES.parents[1] / "results"
    assert results_folder(Path("birch-time")) == Path("birch-time/results")
    for wrong in ("birch", "../recipes/birch-time"):
        with pytest.raises(InputError, match="no such recipe: expected a TOML file"):
            recipe_path(wrong)
    done = CliRunner().invoke(group, ["study", "run", "birch", "--output", "out"])
    assert "no such recipe" in str(done.exception)


def test_a_folder_of_recipes_is_run(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing or stale, and nothing else; a failure does not stop the others."""
    folder = root.parent
    for path in sorted(folder.glob("*.toml"))[2:]:
        path.unlink()
    first, second = sorted(path.stem for path in folder.glob("*.toml"))

    def run(*options: str) -> Result:
        command = ["study", "run", str(folder), "--data", str(root), *options]
        return CliRunner().invoke(group, command)

    results = folder / "results"
    done = run("--cache", str(folder / "cache"))
    assert done.exit_code == 0, done.exception
    assert done.stdout.count(" done") == 2
    assert "2 studies to run" in done.stderr
    assert run().stdout == ""
    pages = {name: (results / name / "README.md").read_text() for name in (first, second)}

    recipe = folder / f"{first}.toml"
    recipe.write_text(
        re.sub("^title = .*", 'title = "Other words"', recipe.read_text(), flags=re.M)
    )
    assert run().stdout == ""  # words do not make results stale
    refreshed = CliRunner().invoke(group, ["study", "refresh", str(folder), "--data", str(root)])
    assert refreshed.stdout.split() == [str(results / first / "README.md")]
    assert (results / first / "README.md").read_text().startswith("# Other words\n")

    documents = root / "tiny" / "docs.jsonl"
    documents.write_text(documents.read_text() + "\n")
    CliRunner().invoke(group, ["study", "refresh", str(folder), "--data", str(root)])
    assert "**Stale.**" in (results / second / "README.md").read_text()
    with monkeypatch.context() as patched:
        patched.setattr("birchbark_studies.run.run_study", lambda *_, **__: {}["no such row"])
        fault = run()
    assert fault.stdout.count("failed: KeyError: 'no such row'") == 2
    assert fault.stderr.count("Traceback") == 2
    documents.write_text("no JSON\n")
    failed = run()
    assert failed.exit_code == 1
    assert "2 studies failed" in str(failed.exception)
    assert failed.stdout.count("failed: ") == 2
    assert pages.keys() == {path.name for path in results.iterdir()}
    (results / first / "results.json").write_text("{}")
    refreshed = CliRunner().invoke(group, ["study", "refresh", str(folder), "--data", str(root)])
    assert "no page could be written for 1 study" in str(refreshed.exception)
    (results / first / "manifest.json").write_text("{")
    assert f"to run it again, delete {results / first}" in run().stderr
    for option in (("--output", "x"), ("--replace",), ("--larger",)):
        assert f"{option[0]} cannot be used with a folder" in str(run(*option).exception)


def test_the_data_root_is_found_in_order(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--data comes first, then BIRCHBARK_DATA, then ../shared/data."""
    (root.parent / "shared/data").mkdir(parents=True)
    monkeypatch.chdir(root)
    monkeypatch.delenv("BIRCHBARK_DATA", raising=False)
    assert find_data_root() == Path("../shared/data")
    monkeypatch.setenv("BIRCHBARK_DATA", "/elsewhere")
    assert find_data_root() == Path("/elsewhere")
    assert find_data_root(Path("here")) == Path("here")


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.toml")), ids=lambda p: p.stem)
def test_committed_results_belong_to_their_recipes(path: Path) -> None:
    """Every recipe can be read; its results were made with its settings; their page has its text.

    The text includes findings. Results that say that they are stale may be of an earlier recipe,
    with other settings.
    """
    recipe = read_recipe(path)
    folder = results_folder(RECIPES) / recipe.name
    if not folder.exists():
        pytest.skip(f"no results are committed for {path.name}")
    files = {path.name for path in folder.iterdir()} - {"report.html", "runs"}
    assert files - {"figures"} == {"manifest.json", "results.json", "README.md"}
    assert recipe.findings.strip()
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["recipe"]["name"] == path.name
    is_stale = "**Stale.**" in (folder / "README.md").read_text()
    assert is_stale or manifest["recipe"]["settings"] == recipe.settings
    results = json.loads((folder / "results.json").read_text())
    for key in ("kind", "depth", "seed"):
        assert results[key] == getattr(recipe, key)
    assert results["study"] == recipe.name
    assert is_stale or {"idf_documents": "field", **results["bm25"]} == asdict(recipe.bm25)
    layout = recipe.experiment.layout(recipe.measures)
    measured = {t["name"]: [c["name"] for c in t["columns"]] for t in results["tables"]}
    assert measured == {  # columns, and the table of all queries, may have been added since
        name: [column.name for column in columns if column.name in measured[name]]
        for name, columns in layout.items()
        if name in measured or name != "together"
    }
    reasons = list_recipe(recipe, find_data_root()).reasons
    stored = read_results(folder)
    page = render_markdown(recipe, stored, reasons)
    assert (folder / "README.md").read_text() == page, "run: make results"
    drawn = {path.name for path in folder.glob("figures/*")}
    assert drawn == {f"{plot.name}.svg" for plot in stored.plots}


def test_a_page_names_the_gpu_and_folds_long_tables() -> None:
    """What was computed on a GPU says so; hundreds of weights do not stand in the way."""
    recipe = read_recipe(RECIPES / "cord-losses.toml")
    stored = read_results(results_folder(RECIPES) / recipe.name)
    page = render_markdown(recipe, stored)
    assert stored.device == "cpu" and "--device" not in page
    on_gpu = render_markdown(recipe, replace(stored, device="cuda Fir 7"))
    assert f"`birchbark study run {recipe.path.name} --device cuda` on Fir 7 (int8" in on_gpu
    rows = {t.name: sum(len(group.rows) for group in t.groups) for t in stored.tables}
    assert rows["weights"] > 100 and page.count("<details>") == 1
    folded = page[page.index("<details>") : page.index("</details>")]
    assert f"<summary>{rows['weights']} rows</summary>" in folded
    assert folded.count("\n| ") == rows["weights"] + 2  # with the heading


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.toml")), ids=lambda p: p.stem)
def test_larger_settings_can_be_read(path: Path) -> None:
    """They name existing settings, and contradict no others."""
    if "larger" in tomllib.loads(path.read_text()):
        assert read_recipe(path, larger=True).larger


def test_results_with_larger_settings_are_compared_with_these(root: Path) -> None:
    """They are current, and a run of the folder does not replace them with smaller ones."""
    path = root.parent / "analyzers.toml"
    path.write_text(path.read_text() + '\n[larger]\n"analyzers.names" = ["plain", "porter"]\n')
    results = root.parent / "results" / "analyzers"
    run_study(read_recipe(path, larger=True), root, results)
    recipe = read_as_measured(path)
    assert recipe.larger
    assert list_recipe(recipe, root).state is State.CURRENT
    (results / "manifest.json").unlink()
    assert not read_as_measured(path).larger


def test_files_that_are_replaced_meanwhile_make_results_stale(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are recorded as they were before they were read."""
    recipe = read_recipe(root.parent / "analyzers.toml")
    qrels = root / recipe.collections[0].qrels
    real = type(recipe.experiment).run

    def replaced(self: Any, *arguments: Any) -> Any:
        outcome = real(self, *arguments)
        qrels.write_text(qrels.read_text() + "\n")
        return outcome

    monkeypatch.setattr(type(recipe.experiment), "run", replaced)
    run_study(recipe, root, root / "out")
    name = recipe.collections[0].qrels
    assert stale_because(recipe, root / "out", root) == [f"{name} has changed"]


def test_other_models_precede_the_variants_of_a_training() -> None:
    """Models that need no training come first; the trained variants follow."""
    recipe = read_recipe(RECIPES / "passages-distil.toml")
    assert isinstance(recipe.experiment, EvidenceExperiment)
    models = recipe.experiment.settings.compared.by_name
    assert next(iter(models.items())) == ("teacher", "birchbark-minilm-l6")
    assert all(isinstance(chain, tuple) for chain in list(models.values())[1:])
    assert recipe.experiment.models == ("birchbark-minilm-l6",)


def test_what_makes_results_stale(root: Path) -> None:
    """A change of the recipe, of a model or of the data, as far as they are here."""
    recipe = read_recipe(root.parent / "evidence.toml")
    run_study(recipe, root, root / "out")
    assert stale_because(recipe, root / "out", root) == []
    recipe.path.write_text("revision = 2\n" + recipe.path.read_text())
    assert stale_because(read_recipe(recipe.path), root / "out", root) == ["the recipe has changed"]
    documents = root / "tiny" / "docs.jsonl"
    documents.write_text(documents.read_text() + "\n")
    assert stale_because(recipe, root / "out", root) == ["tiny/docs.jsonl has changed"]
    assert stale_because(recipe, root / "out", None) == []
    shutil.rmtree(root.parent / "model")
    write_bert(root.parent / "model", seed=9)
    assert stale_because(recipe, root / "out", None) == [f"{root.parent / 'model'} has changed"]
    manifest = json.loads((root / "out" / "manifest.json").read_text())
    manifest["required"] = {}
    manifest["recipe"]["settings"] = "0"
    (root / "out" / "manifest.json").write_text(json.dumps(manifest))
    assert stale_because(recipe, root / "out", None)[0] == "the recipe has changed"
    (root / "out" / "manifest.json").write_text("[]")
    with pytest.raises(ArtifactError, match="damaged study"):
        stale_because(recipe, root / "out", None)


def test_other_training_settings_make_results_stale(tmp_path: Path) -> None:
    """Those of all training runs of a model, of which each starts from the one before."""
    path = RECIPES / "birch-time.toml"
    recipe, results = read_recipe(path), tmp_path / "birch-time"
    shutil.copytree(results_folder(RECIPES) / "birch-time", results)
    first, last = recipe.experiment.trainings["QA → MB, seed 1"]
    assert first["base"] == "all-MiniLM-L6-v2"
    assert (last["base"], last["seed"]) == ("all-MiniLM-L6-v2 → QA", 1)
    assert first["data"][0]["name"] == "QA"
    manifest = json.loads((results / "manifest.json").read_text())
    manifest["trainings"] = json.loads(json.dumps(recipe.experiment.trainings))  # as now
    (results / "manifest.json").write_text(json.dumps(manifest))
    before = stale_because(recipe, results, None)
    manifest["trainings"]["QA → MB, seed 1"][0]["schedule"]["epochs"] = 2
    (results / "manifest.json").write_text(json.dumps(manifest))
    reason = "the training of QA → MB, seed 1 has changed"
    assert [new for new in stale_because(recipe, results, None) if new not in before] == [reason]
    manifest["trainings"] = {}
    (results / "manifest.json").write_text(json.dumps(manifest))
    several = f"the training of {len(recipe.experiment.trainings)} models has changed"
    assert [new for new in stale_because(recipe, results, None) if new not in before] == [several]


def test_a_published_figure_that_was_corrected_is_written_by_refresh(root: Path) -> None:
    """Results with another one are stale; nothing is measured again, and only that figure changes.

    Recipes of a folder are not run for it.
    """
    folder = root.parent
    for path in folder.glob("*.toml"):
        if path.stem != "analyzers":
            path.unlink()
    recipe, results = folder / "analyzers.toml", folder / "results/analyzers"
    recipe.write_text(recipe.read_text().replace('"oracle", 1', '"oracle", 0.1234567'))
    run_study(read_recipe(recipe), root, results)
    assert stale_because(read_recipe(recipe), results, root) == []
    before = (results / "results.json").read_text()
    recipe.write_text(recipe.read_text().replace(".123", ".321"))
    assert stale_because(read_recipe(recipe), results, root) == [PUBLISHED]
    arguments = [str(folder), "--data", str(root)]
    done = CliRunner().invoke(group, ["study", "run", *arguments])
    assert done.stdout == ""
    assert f"analyzers: {PUBLISHED}" in done.stderr
    CliRunner().invoke(group, ["study", "refresh", *arguments])
    assert stale_because(read_recipe(recipe), results, root) == []
    after = (results / "results.json").read_text()
    assert after == before.replace(".123", ".321") != before
    assert "| plain | .321 |" in (results / "README.md").read_text()


def test_a_model_that_is_not_installed_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results of an experiment with the model of a Python package can be listed without it."""
    monkeypatch.setattr("birchbark.checkpoint.locate.find_spec", lambda _: None)
    listings = [list_recipe(read_recipe(path), None) for path in RECIPES.glob("*.toml")]
    lacking = [x for x in listings if defaults.EMBEDDING_BASE in x.lacking]
    assert {State.UNCHECKED} <= {x.state for x in lacking}


def test_kept_indexes(root: Path, tmp_path: Path) -> None:
    """An index is built once for equal files; a damaged or missing one is built again."""
    recipe, cache = read_recipe(root.parent / "fields.toml"), tmp_path / "cache"
    built: list[str] = []

    def run() -> int:
        built.clear()
        out = root / "out"
        run_study(recipe, root, out, cache=cache, progress=built.append, replace_output=True)
        return sum(": indexing" in line for line in built)

    count = run()
    assert count > 0
    assert run() == 0
    (first, *_) = sorted(path for path in (cache / "indexes").iterdir() if path.is_dir())
    (first / "manifest.json").write_text("{")
    assert run() == 1
    shutil.rmtree(first)
    assert run() == 1
    documents = root / "tiny" / "docs.jsonl"
    documents.write_text(documents.read_text() + "\n")
    assert run() == count
