"""Which reading plan follows from a stage's options, and which options are refused?"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from birchbark import defaults
from birchbark.checkpoint.locate import locate
from birchbark.errors import CheckpointError, InputError
from birchbark.pipeline.load_rankers import make_ranker
from birchbark.pipeline.loaded_models import LoadedModels
from birchbark.pipeline.ranker_file import read_ranker
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.settings.reading_plan import ReadingPlan
from birchbark.pipeline.stage_options import StageOptions, parse_count
from birchbark.score import precision as precision_module
from birchbark.score.load_scorer import load_scorer
from birchbark.score.precision import Precision
from birchbark.score.scorer import Scorer
from birchbark.segment.truncate import Limit
from conftest import GivenModels, WordScorer

DEFAULT = ReadingPlan(
    segments=int(defaults.READ_SEGMENTS),
    documents=parse_count(defaults.READ_DOCUMENTS, "read_documents"),
    pairs=int(defaults.READ_PAIRS),
    embedded=int(defaults.EMBED_SEGMENTS),
    embedded_documents=int(defaults.EMBED_DOCUMENTS),
)
ALL = ReadingPlan(documents=DEFAULT.documents)
Make = Callable[..., Ranker]


class DocumentScorer(WordScorer):
    """A model that scores whole documents."""

    width = 4


@pytest.fixture
def make(bert: Callable[..., Path]) -> Make:
    """Makes a ranker; the models are `cross`, `parade`, `vectors` and the bundled embedding."""
    directory = bert()

    def load(model: str, precision: Precision) -> Scorer:
        if model in ("vectors", defaults.EMBEDDING):
            return load_scorer(directory, precision=precision)
        kind = DocumentScorer if model == "parade" else WordScorer
        return kind()  # type: ignore[return-value]

    models = GivenModels(load)

    def ranker(*, auto_int8: bool = False, **options: Any) -> Ranker:
        stage = StageOptions(**{"model": "cross", **options})
        return make_ranker(stage, models, auto_int8=auto_int8)

    return ranker


def test_the_default(make: Make) -> None:
    """The bundled embedding is mixed in, and few segments of the best candidates are read."""
    ranker = make()
    assert ranker.plan == DEFAULT
    assert ranker.embedding
    assert ranker.embedding_weight == defaults.EMBEDDING_WEIGHT
    alone = make(embedding="none")
    assert (alone.plan, alone.embedding) == (DEFAULT, None)


def test_another_embedding_reads_all_candidates(make: Make) -> None:
    """Static vectors are on the scale of the bundled one; a number that is asked for counts."""
    assert make(embedding="vectors").plan == replace(DEFAULT, embedded_documents=None)
    assert make(embedding="vectors", embed_documents="7").plan.embedded_documents == 7


def test_documents_without_vectors_are_embedded_in_int8(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are if asked for, or if the processor suits; stored vectors are always float32."""
    monkeypatch.setattr(precision_module, "has_vnni", lambda: True)
    fp32 = make().embedding
    assert fp32
    for options in ({"precision": "int8"}, {"auto_int8": True}):
        ranker = make(**options)
        assert ranker.embedding and ranker.fast_embedding
        assert ranker.embedding.fingerprint == fp32.fingerprint != ranker.fast_embedding.fingerprint
    for options in ({}, {"precision": "fp32", "auto_int8": True}, {"embedding": "none"}):
        assert make(**options).fast_embedding is None
    assert make(auto_int8=True, embedding="vectors").fast_embedding is None  # not measured
    alone = make(auto_int8=True, model=defaults.EMBEDDING)
    assert alone.scorer.fingerprint == fp32.fingerprint
    monkeypatch.setattr(precision_module, "has_vnni", lambda: False)
    assert make(auto_int8=True).fast_embedding is None


@pytest.mark.parametrize(
    ("aggregate", "segments"),
    [("top:1", 3), ("max", 3), ("topmean:1,.5,.25", 3), ("topmean:4,3,2,1", 4), ("top:2,1,1,1", 4)],
)
def test_as_many_segments_as_weights(make: Make, aggregate: str, segments: int) -> None:
    """At least the default number are read, and one for each weight of the aggregation."""
    assert make(aggregate=aggregate).plan.segments == segments


