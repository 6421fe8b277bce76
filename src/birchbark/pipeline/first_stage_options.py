"""Which options describe a first stage on the command line and in TOML files?"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from birchbark import defaults
from birchbark.errors import InputError
from birchbark.option_rules import check_options
from birchbark.retrieve.bm25 import BM25, IDF_DOCUMENTS
from birchbark.retrieve.filters import parse_filters
from birchbark.retrieve.first_stage import FirstStage
from birchbark.retrieve.match import OR
from birchbark.retrieve.rm3 import RM3
from birchbark.retrieve.tfidf import TfIdf
from birchbark.retrieve.vector_match import CandidateScores, VectorMatch, parse_vector_match
from birchbark.section import Section

MODELS = ("bm25", "tfidf", "dense", "rrf")
SCORES_OF_VECTORS = {"dense": CandidateScores.COSINE, "rrf": CandidateScores.RRF}


@dataclass(frozen=True, slots=True)
class FirstStageOptions:
    """The options of a first stage as users write them; `make` turns them into objects.

    Attributes:
        model: One of MODELS; see --first-stage of `birchbark search`.
        k1, b, idf_documents: Those of `BM25`.
        match: Which documents are candidates, as for --match; None for the default.
        vector_set: The set of stored vectors; None for the first one.
        fields: Field → weight; empty for the default.
        field_bm25: Field → k1 and b, which replace those above.
        filters: Each FIELD=VALUE.
        rm3: How queries are expanded; None for no expansion.
    """

    model: str = defaults.FIRST_STAGE
    k1: float = defaults.BM25_K1
    b: float = defaults.BM25_B
    idf_documents: str = defaults.IDF_DOCUMENTS
    match: str | None = None
    vector_set: str | None = None
    fields: Mapping[str, float] = field(default_factory=dict)
    field_bm25: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    filters: tuple[str, ...] = ()
    rm3: RM3 | None = None

    def updated(self, section: Section) -> FirstStageOptions:
        """Return these options, overridden by a TOML section.

        Raises InputError, which names the key, for an unknown key or value.
        """
        options = replace(
            self,
            model=section.one_of("model", MODELS, self.model),
            k1=section.number("k1", self.k1),
            b=section.number("b", self.b),
            idf_documents=section.one_of("idf_documents", IDF_DOCUMENTS, self.idf_documents),
            match=section.text("match", self.match),
            vector_set=section.text("vector_set", self.vector_set),
            fields=_weights(section, self.fields),
            field_bm25=_field_bm25(section, self.field_bm25),
            filters=section.texts("filters", self.filters),
            rm3=_rm3(section, self.rm3),
        )
        section.reject_unknown_keys()
        try:
            options.check([*section.keys, *(["rm3"] if options.rm3 else [])])
            options.make()
        except InputError as fault:
            raise fault.at(section.where()) from None
        return options

    def check(self, given: Collection[str]) -> None:
        """Raise InputError if an option in `given`, which the user has set, has no effect."""
        check_options(given, {"first_stage_model": self.model}, _spell)
        own = self.fields and self.field_bm25.keys() == self.fields.keys()
        if own and {"k1", "b"} & {*given}:
            raise InputError(
                "k1 and b have no effect: field_bm25 gives all searched fields their own"
            )

    def make(self) -> tuple[VectorMatch | None, FirstStage]:
        """Return how vectors find candidates, and the first stage.

        The former is None if the options leave open whether vectors find candidates.
        """
        scores = SCORES_OF_VECTORS.get(self.model, CandidateScores.FIRST_STAGE)
        parsed = parse_vector_match(self.match or "", scores)
        vector_match = replace(parsed, vectors=self.vector_set)
        stage = FirstStage(
            TfIdf() if self.model == "tfidf" else BM25(self.k1, self.b, self.idf_documents),
            self.fields or None,
            {name: BM25(*k1_b, self.idf_documents) for name, k1_b in self.field_bm25.items()},
            match=vector_match.terms or OR,
            filters=parse_filters(self.filters),
            expansion=self.rm3,
        )
        return vector_match if self.match or vector_match.used else None, stage


def _spell(name: str) -> str:
    return "model" if name == "first_stage_model" else name


def _weights(section: Section, default: Mapping[str, float]) -> Mapping[str, float]:
    if "fields" not in section.keys:
        return default
    table = section.section("fields")
    return {name: table.number(name) for name in table.keys}


def _field_bm25(
    section: Section, default: Mapping[str, tuple[float, float]]
) -> Mapping[str, tuple[float, float]]:
    if "field_bm25" not in section.keys:
        return default
    models, fields = {}, section.section("field_bm25")
    for name in fields.keys:
        table = fields.section(name)
        models[name] = table.number("k1"), table.number("b")
        table.reject_unknown_keys()
    return models


def _rm3(section: Section, default: RM3 | None) -> RM3 | None:
    """Read a table of parameters, which may be empty."""
    if "rm3" not in section.keys:
        return default
    table, usual = section.section("rm3"), RM3()
    documents = table.integer("documents", usual.documents, minimum=1)
    terms = table.integer("terms", usual.terms, minimum=1)
    weight = table.number("original_weight", usual.original_weight)
    share = table.number("max_df_share", usual.max_df_share)
    table.reject_unknown_keys()
    try:
        return RM3(documents, terms, weight, share)
    except InputError as fault:
        raise fault.at(table.where()) from None
