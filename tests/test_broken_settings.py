"""Is a TOML file read or refused, whatever is changed in it: a training or a ranker?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.checkpoint.heads import parse_pooling
from birchbark.cluster.shard import Shard
from birchbark.combine.pairwise import parse_pairwise
from birchbark.errors import InputError
from birchbark.index.index import Index
from birchbark.pipeline.load_rankers import make_ranker
from birchbark.pipeline.ranker_file import read_ranker
from birchbark.pipeline.search import search
from birchbark.pipeline.stage_options import parse_count
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.match import parse_match
from birchbark.retrieve.vector_match import CandidateScores, parse_vector_match
from birchbark.section import Section
from birchbark.segment.by_name import parse_segmenter
from birchbark.train.setting_grid import read_variants
from conftest import GivenModels, WordScorer
from fuzzing import broken_toml, fuzz, is_read

ROOT = Path(__file__).parents[1]
TRAININGS = (ROOT / "training", ROOT / "studies" / "birchbark_studies" / "training")
STAGES = """
[[stage]]
model = "m"
depth = 10
segments = "windows:15/5"
aggregate = "topmean:1,0.5"
first_stage_weight = 0.3
first_stage_scale = "minmax"
max_segments = 3
max_length = 60
precision = "fp32"
[[stage]]
embedding = "none"
read_segments = "all"
[[stage]]
embedding = "e"
embedding_weight = 0.4
embed_segments = 4
embed_documents = 20
read_segments = 2
read_documents = 3
read_pairs = "all"
query_tokens = 8
[[stage]]
duo = "d"
duo_depth = 3
duo_aggregate = "sum"
duo_max_comparisons = 9
pooling = "mean"
"""
Read = Callable[[Path], Any]
READERS: dict[str, tuple[Read, list[str]]] = {
    "training": (
        read_variants,
        [path.read_text() for folder in TRAININGS for path in sorted(folder.rglob("*.toml"))],
    ),
    "ranker": (read_ranker, [STAGES]),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A path for one file, rewritten by each example."""
    return tmp_path / "a.toml"


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, (_, texts) in READERS.items() for text in texts]
)
def test_unbroken_ones_are_read(name: str, text: str, file: Path) -> None:
    """Otherwise the tests below would try little."""
    file.write_text(text)
    assert READERS[name][0](file)


@pytest.mark.parametrize("name", READERS)
@fuzz(40)
@given(data=st.data())
def test_settings(name: str, data: st.DataObject, file: Path) -> None:
    """The error names the file."""
    read, texts = READERS[name]
    text = data.draw(broken_toml(texts))
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    is_read(lambda: read(file), file)


@pytest.mark.parametrize("name", READERS)
@fuzz(20)
@given(data=st.data())
def test_no_key_is_ignored(name: str, data: st.DataObject, file: Path) -> None:
    """A key that nothing reads is refused, in any table."""
    read, texts = READERS[name]
    lines = data.draw(st.sampled_from(texts)).splitlines()
    tables = [number for number, line in enumerate(lines) if line.startswith("[")]
    lines.insert(data.draw(st.sampled_from([-1, *tables])) + 1, "mistaken = 1")
    file.write_text("\n".join(lines))
    with pytest.raises(InputError, match="mistaken"):
        read(file)


@fuzz(12)
@given(text=broken_toml([STAGES]))
def test_what_is_read_ranks(text: str, index: Index, tmp_path: Path) -> None:
    """Settings rank, or are refused by the time the models are loaded."""
    path = tmp_path / "stages.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))

    def rank() -> Sequence[object]:
        models = GivenModels(lambda *_: WordScorer())
        rankers = [make_ranker(stage, models) for stage in read_ranker(path)[1]]
        return [search(IndexEngine(index), "birch river", ranker).hits for ranker in rankers]

    is_read(rank, "")


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (lambda text: parse_count(text, "read_segments"), "{}"),
        (parse_match, "{}"),
        (lambda text: parse_vector_match(text, CandidateScores.RRF), "nearest:{}"),
        (parse_segmenter, "windows:{}/5"),
        (parse_segmenter, "passages:{}"),
        (parse_pairwise, "sample:{}"),
        (parse_pooling, "mean:{}"),
        (Shard.parse, "1/{}"),
    ],
)
@pytest.mark.parametrize("number", ["9" * 5000, "٣"])
def test_numbers_that_are_not_read(parse: Callable[[str], object], text: str, number: str) -> None:
    """Python refuses those of thousands of digits with ValueError, and reads all scripts."""
    with pytest.raises(InputError):
        parse(text.format(number))


@pytest.mark.parametrize("value", ["9" * 400, f"[1, {'9' * 400}]", "nan", "inf"])
def test_numbers_that_no_float_holds(value: str, tmp_path: Path) -> None:
    """They are not finite: Python has no float for integers of 400 digits."""
    path = tmp_path / "a.toml"
    path.write_text(f"x = {value}")
    section = Section.read(path)
    with pytest.raises(InputError, match=r"a\.toml: x"):
        section.numbers("x", ()) if value.startswith("[") else section.number("x")


def test_a_number_of_thousands_of_digits_is_no_toml(tmp_path: Path) -> None:
    """Python's own reader raises ValueError for it."""
    path = tmp_path / "a.toml"
    path.write_text(f"x = {'9' * 5000}")
    with pytest.raises(InputError, match=r"a\.toml: not a TOML file"):
        Section.read(path)
