"""Fit the probability that the best hit answers a query.

    python training/answers/fit.py ../shared/data --work answers-work

Half of a collection's questions keep their answers; the documents that answer the others are taken
away, so that these have none, and questions of the other collections are asked as well. The default
search is asked with static vectors alone, as after indexing. A logistic regression
learns from the best hit's scores whether a question is of the first half; both kinds have the same
total weight. The study default-answers has what it does on other collections.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import click
import numpy as np

import birchbark as bb
from birchbark.index.sharded_writer import open_writer
from birchbark.pipeline.answers.answer_probability import LEAST
from birchbark.pipeline.loaded_models import LoadedModels
from birchbark.pipeline.stored.static_vectors import static_vectors
from birchbark.pipeline.upkeep.update_index import attach

FITTED = [f"qa/{name}" for name in ("mediqa", "mtrag", "pubmedqa", "faq", "nq")]
ANSWERED, REMOVED, FOREIGN = "answered", "removed", "foreign"
MOST_DOCUMENTS = 20_000  # of a collection
LOST = 0.02  # share of answered questions below the threshold


@dataclass
class Collection:
    """Documents by id, questions by id, and the ids of the documents that answer each."""

    documents: dict[str, bb.Document]
    questions: dict[str, str]
    answers: dict[str, set[str]]

    @classmethod
    def read(cls, folder: Path) -> Collection:
        """Read a collection of the data folder."""
        corpus = ("passages.jsonl.gz", "corpus.jsonl")
        path = next(folder / name for name in corpus if (folder / name).exists())
        fixed = folder / "qrels.fixed.txt"
        grades = bb.read_qrels(fixed if fixed.exists() else folder / "qrels.txt").grades
        answers = {q: {d for d, g in of_q.items() if g > 0} for q, of_q in grades.items()}
        return cls(
            {document.doc_id: document for document in bb.read_collection(path)},
            {q.query_id: q.text for q in bb.read_queries(folder / "queries.tsv")},
            {query_id: relevant for query_id, relevant in answers.items() if relevant},
        )


@click.command()
@click.argument("data", type=Path)
@click.option("--questions", default=150, help="Questions of each half of a collection, at most.")
@click.option("--work", type=Path, required=True, help="Folder for indexes and scores.")
def main(data: Path, questions: int, work: Path) -> None:
    """Fit the weights to collections of DATA, and show what the threshold does on them."""
    work.mkdir(parents=True, exist_ok=True)
    models = LoadedModels()
    fitted = {name: cases(data, name, questions, work, models) for name in FITTED}
    everything = [case for of_collection in fitted.values() for case in of_collection]
    weights, constant = fit(everything)
    answered = [score(c, weights, constant) for c in everything if c["kind"] == ANSWERED]
    threshold = float(np.quantile(answered, LOST))
    click.echo(f"weights {weights}, constant {constant:.2f}, threshold {threshold:.2f}")
    click.echo("called unanswered at this threshold: answered, removed, foreign")
    for name, of_collection in fitted.items():
        shares = called_unanswered(of_collection, threshold, weights, constant)
        click.echo(f"{name:12} " + " ".join(f"{share:.2f}" for share in shares))


def called_unanswered(
    found: Sequence[dict], threshold: float, weights: Sequence[float], constant: float
) -> list[float]:
    """Return the share of questions of each kind whose probability is below the threshold."""
    low = {kind: [] for kind in (ANSWERED, REMOVED, FOREIGN)}
    for case in found:
        low[case["kind"]].append(score(case, weights, constant) < threshold)
    return [float(np.mean(of_kind)) for of_kind in low.values()]


def cases(data: Path, name: str, count: int, work: Path, models: LoadedModels) -> list[dict]:
    """Return the features of the best hit for each question, kept in a file."""
    kept = work / f"{Path(name).name}.json"
    if kept.exists():
        return json.loads(kept.read_text())
    collection, random = Collection.read(data / name), Random(3)
    ids = sorted(collection.questions.keys() & collection.answers.keys())
    random.shuffle(ids)
    answered, removed = ids[: min(count, len(ids) // 2)], ids[len(ids) // 2 :][:count]
    gone = set().union(*(collection.answers[i] for i in removed))
    needed = set().union(*(collection.answers[i] for i in answered)) - gone
    rest = sorted(collection.documents.keys() - gone - needed)
    random.shuffle(rest)
    documents = [collection.documents[i] for i in [*sorted(needed), *rest[:MOST_DOCUMENTS]]]
    index = work / f"{Path(name).name}.index"
    if not index.exists():
        bb.build_index(documents, index)
        with open_writer(index) as writer:
            attach(writer, [static_vectors()])
    others = [Collection.read(data / other) for other in FITTED if other != name]
    foreign = [text for other in others for text in sorted(other.questions.values())[:count]]
    random.shuffle(foreign)
    asked = [(ANSWERED, collection.questions[i]) for i in answered if collection.answers[i] - gone]
    asked += [(REMOVED, collection.questions[i]) for i in removed]
    asked += [(FOREIGN, text) for text in foreign[: count // 2]]
    searcher = bb.Searcher(index, loaded=models)
    share = searcher.rankers[0].interpolation.evidence_weight * searcher.rankers[0].embedding_share
    found = []
    for kind, text in asked:
        hits = searcher.search(searcher.parse(text, literal=True), 5).hits
        passage = max((segment.score for segment in hits[0].segments), default=0) if hits else 0
        embedding = hits[0].embedding / share if hits else 0
        found.append({"kind": kind, "passage": float(passage), "embedding": float(embedding)})
    kept.write_text(json.dumps(found))
    click.echo(f"{name}: {len(found)} questions")
    return found


def features(case: dict) -> list[float]:
    """Return the log-odds of the best passage and the evidence by the embedding."""
    inside = min(max(case["passage"], LEAST), 1 - LEAST)
    return [math.log(inside / (1 - inside)), min(case["embedding"], 1.0)]


def fit(found: Sequence[dict]) -> tuple[list[float], float]:
    """Return the weights and the constant of the logistic regression, by Newton's method."""
    values = np.array([[*features(case), 1.0] for case in found])  # (n, 3)
    truth = np.array([case["kind"] == ANSWERED for case in found], float)
    weight = np.where(truth > 0, 1 / truth.sum(), 1 / (1 - truth).sum()) * len(found) / 2
    solution = np.zeros(values.shape[1])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-values @ solution))
        gradient = values.T @ (weight * (chance - truth))
        hessian = (values.T * (weight * chance * (1 - chance))) @ values
        solution -= np.linalg.solve(hessian, gradient)
    return [round(float(x), 2) for x in solution[:-1]], float(solution[-1])


def score(case: dict, weights: Sequence[float], constant: float) -> float:
    """Return the probability for one question."""
    total = sum(w * x for w, x in zip(weights, features(case), strict=True)) + constant
    return 1 / (1 + math.exp(-total))


if __name__ == "__main__":
    main()
