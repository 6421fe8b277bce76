"""How do pairs become a collection, so that other texts can be found for their queries?

A collection of the distinct texts, with the distinct queries and what was judged relevant. To learn
what a teacher says, many queries are worth more than many judgments: crops, a few words of a text
in their order, stand in for queries.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from birchbark.artifact import new_directory
from birchbark.collection.pairs import text_id
from birchbark.errors import InputError
from birchbark.pairs.draw import drawn
from birchbark.records import Pair

DOCUMENTS, QUERIES, QRELS = "documents.jsonl", "queries.tsv", "qrels.txt"


@dataclass(slots=True)
class Unpacked:
    """Distinct texts and queries by their ids, which are made of them.

    grades: query id → document id → the highest relevance, of relevant ones alone.
    """

    texts: dict[str, str] = field(default_factory=dict)
    queries: dict[str, str] = field(default_factory=dict)
    grades: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, pairs: Iterable[Pair]) -> None:
        """Take in `pairs`; white space is one space."""
        for pair in pairs:
            text, query = " ".join(pair.text.split()), " ".join(pair.query.split())
            doc_id, query_id = text_id(text), text_id(query)
            self.texts[doc_id] = text
            self.queries[query_id] = query
            if pair.relevance:
                known = self.grades.setdefault(query_id, {})
                known[doc_id] = max(pair.relevance, known.get(doc_id, 0))

    def crop(self, count: int, least: int, most: int, seed: int) -> int:
        """Add crops of `count` texts, from `least` to `most` words; how many there are then.

        A crop is a query for which its text is relevant. Texts of `most` words or fewer have none.
        Raises InputError for a range that is none.
        """
        if not 1 <= least <= most:
            wanted = "1 or more, the lower first"
            raise InputError("not a range of words", wanted=wanted, found=f"{least}-{most}")
        long = [doc_id for doc_id, text in self.texts.items() if len(text.split()) > most]
        made = 0
        for doc_id in drawn(long, count, seed, "crops"):
            words = self.texts[doc_id].split()
            chance = np.random.default_rng([seed, int(doc_id, 16)])
            size = int(chance.integers(least, most + 1))
            start = int(chance.integers(0, len(words) - size + 1))
            crop = " ".join(words[start : start + size])
            made += text_id(crop) not in self.queries
            self.queries[text_id(crop)] = crop
            self.grades.setdefault(text_id(crop), {})[doc_id] = 1
        return made

    def write(self, folder: Path) -> None:
        """Write documents, queries and judgments to `folder`, whole or not at all."""
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
