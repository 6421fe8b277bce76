"""Which layer, pooling and field makes the best bi-encoder? The cord paper's tables 4.3 to 4.5."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from birchbark.checkpoint.heads import MODES, Pooling
from birchbark.checkpoint.named import locate, open_named
from birchbark.errors import InputError
from birchbark.evaluate.measures import measure
from birchbark.evaluate.roc import auc, roc
from birchbark.index.build import Schema
from birchbark.pipeline.dense import parse_near
from birchbark.records import Run
from birchbark.retrieve.first_stage import FirstStage, matching, rank_queries
from birchbark.score.layers import LayerEncoder
from birchbark.section import Section
from birchbark.segment.named import parse_segmenter
from birchbark.show.plot import Curves, Plot
from birchbark.show.table import Cell, Column, Group, Row, Style, Table
from birchbark.study.bench import Bench
from birchbark.study.comparison import FIGURES, compared, difference_dots, measure_columns
from birchbark.study.data import TestCollection
from birchbark.study.kinds.biencoder_scores import Cosines, JudgedPairs, cosines, tell_left
from birchbark.study.models import Models
from birchbark.study.outcome import Outcome, check_run_names
from birchbark.study.recipe import Recipe

FIRST = "BM25"
POINTS = 60  # of a ROC curve
BEST = (
    Column("best layer", Style.COUNT),
    Column("AUC there", Style.MEASURE),
    Column("of the last", Style.MEASURE),
)
AUC_NOTE = (
    "AUC: the chance that a relevant pair of query and document has a higher cosine than another "
    "pair, all queries' pairs together. Others are judged not relevant, or nobody judged them and "
    "they are among BM25's first {others}; documents without the field are left out. Vectors are "
    "of the last layer. Of a text that is longer than one input its beginning is read."
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A row of the table of rankings: which model's cosines, of which field, how pooled."""

    model: str
    field: str
    pooling: Pooling

    @property
    def name(self) -> str:
        """What the row is called."""
        layer = "" if self.pooling.layer is None else f", layer {self.pooling.layer}"
        return f"{self.model}, {self.field}, {self.pooling.mode}{layer}"


