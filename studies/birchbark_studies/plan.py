"""How much does a study train and read, and about how long does it take, without running it?

Times are estimates to an order of magnitude: arithmetic of the encoders' matrices, at the speed
that this CPU has now or that a GPU is assumed to have, with every text as long as a training
allows, and documents as long as the first ones of a file.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np

from birchbark import BirchbarkError, defaults, read_collection, read_qrels
from birchbark.checkpoint.locate import open_named
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.parsing.lines import binary_lines
from birchbark.show.plural import plural
from birchbark.train.config import TrainingConfig
from birchbark_studies.collections import CollectionFiles
from birchbark_studies.recipe import Recipe

GPU_SPEED = 1e14  # operations a second, in TF32
TOKENS = 256  # of a document if the collection is not here, not a file, or cannot be read
TOKENS_OF_WORD = 1.4  # of English text, including the query that is read with each segment
MOST_READ = 100_000_000  # bytes of a file whose documents are counted
SAMPLED = 200  # documents at the beginning of a file, which tell their length
NAMED_SIZES = {"bert-base": (12, 768), "bert-large": (24, 1024)}  # layers, hidden dimensions
SIZE_IN_NAME = re.compile(r"L-?(\d+)[_-]H-?(\d+)")


@dataclass(frozen=True, slots=True)
class PlannedTraining:
    """A training run, which several models of a study may share.

    Attributes:
        models: The names of the models that begin with it or are made by it.
        base: The model that it starts from.
        length: How long it is, in words.
        texts: The number of texts that it reads, at most; None if the data decides.
        seconds: The estimated time; None if it is unknown.
        unknown: What is not known, and decides the time.
    """

    models: tuple[str, ...]
    title: str
    base: str
    length: str
    texts: int | None
    seconds: float | None
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlannedReading:
    """What models read of a collection. Attributes as above, and:

    documents: for each query, by all models together; None if the data decides.
    queries: The number of judged queries; None if the judgments are not here.
    times_encoded: How many times all documents are read to compute their vectors.
    """

    collection: str
    documents: int | None
    queries: int | None
    times_encoded: int
    seconds: float | None
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """The stages of a study: its training runs, and what models read of each collection."""

    trainings: tuple[PlannedTraining, ...]
    readings: tuple[PlannedReading, ...]

    @property
    def seconds(self) -> float:
        """The estimated time of all that can be estimated."""
        return sum(part.seconds or 0 for part in self._parts)

    @property
    def unknown(self) -> tuple[str, ...]:
        """What is not known, and decides the time of some part."""
        return tuple(dict.fromkeys(reason for part in self._parts for reason in part.unknown))

    @property
    def _parts(self) -> list[PlannedTraining | PlannedReading]:
        return [*self.trainings, *self.readings]


def plan_study(recipe: Recipe, root: Path | None, device: str) -> Plan:
    """Plan a study. root: the data root, None for none. device: cpu or cuda."""
    trainings, sizes = [], list[int | None]()
    for names, earlier, training in _trainings(recipe):
        size = _training_size(training, earlier)
        sizes.append(size)
        trainings.append(_planned(names, earlier, training, size, root, device))
    sizes += map(_size, recipe.experiment.models)
    largest = None if None in sizes else max((size for size in sizes if size), default=0)
    return Plan(tuple(trainings), tuple(_readings(recipe, root, largest, device)))


@cache
def speed(device: str) -> float:
    """Return about how many operations a second a device does: measured on the CPU, in .1 s."""
    if device != "cpu":
        return GPU_SPEED
    texts, weights = np.ones((512, 768), np.float32), np.ones((768, 768), np.float32)
    times = []
    for _ in range(6):
        start = time.perf_counter()
        texts @ weights
        times.append(time.perf_counter() - start)
    return 2 * texts.size * len(weights) / min(times)


def _trainings(
    recipe: Recipe,
) -> Iterator[tuple[tuple[str, ...], tuple[TrainingConfig, ...], TrainingConfig]]:
    """Yield the models, the earlier runs and the settings of each training run, each once."""
    runs: dict[str, tuple[tuple[TrainingConfig, ...], TrainingConfig]] = {}
    models: dict[str, list[str]] = {}
    for name, chain in recipe.experiment.chains.items():
        for number, training in enumerate(chain):
            key = json.dumps([run.values for run in chain[: number + 1]], sort_keys=True)
            runs.setdefault(key, (chain[:number], training))
            models.setdefault(key, []).append(name)
    for key, (earlier, training) in runs.items():
        yield tuple(models[key]), earlier, training


def _planned(
    models: tuple[str, ...],
    earlier: tuple[TrainingConfig, ...],
    training: TrainingConfig,
    size: int | None,
    root: Path | None,
    device: str,
) -> PlannedTraining:
    base = earlier[-1].title if earlier else training.base
    length, texts = _length(training), count_texts(training, root)
    sizes = [None if size is None else 3 * size, *map(_size, training.teachers)]
    unknown = [] if size is not None else [f"the size of {(*earlier, training)[0].base}"]
    unknown += [f"the size of {t}" for t in training.teachers if _size(t) is None]
    if texts is None:
        unknown += [
            f"the number of pairs in {', '.join(files)}" for files in unlimited(training).values()
        ]
    seconds = None
    if texts is not None and not unknown:
        # two operations a parameter and token
        read = sum(size or 0 for size in sizes) * texts + (size or 0) * _mined(training, texts)
        seconds = 2 * read * training.max_length / speed(device)
    return PlannedTraining(models, training.title, base, length, texts, seconds, tuple(unknown))


def count_texts(training: TrainingConfig, root: Path | None = None) -> int | None:
    """Return how many texts a training run reads, at most; None if its data decides.

    root: the data root, whose files are counted; None for none.
    """
    schedule = training.schedule
    inputs = [_passages(training, data.passages) for data in training.data]
    if schedule.steps is not None:
        sizes = [data.lists.texts * n for data, n in zip(training.data, inputs, strict=True)]
        return schedule.steps * schedule.batch * schedule.accumulate * max(sizes)
    lines = _lines(training, root)
    if unlimited(training).keys() - lines.keys():
        return None
    texts = [
        lines.get(data.name, 0)
        or (data.lists.take or data.source.known_pairs or 0) * data.lists.texts
        for data in training.data
    ]
    return (schedule.epochs or 0) * sum(x * n for x, n in zip(texts, inputs, strict=True))


def _mined(training: TrainingConfig, texts: int) -> int:
    """Return about how many texts the model in training scores to mine negatives.

    Texts that are paired with a query are not counted, nor those beyond `depth` that a bi-encoder
    encodes. texts: the number that it reads to learn from them.
    """
    mining, schedule = training.mining, training.schedule
    if mining is None:
        return 0
    lists = texts // min(data.lists.texts for data in training.data)
    return max(0, lists - mining.start * schedule.batch * schedule.accumulate) * mining.depth


def _lines(training: TrainingConfig, root: Path | None) -> dict[str, int]:
    """Map data sets that are read in full to their number of pairs, where lines below `root` tell.

    They do if each text is in one list an epoch, in files of pairs and in judgments.
    """
    lines = {}
    for data in training.data:
        files = {"PAIRS": data.files, "JUDGED": data.files[2:]}.get(data.source.kind.name)
        is_whole = data.name in unlimited(training) and data.lists.each != "positive"
        if root is None or not files or not is_whole:
            continue
        paths = [root / name for name in files]
        if all(path.is_file() for path in paths):
            lines[data.name] = sum(1 for path in paths for _ in binary_lines(path))
    return lines


def _length(training: TrainingConfig) -> str:
    """Return the length of a training run in words."""
    schedule = training.schedule
    if schedule.steps is not None:
        return f"{plural(schedule.steps, 'step')} of {schedule.batch * schedule.accumulate}"
    every = " of all lists" if unlimited(training) else ""
    return f"{plural(schedule.epochs or 0, 'epoch')}{every}"


def unlimited(training: TrainingConfig) -> dict[str, tuple[str, ...]]:
    """Map the data sets whose number of lists an epoch only their files tell to these files."""
    sets = [d for d in training.data if d.lists.take is None and d.source.known_pairs is None]
    return {data.name: data.files for data in sets}


def _passages(training: TrainingConfig, passages: int | None) -> int:
    """Return how many inputs a text is."""
    return passages or (defaults.PASSAGES if training.initialisation.parade else 1)


def _readings(
    recipe: Recipe, root: Path | None, size: int | None, device: str
) -> Iterator[PlannedReading]:
    for files in recipe.collections:
        documents = recipe.experiment.documents_read(files)
        times_encoded = recipe.experiment.times_encoded(files)
        if documents == times_encoded == 0:
            continue
        queries = None
        if root is not None and (path := root / files.qrels).is_file():  # else nothing is fetched
            queries = len(read_qrels(path).grades)
        by_query = _tokens(files, root, documents, queries)
        in_all = _all_tokens(files, root) if times_encoded else 0.0
        unknown = []
        if documents != 0 and queries is None:
            unknown.append("the number of queries of " + files.name)
        if size is None:
            unknown.append("the sizes of the models")
        if documents is None or in_all is None:
            unknown.append("the number of documents in " + files.name)
        seconds = None
        if by_query is not None and in_all is not None and size is not None:
            seconds = 2 * size * (by_query + times_encoded * in_all) / speed(device)
        reasons = tuple(unknown)
        yield PlannedReading(files.name, documents, queries, times_encoded, seconds, reasons)


def _tokens(
    files: CollectionFiles, root: Path | None, documents: int | None, queries: int | None
) -> float | None:
    """Return about how many tokens models read for all queries; None if it is unknown."""
    if documents == 0:
        return 0.0
    if documents is None or queries is None:
        return None
    length: float = TOKENS
    if root is not None and (path := root / files.documents).is_file():
        lengths = list(islice(_lengths(files, path), SAMPLED))
        length = sum(lengths) / len(lengths) if lengths else TOKENS
    return documents * queries * length


def _all_tokens(files: CollectionFiles, root: Path | None) -> float | None:
    """Return about how many tokens all documents have; None unless a small file tells."""
    if root is None or not (path := root / files.documents).is_file():
        return None
    if path.stat().st_size > MOST_READ:
        return None
    return sum(_lengths(files, path)) or None  # a file that cannot be read has no documents


def _lengths(files: CollectionFiles, path: Path) -> Iterator[float]:
    """Yield about how many tokens each document has, up to one that cannot be read."""
    intake = Intake(skip_bad=True, encoding=files.encoding)
    with suppress(BirchbarkError):
        for document in read_collection(path, intake, files.format or None):
            yield TOKENS_OF_WORD * len(document.contents.split())


def _training_size(training: TrainingConfig, earlier: tuple[TrainingConfig, ...]) -> int | None:
    """Return the number of weights in the layers that a training run trains; None if unknown."""
    base = (*earlier, training)[0].base
    sizes = _dimensions(base)
    if sizes is None:
        return None
    layers, hidden, intermediate = sizes
    for run in (*earlier, training):
        kept = run.initialisation
        layers = len(kept.from_layers) or kept.layers or layers
        hidden, intermediate = kept.hidden or hidden, kept.intermediate or intermediate
    return _weights(layers, hidden, intermediate)


def _size(model: str) -> int | None:
    """Return the number of weights in a model's layers; None if neither it nor its name tells."""
    sizes = _dimensions(model)
    return None if sizes is None else _weights(*sizes)


def _weights(layers: int, hidden: int, intermediate: int) -> int:
    return layers * (4 * hidden * hidden + 2 * hidden * intermediate)


def _dimensions(model: str) -> tuple[int, int, int] | None:
    """Return layers, hidden and intermediate dimensions of a model, which need not be here."""
    try:
        config = open_named(model).config
    except BirchbarkError:
        if found := SIZE_IN_NAME.search(model):
            layers, hidden = map(int, found.groups())
            return layers, hidden, 4 * hidden
        for name, (layers, hidden) in NAMED_SIZES.items():
            if name in model:
                return layers, hidden, 4 * hidden
        return None
    return config.layers, config.hidden, config.intermediate
