"""How do tests run a committed recipe with everything small: models, trainings and collections?

Recipe and training configurations are copied, and changed only in sizes: the models that they start
from are tiny, and a training takes two steps or one epoch. Data files are fabricated.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tiny_trainings import some_pairs, toml

from birchbark import read_queries
from birchbark_studies import recipe_folder
from birchbark_studies.experiments.recipe_file import read_recipe
from birchbark_studies.outcome import Outcome
from birchbark_studies.recipe import Recipe
from birchbark_studies.run import run_study
from conftest import DOCUMENTS, write_bert
from original_formats import (
    SUBJECT_QUERIES,
    write_cord19,
    write_core17,
    write_core18,
    write_marco,
    write_robust04,
)

PACKAGE = recipe_folder.RECIPES.parent
RECIPES = sorted(recipe_folder.RECIPES.glob("*.toml"))
CROSS_ENCODERS = {
    "birchbark-minilm-l6": 6,
    "birchbark-minilm-l3": 3,
    "bert-base-uncased": 12,
    "titles-pool/covid-extended": 12,
    "Capreolus/bert-base-msmarco": 12,
}  # name → layers
EMBEDDINGS = ("birchbark-embedding-l6", "all-MiniLM-L6-v2", "titles-pool/extended")
BASES = (
    "bert-large-uncased",
    "nreimers/MiniLM-L3-H384-uncased",
    *(
        f"google/bert_uncased_L-{layers}_H-{hidden}_A-{hidden // 64}"
        for layers, hidden in (
            (12, 768),
            (8, 512),
            (6, 768),
            (4, 768),
            (4, 512),
            (4, 256),
            (2, 128),
        )
    ),
)
SIZES = {384: 16, 1536: 24, 256: 8, 1024: 16, 128: 4, 512: 8}  # hidden and intermediate dimensions
HEADS = {12: 4, 8: 2, 4: 1}
IR_DATASETS = {  # key → file in place of ir_datasets:ID
    "documents": "ir/docs.jsonl",
    "queries": "ir/queries.tsv",
    "qrels": "ir/qrels-{relevant}.txt",
}


def write_separate(folder: Path) -> None:
    """Write collections in which each query has a relevant document of its own."""
    numbered = list(enumerate(SUBJECT_QUERIES))
    documents = "".join(f"{json.dumps({'id': f'd{n}', 'text': text})}\n" for n, text in numbered)
    for name in ("scifact", "time", "cacm", "cranfield"):
        _write(folder / name / "corpus.jsonl", lambda: documents)
        qrels = "qrels.fixed.txt" if name == "cacm" else "qrels.txt"
        _write(folder / name / qrels, lambda: "".join(f"{n} 0 d{n} 1\n" for n, _ in numbered))


ORIGINAL: Mapping[str, Callable[[Path], None]] = {
    "default-answers": write_separate,
    "birch-robust04": write_robust04,
    "passages-robust04": write_robust04,
    "passages-marco": write_marco,
    "passages-marco-depth": write_marco,
    "passages-marco-distil": write_marco,
    "passages-marco-sizes": write_marco,
    "birch-core17": write_core17,
    "birch-core18": write_core18,
    "covid-fields": write_cord19,
    "covid-biencoder": write_cord19,
    "covid-reranking": write_cord19,
    "covid-proportion": write_cord19,
    "covid-perturbations": write_cord19,
}
QUERIES = {str(number): query for number, query in enumerate(SUBJECT_QUERIES)}


def small_recipe(path: Path, folder: Path, larger: bool) -> Recipe:
    """Copy a recipe with the trainings that it names to `folder`, and write all of its data."""
    embedding = str(write_bert(folder / "embedding", layers=6, positions=512))
    models = dict.fromkeys((*EMBEDDINGS, *BASES), embedding)
    for number, (name, layers) in enumerate(CROSS_ENCODERS.items()):
        directory = folder / f"cross-encoder-{number}"
        models[name] = str(write_bert(directory, layers=layers, positions=512, labels=1))
    for config in (PACKAGE / "training").rglob("*.toml"):
        copy = folder / config.relative_to(PACKAGE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(toml(_small(tomllib.loads(config.read_text()), models)))
    copy = folder / path.relative_to(PACKAGE)
    copy.parent.mkdir()
    copy.write_text(toml(_small(tomllib.loads(path.read_text()), models)))
    recipe = read_recipe(copy, larger)
    if path.stem in ORIGINAL:
        ORIGINAL[path.stem](folder)
    _write_data(recipe, folder)
    return recipe


def run(recipe: Recipe, folder: Path) -> Outcome:
    """Run the study in `folder`."""
    return run_study(recipe, folder, folder / "results", cache=folder / "cache")


def _small(value: Any, models: Mapping[str, str]) -> Any:
    """Return TOML values with tiny models, short trainings, and sizes to match."""
    if isinstance(value, list):
        return [_small(item, models) for item in value]
    if not isinstance(value, dict):
        return models.get(value, value) if isinstance(value, str) else value
    if "depths" in value:
        value = {**value, "depths": value["depths"][:2]}
    small = {k: _shrunk(k.rpartition(".")[2], _small(v, models)) for k, v in value.items()}
    for key, file in IR_DATASETS.items():
        if str(small.get(key, "")).startswith("ir_datasets:"):
            small[key] = file.format(relevant=small.get("relevant", 1))
    return small


def _shrunk(name: str, value: Any) -> Any:
    """Return the value of the setting called `name`, if it is a size, for a tiny training."""
    if name == "precision" and value == "auto":
        return "fp32"
    if name == "validation" and isinstance(value, float):
        return 0.4 if value else value
    if name == "mining":
        return {**value, "start": 0}  # an epoch may be a single step
    if not isinstance(value, int):
        return value
    if name in ("epochs", "timed", "warmup"):
        return min(value, 1)
    if name == "by_fold":
        return 2
    if name in ("steps", "every", "save_every"):
        return min(value, 2)
    sizes = {"hidden": SIZES, "intermediate": SIZES, "heads": HEADS, "take": {}}.get(name)
    return value if sizes is None else sizes.get(value, min(value, 8))


def _write_data(recipe: Recipe, folder: Path) -> None:
    """Write the files of collections and trainings that are missing."""
    for collection in recipe.collections:
        _write(folder / collection.documents, _documents)
        _write(folder / collection.queries, _queries)
        _write(folder / collection.qrels, partial(_qrels, collection.relevant))
        if collection.run:
            _write(folder / collection.run, _run)
        if collection.folds:
            _write(folder / collection.folds, _folds)
    for training in (t for chain in recipe.experiment.chains.values() for t in chain):
        if training.held_out:  # pairs of these queries
            asked = [query.text for query in read_queries(folder / training.held_out.queries)]
            for name in (name for data in training.data for name in data.files):
                _write(folder / name, partial(_pairs, asked))
    for name in recipe.files:
        write: Callable[[], str] = _pairs
        if name.endswith(".jsonl"):
            write = _scores if "scores" in name else _documents
        elif name.endswith("queries.tsv"):
            write = _queries
        elif name.endswith((".txt", ".qrels")):
            write = _qrels
        elif name.endswith(".run"):
            write = _run
        elif name.startswith("triples"):
            write = _triples
        _write(folder / name, write)


def _write(path: Path, content: Callable[[], str]) -> None:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content())


def _documents() -> str:
    return "".join(f"{json.dumps({'id': d.doc_id, **d.fields})}\n" for d in DOCUMENTS)


def _queries() -> str:
    return "".join(f"{number}\t{text}\n" for number, text in QUERIES.items())


def _qrels(relevant: int = 1) -> str:
    """Return judgments of all documents. relevant: the grade of the relevant ones."""
    return "".join(
        f"{query} 0 {document.doc_id} {relevant * (text.split()[0] in document.text.lower())}\n"
        for query, text in QUERIES.items()
        for document in DOCUMENTS
    )


def _folds() -> str:
    return json.dumps([list(QUERIES)[::2], list(QUERIES)[1::2]])


def _scores() -> str:
    """Return scores of two paragraphs of each document."""
    return "".join(
        f"{json.dumps({'qid': query, 'docid': document.doc_id, 'scores': [rank, 0.5]})}\n"
        for query in QUERIES
        for rank, document in enumerate(DOCUMENTS, 1)
    )


def _run() -> str:
    return "".join(
        f"{query} Q0 {document.doc_id} {rank} {6 - rank} bm25\n"
        for query in QUERIES
        for rank, document in enumerate(DOCUMENTS, 1)
    )


def _triples() -> str:
    """Return the query, a relevant and another text of some pairs, one line for each query."""
    by_query: dict[str, list[str]] = {}
    for pair in some_pairs(12, 4):
        by_query.setdefault(pair.query, []).append(pair.text)
    return "".join(f"{query}\t{texts[0]}\t{texts[-1]}\n" for query, texts in by_query.items())


def _pairs(queries: Sequence[str] = ()) -> str:
    """Return pairs of two passages per document, with all columns that configurations name.

    queries: used in turn in place of others.
    """
    rows = ["qid\tquery\tdocid\ttext\tlabel\tgrade"]
    for p in some_pairs(12, 4):
        if queries:
            p = replace(p, query=queries[int(p.query_id[1:]) % len(queries)])
        for text in (p.text, "iron and stone"):
            rows.append(
                f"{p.query_id}\t{p.query}\t{p.doc_id}\t{text}\t{p.relevance}\t{p.relevance}"
            )
    return "\n".join(rows) + "\n"
