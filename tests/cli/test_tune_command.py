"""Does `birchbark tune` choose weights on the other folds, for evidence and for several runs?"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from birchbark.cli import group
from birchbark.collection.runs import read_run

QUERIES = [str(n) for n in range(1, 9)]
DOCUMENTS = [f"d{n}" for n in range(12)]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Judgments, two runs, and segment scores that rank better than either run alone."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(4)
    qrels, evidence, runs = [], [], {"a.run": [], "b.run": []}
    for query_id in QUERIES:
        relevant = set(random.choice(DOCUMENTS[:10], 3, replace=False).tolist())
        qrels += [f"{query_id} 0 {d} 1\n" for d in sorted(relevant)]
        for lines in runs.values():
            scores = {d: (d in relevant) + 2 * random.random() for d in DOCUMENTS}
            ordered = sorted(DOCUMENTS, key=lambda d: -scores[d])
            lines += [
                f"{query_id} Q0 {d} {rank} {scores[d]:.4f} x\n" for rank, d in enumerate(ordered, 1)
            ]
        for d in DOCUMENTS[:10]:  # two documents have no scores
            high = 0.6 * (d in relevant) + 0.4 * random.random()
            line = {"query_id": query_id, "doc_id": d, "scores": [0.1 * high, high]}
            evidence.append(json.dumps(line) + "\n")
    (tmp_path / "qrels.txt").write_text("".join(qrels))
    (tmp_path / "e.jsonl").write_text("".join(evidence))
    for name, lines in runs.items():
        (tmp_path / name).write_text("".join(lines))
    (tmp_path / "folds.json").write_text(json.dumps([QUERIES[:3], QUERIES[3:]]))
    return tmp_path


def tune(*words: str, status: int = 0) -> Result:
    """Run the command, and check its exit status."""
    result = CliRunner().invoke(group, ["tune", *words, "--output", "mixed.run"])
    if status == 0:
        assert result.exception is None, result.exception
    else:
        assert result.exception is not None
    return result


def ap(run: str) -> float:
    """Return the mean average precision of a run."""
    result = CliRunner().invoke(group, ["evaluate", "qrels.txt", run, "-m", "AP", "--json"])
    return float(json.loads(result.stdout)[0]["means"]["AP"])


def test_evidence_improves_a_run(here: Path) -> None:
    """Documents without scores keep the run's order below; the table has each fold's weights."""
    result = tune("qrels.txt", "a.run", "--evidence", "e.jsonl", "--folds", "folds.json")
    assert "no document has more than 2 scores; --best is lowered" in result.stderr
    assert "80 documents of 8 queries have scores" in result.stderr
    assert ap("mixed.run") > ap("a.run")
    mixed, first = read_run(here / "mixed.run"), read_run(here / "a.run")
    for query_id, ranking in mixed.rankings.items():
        rest = [d for d in first.rankings[query_id].doc_ids if d in DOCUMENTS[10:]]
        assert list(ranking.doc_ids[10:]) == rest
    rows = [line.split() for line in result.stdout.splitlines() if line[:1].isdigit()]
    assert [row[:2] for row in rows] == [["1", "3"], ["2", "5"]]
    assert all(float(row[2]) + float(row[3]) == pytest.approx(1) for row in rows)  # a and 1 − a


def test_json(here: Path) -> None:
    """The folds with their weights, and the runs as `evaluate` gives them."""
    output = tune("qrels.txt", "a.run", "b.run", "--folds", "folds.json", "--json").stdout
    tuned = json.loads(output)
    assert [fold["queries"] for fold in tuned["folds"]] == [QUERIES[:3], QUERIES[3:]]
    assert all(sum(fold["weights"].values()) == pytest.approx(1) for fold in tuned["folds"])
    assert [run["run"] for run in tuned["runs"]] == ["a.run", "b.run", "mixed.run"]
    assert tuned["runs"][2]["means"][tuned["measure"]] == pytest.approx(ap("mixed.run"))


@pytest.mark.parametrize("depth", ["1", "3", "12"])
@pytest.mark.parametrize("words", [["a.run", "b.run"], ["a.run", "--evidence", "e.jsonl"]])
def test_the_run_is_what_the_weights_were_chosen_for(
    here: Path, words: list[str], depth: str
) -> None:
    """The means over the queries of each fold are those of the run that is written."""
    options = ("--folds", "folds.json", "--depth", depth, "--json")
    tuned = json.loads(tune("qrels.txt", *words, *options).stdout)
    folds = tuned["folds"]
    total = sum(len(fold["queries"]) * fold["this_fold"] for fold in folds)
    assert total / len(QUERIES) == pytest.approx(ap("mixed.run"))


def test_the_best_segment_alone(here: Path) -> None:
    """With one segment and weight 1 for it, the order is that of the best scores."""
    tune("qrels.txt", "a.run", "--evidence", "e.jsonl", "--best", "1", "--step", "1")
    lines = [json.loads(line) for line in (here / "e.jsonl").read_text().splitlines()]
    mixed = read_run(here / "mixed.run").rankings["1"]
    best = {line["doc_id"]: max(line["scores"]) for line in lines if line["query_id"] == "1"}
    assert list(mixed.doc_ids[:10]) == sorted(best, key=lambda d: -best[d])


def test_what_is_not_used_is_told(here: Path) -> None:
    """Scores of unknown documents, and queries without judgments; empty lists are no scores."""
    with (here / "e.jsonl").open("a") as lines:
        lines.write('{"query_id": "1", "doc_id": "zz", "scores": [1]}\n')
        lines.write('{"query_id": "1", "doc_id": "d11", "scores": []}\n')
    with (here / "a.run").open("a") as lines:
        lines.write("99 Q0 d1 1 1.0 x\n")
    stderr = tune("qrels.txt", "a.run", "--evidence", "e.jsonl", "--best", "2").stderr
    assert "80 documents of 8 queries have scores" in stderr
    assert "note: ignored the scores of 1 document not among the first --depth of the run" in stderr
    assert "note: 1 query without judgments: ranked with the weights of the first fold" in stderr


def test_two_runs_are_better_than_one(here: Path) -> None:
    """Equal runs get any weights; the mixture of both is better than each of them."""
    tune("qrels.txt", "a.run", "b.run", "--folds", "folds.json", "--scale", "minmax")
    assert ap("mixed.run") > max(ap("a.run"), ap("b.run"))
    again = (here / "mixed.run").read_bytes()
    few = tune("qrels.txt", "a.run", "b.run", "--folds", "folds.json", "--depth", "4")
    kept = sum(len(ranking) for ranking in read_run(here / "mixed.run").rankings.values())
    assert kept == 8 * 4
    assert f"note: {8 * len(DOCUMENTS) - kept} documents below --depth: left out" in few.stderr
    tune("qrels.txt", "a.run", "b.run", "--folds", "folds.json", "--scale", "minmax")
    assert (here / "mixed.run").read_bytes() == again


def test_scores_below_the_depth_do_not_matter(here: Path) -> None:
    """A run whose scores fall below 0 can be mixed down to a depth where they do not."""
    lines = [f"{q} Q0 d{n} {n} {2 - n} x" for q in ("1", "2", "3", "4") for n in (1, 2, 3)]
    (here / "falling.run").write_text("\n".join(lines))
    arguments = ("qrels.txt", "a.run", "falling.run", "--folds", "folds.json")
    tune(*arguments, "--depth", "2")
    result = tune(*arguments, "--depth", "3", status=1)
    assert "a score is below 0" in str(result.exception)


def test_one_run_may_have_scores_below_0(here: Path) -> None:
    """All of its documents are ranked, so that nothing is above those below 0 by mistake."""
    lines = [line.split() for line in (here / "a.run").read_text().splitlines()]
    lower = [" ".join([*line[:4], f"{float(line[4]) - 1:.4f}", "x"]) for line in lines]
    (here / "lower.run").write_text("\n".join(lower))
    arguments = ("--evidence", "e.jsonl", "--folds", "folds.json", "--scale", "raw")
    tune("qrels.txt", "a.run", *arguments)
    expected = read_run(here / "mixed.run")
    tune("qrels.txt", "lower.run", *arguments)
    assert "-0." in (here / "lower.run").read_text()
    assert len(read_run(here / "mixed.run").rankings) == len(expected.rankings)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a.run"], "give one run and --evidence, or several runs"),
        (["a.run", "b.run", "--evidence", "e.jsonl"], "give one run and --evidence, or several"),
        (["a.run", "b.run", "--measure", "ERR"], "cannot tune for measure 'ERR'"),
        (["a.run", "b.run", "--step", "0.3"], "invalid step"),
        (["a.run", "--evidence", "e.jsonl", "--best", "2", "--step", "0.002"], "too many combinat"),
        (["a.run", "b.run", "--folds", "9"], "wrong number of folds"),
        (["a.run", "--evidence", "other.jsonl"], "no document of the run has scores"),
        (["a.run", "--evidence", "missing.jsonl"], "no such file"),
        (["a.run", "b.run", "--best", "2"], "--best has no effect without --evidence"),
        (["a.run", "b.run", "--folds", "1"], "wrong number of folds"),
        (["a.run", "b.run", "--folds", "none.json"], "none.json: cannot be read"),
        (["a.run", "negative.run"], "a score is below 0"),
    ],
)
def test_errors(here: Path, words: list[str], message: str) -> None:
    """What is wrong is said, and nothing is written."""
    (here / "negative.run").write_text("1 Q0 d1 1 -0.5 x\n")
    (here / "other.jsonl").write_text('{"query_id": "1", "doc_id": "zz", "scores": [1]}\n')
    result = tune("qrels.txt", *words, status=1)
    assert message in str(result.exception)
    assert not (here / "mixed.run").exists()


def test_runs_of_one_name_are_told_apart(here: Path) -> None:
    """Their folders tell them apart, so that each has its weight."""
    for folder, run in (("1", "a.run"), ("2", "b.run")):
        (here / folder).mkdir()
        (here / folder / "x.run").write_text((here / run).read_text())
    found = json.loads(tune("qrels.txt", "1/x.run", "2/x.run", "--json").stdout)
    assert all(list(fold["weights"]) == ["1/x.run", "2/x.run"] for fold in found["folds"])
