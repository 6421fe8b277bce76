"""Where do the pairs of a data set come from?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from birchbark.collection.data_files import data_path
from birchbark.collection.documents import read_collection
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.qrels import judged_query_ids, read_qrels
from birchbark.collection.queries import read_queries
from birchbark.errors import InputError
from birchbark.pairs.judged import Segmenter, judged_pairs, segment_texts
from birchbark.pairs.msmarco import read_id_triples, read_triples
from birchbark.pairs.read import Columns, read_pairs
from birchbark.pairs.seeded_sampling import sample
from birchbark.records import Document, Pair, Qrels


class SourceKind(StrEnum):
    """What the files of a data set are, in this order."""

    PAIRS = "files of pairs"
    JUDGED = "documents, queries and qrels; each judged document becomes a pair"
    DOCUMENTS = "documents without queries"
    TRIPLES = "MS MARCO's triples of texts"
    ID_TRIPLES = "MS MARCO's triples of ids, the documents and the queries"


@dataclass(frozen=True, slots=True)
class PairSource:
    """The files of one data set, and how they are read.

    files: the paths of the files, relative to the data root.
    kind: what these files are.
    format: the format of the documents; empty to derive it from the file name.
    columns: the column names of pair files.
    highest: the highest valid grade.
    unjudged: the grade of a pair whose relevance is empty; if None, such a pair is a bad record.
    skip_bad: whether bad records are counted and skipped, instead of raising an error.
    limit: the number of triples that are read, from the first, or of judged queries that are drawn,
    the same for every training run; None for all.
    """

    files: tuple[str, ...]
    kind: SourceKind = SourceKind.PAIRS
    format: str = ""
    columns: Columns = field(default_factory=Columns)
    highest: int = 1
    unjudged: int | None = None
    skip_bad: bool = False
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.unjudged is not None and not 0 <= self.unjudged <= self.highest:
            raise InputError(
                "grade of unjudged pairs is out of range",
                wanted=f"0 to {self.highest}, the highest",
                found=str(self.unjudged),
            )

    @property
    def has_queries(self) -> bool:
        """Whether the files contain queries."""
        return self.kind is not SourceKind.DOCUMENTS

    def intake(self) -> Intake:
        """Return an Intake that skips bad records if `skip_bad` is true."""
        return Intake(skip_bad=self.skip_bad, remedy="set skip_bad = true to skip bad records")

    def read_pairs(self, root: Path, segmenter: Segmenter, intake: Intake) -> Iterator[Pair]:
        """Yield all pairs. A judged document becomes one pair per segment.

        root: the folder that `files` are relative to. Raises InputError for bad records unless
        they are skipped, for grades above `highest`, and if there is no pair.
        """
        paths = [data_path(root, name) for name in self.files]
        if self.kind is SourceKind.PAIRS:
            for path in paths:
                yield from read_pairs(path, intake, self.columns, self.highest, self.unjudged)
        elif self.kind is SourceKind.TRIPLES:
            yield from read_triples(paths[0], intake, self.limit)
        elif self.kind is SourceKind.ID_TRIPLES:
            triples, documents, queries = paths
            collection = self._collection(documents, intake)
            asked = read_queries(queries)
            yield from read_id_triples(triples, asked, collection, intake, self.limit)
        else:
            documents, queries_path, qrels_path = paths
            drawn = self._drawn_queries(qrels_path)
            qrels = read_qrels(qrels_path, drawn)
            _check_grades(qrels, self.highest, str(qrels_path))
            asked = read_queries(queries_path, query_ids=drawn)
            texts, collection = segment_texts(segmenter), self._collection(documents, intake)
            yield from judged_pairs(asked, qrels, collection, intake, texts)

    def read_documents(self, root: Path, intake: Intake) -> Iterable[Document]:
        """Yield the documents of a source without queries, below `root`."""
        return self._collection(data_path(root, self.files[0]), intake)

    @property
    def known_pairs(self) -> int | None:
        """The number of pairs, at most; None if only the files tell."""
        by_triples = self.kind in (SourceKind.TRIPLES, SourceKind.ID_TRIPLES)
        return 2 * self.limit if by_triples and self.limit is not None else None

    def _drawn_queries(self, qrels: Path) -> frozenset[str] | None:
        """Return the ids of the judged queries that are drawn; None for all."""
        if self.limit is None:
            return None
        return frozenset(sample(judged_query_ids(qrels), self.limit, 0, "judged queries"))

    def _collection(self, path: Path, intake: Intake) -> Iterable[Document]:
        return read_collection(str(path), intake, self.format or None)


def split_into_chunks(pairs: Iterable[Pair], words: int | None) -> Iterator[Pair]:
    """Split texts into chunks of `words` words; each chunk has the grade of its text.

    The Birch paper's MARCO* was made in this way. Its tokens are words: it counts 56 in a passage
    of MS MARCO, and those of DL19 have 59 words and 81 WordPieces. If `words` is None, texts are
    left unchanged.
    """
    for pair in pairs:
        tokens = pair.text.split() if words else []
        if words is None or len(tokens) <= words:
            yield pair
            continue
        for start in range(0, len(tokens), words):
            text = " ".join(tokens[start : start + words])
            yield Pair(pair.query_id, pair.query, pair.doc_id, text, pair.relevance)


def _check_grades(qrels: Qrels, highest: int, where: str) -> None:
    actual = max((g for grades in qrels.grades.values() for g in grades.values()), default=0)
    if actual > highest:
        raise InputError(
            "relevance is too high",
            where=where,
            wanted=f"0 to {highest}",
            found=str(actual),
            remedy="set `highest`",
        )
