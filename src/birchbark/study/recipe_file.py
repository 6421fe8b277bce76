"""How does a TOML file become a recipe? Read strictly; its `kind` names one of `KINDS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from birchbark.collection.documents import READERS
from birchbark.errors import InputError
from birchbark.evaluate.measures import check_averaged
from birchbark.retrieve.bm25 import BM25
from birchbark.section import Section, with_settings
from birchbark.study.data import CollectionFiles
from birchbark.study.kinds.analyzers import AnalyzerStudy
from birchbark.study.kinds.biencoder import BiencoderStudy
from birchbark.study.kinds.evidence import EvidenceStudy
from birchbark.study.kinds.fields import FieldStudy
from birchbark.study.kinds.pipelines import PipelineStudy
from birchbark.study.kinds.reranking import RerankingStudy
from birchbark.study.kinds.rewording import RewordingStudy
from birchbark.study.kinds.variants import read_trainings
from birchbark.study.published import read_published
from birchbark.study.recipe import Experiment, Recipe

KINDS: Mapping[str, Callable[[Section], Experiment]] = {
    "analyzers": AnalyzerStudy.read,
    "bi-encoder": BiencoderStudy.read,
    "evidence": EvidenceStudy.read,
    "fields": FieldStudy.read,
    "pipelines": PipelineStudy.read,
    "reranking": RerankingStudy.read,
    "rewording": RewordingStudy.read,
    "training": read_trainings,
}


def read_recipe(path: Path, larger: bool = False) -> Recipe:
    """The recipe at `path`. Raises InputError for any fault, naming the file and the key.

    larger: with the settings of its table [larger], dotted keys, for those who have a GPU.
    """
    values = Section.table(path)
    settings = Section({"larger": values.pop("larger", {})}, str(path)).values("larger")
    if larger and not settings:
        raise InputError("the recipe has no table [larger]", where=str(path))
    top = Section(with_settings(values, settings, path) if larger else values, str(path))
    kind = top.one_of("kind", tuple(KINDS))
    measures = _measures(top)
    experiment = KINDS[kind](top.section(kind))
    recipe = Recipe(
        path=path,
        larger=larger,
        kind=kind,
        title=top.text("title"),
        source=top.text("source", ""),
        findings=top.text("findings", ""),
        collections=_collections(top),
        measures=measures,
        bm25=_bm25(top.section("bm25", {})),
        depth=top.whole("depth", 1000, least=1),
        seed=top.whole("seed", 0),
        experiment=experiment,
        published=read_published(top.sections("published", []), experiment.layout(measures)),
    )
    top.end()
    return recipe


def _measures(top: Section) -> tuple[str, ...]:
    measures = top.texts("measures")
    try:
        check_averaged(measures)
    except InputError as fault:
        raise fault.at(top.where("measures")) from None
    return measures


def _bm25(section: Section) -> BM25:
    k1, b = section.number("k1", 0.9), section.number("b", 0.4)
    section.end()
    try:
        return BM25(k1, b)
    except InputError as fault:
        raise fault.at(section.where()) from None


def _collections(top: Section) -> tuple[CollectionFiles, ...]:
    found = []
    for section in top.sections("collections"):
        form = section.one_of("format", tuple(READERS)) if "format" in section.keys else ""
        found.append(
            CollectionFiles(
                section.text("name"),
                section.text("documents", ""),
                section.text("queries", ""),
                section.text("qrels"),
                section.texts("topic_fields", ("title",)),
                section.text("run", ""),
                section.text("folds", ""),
                form,
            )
        )
        section.end()
    if not found or len({c.name for c in found}) < len(found):
        raise InputError(
            "collections are missing or share a name",
            where=top.where("collections"),
            wanted="[[collections]] with a name, documents, queries and qrels each",
        )
    return tuple(found)
