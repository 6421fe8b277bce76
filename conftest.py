"""What do all tests share? Small collections, tiny random BERTs, and real data where it is."""

from __future__ import annotations

import json
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from safetensors.numpy import save_file
from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer

from birchbark.collection.file_readers.file import Fields, File
from birchbark.collection.file_readers.file_types import file_type
from birchbark.collection.files.file_documents import Part, parts_of
from birchbark.collection.files.isolated_reader import IsolatedReader
from birchbark.collection.parsing.intake import Intake
from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.pipeline.loaded_models import LoadedModels
from birchbark.records import Document, Float32s, Ids
from birchbark.score.precision import Precision
from birchbark.score.scorer import Scorer

# With a process per core, more threads than one in each would wait for each other.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("birchbark", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("birchbark")

DATA = Path(os.environ.get("BIRCHBARK_DATA", Path(__file__).parents[1] / "shared" / "data"))

WORDS = (
    "the a birch bark canoe river paddle tree forest bee honey dance flower stone bridge arch "
    "iron steam engine . , ! ?"
).split()
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "##s", "##ing"]

DOCUMENTS = (
    Document(
        "canoe", {"title": "Birch canoe", "text": "A canoe of birch bark. It rides the river."}
    ),
    Document("bees", {"title": "Bees", "text": "Bees dance. The dance tells of a flower."}),
    Document(
        "bridge", {"title": "", "text": "An iron bridge crosses the river. Stone arches end it."}
    ),
    Document(
        "engine", {"title": "Steam engine", "text": "Steam drives the engine.\n\nIron holds it."}
    ),
    Document(
        "forest", {"title": "Forest", "text": "Birch trees stand in the forest by the river."}
    ),
)


