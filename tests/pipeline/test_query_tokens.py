"""Is only the beginning of a long query read if that is wanted, and is the rest counted?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from birchbark.cli import group
from birchbark.collection.runs import read_run
from birchbark.errors import InputError
from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.index.writer import IndexWriter
from birchbark.pipeline.answers.answer import SearchStats
from birchbark.pipeline.dense_engine import DenseEngine
from birchbark.pipeline.open_engine import open_engine
from birchbark.pipeline.rerank import rerank
from birchbark.pipeline.search import search
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.stored.precompute import precompute_vectors
from birchbark.records import Query
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import FirstStage, rank_queries
from birchbark.retrieve.vector_match import VectorMatch
from birchbark.score.load_scorer import load_scorer
from birchbark.score.token_limits import cut_text
from birchbark.segment.sentences import sentences
from conftest import DOCUMENTS, WORDS, GivenModels

LONG = " ".join([*WORDS[2:8], *(["birch river"] * 40)])


def test_scores_are_those_of_the_beginning(tmp_path: Path, bert: Callable[..., Path]) -> None:
    """The first stage uses the whole query; without a limit, it is refused."""
    index = build_index(DOCUMENTS, tmp_path / "i")
    scorer = load_scorer(bert(labels=1))
    ranker = Ranker(scorer, query_tokens=4)
    cut, lost = cut_text(scorer, LONG, 4)
    run = rank_queries(index, [Query("1", LONG)], FirstStage(), depth=10)
    stats: list[SearchStats] = []
    ranked = rerank(
        index, run, [Query("1", LONG)], ranker, on_query=lambda q: stats.append(q.stats)
    )
    assert stats[0].cut_query_tokens == lost > 50
    rerank(
        index,
        run,
        [Query("1", LONG)],
        [ranker, ranker],
        on_query=lambda query: stats.append(query.stats),
    )
    assert stats[1].cut_query_tokens == lost  # counted once
    assert ranked.rankings == rerank(index, run, [Query("1", cut)], Ranker(scorer)).rankings
    with pytest.raises(InputError, match=r"query is too long.*--set query_tokens=\d+"):
        rerank(index, run, [Query("1", LONG)], Ranker(scorer))
    with pytest.raises(InputError, match="number of query tokens"):
        Ranker(scorer, query_tokens=0)


def test_candidates_by_vectors(tmp_path: Path, bert: Callable[..., Path]) -> None:
    """They are the nearest to the beginning of the query."""
    build_index(DOCUMENTS, tmp_path / "i")
    embedding = load_scorer(bert())
    with IndexWriter(tmp_path / "i") as writer:
        precompute_vectors(embedding, sentences, "m").attach(writer)
    index = Index(tmp_path / "i")
    ranker = Ranker(embedding, sentences, query_tokens=4, depth=4)
    engine = open_engine(index, FirstStage(), None, load_scorer, [ranker])
    assert isinstance(engine, DenseEngine)
    answer = search(engine, LONG, ranker)
    assert answer.stats.exact
    assert answer.stats.cut_query_tokens > 50
    with pytest.raises(InputError, match="query is too long"):
        search(IndexEngine(index), LONG, Ranker(embedding, sentences))

    models = GivenModels(lambda model, precision: embedding)
    searcher = Searcher(tmp_path / "i", ranker, loaded=models)
    assert searcher.search(LONG, candidates="nearest").hits
    dense = Searcher(tmp_path / "i", ranker, vector_match=VectorMatch(), loaded=models)
    assert dense.search(LONG).hits


def test_the_option(tmp_path: Path, bert: Callable[..., Path]) -> None:
    """The command says how many tokens were cut, in words and in JSON."""
    build_index(DOCUMENTS, tmp_path / "i")
    model = ("--model", str(bert(labels=1)), "--embedding", "none", "--set", "query_tokens=3")
    result = CliRunner().invoke(group, ["search", str(tmp_path / "i"), LONG, *model, "--json"])
    assert result.exit_code == 0
    hit = json.loads(result.stdout.splitlines()[0])
    lost = hit["stats"]["cut_query_tokens"]
    assert lost > 50
    assert f"not read, because of query_tokens: {lost} tokens of queries" in result.stderr


def test_a_first_stage_by_vectors(tmp_path: Path, bert: Callable[..., Path]) -> None:
    """A query that is too long is refused before any is ranked; by terms, the key is refused."""
    index, queries, output = (str(tmp_path / name) for name in ("i", "q.tsv", "dense.run"))
    build_index(DOCUMENTS, tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        precompute_vectors(load_scorer(bert()), sentences, str(bert())).attach(writer)
    Path(queries).write_text(f"1\twords\n2\t{LONG}\n")
    retrieve = ("retrieve", index, "--queries", queries, "--output", output)
    by_terms = ("search", index, "words", "--model", "none")

    def birchbark(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(group, arguments)
        return result.exit_code, f"{result.stderr}{result.exception}"

    cut = ("--set", "first_stage.query_tokens=4")
    for key in ("model=dense", "match=nearest+or"):
        match = ("--set", f"first_stage.{key}")
        code, message = birchbark(*retrieve, *match)
        assert code == 1
        assert "query is too long" in message
        assert "have its beginning read: --set query_tokens=30" in message
        assert not Path(output).exists()
        code, message = birchbark(*retrieve, *match, *cut, "--threads", "1")
        assert code == 0
        assert "tokens of queries" in message
        assert len(read_run(output).rankings) == 2
        Path(output).unlink()
        code, message = birchbark(*by_terms, *match, *cut, "--threads", "1")
        assert code == 0
    for command in (retrieve, by_terms):
        for name, more in (("query_tokens", cut), ("--threads", ("--threads", "1"))):
            code, message = birchbark(*command, *more)
            assert code == 1
            assert f"{name} has no effect: a first stage by terms uses no model" in message
