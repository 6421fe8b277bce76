"""Which layer, pooling and field gives the best bi-encoder? Cord paper, tables 4.3 to 4.5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from birchbark import FirstStage, InputError, Run, defaults, measure, rank_queries
from birchbark.checkpoint.heads import POOLING_MODES, Pooling
from birchbark.checkpoint.locate import locate, open_named
from birchbark.index.build_index import Schema
from birchbark.retrieve.first_stage import matching_ids
from birchbark.retrieve.vector_match import CandidateScores, parse_vector_match
from birchbark.section import Section
from birchbark.segment.by_name import parse_segmenter
from birchbark.show.plot import Curves, Plot
from birchbark.show.table import Cell, Column, Group, Heading, Row, Style, build_tables, columns
from birchbark.text.analyzer import NORMALISERS
from birchbark_studies.collections import CollectionFiles, TestCollection
from birchbark_studies.comparison import Comparison, difference_dots, match_rows, measure_columns
from birchbark_studies.experiments.bi_encoder.bi_encoder_scores import (
    Cosines,
    JudgedPairs,
    compute_cosines,
    note_omissions,
)
from birchbark_studies.experiments.trained.model_experiment import ModelExperiment
from birchbark_studies.layer_encoder import LayerEncoder
from birchbark_studies.models import Models
from birchbark_studies.outcome import Outcome, check_run_names
from birchbark_studies.recipe import Recipe
from birchbark_studies.roc import auc, auc_with_interval, roc
from birchbark_studies.workspace import Workspace

FIRST = "BM25"
POINTS = 60  # points per plotted ROC curve
BEST_LAYER = (
    Column("best layer", Style.COUNT),
    *columns(Style.MEASURE, "AUC of the best layer", "AUC of the last layer"),
)
AUC_NOTE = (
    "AUC: the probability that a relevant query–document pair has a higher cosine than a "
    "non-relevant pair, over the pairs of all queries. Non-relevant pairs are judged not relevant, "
    "or unjudged and among BM25's top {others}; documents without the field are left out. Vectors "
    "come from the last layer. Texts longer than the model's input are truncated. In brackets: "
    "95 % intervals (BCa bootstrap over queries)."
)
CANDIDATES_NOTE = (
    "Candidates for {row}: all documents (all); documents that contain any query term (or) or all "
    "query terms (and); the n nearest documents (nearest:n), here found by exact search."
)


@dataclass(frozen=True, slots=True)
class RankingSettings:
    """A row of the rankings table: a model, a field, and the pooling that makes the vectors."""

    model: str
    field: str
    pooling: Pooling

    @classmethod
    def read(
        cls, section: Section, models: Sequence[str], fields: Sequence[str]
    ) -> RankingSettings:
        """Read one entry of [[bi-encoder.ranked]]."""
        settings = cls(
            section.one_of("model", models),
            section.one_of("field", fields),
            Pooling(section.one_of("pooling", POOLING_MODES), section.integer("layer", None)),
        )
        section.reject_unknown_keys()
        return settings

    @property
    def name(self) -> str:
        """The name of the row."""
        layer = "" if self.pooling.layer is None else f", layer {self.pooling.layer}"
        return f"{self.model}, {self.field}, {self.pooling.mode}{layer}"


@dataclass(frozen=True, slots=True)
class BiencoderExperiment(ModelExperiment):
    """The settings of a study of bi-encoders.

    Attributes:
        fields: Name → segmenter that reads this field of a document.
        others: The BM25 depth down to which unjudged documents count as not relevant; 0 for judged
            documents only.
        curve: The pooling mode whose AUC is plotted over the layers.
        ranked: The models, fields and poolings that rank the whole collection.
        match: The candidate sets to compare, for the first entry of `ranked`.
        analyzer: The name of the analyzer.
    """

    fields: Mapping[str, str]
    others: int
    curve: str
    ranked: tuple[RankingSettings, ...]
    match: tuple[str, ...]
    analyzer: str

    @classmethod
    def read(cls, section: Section) -> BiencoderExperiment:
        """Read the table [bi-encoder] of a recipe."""
        compared = Models.read(section.section("models"))
        table = section.section("fields")
        fields = {name: table.text(name) for name in table.keys}
        for segmenter in fields.values():
            parse_segmenter(segmenter)
        ranked = tuple(
            RankingSettings.read(row, tuple(compared.by_name), tuple(fields))
            for row in section.sections("ranked")
        )
        experiment = cls(
            compared,
            fields,
            section.integer("others", 100),
            section.one_of("curve", POOLING_MODES, "mean"),
            ranked,
            section.texts("match", ()),
            section.one_of("analyzer", tuple(NORMALISERS), defaults.ANALYZER),
        )
        check_run_names([FIRST, *(row.name for row in ranked)], section.where("ranked"))
        for match in experiment.match:
            try:
                parse_vector_match(match, CandidateScores.COSINE)
            except InputError as fault:
                raise fault.at(section.where("match")) from None
        if not (compared.by_name and fields and ranked):
            raise InputError("models, fields and ranked are required", where=section.where())
        section.reject_unknown_keys()
        return experiment

    def times_encoded(self, collection: CollectionFiles) -> int:
        """Return the number of models and fields, as if each field were a whole document."""
        return len(self.compared.by_name) * len(self.fields)

    def layout(self, measures: tuple[str, ...]) -> Mapping[str, tuple[Column, ...]]:
        """Map the name of each table to its columns."""
        match = columns(Style.SHARE, "match ratio") + measure_columns(measures)
        return {
            **self.compared.layout(),
            "auc": columns(Style.MEASURE, *POOLING_MODES),
            "layers": BEST_LAYER,
            "rankings": measure_columns(measures),
            **({"match": match} if self.match else {}),
        }

    def run(self, recipe: Recipe, workspace: Workspace) -> Outcome:
        """Train the models, encode all documents, compare layers, and rank."""
        collections = [workspace.open(files) for files in recipe.collections]
        prepared = self.compared.prepare(workspace)
        groups: dict[str, list[Group]] = {"auc": [], "layers": [], "rankings": [], "match": []}
        plots: list[Plot] = []
        runs: dict[str, Run] = {}
        comparison = recipe.comparison(FIRST)
        for number, collection in enumerate(collections, 1):
            results = _CollectionResults(self, recipe, workspace, collection, prepared.paths)
            for name, rows in results.rows(comparison).items():
                groups[name].append(Group(collection.name, rows))
            plots += results.plots(number)
            group = groups["rankings"][-1]
            plots.append(difference_dots(f"differences-{number}", group, recipe.measures, FIRST))
            runs |= {f"{collection.name}.{tag}": run for tag, run in results.runs.items()}
        headings = {
            "auc": Heading(
                "Separation of relevant pairs", "model, field", AUC_NOTE.format(others=self.others)
            ),
            "layers": Heading(
                "Layers", "model, field", f"Pooling: {self.curve}. Layer 0: the embedding layer."
            ),
            "rankings": Heading("Rankings of all documents", "ranked by", comparison.note()),
            "match": Heading(
                "Candidates", "match", CANDIDATES_NOTE.format(row=self.ranked[0].name)
            ),
        }
        tables = build_tables(self.layout(recipe.measures), headings, groups)
        return prepared.outcome(tables, plots, runs)


class _CollectionResults:
    """The AUC values, ROC curves and runs of one collection."""

    def __init__(
        self,
        experiment: BiencoderExperiment,
        recipe: Recipe,
        workspace: Workspace,
        collection: TestCollection,
        models: Mapping[str, str],
    ) -> None:
        """Compute all results. models: name → model name or path."""
        self._experiment, self._recipe, self._collection = experiment, recipe, collection
        for row in experiment.ranked:
            _check_layer(row, models[row.model])
        self._index = workspace.index(collection, Schema(experiment.analyzer))
        stage = FirstStage(recipe.bm25)
        depth = max(recipe.depth, experiment.others)
        bm25 = rank_queries(self._index, collection.queries, stage, depth=depth)
        self._others = {
            query_id: ranking.doc_ids[: experiment.others]
            for query_id, ranking in bm25.rankings.items()
        }
        self.runs = {FIRST: Run(bm25.head(recipe.depth).rankings, FIRST)}
        self._auc: dict[tuple[str, str], dict[Pooling, float]] = {}
        self._intervals: dict[tuple[str, str], dict[str, tuple[float, float] | None]] = {}
        self._curves: dict[str, tuple[tuple[float, float], ...]] = {}
        self._matched: dict[str, tuple[float, Run]] = {}
        workspace.note_cpu_only("encoders of all layers")
        for model, path in models.items():
            encoder = LayerEncoder(locate(path))
            for field, segmenter in experiment.fields.items():
                workspace.progress(f"{collection.name}: {model}, {field}")
                cosines = compute_cosines(
                    encoder, self._index, parse_segmenter(segmenter), collection.queries
                )
                note_omissions(workspace, self._index, cosines, encoder)
                self._evaluate_pairs(cosines, model, field)
                self._rank(cosines, model, field)

    def _evaluate_pairs(self, cosines: Cosines, model: str, field: str) -> None:
        """Compute the AUC of each pooling, and intervals and ROC curve of the last layer."""
        try:
            pairs = JudgedPairs.of(cosines, self._collection.qrels, self._others)
            self._auc[model, field] = {
                pooling: auc(pairs.scores(cosines.of(pooling)), pairs.relevant)
                for pooling in cosines.poolings
            }
        except InputError as fault:
            raise fault.at(f"collection {self._collection.name}, field {field}") from None
        layer, seed = cosines.poolings[-1].layer, self._recipe.seed
        self._intervals[model, field] = {
            mode: auc_with_interval(
                pairs.scores(cosines.of(Pooling(mode, layer))),
                pairs.relevant,
                pairs.query,
                seed=seed,
            )[1]
            for mode in POOLING_MODES
        }
        last = Pooling(self._experiment.curve, layer)
        scores = pairs.scores(cosines.of(last))
        self._curves[f"{model}, {field}"] = _resampled(*roc(scores, pairs.relevant))

    def _rank(self, cosines: Cosines, model: str, field: str) -> None:
        """Compute the runs that the recipe requests for this model and field."""
        depth = self._recipe.depth
        for number, row in enumerate(self._experiment.ranked):
            if (row.model, row.field) != (model, field):
                continue
            last = cosines.poolings[-1].layer
            layer = last if row.pooling.layer is None else row.pooling.layer
            pooling = Pooling(row.pooling.mode, layer)
            self.runs[row.name] = cosines.run(pooling, depth, row.name)
            for match in self._experiment.match if number == 0 else ():
                candidates = self._candidates(match, cosines, pooling)
                run = cosines.run(pooling, depth, f"match {match}", candidates.__getitem__)
                mean_size = sum(map(len, candidates.values())) / len(candidates)
                self._matched[match] = mean_size / max(1, len(self._index)), run

    def _candidates(
        self, match: str, cosines: Cosines, pooling: Pooling
    ) -> dict[str, frozenset[str]]:
        """Return query_id → doc_ids of the candidate set `match`."""
        parsed = parse_vector_match(match, CandidateScores.COSINE)
        count = parsed.nearest(self._recipe.depth)
        nearest = cosines.run(pooling, count, "") if count else None
        candidates = {}
        for query in self._collection.queries:
            doc_ids: set[str] = set(nearest.rankings[query.query_id].doc_ids) if nearest else set()
            if parsed.terms is not None:
                stage = FirstStage(match=parsed.terms)
                doc_ids |= matching_ids(self._index, query.text, stage)
            candidates[query.query_id] = frozenset(doc_ids)
        return candidates

    def rows(self, comparison: Comparison) -> dict[str, tuple[Row, ...]]:
        """Return the rows of each table by the table's name."""
        measures, qrels = self._recipe.measures, self._collection.qrels
        areas, layers = [], []
        for (model, field), by_pooling in self._auc.items():
            last = max(pooling.layer or 0 for pooling in by_pooling)
            name = f"{model}, {field}"
            intervals = self._intervals[model, field]
            cells = (Cell(by_pooling[Pooling(m, last)], intervals[m]) for m in POOLING_MODES)
            areas.append(Row(name, tuple(cells)))
            curve = {p.layer: x for p, x in by_pooling.items() if p.mode == self._experiment.curve}
            best = max(curve, key=lambda layer: curve[layer])
            layers.append(Row.of(name, (best, curve[best], curve[last])))
        results = [measure(qrels, run, measures) for run in self.runs.values()]
        rows = {
            "auc": tuple(areas),
            "layers": tuple(layers),
            "rankings": comparison.rows(results),
        }
        if self._experiment.match:
            rows["match"] = match_rows(self._matched, qrels, measures)
        return rows

    def plots(self, number: int) -> list[Plot]:
        """Plot AUC over the layers, and the ROC curves for the last layer."""
        name, mode = self._collection.name, self._experiment.curve
        by_layer = {
            f"{model}, {field}": tuple(
                (float(pooling.layer or 0), value)
                for pooling, value in by_pooling.items()
                if pooling.mode == mode
            )
            for (model, field), by_pooling in self._auc.items()
        }
        return [
            Curves(f"layers-{number}", f"{name}: by layer, {mode}", "layer", "AUC", by_layer),
            Curves(
                f"roc-{number}",
                f"{name}: last layer, {mode}",
                "false positive rate",
                "true positive rate",
                self._curves,
            ),
        ]


def _check_layer(row: RankingSettings, model: str) -> None:
    """Raise InputError if the model does not have the layer; called before anything is encoded."""
    layers = open_named(model).config.layers
    if (row.pooling.layer or 0) > layers:
        raise InputError(
            "no such layer",
            where=f"row {row.name}",
            wanted=f"0 to {layers}",
            found=str(row.pooling.layer),
        )


def _resampled(x: np.ndarray, y: np.ndarray) -> tuple[tuple[float, float], ...]:
    """Interpolate a curve at POINTS evenly spaced values of x from 0 to 1."""
    at = np.linspace(0, 1, POINTS)
    return tuple(zip(at.tolist(), np.interp(at, x, y).tolist(), strict=True))