@pytest.mark.parametrize(
    "options",
    [
        {"aggregate": "sum"},
        {"aggregate": "mean"},
        {"aggregate": "first"},
        {"max_segments": 5},
        {"max_length": 9},
        {"model": "parade"},
        {"model": "vectors"},
    ],
    ids=str,
)
def test_everything_is_read_where_it_must_be(make: Make, options: dict[str, Any]) -> None:
    """Such aggregations, limits and models depend on all segments."""
    ranker = make(**options)
    assert ranker.plan == ALL
    assert (ranker.embedding is None) == (options.get("model") is not None)
    assert ranker.limit == Limit(options.get("max_segments"), options.get("max_length"))


def test_what_is_given_counts(make: Make) -> None:
    """Options of the plan override its defaults one by one."""
    assert make(read_segments="7").plan == replace(DEFAULT, segments=7)
    assert make(read_segments="all").plan == replace(DEFAULT, segments=None, pairs=None)
    assert make(read_segments="all", read_pairs="9").plan.pairs == 9
    few = make(read_pairs="all", read_documents="5")
    assert few.plan == replace(DEFAULT, documents=5, pairs=None)
    assert make(read_documents="all").plan.documents is None
    assert make(embed_segments="all").plan.embedded is None
    assert make(aggregate="mean", embed_segments="2").plan.embedded == 2
    assert make(aggregate="mean", embed_documents="60").plan.embedded_documents == 60
    assert make(aggregate="mean", read_segments="2").plan.segments == 2
    assert make(model="vectors", read_segments="2").plan.segments == 2
    assert make(model="vectors", embedding="cross").embedding


def test_how_many_documents_are_embedded(make: Make) -> None:
    """A number or all are embedded; all by default if there is no choice of segments."""
    assert make().plan.embedded_documents == int(defaults.EMBED_DOCUMENTS)
    assert make(embed_documents="7").plan == replace(DEFAULT, embedded_documents=7)
    assert make(embed_documents="all").plan == replace(DEFAULT, embedded_documents=None)
    assert make(read_segments="all").plan.embedded_documents == DEFAULT.embedded_documents
    assert make(aggregate="mean").plan.embedded_documents is None
    assert make(aggregate="mean", embed_documents="7").plan == replace(ALL, embedded_documents=7)
    with pytest.raises(InputError, match="invalid embed_documents: expected 1 or more, or all"):
        make(embed_documents="0")


def test_rescoring_is_for_rankers_that_read_everything(make: Make) -> None:
    """Under a plan that chooses segments, int8 scores are final."""
    assert make(precision="int8").precise is None
    assert make(precision="int8", read_segments="all").precise
    assert make(precision="fp32", read_segments="all").precise is None


@pytest.mark.parametrize(
    "name", ["segments", "documents", "pairs", "embedded", "embedded_documents"]
)
@pytest.mark.parametrize("number", [0, -3])
def test_numbers_below_1_are_refused(name: str, number: int) -> None:
    """The message names the number and says what is wanted."""
    count = name.replace("_", " ")
    message = rf"number of {count} to read is out of range: expected 1 or more, .*found {number}"
    with pytest.raises(InputError, match=message):
        ReadingPlan(**{name: number})


@pytest.mark.parametrize("text", ["0", "-1", "", "x", "1.5", "None", "²"])
def test_counts_are_numbers_or_all(text: str) -> None:
    """Anything else is refused, with the name of the option."""
    with pytest.raises(InputError, match="invalid read_pairs: expected 1 or more, or al"):
        parse_count(text, "read_pairs")
    assert parse_count("all", "x") is None
    assert parse_count("12", "x") == 12