@dataclass(frozen=True, slots=True)
class BiencoderStudy:
    """The choices of this kind.

    compared: models by what rows call them. fields: name → the segment that each document is read
    as. others: unjudged documents among BM25's first so many count as
    not relevant; 0 for judged ones alone. curve: the pooling that is drawn over layers. ranked:
    what ranks the whole collection. match: candidates of the first of them, one by one.
    """

    compared: Models
    fields: Mapping[str, str]
    others: int
    curve: str
    ranked: tuple[Chosen, ...]
    match: tuple[str, ...]

    @classmethod
    def read(cls, section: Section) -> BiencoderStudy:
        """From the table [bi-encoder] of a recipe."""
        compared = Models.read(section.section("models"))
        table = section.section("fields")
        fields = {name: table.text(name) for name in table.keys}
        for words in fields.values():
            parse_segmenter(words)
        ranked = []
        for one in section.sections("ranked"):
            ranked.append(
                Chosen(
                    one.one_of("model", tuple(compared.named)),
                    one.one_of("field", tuple(fields)),
                    Pooling(one.one_of("pooling", MODES), one.whole("layer", None)),
                )
            )
            one.end()
        found = cls(
            compared,
            fields,
            section.whole("others", 100),
            section.one_of("curve", MODES, "mean"),
            tuple(ranked),
            section.texts("match", ()),
        )
        check_run_names([FIRST, *(one.name for one in ranked)], section.where("ranked"))
        for word in found.match:
            try:
                parse_near(word, dense=True)
            except InputError as fault:
                raise fault.at(section.where("match")) from None
        if not (compared.named and fields and ranked):
            raise InputError("models, fields and ranked are needed", where=section.where())
        section.end()
        return found

    @property
    def models(self) -> tuple[str, ...]:
        """All that must be there to encode with, or to train from."""
        return self.compared.needed

    @property
    def files(self) -> tuple[str, ...]:
        """What is learnt from."""
        return self.compared.files

    def layout(self, measures: tuple[str, ...]) -> Mapping[str, tuple[Column, ...]]:
        """Name → columns of the tables."""
        matched = {"match": (_RATIO, *measure_columns(measures))} if self.match else {}
        return {
            **self.compared.layout(),
            "auc": tuple(Column(mode, Style.MEASURE) for mode in MODES),
            "layers": BEST,
            "rankings": measure_columns(measures),
            **matched,
        }

    def run(self, recipe: Recipe, bench: Bench) -> Outcome:
        """Train what is trained here; encode, compare, rank."""
        collections = [bench.open(files) for files in recipe.collections]
        made = self.compared.make(bench)
        groups: dict[str, list[Group]] = {"auc": [], "layers": [], "rankings": [], "match": []}
        plots: list[Plot] = [*made.plots]
        runs: dict[str, Run] = {}
        family = len(collections) * len(self.ranked) * len(recipe.measures)
        for number, collection in enumerate(collections, 1):
            one = _Measured(self, recipe, bench, collection, made.places)
            for name, rows in one.tables(family).items():
                groups[name].append(Group(collection.name, rows))
            plots += one.plots(number)
            plots.append(
                difference_dots(
                    f"differences-{number}", groups["rankings"][-1], recipe.measures, FIRST
                )
            )
            runs |= {f"{collection.name}.{tag}": run for tag, run in one.runs.items()}
        found = self._tables(recipe, groups, family)
        return Outcome((*made.tables, *found), tuple(plots), runs, made.fingerprints, made.settings)

    def _tables(
        self, recipe: Recipe, groups: Mapping[str, list[Group]], family: int
    ) -> tuple[Table, ...]:
        drawn = f"Pooled by {self.curve}. Layer 0 is the embeddings."
        near = (
            f"Candidates of {self.ranked[0].name}: all documents; those that hold any term of the "
            "query (or), or every one (and); the nearest so many (ann), found exactly here."
        )
        heads = {
            "auc": (
                "Relevant pairs and others",
                "model, field",
                AUC_NOTE.format(others=self.others),
            ),
            "layers": ("Layers", "model, field", drawn),
            "rankings": ("Rankings of all documents", "ranked by", FIGURES),
            "match": ("Candidates", "match", near),
        }
        return tuple(
            Table(
                *(name, *heads[name][:2], columns, tuple(groups[name])),
                heads[name][2].format(baseline=FIRST, family=family),
            )
            for name, columns in self.layout(recipe.measures).items()
            if name in heads
        )


_RATIO = Column("match ratio", Style.SHARE)


