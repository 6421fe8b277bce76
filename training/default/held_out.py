"""Write test collections of questions without whose answers the default models were trained.

DATA is the data root, OUT will be another with the same folders and the collections in `held-out`:

- of five sets of people's questions, 100 of those that pool.sh leaves out, among the passages of
  the set. Other questions on the same passages were learnt from;
- the questions of WikiQA's test part that have an answer, among all sentences of that part.

A question whose words are those of one that a cross-encoder learns from, in any set, is left out.
The static embedding was fitted to the vectors of most questions, of these too, without judgments.

Run: python training/default/held_out.py ../shared/data questions-held-out
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from birchbark import Document, Query, read_collection, read_qrels, read_queries
from birchbark.collection.parsing.intake import Intake
from birchbark.pairs.read import read_pairs

EVERY = {"faq": 2, "medquad": 3, "shifts-wiki": 4, "stackfaq": 4, "squad": 5}  # as in pool.sh
COUNT = 100  # questions of each set
PAIRS = (  # and other queries from which the cross-encoder learns
    "wikiqa/train.tsv",
    "selqa/dev.tsv",
    "selqa/test.tsv",
    *(f"mb/trec-{year}.tsv" for year in range(2011, 2015)),
)
QUERIES = ("trec-dl21-passage/queries.tsv", "dl22-teacher/queries.tsv", "scifact/queries.train.tsv")


def main(data: Path, output: Path) -> None:
    """Write all collections."""
    output.mkdir(parents=True, exist_ok=True)
    for path in filter(Path.is_dir, data.iterdir()):
        if not (output / path.name).exists():
            (output / path.name).symlink_to(path.resolve())
    sets = filter(Path.is_dir, (data / "qa").iterdir())
    learnt = {normalised(query.text) for path in sets for query in used(path)}
    for name in PAIRS:
        learnt |= {normalised(pair.query) for pair in read_pairs(data / name, Intake(True))}
    for name in QUERIES:
        learnt |= {normalised(query.text) for query in read_queries(data / name)}
    for name in EVERY:
        source = data / "qa" / name
        questions = {normalised(q.text): q for q in read_queries(source / "queries.tsv")}
        left_out = [query for text, query in questions.items() if text not in learnt]
        count = min(COUNT, len(left_out))
        chosen = [left_out[n * len(left_out) // count] for n in range(count)]
        passages = read_collection(source / "passages.jsonl.gz")
        write(output / "held-out" / name, passages, chosen, read_qrels(source / "qrels.txt").grades)
    pairs = list(read_pairs(data / "wikiqa/test.tsv", Intake()))
    judgments: dict[str, dict[str, int]] = {}
    for pair in pairs:
        if pair.relevance and normalised(pair.query) not in learnt:
            judgments.setdefault(pair.query_id, {})[pair.doc_id] = pair.relevance
    sentences = {pair.doc_id: Document(pair.doc_id, {"text": pair.text}) for pair in pairs}
    asked = {p.query_id: Query(p.query_id, p.query) for p in pairs if p.query_id in judgments}
    write(output / "held-out/wikiqa", sentences.values(), asked.values(), judgments)


def used(source: Path) -> list[Query]:
    """Return the questions of a set that pool.sh takes."""
    every = EVERY.get(source.name, 1)
    return read_queries(source / "queries.tsv")[every - 1 :: every]


def write(
    folder: Path,
    documents: Iterable[Document],
    queries: Iterable[Query],
    grades: Mapping[str, Mapping[str, int]],
) -> None:
    """Write a test collection. grades: query_id → doc_id → grade, of these queries and others."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = (json.dumps({"id": d.doc_id, **d.fields}) for d in documents)
    (folder / "corpus.jsonl").write_text("".join(f"{row}\n" for row in rows))
    with (folder / "queries.tsv").open("w") as texts, (folder / "qrels.txt").open("w") as judged:
        for query in queries:
            texts.write(f"{query.query_id}\t{query.text}\n")
            for doc_id, grade in grades[query.query_id].items():
                judged.write(f"{query.query_id} 0 {doc_id} {grade}\n")


def normalised(text: str) -> str:
    """Return the words of `text`, without differences in case and punctuation."""
    return " ".join(re.findall(r"\w+", text.lower()))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
