"""Does a recipe become what it asks for, whole and the same each time, or a clear error?"""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

from birchbark.artifact import fingerprint
from birchbark.checkpoint.named import load_vocabulary
from birchbark.cli import group
from birchbark.collection.documents import read_collection
from birchbark.collection.intake import Intake
from birchbark.collection.qrels import read_qrels
from birchbark.collection.queries import read_queries
from birchbark.collection.runs import read_run
from birchbark.errors import CheckpointError, InputError, MissingPackageError
from birchbark.evaluate.measures import measure
from birchbark.index.build import Schema, build_index
from birchbark.index.describe import describe
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.first_stage import FirstStage, rank_queries
from birchbark.show.table import Table
from birchbark.study import run as run_room
from birchbark.study.kinds.evidence import EvidenceStudy
from birchbark.study.outcome import Outcome
from birchbark.study.recipe_file import read_recipe
from birchbark.study.run import run_file_name, run_study
from conftest import DOCUMENTS, write_bert

STUDIES = Path(__file__).parents[2] / "studies"
KINDS = ("analyzers", "evidence", "fields")

QUERIES = "1\tbirch river\n2\tiron engine\n3\tbees dance\n4\tstone bridge\n5\tnot judged\n"
QRELS = "1 0 canoe 2\n1 0 forest 1\n2 0 engine 1\n2 0 bees 0\n3 0 bees 1\n4 0 bridge 1\n"
COLLECTION = """
[[collections]]
name = "Tiny"
documents = "tiny/docs.jsonl"
queries = "tiny/q.tsv"
qrels = "tiny/qrels.txt"
"""
ANALYZERS = f'''
kind = "analyzers"
title = "Analyses <of> text"
findings = """
First, stems & words.
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
    """A data root with the collection `tiny`, and beside it two recipes."""
    folder = tmp_path / "data" / "tiny"
    folder.mkdir(parents=True)
    lines = [json.dumps({"id": d.doc_id, **d.fields}) for d in DOCUMENTS]
    (folder / "docs.jsonl").write_text("\n".join(lines))
    (folder / "q.tsv").write_text(QUERIES)
    (folder / "qrels.txt").write_text(QRELS)
    model = write_bert(tmp_path / "model")
    (tmp_path / "analyzers.toml").write_text(ANALYZERS.replace("MODEL", str(model)))
    (tmp_path / "evidence.toml").write_text(EVIDENCE.replace("MODEL", str(model)))
    (tmp_path / "fields.toml").write_text(FIELDS)
    return tmp_path / "data"


def study(root: Path, kind: str, to: str = "out") -> tuple[Outcome, Path]:
    """The tiny recipe of a kind, run; and its folder."""
    output = root.parent / to
    return run_study(read_recipe(root.parent / f"{kind}.toml"), root, output), output


def table(outcome: Outcome, name: str) -> Table:
    return next(t for t in outcome.tables if t.name == name)


@pytest.mark.parametrize("kind", KINDS)
def test_a_study_leaves_figures_runs_report_and_manifest(root: Path, kind: str) -> None:
    """All of the promised files, and nothing else."""
    outcome, output = study(root, kind)
    found = {str(p.relative_to(output)) for p in output.rglob("*") if p.is_file()}
    runs = {f"runs/{run_file_name(name)}.run" for name in outcome.runs}
    assert found == {"results.json", "report.html", "README.md", "manifest.json", *runs}
    manifest = json.loads((output / "manifest.json").read_text())
    assert manifest["inputs"]["tiny/q.tsv"] == fingerprint(root / "tiny/q.tsv")
    assert manifest["recipe"]["sha256"] == fingerprint(root.parent / f"{kind}.toml")
    assert str(root.parent) not in (output / "results.json").read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_recipe_gives_the_same_bytes(root: Path, kind: str) -> None:
    """Twice: figures, runs and report; only the manifest tells the time."""
    (_, one), (_, other) = study(root, kind, "one"), study(root, kind, "other")
    for path in (p for p in one.rglob("*") if p.is_file() and p.name != "manifest.json"):
        assert path.read_bytes() == (other / path.relative_to(one)).read_bytes(), path


@pytest.mark.parametrize("kind", KINDS)
def test_figures_are_those_of_the_runs(root: Path, kind: str) -> None:
    """Each row's means are what `measure` says of the run file of that row."""
    outcome, output = study(root, kind)
    main = table(outcome, "measures" if kind == "analyzers" else kind)
    for row in main.groups[0].rows:
        run = read_run(output / "runs" / f"{run_file_name(f'Tiny.{row.name}')}.run")
        found = measure(read_qrels(root / "tiny/qrels.txt"), run, [c.name for c in main.columns])
        assert [cell.value for cell in row.cells] == list(found.means.values())


def test_runs_are_those_of_the_first_stage(root: Path) -> None:
    """Added fields, as `rank_queries` ranks with weights of 1, at the recipe's k1 and b."""
    outcome, _ = study(root, "fields")
    names = {"title": ["title"], "abstract": ["text"]}
    documents = read_collection(str(root / "tiny/docs.jsonl"), Intake())
    index = build_index(documents, root.parent / "index", Schema(fields=names))
    queries = read_queries(root / "tiny/q.tsv")[:4]
    stage = FirstStage(BM25(1.2, 0.75), dict.fromkeys(names, 1.0))
    expected = rank_queries(index, queries, stage).rankings
    assert outcome.runs["Tiny.title + abstract"].rankings == expected


def test_words_are_counted_as_the_index_counts_them(root: Path) -> None:
    """Unknown words and distinct terms, against `describe`."""
    outcome, _ = study(root, "analyzers")
    schema = Schema("wordpiece", load_vocabulary(root.parent / "model"))
    documents = read_collection(str(root / "tiny/docs.jsonl"), Intake())
    found = describe(build_index(documents, root.parent / "index", schema))
    counts = {c.name: v for c, v in zip(*_row(outcome, "unknown", "wordpiece"), strict=True)}
    assert counts["unknown"] == found["contents: unknown words"]
    assert counts["distinct unknown"] == found["contents: distinct unknown words"]
    assert (counts["split"], counts["distinct split"]) == (3, 2)  # bee ##s twice, tree ##s
    sizes = {c.name: v for c, v in zip(*_row(outcome, "sizes", "wordpiece"), strict=True)}
    assert sizes["distinct terms"] == found["contents: distinct terms"]
    assert sizes["queries"] == 4


def _row(outcome: Outcome, name: str, row: str) -> tuple[object, list[object]]:
    found = table(outcome, name)
    cells = next(r.cells for r in found.groups[0].rows if r.name == row)
    return found.columns, [cell.value for cell in cells]


def test_published_figures_are_marked_everywhere(root: Path) -> None:
    """Report, Markdown, JSON and terminal say that they are others'."""
    arguments = ["study", "run", str(root.parent / "analyzers.toml"), "--data", str(root)]
    done = CliRunner().invoke(group, [*arguments, "--output", str(root.parent / "out")])
    assert done.exit_code == 0, done.output
    assert "PUBLISHED by others" in done.stdout
    report = (root.parent / "out/report.html").read_text()
    body = report[report.index('<tbody class="published">') :]
    assert re.search(r"published</b>elsewhere &amp; long ago.*?\.123", body, re.S)
    kept = (root.parent / "out/README.md").read_text()
    assert "*published:* elsewhere & long ago" in kept
    assert "\n\nFirst, stems & words.\n\nThen <i>pieces</i>.\n\n" in kept
    report = (root.parent / "out/report.html").read_text()
    assert "<p>First, stems &amp; words.</p>\n<p>Then &lt;i&gt;pieces&lt;/i&gt;.</p>" in report
    tables = json.loads((root.parent / "out/results.json").read_text())["tables"]
    assert [g["published"] for g in tables[-1]["groups"]] == [False, True]


class _Page(HTMLParser):
    """Collects ids, and whatever would be fetched."""

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
def test_the_report_needs_nothing_but_itself(root: Path, kind: str) -> None:
    """Nothing is fetched, ids are unique, texts are escaped, plots have the page's colours."""
    page = (study(root, kind)[1] / "report.html").read_text()
    found = _Page()
    found.feed(page)
    assert not found.fetched
    assert "@import" not in page
    assert len(set(found.ids)) == len(found.ids) > 0
    assert "<of>" not in page
    assert page.count("<svg") >= 1
    assert not re.search(r"(fill|stroke): #(?!fff)", page[page.index("<svg") :])


def test_nothing_is_left_where_a_study_fails(root: Path) -> None:
    """A bad document, met while indexing: no output, no scratch."""
    (root / "tiny/docs.jsonl").write_text('{"id": "1", "title": "a", "text": "b"}\nnot json\n')
    with pytest.raises(InputError, match=r"docs\.jsonl:2"):
        study(root, "fields")
    assert not [p for p in root.parent.iterdir() if p.name == "out" or p.name.startswith(".tmp")]


def test_fields_that_no_document_has_are_told(root: Path) -> None:
    """A misspelled field would look like a bad one."""
    path = root.parent / "fields.toml"
    path.write_text(path.read_text().replace('["text"]', '["txet"]'))
    with pytest.raises(InputError, match=r"fields\.names\.abstract: no document has .* txet"):
        study(root, "fields")


def test_judged_queries_without_text_are_told(root: Path) -> None:
    """They count 0 in every mean, so whoever reads it should know."""
    (root / "tiny/q.tsv").write_text(QUERIES.replace("2\tiron engine\n", ""))
    said: list[str] = []
    recipe = read_recipe(root.parent / "fields.toml")
    run_study(recipe, root, root.parent / "out", tell=said.append)
    assert "note: Tiny: 1 judged queries have no text; each counts 0" in said


def test_only_a_study_is_replaced(root: Path) -> None:
    """Another folder is not, not even when asked to; a study is."""
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
    ("seed = 3", "seed = true", r"seed: wrong type: expected a whole number, found True"),
    ("seed = 3", "seed = -1", r"seed: out of range: expected 0 or more"),
    ("seed = 3", "seed = ", r"fields\.toml: not a TOML file"),
    ('kind = "fields"', 'kind = "feelds"', r"kind: unknown kind 'feelds' \(one of analyzers, b"),
    ("k1 = 1.2", 'k1 = "1.2"', r"bm25\.k1: wrong type: expected a number, found '1\.2'"),
    ("b = 0.75", "b = 2", r"bm25: b is out of range"),
    ("b = 0.75", "c = 2", r"bm25\.c: unknown key"),
    ('"nDCG@10", "AP"', '"nDCGG"', r"measures: unknown measure 'nDCGG'"),
    ('"nDCG@10", "AP"', '"NumRet"', r"measures: measure 'NumRet' is a count"),
    ('"nDCG@10", "AP"', '"AP", 3', r"measures: wrong type: expected strings, found 3"),
    ('"nDCG@10", "AP"', "", r"measures: is empty"),
    ('tune = "AP"', 'tune = "Bpref"', r"fields\.tune: measure 'Bpref' cannot be tuned for"),
    ("step = 0.25", "step = 0.3", r"fields\.step: not a step"),
    ("folds = 2", "folds = 1", r"fields\.folds: out of range"),
    ("folds = 2", 'match = ["nor"]', r"fields\.match: unknown match 'nor'"),
    ("folds = 2", 'analyzer = "klingon"', r"fields\.analyzer: unknown analyzer 'klingon'.*english"),
    ("folds = 2", 'baseline = "body"', r"fields\.baseline: unknown baseline 'body'.*contents"),
    (', abstract = ["text"]', "", r"fields\.names: wrong fields: expected two or more"),
    ('["title"]', '"title"', r"fields\.names\.title: wrong type: expected a list"),
    ('qrels = "tiny/qrels.txt"', "", r"collections\[1\]\.qrels: key is missing"),
    ("[[collections]]", "[collections]", r"collections: wrong type: expected a list"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), FAULTS)
def test_bad_recipes_are_told_by_file_and_key(root: Path, old: str, new: str, message: str) -> None:
    """Before any work."""
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
        ('["oracle", 1]', '["oracle"]', r"published\[1\]\.rows: a row is of the wrong length"),
        ('["oracle", 1]', "3", r"published\[1\]\.rows: wrong type: expected lists"),
    ],
)
def test_bad_analyses_and_published_figures_are_told(
    root: Path, old: str, new: str, message: str
) -> None:
    """Published figures must fit a table that the study makes."""
    path = root.parent / "analyzers.toml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InputError, match=message):
        read_recipe(path)


def test_missing_things_are_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recipe, data root, data file, model, package: each says what to do."""
    with pytest.raises(InputError, match=r"none\.toml: no such file"):
        read_recipe(root / "none.toml")
    recipe = read_recipe(root.parent / "analyzers.toml")
    output = root.parent / "out"
    with pytest.raises(InputError, match=r"no data root is known.*--data DIR or BIRCHBARK_DATA"):
        run_study(recipe, None, output)
    (root / "tiny/q.tsv").unlink()
    with pytest.raises(InputError, match=r"data is missing: expected tiny/q\.tsv below"):
        run_study(recipe, root, output)
    (root / "tiny/q.tsv").write_text("1\tx\n")
    (root.parent / "model").rename(root.parent / "gone")
    with pytest.raises(CheckpointError, match="no such model"):
        run_study(recipe, root, output)
    monkeypatch.setattr(run_room, "find_spec", lambda name: None if name == "jinja2" else name)
    with pytest.raises(
        MissingPackageError, match=r"need jinja2 \(pip install 'birchbark\[study\]'"
    ):
        run_study(recipe, root, output)
    assert not output.exists()


def test_list_tells_what_is_there(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ready recipes, missing data, and recipes that cannot be read."""
    (root.parent / "bad.toml").write_text("kind = 3")
    (root / "tiny/q.tsv").unlink()
    arguments = ["study", "list", str(root.parent)]
    shown = CliRunner().invoke(group, [*arguments, "--data", str(root)]).stdout
    assert "bad.toml  cannot be read" in shown
    assert re.search(r"fields\.toml  fields  1 missing\n.*\n  here     tiny/docs", shown)
    assert "missing  tiny/q.tsv" in shown
    monkeypatch.chdir(root.parent)
    monkeypatch.delenv("BIRCHBARK_DATA", raising=False)
    assert "no data root" in CliRunner().invoke(group, arguments).stderr
    nothing = CliRunner().invoke(group, ["study", "list"])
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert "no folder studies here" in nothing.stderr


def test_the_data_root_is_found_in_order(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--data, then BIRCHBARK_DATA, then ../shared/data."""
    from birchbark.collection.root import find_root

    (root.parent / "shared/data").mkdir(parents=True)
    monkeypatch.chdir(root)
    monkeypatch.delenv("BIRCHBARK_DATA", raising=False)
    assert find_root() == Path("../shared/data")
    monkeypatch.setenv("BIRCHBARK_DATA", "/elsewhere")
    assert find_root() == Path("/elsewhere")
    assert find_root(Path("here")) == Path("here")


@pytest.mark.parametrize("path", sorted(STUDIES.glob("*.toml")), ids=lambda p: p.stem)
def test_the_recipes_of_the_house_can_be_read(path: Path) -> None:
    """And their results, where they are kept, are of the recipe as it is today."""
    recipe = read_recipe(path)
    results = STUDIES / "results" / recipe.name
    if not results.exists():
        pytest.skip(f"no results are kept of {path.name}")
    manifest = json.loads((results / "manifest.json").read_text())
    assert manifest["recipe"]["sha256"] == fingerprint(path)
    kept = json.loads((results / "results.json").read_text())
    assert [t["name"] for t in kept["tables"]] == list(recipe.experiment.layout(recipe.measures))
    assert {p.name for p in results.iterdir()} == {"manifest.json", "results.json", "README.md"}


def test_other_models_stand_beside_the_variants_of_a_training() -> None:
    """Measured as they are; what is trained comes after them."""
    recipe = read_recipe(Path(__file__).parents[2] / "studies" / "passages-distil.toml")
    assert isinstance(recipe.experiment, EvidenceStudy)
    named = recipe.experiment.choices.compared.named
    assert next(iter(named.items())) == ("teacher", "birchbark-minilm-l6")
    assert all(isinstance(how, tuple) for how in list(named.values())[1:])
    assert recipe.experiment.models == ("birchbark-minilm-l6",)