class _Measured:
    """One collection: everything that is said of it."""

    def __init__(
        self,
        study: BiencoderStudy,
        recipe: Recipe,
        bench: Bench,
        collection: TestCollection,
        models: Mapping[str, str],
    ) -> None:
        self._study, self._recipe, self._collection = study, recipe, collection
        for one in study.ranked:
            _check_layer(one, models[one.model])
        self._index = bench.index(collection, Schema("english"))
        stage = FirstStage(recipe.bm25)
        bm25 = rank_queries(
            self._index, collection.queries, stage, depth=max(recipe.depth, study.others)
        )
        others = {q: ranking.doc_ids[: study.others] for q, ranking in bm25.rankings.items()}
        self.runs = {FIRST: Run(bm25.head(recipe.depth).rankings, FIRST)}
        self._auc: dict[tuple[str, str], dict[Pooling, float]] = {}
        self._curves: dict[str, tuple[tuple[float, float], ...]] = {}
        self._matched: dict[str, tuple[float, Run]] = {}
        bench.tell_device("encoders of all layers")
        for model, place in models.items():
            encoder = LayerEncoder(locate(place))
            last = encoder.poolings[-1].layer
            for field, words in study.fields.items():
                bench.tell(f"{collection.name}: {model}, {field}")
                found = cosines(encoder, self._index, parse_segmenter(words), collection.queries)
                tell_left(bench, self._index, found, encoder)
                try:
                    pairs = JudgedPairs.of(found, collection.qrels, others)
                    self._auc[model, field] = {
                        pooling: auc(pairs.scores(found.of(pooling)), pairs.relevant)
                        for pooling in found.poolings
                    }
                except InputError as fault:
                    raise fault.at(f"collection {collection.name}, field {field}") from None
                drawn = pairs.scores(found.of(Pooling(study.curve, last)))
                self._curves[f"{model}, {field}"] = _thinned(*roc(drawn, pairs.relevant))
                self._rank(found, model, field, last)

    def _rank(self, found: Cosines, model: str, field: str, last: int | None) -> None:
        """The rankings that are asked for of these cosines."""
        depth = self._recipe.depth
        for number, one in enumerate(self._study.ranked):
            if (one.model, one.field) != (model, field):
                continue
            layer = last if one.pooling.layer is None else one.pooling.layer
            pooling = Pooling(one.pooling.mode, layer)
            self.runs[one.name] = found.run(pooling, depth, one.name)
            for word in self._study.match if number == 0 else ():
                among = self._among(word, found, pooling)
                run = found.run(pooling, depth, f"match {word}", among.__getitem__)
                ratio = sum(map(len, among.values())) / len(among) / max(1, len(self._index))
                self._matched[word] = ratio, run

    def _among(self, word: str, found: Cosines, pooling: Pooling) -> dict[str, frozenset[str]]:
        """query_id → the candidates that a word for a match gives."""
        near = parse_near(word, dense=True)
        nearest = found.run(pooling, near.count or 0, "") if near.count else None
        chosen = {}
        for query in self._collection.queries:
            names: set[str] = set(nearest.rankings[query.query_id].doc_ids) if nearest else set()
            if near.terms is not None:
                masks = matching(self._index, query.text, FirstStage(match=near.terms))
                for part, mask in zip(self._index.parts, masks, strict=True):
                    names.update(part.doc_ids.take(np.flatnonzero(mask)))
            chosen[query.query_id] = frozenset(names)
        return chosen

    def tables(self, family: int) -> dict[str, tuple[Row, ...]]:
        """Name of the table → rows."""
        study, measures, qrels = self._study, self._recipe.measures, self._collection.qrels
        areas, layers = [], []
        for (model, field), found in self._auc.items():
            last = max(pooling.layer or 0 for pooling in found)
            name = f"{model}, {field}"
            areas.append(Row(name, tuple(Cell(found[Pooling(mode, last)]) for mode in MODES)))
            curve = {p.layer: value for p, value in found.items() if p.mode == study.curve}
            best = max(curve, key=lambda layer: curve[layer])
            layers.append(Row(name, (Cell(best), Cell(curve[best]), Cell(curve[last]))))
        results = [measure(qrels, run, measures) for run in self.runs.values()]
        rows = {
            "auc": tuple(areas),
            "layers": tuple(layers),
            "rankings": compared(results, FIRST, self._recipe.seed, family),
        }
        if study.match:
            rows["match"] = tuple(
                Row(word, (Cell(ratio), *map(Cell, measure(qrels, run, measures).means.values())))
                for word, (ratio, run) in self._matched.items()
            )
        return rows

    def plots(self, number: int) -> list[Plot]:
        """AUC over layers, and ROC curves of the last."""
        name, mode = self._collection.name, self._study.curve
        over = {
            f"{model}, {field}": tuple(
                (float(p.layer or 0), value) for p, value in found.items() if p.mode == mode
            )
            for (model, field), found in self._auc.items()
        }
        return [
            Curves(f"layers-{number}", f"{name}: by layer, {mode}", "layer", "AUC", over),
            Curves(
                *(f"roc-{number}", f"{name}: last layer, {mode}", "share of others found"),
                *("share of relevant found", self._curves),
            ),
        ]


def _check_layer(one: Chosen, model: str) -> None:
    """Raise InputError, before anything is encoded, for a layer that the model has not."""
    most = open_named(model).shape.layers
    if (one.pooling.layer or 0) > most:
        raise InputError(
            "no such layer",
            where=f"row {one.name}",
            wanted=f"0 to {most}",
            found=str(one.pooling.layer),
        )


def _thinned(x: np.ndarray, y: np.ndarray) -> tuple[tuple[float, float], ...]:
    """Some points of a curve, evenly along x."""
    at = np.linspace(0, 1, POINTS)
    return tuple(zip(at.tolist(), np.interp(at, x, y).tolist(), strict=True))
