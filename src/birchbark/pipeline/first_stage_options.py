"""Which keys describe a first stage, in TOML files and with --set?"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from birchbark import defaults
from birchbark.errors import InputError
from birchbark.pipeline.ranker_keys import Options, key, one_of, positive
from birchbark.retrieve.bm25 import BM25, IDF_DOCUMENTS
from birchbark.retrieve.filters import parse_filters
from birchbark.retrieve.first_stage import FirstStage
from birchbark.retrieve.match import OR
from birchbark.retrieve.rm3 import RM3
from birchbark.retrieve.tfidf import TfIdf
from birchbark.retrieve.vector_match import CandidateScores, VectorMatch, parse_vector_match
from birchbark.section import Section

MODELS = ("bm25", "tfidf", "dense", "rrf")
BM25_MODELS = ("bm25", "rrf")
OF_BM25 = ("k1", "b", "idf_documents", "field_bm25")
SCORES_OF_VECTORS = {"dense": CandidateScores.COSINE, "rrf": CandidateScores.RRF}


def _weights(section: Section, name: str, default: Mapping[str, float]) -> Mapping[str, float]:
    """Read a table field → weight."""
    if not section.has_table(name):
        return default
    table = section.section(name)
    return {field: table.number(field) for field in table.keys}


def _field_bm25(
    section: Section, name: str, default: Mapping[str, Mapping[str, float]]
) -> Mapping[str, Mapping[str, float]]:
    """Read a table of tables: field → k1, b or both."""
    if not section.has_table(name):
        return default
    models, tables = {}, section.section(name)
    for field in tables.keys:
        table = tables.section(field)
        models[field] = {key: table.number(key) for key in table.keys if key in ("k1", "b")}
        table.reject_unknown_keys()
    return models


def _rm3(section: Section, name: str, default: RM3 | None) -> RM3 | None:
    """Read a table of parameters, which may be empty."""
    if not section.has_table(name):
        return default
    table, usual = section.section(name), RM3()
    documents = table.integer("documents", usual.documents, minimum=1)
    terms = table.integer("terms", usual.terms, minimum=1)
    weight = table.number("original_weight", usual.original_weight)
    share = table.number("max_df_share", usual.max_df_share)
    table.reject_unknown_keys()
    try:
        return RM3(documents, terms, weight, share)
    except InputError as fault:
        raise fault.at(table.where()) from None


@dataclass(frozen=True, slots=True)
class FirstStageOptions(Options):
    """The options of a first stage as users write them; `make` turns them into objects.

    Those that are None or empty have a default that depends on the index or the model.
    """

    model: str = key(
        one_of(*MODELS),
        defaults.FIRST_STAGE,
        "bm25. tfidf: cosine of tf-idf vectors. dense: cosine of stored vectors. rrf: reciprocal "
        "rank fusion of bm25 and dense.",
    )
    k1: float = key(Section.number, defaults.BM25_K1, "BM25: term-frequency saturation.")
    b: float = key(Section.number, defaults.BM25_B, "BM25: length normalisation, 0 to 1.")
    idf_documents: str = key(
        one_of(*IDF_DOCUMENTS),
        defaults.IDF_DOCUMENTS,
        "BM25: how a term's inverse document frequency is computed: from the documents that have "
        "the searched field (field), or from all documents (all).",
    )
    match: str | None = key(
        Section.count,
        None,
        "Which documents are candidates: those with any query term (or), with every term (and), "
        "with at least N terms (a number), or all documents (all). nearest:K: the K nearest "
        "documents by stored vectors, or as many as requested (nearest). nearest+or, "
        "nearest:K+and, …: both; the nearest take up to half of the places, and up to K (with rrf, "
        "any number up to K). By default or; nearest with dense; nearest+or with rrf, and for "
        "re-ranking if vectors of the embedding, or static ones, are stored.",
    )
    vector_set: str | None = key(
        Section.text,
        None,
        "Set of stored vectors for match nearest and the models dense and rrf; `birchbark index "
        "stats` lists them. By default the first one.",
    )
    query_tokens: int | None = key(
        positive,
        None,
        "Have the model of the vectors read only the first N tokens of a query. By default what a "
        "[[stage]] says, or all.",
    )
    fields: Mapping[str, float] = key(
        _weights,
        dict,
        "Indexed fields to search, and their weights, such as { title = 2, contents = 1 }. By "
        f"default {defaults.INDEXED_FIELD} = 1; of a folder also {defaults.FILE_NAMES_FIELD} = "
        f"{defaults.FILE_NAMES_WEIGHT:g}.",
    )
    field_bm25: Mapping[str, Mapping[str, float]] = key(
        _field_bm25,
        dict,
        "BM25: k1 or b of single fields, or both: { title = { b = 0.3 } }. By default those above.",
    )
    filters: tuple[str, ...] = key(
        Section.text_or_texts,
        (),
        'Search only documents with these values of fields, such as ["type=pdf|html", '
        '"path=docs/*"]; see --filter of `birchbark search`.',
    )
    rm3: RM3 | None = key(
        _rm3,
        None,
        "Expand queries with RM3: { } with the usual parameters, or such as { documents = 10, "
        "terms = 10, original_weight = 0.5, max_df_share = 0.1 }.",
    )

    def check(self, given: Collection[str]) -> None:
        """Raise InputError for an unknown value, or if an option in `given` has no effect."""
        of_bm25 = [name for name in given if name in OF_BM25]
        if of_bm25 and self.model not in BM25_MODELS:
            raise InputError(
                f"{of_bm25[0]} has no effect with model {self.model}",
                wanted=" or ".join(BM25_MODELS),
            )
        if "rm3" in given and self.model == "dense":
            raise InputError("rm3 has no effect with model dense", wanted="bm25, tfidf or rrf")
        if "query_tokens" in given and not self._vector_match().used:
            raise InputError("query_tokens has no effect: a first stage by terms uses no model")
        for name in ("k1", "b"):
            own = [name in self.field_bm25.get(field, {}) for field in self.fields]
            if name in given and own and all(own):
                raise InputError(
                    f"{name} has no effect: field_bm25 gives all searched fields their own"
                )
        self.make()

    def make(self) -> tuple[VectorMatch | None, FirstStage]:
        """Return how vectors find candidates, and the first stage.

        The former is None if the options leave open whether vectors find candidates.
        """
        vector_match = self._vector_match()
        stage = FirstStage(
            TfIdf() if self.model == "tfidf" else self._bm25({}),
            self.fields or None,
            {field: self._bm25(own) for field, own in self.field_bm25.items()},
            match=vector_match.terms or OR,
            filters=parse_filters(self.filters),
            expansion=self.rm3,
        )
        return vector_match if self.match or vector_match.used else None, stage

    def _bm25(self, own: Mapping[str, float]) -> BM25:
        """Return BM25 with the k1 and b of a field, where it has its own."""
        return BM25(own.get("k1", self.k1), own.get("b", self.b), self.idf_documents)

    def _vector_match(self) -> VectorMatch:
        scores = SCORES_OF_VECTORS.get(self.model, CandidateScores.FIRST_STAGE)
        parsed = parse_vector_match(self.match or "", scores)
        return replace(parsed, vectors=self.vector_set, query_tokens=self.query_tokens)
