"""How does a study open collections, build indexes and load scorers?"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import birchbark
from birchbark import Index, InputError, build_index, defaults, load_scorer
from birchbark.artifact import (
    discard,
    files_in,
    fingerprint,
    json_checksum,
    lock,
    read_json,
    software_versions,
    write_json,
)
from birchbark.collection.data_files import data_fingerprint
from birchbark.collection.parsing.intake import Intake
from birchbark.device.torch_session import session_factory
from birchbark.errors import ArtifactError
from birchbark.index.build_index import Schema
from birchbark.score.precision import Precision
from birchbark.score.scorer import Scorer
from birchbark.score_cache.cached_scorer import CachedScorer
from birchbark.score_cache.store import ScoreStore
from birchbark_studies.collections import CollectionFiles, TestCollection, open_collection

# What an index depends on besides its documents and its schema, in the package and outside it.
CODE = ("collection", "index", "text", "records.py", "record_values.py", "defaults.py")
LIBRARIES = ("PyStemmer", "regex", "numpy", "tokenizers")
WAIT = 24 * 3600.0  # seconds for another study, which uses the same cache


def _index_key(collection: TestCollection, schema: Schema, extended_by: str) -> str:
    """Return a name for an index that is equal if the index would be."""
    files, package = collection.files, Path(birchbark.__file__).parent
    code = [path for name in CODE for path in files_in(package / name) if path.suffix == ".py"]
    vocabulary = "\n".join(schema.vocabulary or ()).encode()
    values = {
        "documents": files.documents,
        "contents": data_fingerprint(collection.source) if collection.source else "",
        "read": [files.format, files.encoding, files.skip_bad, files.include, files.exclude],
        "analyzer": [schema.analyzer, hashlib.sha256(vocabulary).hexdigest()],
        "fields": {name: list(sources) for name, sources in schema.fields.items()},
        "keywords": list(schema.keywords),
        "forward": schema.forward,
        "models read": list(schema.read_fields),
        "weighted": dict(schema.weighted),
        "code": fingerprint(*code),
        "versions": software_versions() | {name: version(name) for name in LIBRARIES},
        "extended_by": extended_by,
    }
    return json_checksum(values)[:32]


def _is_readable(directory: Path) -> bool:
    try:
        Index(directory)
    except (InputError, ArtifactError):
        return False
    return True


def intake_notes(intake: Intake) -> list[str]:
    """Return what was noted while documents were read."""
    notes = [f"{note} ({times:,} times)" for note, times in intake.notes.most_common()]
    if skipped := intake.skipped:
        notes.append(f"skipped {len(skipped):,} bad records, first {skipped[0]}")
    return notes


@dataclass(frozen=True, slots=True)
class Workspace:
    """Folders and settings shared by all kinds of studies.

    Attributes:
        root: The data root.
        scratch: A temporary folder, for what a cache would keep.
        progress: Called with one line of text per step.
        cache: A permanent folder for indexes, scores and trained models; None for no cache.
        device: The device for training and scoring; int8 always runs on the CPU.
    """

    root: Path
    scratch: Path
    progress: Callable[[str], object] = lambda step: None
    cache: Path | None = None
    device: str = defaults.DEVICE

    @property
    def cache_or_scratch(self) -> Path:
        """The cache folder if there is one, else the temporary folder."""
        return self.cache or self.scratch

    def open(self, files: CollectionFiles) -> TestCollection:
        """Open a collection of the recipe. Reports judged queries without text."""
        collection = open_collection(files, self.root)
        if missing := len(collection.qrels.grades) - len(collection.queries):
            self.progress(
                f"note: {files.name}: {missing} judged queries have no text and count as 0"
            )
        return collection

    def index(self, collection: TestCollection, schema: Schema, extended_by: str = "") -> Index:
        """Return an index of `collection`, which is built unless the cache holds it.

        In the cache, an index belongs to the contents of the documents' files, the schema and the
        code that reads and indexes documents.

        extended_by: what the caller will add to the index, which is then not returned to others.
        """
        schema = schema.reading(collection.files.read_fields)
        key = _index_key(collection, schema, extended_by)
        directory = self.cache_or_scratch / "indexes" / key
        notes = directory.with_suffix(".notes.json")  # written last
        with self.alone(directory):
            if not (notes.exists() and _is_readable(directory)):
                discard(directory)
                self.progress(f"{collection.name}: indexing, {schema.analyzer}")
                documents, intake = collection.documents()
                build_index(documents, directory, schema)
                write_json(notes, intake_notes(intake))
            for note in read_json(notes, "index of a study"):
                self.progress(f"note: {collection.name}: {note}")
            return Index(directory)

    @contextmanager
    def alone(self, directory: Path) -> Iterator[None]:
        """Make a folder of the cache, or add to it, while other studies that need it wait."""
        directory.parent.mkdir(parents=True, exist_ok=True)
        with closing(lock(directory.with_suffix(".lock"), "cache of studies", WAIT)):
            yield

    def note_cpu_only(self, component: str) -> None:
        """Report that `component` runs on the CPU, if another device was chosen."""
        if self.device != "cpu":
            self.progress(f"note: {component} run on the CPU, not on {self.device}")

    @contextmanager
    def scorer(self, model: str, precision: Precision) -> Iterator[Scorer]:
        """Load the scorer for a model. Its scores are cached if the workspace has a cache."""
        session = session_factory(self.device) if precision.runs_on_gpu else None
        scorer = load_scorer(model, precision=precision, session=session)
        if self.cache is None:
            yield scorer
            return
        with ScoreStore(self.cache / "scores", scorer, wait=WAIT) as store:
            yield CachedScorer(scorer, store)