# Files of few but long tests, which would otherwise leave one of two processes without work.
FIRST = ("test_notebooks.py", "test_readme.py", "test_search_options.py", "test_docs.py")
FIRST += ("test_process.py", "test_committed_recipes.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the longest files begin."""
    items.sort(key=lambda item: item.path.name not in FIRST)


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """DOCUMENTS, indexed."""
    return build_index(DOCUMENTS, tmp_path_factory.mktemp("small") / "index")


def read_in_this_process(patch: pytest.MonkeyPatch) -> None:
    """Let files be read in this process, where a test can change how."""

    def begin(
        self: IsolatedReader,
        location: Path,
        raw: bytes,
        path: str,
        about: Fields,
        notes: Counter[str],
    ) -> Iterator[Part]:
        kind = file_type(Path(path))
        assert kind
        intake = Intake(encoding=self._encoding, notes=notes)
        return parts_of(File(location, raw, intake), path, kind, about)

    patch.setattr(IsolatedReader, "begin", begin)


@pytest.fixture(autouse=True, scope="module")
def readers_in_this_process(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let tests of readers need no other process, except those of that process."""
    with pytest.MonkeyPatch.context() as patch:
        of_process = request.path.stem in ("test_isolated_reader", "test_find_sections")
        if request.path.parent.name == "collection" and not of_process:
            read_in_this_process(patch)
        yield


@pytest.fixture(autouse=True, scope="module")
def plots_are_not_drawn(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let studies of each kind, and with each committed recipe, be run without their plots.

    A plot takes half a second, is drawn twice, and some studies have thirty.
    """
    with pytest.MonkeyPatch.context() as patch:
        if request.path.parent.parent == Path(__file__).parent / "studies" / "tests":
            patch.setattr("birchbark_studies.report.draw", lambda plot: "<svg></svg>")
            patch.setattr("birchbark_studies.run.draw_page", lambda plot: "<svg></svg>")
        yield


class GivenModels(LoadedModels):
    """Models that a function returns, which is called once for each name and precision."""

    def __init__(self, load: Callable[[str, Precision], Scorer]) -> None:
        super().__init__()
        self._load, self._given = load, dict[tuple[str, Precision], Scorer]()

    def scorer(
        self, model: str, precision: Precision = Precision.FP32, pooling: str | None = None
    ) -> Scorer:
        """Return what the function returns."""
        if (model, precision) not in self._given:
            self._given[model, precision] = self._load(model, precision)
        return self._given[model, precision]


@pytest.fixture(scope="session")
def data() -> Callable[[str], Path]:
    """Path of a file or folder of the real collections; the test is skipped where it is missing."""

    def find(name: str) -> Path:
        if not (DATA / name).exists():
            pytest.skip(f"real data not here: {DATA / name} (set BIRCHBARK_DATA)")
        return DATA / name

    return find


@pytest.fixture
def bert(tmp_path: Path) -> Callable[..., Path]:
    """Writes a tiny BERT with random weights and gives its directory; see `write_bert`."""

    def write(**choices: object) -> Path:
        directory = tmp_path / f"bert-{len(list(tmp_path.iterdir()))}"
        return write_bert(directory, **choices)  # type: ignore[arg-type]

    return write


def write_static(directory: Path, table: Float32s, name: str = "embedding.weight") -> Path:
    """A static embedding of VOCABULARY, as sentence-transformers writes it: without config.json.

    table: a row for each token. name: that of the table.
    """
    directory.mkdir(parents=True)
    (directory / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    BertWordPieceTokenizer(str(directory / "vocab.txt")).save(str(directory / "tokenizer.json"))
    save_file({name: table}, directory / "model.safetensors")
    kind = "sentence_transformers.models.StaticEmbedding"
    modules = [{"idx": 0, "name": "0", "path": "", "type": kind}]
    (directory / "modules.json").write_text(json.dumps(modules))
    return directory


def write_bert(
    directory: Path,
    *,
    labels: int | None = None,
    layers: int = 2,
    positions: int = 32,
    seed: int = 0,
    masked: bool = False,
) -> Path:
    """A BERT of 16 dimensions. labels: logits of its classifier; None for a mean embedding.

    masked: with the head of a masked language model, too.
    """
    directory.mkdir(parents=True)
    hidden, heads, inner = 16, 4, 24
    config = {
        "model_type": "bert",
        "hidden_act": "gelu",
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "intermediate_size": inner,
        "vocab_size": len(VOCABULARY),
        "max_position_embeddings": positions,
        "type_vocab_size": 2,
        "layer_norm_eps": 1e-12,
        "birchbark": {"temperature": 1.0},
    }
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    shapes = {
        "embeddings.word_embeddings.weight": (len(VOCABULARY), hidden),
        "embeddings.position_embeddings.weight": (positions, hidden),
        "embeddings.token_type_embeddings.weight": (2, hidden),
        **_norm("embeddings.LayerNorm", hidden),
    }
    for i in range(layers):
        name = f"encoder.layer.{i}"
        for part in ("query", "key", "value"):
            shapes |= _linear(f"{name}.attention.self.{part}", hidden, hidden)
        shapes |= _linear(f"{name}.attention.output.dense", hidden, hidden)
        shapes |= _norm(f"{name}.attention.output.LayerNorm", hidden)
        shapes |= _linear(f"{name}.intermediate.dense", inner, hidden)
        shapes |= _linear(f"{name}.output.dense", hidden, inner)
        shapes |= _norm(f"{name}.output.LayerNorm", hidden)
    if labels is None:
        (directory / "1_Pooling").mkdir()
        pooling = {"pooling_mode_mean_tokens": True}
        (directory / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    else:
        shapes |= _linear("pooler.dense", hidden, hidden) | _linear("classifier", labels, hidden)
    if masked:
        shapes |= _linear("cls.predictions.transform.dense", hidden, hidden)
        shapes |= _norm("cls.predictions.transform.LayerNorm", hidden)
        shapes |= {"cls.predictions.bias": (len(VOCABULARY),)}
    random = np.random.default_rng(seed)
    prefix = "" if labels is None else "bert."
    tensors = {
        (name if name.startswith(("classifier", "cls.")) else prefix + name): random.normal(
            1 if "LayerNorm.weight" in name else 0, 0.3, shape
        ).astype(np.float32)
        for name, shape in shapes.items()
    }
    save_file(tensors, directory / "model.safetensors")
    return directory


def _linear(name: str, out: int, inner: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (out, inner), f"{name}.bias": (out,)}


def _norm(name: str, size: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (size,), f"{name}.bias": (size,)}


# Options with which one model alone reads everything.
READ_EVERYTHING = (
    "--embedding",
    "none",
    "--set",
    "read_segments=all",
    "--set",
    "read_documents=all",
)

QUERIES = {"1": "birch river", "2": "iron engine", "3": "bees dance", "4": "stone bridge"}


def write_duo(folder: Path, **sizes: int) -> Path:
    """A BERT of random weights that says it compares."""
    directory = write_bert(folder, labels=1, seed=8, **sizes)
    config = json.loads((directory / "config.json").read_text())
    config["birchbark"] = {"reads": "two texts"}
    (directory / "config.json").write_text(json.dumps(config))
    return directory


class WordScorer:
    """A scorer without BERT: the share of the query's words that a segment holds."""

    name, kind, fingerprint = "share of the query's words", "words", "words"
    encoding, vocabulary, width = "words", 1 << 31, 1

    def __init__(self, token_budget: int = 8) -> None:
        self._token_budget = token_budget
        self._words: dict[int, str] = {}

    def token_budget(self, query: str) -> int:
        return self._token_budget

    def spans(self, text: str) -> list[tuple[int, int]]:
        import re

        return [match.span() for match in re.finditer(r"\S+", text)]

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        words = [text.lower().split() for text in texts]
        self._words |= {self._id(word): word for some in words for word in some}
        return [np.array([self._id(word) for word in some], np.int32) for some in words]

    def _id(self, word: str) -> int:
        return zlib.crc32(word.encode("utf-8", "surrogatepass")) >> 1

    def text(self, piece: Ids) -> str:
        return " ".join(self._words[i] for i in piece.tolist())

    def score(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
        wanted = set(self.encode([query])[0].tolist())
        shares = [len(wanted & set(piece.tolist())) / len(wanted) for piece in token_ids]
        return np.array(shares, np.float32)
