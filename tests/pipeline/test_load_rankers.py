"""Does `load_ranker` give the ranker of the same options, and are wrong choices refused at once?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from birchbark import Ranker, highlight, load_ranker, load_scorer, rank
from birchbark.combine.aggregate import Top
from birchbark.errors import InputError
from birchbark.pipeline.load_rankers import make_ranker
from birchbark.pipeline.loaded_models import LoadedModels
from birchbark.pipeline.stage_options import StageOptions
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.precision import Precision
from birchbark.segment.by_name import segmenter_name
from conftest import WordScorer, write_bert


def test_options_have_the_names_and_defaults_of_the_command(bert: Callable[..., Path]) -> None:
    """Numbers may be given as numbers."""
    model = str(bert(labels=1))
    ranker = load_ranker(model=model, embedding="none", segments="paragraphs", read_segments=2)
    options = StageOptions(model, embedding="none", segments="paragraphs", read_segments="2")
    expected = make_ranker(options, LoadedModels())
    assert (ranker.plan, ranker.depth) == (expected.plan, expected.depth)
    assert ranker.plan.segments == 2
    assert segmenter_name(ranker.segmenter) == "paragraphs"
    assert ranker.scorer.fingerprint == expected.scorer.fingerprint
    assert load_ranker(model=model, embedding="none", aggregate="max").aggregation == Top((1.0,))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"segmenter": "paragraphs"},
            "load_ranker: segmenter: unknown key: expected one of model, ",
        ),
        ({"segments": "verses"}, "verses"),
        (
            {"read_segments": 0},
            "load_ranker: read_segments: out of range: expected 1",
        ),
        ({"embedding": "none", "embedding_weight": 0.5}, "embedding_weight has no effect"),
    ],
)
def test_wrong_options(options: dict[str, object], message: str) -> None:
    """They are refused before a model is loaded."""
    with pytest.raises(InputError, match=message):
        load_ranker(model="missing", **options)


def test_a_cross_encoder_is_no_embedding(tmp_path: Path) -> None:
    """Its probabilities would be taken for cosines."""
    model, other = (str(write_bert(tmp_path / n, labels=1, seed=len(n))) for n in ("a", "bb"))
    with pytest.raises(InputError, match="bb is a cross-encoder, not an embedding model"):
        load_ranker(model=model, embedding=other)


def test_names_instead_of_functions() -> None:
    """The message says who takes names."""
    for wrong in ({"segmenter": "paragraphs"}, {"aggregation": "max"}):
        with pytest.raises(InputError, match="load_ranker takes the names"):
            Ranker(WordScorer(), **wrong)  # type: ignore[arg-type]


def test_models_by_name(bert: Callable[..., Path]) -> None:
    """`rank` and `highlight` load a model that is named, and load it once."""
    model, texts = bert(labels=1), ["red canoe. Blue river.", "iron engine"]
    expected = rank("red", texts, load_scorer(model))
    assert rank("red", texts, model) == rank("red", texts, str(model)) == expected
    assert highlight("red", texts, model) == highlight("red", texts, load_scorer(model))


def test_settings_of_a_scorer_by_name(bert: Callable[..., Path]) -> None:
    """Pooling and precision can be given as they are written in the shell."""
    scorer = load_scorer(bert(), pooling="mean:1", precision="int8")
    assert isinstance(scorer, EmbeddingScorer)
    assert Precision.INT8.suffix in scorer.name
    with pytest.raises(InputError, match="unknown precision: expected fp32 or int8 or"):
        load_scorer(bert(), precision="int4")
    with pytest.raises(InputError, match="median"):
        load_scorer(bert(), pooling="median")
