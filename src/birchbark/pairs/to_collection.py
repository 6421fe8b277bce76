"""How do pairs become a collection with queries and qrels?

More candidates can be retrieved from such a collection of all distinct texts. For distillation,
many queries are more useful than many judgments. So crops, a few consecutive words of a text, can
be added as queries.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from birchbark.artifact import new_directory
from birchbark.errors import InputError
from birchbark.pairs.read import text_id
from birchbark.pairs.seeded_sampling import sample
from birchbark.records import Pair

DOCUMENTS, QUERIES, QRELS = "documents.jsonl", "queries.tsv", "qrels.txt"


@dataclass(slots=True)
class PairCollection:
    """The distinct texts and queries of pairs, with hashes as ids.

    texts, queries: texts by id. grades: the highest grade of each relevant document, by query_id
    and doc_id.
    """

    texts: dict[str, str] = field(default_factory=dict)
    queries: dict[str, str] = field(default_factory=dict)
    grades: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, pairs: Iterable[Pair]) -> None:
        """Add `pairs`. Each run of white space becomes one space."""
        for pair in pairs:
            text, query = " ".join(pair.text.split()), " ".join(pair.query.split())
            doc_id, query_id = text_id(text), text_id(query)
            self.texts[doc_id] = text
            self.queries[query_id] = query
            if pair.relevance:
                grades = self.grades.setdefault(query_id, {})
                grades[doc_id] = max(pair.relevance, grades.get(doc_id, 0))

    def add_crops(self, count: int, min_words: int, max_words: int, seed: int) -> int:
        """Add crops of `count` random texts as queries, and return the number of new queries.

        A crop has `min_words` to `max_words` words, and the cropped text is relevant for it. Texts
        of `max_words` words or fewer are not cropped. Raises InputError unless 1 ≤ `min_words` ≤
        `max_words`.
        """
        if not 1 <= min_words <= max_words:
            wanted, found = "MIN-MAX with 1 ≤ MIN ≤ MAX", f"{min_words}-{max_words}"
            raise InputError("not a range of words", wanted=wanted, found=found)
        long = [doc_id for doc_id, text in self.texts.items() if len(text.split()) > max_words]
        added = 0
        for doc_id in sample(long, count, seed, "crops"):
            words = self.texts[doc_id].split()
            generator = np.random.default_rng([seed, int(doc_id, 16)])
            size = int(generator.integers(min_words, max_words + 1))
            start = int(generator.integers(0, len(words) - size + 1))
            crop = " ".join(words[start : start + size])
            added += text_id(crop) not in self.queries
            self.queries[text_id(crop)] = crop
            self.grades.setdefault(text_id(crop), {})[doc_id] = 1
        return added

    def write(self, folder: Path) -> None:
        """Write documents, queries and qrels to the new directory `folder`, atomically."""
        with new_directory(folder) as scratch:
            with (scratch / DOCUMENTS).open("w", encoding="utf-8") as out:
                for doc_id, text in self.texts.items():
                    out.write(json.dumps({"id": doc_id, "text": text}, ensure_ascii=False) + "\n")
            with (scratch / QUERIES).open("w", encoding="utf-8") as out:
                out.writelines(f"{query_id}\t{text}\n" for query_id, text in self.queries.items())
            with (scratch / QRELS).open("w", encoding="utf-8") as out:
                out.writelines(
                    f"{query_id} 0 {doc_id} {grade}\n"
                    for query_id, grades in self.grades.items()
                    for doc_id, grade in grades.items()
                )
