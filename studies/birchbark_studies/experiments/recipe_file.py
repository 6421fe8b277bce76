"""How is a recipe read from its TOML file? Its key `kind` selects a reader.

Readers are in KINDS, or in other packages: entry points of the group `birchbark_studies.kinds`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import TypeVar

from birchbark import InputError, defaults
from birchbark.artifact import json_checksum
from birchbark.collection.documents import READERS
from birchbark.collection.parsing.intake import Intake
from birchbark.evaluate.measures import check_averaged
from birchbark.section import Section, with_settings
from birchbark_studies.collections import CollectionFiles
from birchbark_studies.experiments.analyzers import AnalyzerExperiment
from birchbark_studies.experiments.answers import AnswersExperiment
from birchbark_studies.experiments.bi_encoder.bi_encoder_experiment import BiencoderExperiment
from birchbark_studies.experiments.evidence.evidence_experiment import EvidenceExperiment
from birchbark_studies.experiments.fields.field_experiment import FieldExperiment
from birchbark_studies.experiments.pipelines.pipeline_experiment import PipelineExperiment
from birchbark_studies.experiments.query_reformulation import QueryReformulationExperiment
from birchbark_studies.experiments.reranking.reranking_experiment import RerankingExperiment
from birchbark_studies.experiments.trained.training_variants import read_trainings
from birchbark_studies.experiments.training_data import TrainingDataExperiment
from birchbark_studies.first_stages import read_bm25, read_rm3
from birchbark_studies.outcome import run_file_name
from birchbark_studies.published import read_published
from birchbark_studies.recipe import Experiment, Recipe

T = TypeVar("T")
ENTRY_POINTS = "birchbark_studies.kinds"
WORDS = ("title", "source", "demonstration", "findings", "published")  # they change no result
KINDS: Mapping[str, Callable[[Section], Experiment]] = {
    "analyzers": AnalyzerExperiment.read,
    "answers": AnswersExperiment.read,
    "bi-encoder": BiencoderExperiment.read,
    "evidence": EvidenceExperiment.read,
    "fields": FieldExperiment.read,
    "pipelines": PipelineExperiment.read,
    "query-reformulation": QueryReformulationExperiment.read,
    "reranking": RerankingExperiment.read,
    "training": read_trainings,
    "training-data": TrainingDataExperiment.read,
}


def read_recipe(path: Path, larger: bool = False) -> Recipe:
    """Read the recipe at `path`. InputError for an invalid recipe names the file and the key.

    larger: whether to apply the settings in its table [larger] (dotted keys), which need more time
        or a GPU. The source names them then, and findings are those of this table, if any.
    """
    values = Section.table(path)
    changes = Section({"larger": values.pop("larger", {})}, str(path)).values("larger")
    if larger and not changes:
        raise InputError("the recipe has no table [larger]", where=str(path))
    if larger:
        values = with_settings({**values, "findings": ""}, changes, path)
    top = Section(values, str(path))
    installed = {each.name: each for each in entry_points(group=ENTRY_POINTS)}
    kind = top.one_of("kind", (*KINDS, *installed))
    read = KINDS.get(kind) or installed[kind].load()
    try:
        experiment = read(top.section(kind))
    except InputError as fault:
        raise fault.at(top.where(kind)) from None
    measures = _measures(top) if experiment.uses_measures else ()
    if "rm3" in top.keys and not experiment.uses_rm3:
        raise InputError("studies of this kind use no RM3", where=top.where("rm3"))
    if not experiment.uses_first_stage:
        for key in {"bm25", "depth"} & set(top.keys):
            raise InputError("studies of this kind search by default", where=top.where(key))
    top.integer("revision", 1)  # a part of `settings` only: another one makes results stale
    recipe = Recipe(
        path=path,
        larger=larger,
        settings="",
        kind=kind,
        title=top.text("title"),
        source=top.text("source", "") + (_told(changes) if larger else ""),
        demonstration=top.text("demonstration", ""),
        findings=top.text("findings", ""),
        collections=_collections(top, experiment),
        measures=measures,
        bm25=_complete(read_bm25, top.section("bm25", {})),
        rm3=_complete(read_rm3, top.section("rm3", {})),
        depth=top.integer("depth", defaults.RETRIEVAL_DEPTH, minimum=1),
        seed=top.integer("seed", defaults.SEED),
        significance_level=_level(top),
        bonferroni=top.boolean("bonferroni", True),
        experiment=experiment,
        published=read_published(top.sections("published", []), experiment.layout(measures)),
    )
    top.reject_unknown_keys()  # with them, the settings may not be JSON
    settings = {key: value for key, value in values.items() if key not in WORDS}
    return replace(recipe, settings=json_checksum(settings))


def _told(changes: Mapping[str, object]) -> str:
    """Return a sentence on the settings that differ from those that the source is about.

    changes: those of the table [larger]. Empty if they have a source of their own. Of tables and
    lists, the key alone is named.
    """
    told = [
        key
        if isinstance(value, list | dict)
        else f"{key} = {json.dumps(value, ensure_ascii=False)}"
        for key, value in changes.items()
        if key not in WORDS
    ]
    return f" Run with --larger: {', '.join(told)}." if told and "source" not in changes else ""


def _measures(top: Section) -> tuple[str, ...]:
    measures = top.texts("measures")
    try:
        check_averaged(measures)
    except InputError as fault:
        raise fault.at(top.where("measures")) from None
    return measures


def _level(top: Section) -> float:
    level = top.number("significance_level", defaults.SIGNIFICANCE_LEVEL)
    if not 0 < level < 1:
        raise InputError(
            "invalid level of significance",
            where=top.where("significance_level"),
            wanted="a number between 0 and 1",
            found=f"{level:g}",
        )
    return level


def _complete(read: Callable[[Section], T], section: Section) -> T:
    """Read a table that has no other keys."""
    value = read(section)
    section.reject_unknown_keys()
    return value


def _encoding(section: Section) -> str:
    name = section.text("encoding", defaults.ENCODING)
    try:
        return Intake(encoding=name).encoding
    except InputError as error:
        raise error.at(section.where("encoding")) from None


def _collections(top: Section, experiment: Experiment) -> tuple[CollectionFiles, ...]:
    if not experiment.uses_collections:
        return ()
    collections = []
    for section in top.sections("collections"):
        needed = experiment.reads_texts or "run" not in section.keys
        documents, queries = (
            section.text(key) if needed else section.text(key, "")
            for key in ("documents", "queries")
        )
        format_ = section.one_of("format", tuple(READERS)) if "format" in section.keys else ""
        collections.append(
            CollectionFiles(
                section.text("name"),
                documents,
                queries,
                section.text("qrels"),
                section.texts("topic_fields", defaults.TOPIC_FIELDS),
                section.text("run", ""),
                section.text("folds", ""),
                format_,
                _encoding(section),
                section.boolean("skip_bad") if "skip_bad" in section.keys else None,
                section.texts("include", ()),
                section.texts("exclude", ()),
                section.texts("read", defaults.READ_FIELDS),
                section.integer("relevant", 1, minimum=1),
            )
        )
        section.reject_unknown_keys()
        for key in ("run", "folds"):
            if key in section.keys and key not in experiment.collection_keys:
                raise InputError(
                    f"studies of this kind use no {key}",
                    where=section.where(key),
                    remedy=f"remove the key {key}",
                )
    names = [collection.name for collection in collections]
    if not names:
        raise InputError("no collections", where=top.where("collections"))
    if len(set(names)) < len(names):
        raise InputError(
            "two collections share a name", where=top.where("collections"), found=", ".join(names)
        )
    files = [run_file_name(name) for name in names]
    if len(set(files)) < len(files) or not all(files):
        raise InputError(
            "the runs of two collections would share a file name, or one would have none",
            where=top.where("collections"),
            found=", ".join(names),
            remedy="use letters and digits in their names",
        )
    return tuple(collections)
