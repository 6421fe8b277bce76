"""What does a recipe ask for? A TOML file, read strictly, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from birchbark.collection.documents import READERS
from birchbark.errors import InputError
from birchbark.evaluate.measures import check_averaged
from birchbark.retrieve.bm25 import BM25
from birchbark.section import Section
from birchbark.study.bench import Bench
from birchbark.study.data import CollectionFiles
from birchbark.study.outcome import Column, Group, Outcome
from birchbark.study.published import read_published


class Experiment(Protocol):
    """One kind of study, with the choices of the recipe that are its own."""

    @property
    def models(self) -> tuple[str, ...]:
        """Names or directories of the checkpoints it needs."""
        ...

    @property
    def files(self) -> tuple[str, ...]:
        """Paths below the data root of what it needs besides the collections."""
        ...

    def layout(self, measures: tuple[str, ...]) -> Mapping[str, tuple[Column, ...]]:
        """Name → columns of each table it will make."""
        ...

    def run(self, recipe: Recipe, bench: Bench) -> Outcome:
        """Measure; `published` figures are put in by others."""
        ...


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that a study depends on, besides data and models.

    name: of the file, without suffix. source: what it repeats, and of whom. findings: what people
    read out of its results, written by hand, a paragraph to a line. depth: of all runs.
    seed: of folds and bootstrap. published: table → figures printed by others.
    """

    path: Path
    kind: str
    title: str
    source: str
    findings: str
    collections: tuple[CollectionFiles, ...]
    measures: tuple[str, ...]
    model: BM25
    depth: int
    seed: int
    experiment: Experiment
    published: Mapping[str, tuple[Group, ...]]

    @property
    def name(self) -> str:
        """What files and folders of this study are called."""
        return self.path.stem

    @property
    def files(self) -> tuple[str, ...]:
        """Paths below the data root of all that it reads, each once."""
        named = [file for collection in self.collections for file in collection.files]
        return tuple(dict.fromkeys([*named, *self.experiment.files]))


def read_recipe(path: Path) -> Recipe:
    """The recipe at `path`. Raises InputError for any fault, naming the file and the key."""
    from birchbark.study.kinds import BY_NAME

    top = Section.read(path)
    kind = top.text("kind")
    if kind not in BY_NAME:
        raise InputError(
            f"unknown kind {kind!r}", where=top.where("kind"), remedy=f"one of {', '.join(BY_NAME)}"
        )
    measures = _measures(top)
    experiment = BY_NAME[kind](top.section(kind))
    recipe = Recipe(
        path=path,
        kind=kind,
        title=top.text("title"),
        source=top.text("source", ""),
        findings=top.text("findings", ""),
        collections=_collections(top),
        measures=measures,
        model=_bm25(top.section("bm25", {})),
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
        if (form := section.text("format", "")) and form not in READERS:
            known = ", ".join(READERS)
            raise InputError(
                f"unknown format {form!r}", where=section.where("format"), remedy=f"one of {known}"
            )
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