@pytest.mark.parametrize("plan", [ReadingPlan(segments=2), ReadingPlan(embedded=2)])
def test_plans_that_exclude_other_choices(plan: ReadingPlan) -> None:
    """Models of whole documents read all of it, and a limit says itself what is read."""
    with pytest.raises(InputError, match="must read all segments of a document"):
        Ranker(DocumentScorer(), plan=plan)  # type: ignore[arg-type]
    for limit in (Limit(segments=3), Limit(length=9)):
        with pytest.raises(InputError, match="cannot be combined with reading only some"):
            Ranker(WordScorer(), limit=limit, plan=plan)
        assert Ranker(WordScorer(), limit=limit, plan=ReadingPlan(documents=2, pairs=9)).limit
    with pytest.raises(InputError, match="scores whole documents, not segments"):
        Ranker(WordScorer(), embedding=DocumentScorer(), plan=plan)  # type: ignore[arg-type]


def test_explicit_plans_that_exclude_other_choices(make: Make) -> None:
    """They are refused, too, if they come from options."""
    with pytest.raises(InputError, match="must read all segments"):
        make(model="parade", read_segments="2")
    for limit in ({"max_segments": 3}, {"max_length": 3}):
        for option in ("read_segments", "embed_segments"):
            with pytest.raises(InputError, match="cannot be combined with reading"):
                make(**limit, **{option: "3"})


def test_a_model_states_the_weight_of_the_embedding(bert: Callable[..., Path]) -> None:
    """It holds by name and by path, unless another one is chosen; nonsense is refused."""
    models, small = LoadedModels(), defaults.SMALL_MODEL
    for model in (small, str(locate(small))):
        assert make_ranker(StageOptions(model), models).embedding_weight == 0.7
    chosen = StageOptions(small, embedding_weight=0.4)
    assert make_ranker(chosen, models).embedding_weight == 0.4
    config = bert(labels=1) / "config.json"
    stated = json.loads(config.read_text())
    stated["birchbark"] = {"temperature": 1, "embedding_weight": 7}
    config.write_text(json.dumps(stated))
    with pytest.raises(CheckpointError, match="invalid embedding_weight: expected 0 to 1, found 7"):
        make_ranker(StageOptions(str(config.parent)), models)


def test_a_model_without_a_scale_is_told_of(bert: Callable[..., Path]) -> None:
    """It is told where scores are mixed with others, but not if it ranks alone or is pooled."""
    directory = bert(labels=1)
    config = directory / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"birchbark": {}}))
    models, mixed = LoadedModels(), StageOptions(str(directory))
    with pytest.warns(UserWarning, match="does not state the scale of its scores"):
        make_ranker(mixed, models)
    for alone in ({"first_stage_weight": 0.0, "embedding": "none"}, {"pooling": "cls"}):
        make_ranker(replace(mixed, **alone), models)


@pytest.mark.parametrize(
    "option", ["embedding_weight = 0.5", "embed_segments = '2'", "embed_documents = '9'"]
)
def test_options_of_an_embedding_need_one(tmp_path: Path, option: str) -> None:
    """In a file, too, they are refused if the embedding is `none`."""
    name = option.partition(" ")[0]
    file = tmp_path / "s.toml"
    file.write_text(f"[[stage]]\nembedding = 'none'\n{option}\n")
    with pytest.raises(InputError, match=rf"stage\[1\]: {name} has no effect without an embed"):
        read_ranker(file)
    file.write_text(f"[[stage]]\n{option}\n")
    _, (options,) = read_ranker(file)
    assert str(getattr(options, name)) in option
    file.write_text("[[stage]]\nread_segments = 3\nread_pairs = 'all'\n")
    _, (options,) = read_ranker(file)
    assert (options.read_segments, options.read_pairs) == ("3", "all")
    file.write_text("[[stage]]\nread_segments = 0\n")
    with pytest.raises(InputError, match=r"read_segments: out of range: expected 1 or more"):
        read_ranker(file)
    file.write_text("[[stage]]\nread_documents = '0'\n")
    with pytest.raises(InputError, match="invalid read_documents: expected 1 or more, or"):
        read_ranker(file)
