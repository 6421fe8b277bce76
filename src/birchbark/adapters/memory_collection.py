"""How is a collection that another library holds in memory indexed, searched and re-ranked?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from weakref import finalize

from birchbark import defaults
from birchbark.errors import InputError
from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.pipeline.load_rankers import make_ranker
from birchbark.pipeline.loaded_models import LoadedModels
from birchbark.pipeline.rerank import rerank
from birchbark.pipeline.settings.ranker import Ranker, stages_of
from birchbark.pipeline.stage_options import StageOptions
from birchbark.record_values import as_id, ids_of
from birchbark.records import Document, Query, Ranking, Run
from birchbark.retrieve.first_stage import FirstStage, rank_queries


class MemoryCollection:
    """A collection, in a temporary index, that is searched as by `retrieve` and `rerank`.

    Args:
        model: The name or directory of a model, which ranks with the settings of `birchbark
            rerank`; a `Ranker`, or one per stage; `()` for the first stage alone. Defaults to
            `birchbark-minilm-l6`, with the default reading plan.
        first_stage: How candidates are found. Defaults to `FirstStage()`: BM25.
        query_tokens: Number of tokens at the beginning of a query that a named model reads.
            Defaults to None: all of them, and a query that is too long is an error.
    """

    def __init__(
        self,
        model: str | Path | Ranker | Sequence[Ranker] = defaults.MODEL,
        first_stage: FirstStage = FirstStage(),
        query_tokens: int | None = None,
    ) -> None:
        self.model, self.first_stage = model, first_stage
        if isinstance(model, str | Path):
            options = StageOptions(model=str(model), query_tokens=query_tokens)
            model = make_ranker(options, LoadedModels())
        elif query_tokens is not None:
            raise InputError("query_tokens is for a model that is named", remedy="set it in Ranker")
        if isinstance(model, FirstStage):
            raise InputError(
                "a first stage in place of a model", remedy="first_stage=FirstStage(…)"
            )
        self.rankers = tuple(stages_of(model))
        self._index: Index | None = None
        self._delete: finalize[..., MemoryCollection] | None = None

    def index_records(self, records: Iterable[Mapping[str, object]]) -> None:
        """Index documents, in place of those of before; see `Document.from_dict`.

        Raises InputError for a document without id or text, and for two with the same id.
        """
        folder = mkdtemp(prefix="birchbark-")
        delete = finalize(self, rmtree, folder)
        try:
            self._index = build_index(map(Document.from_dict, records), Path(folder) / "index")
        except BaseException:
            delete()
            raise
        if self._delete:
            self._delete()
        self._delete = delete

    def rank(
        self,
        queries: Mapping[str, str],
        top: int,
        candidates: Mapping[str, Sequence[str]] | None = None,
    ) -> dict[str, dict[str, float]]:
        """Rank documents for queries: query_id → doc_id → score, best first.

        Args:
            queries: query_id → query.
            top: Maximum number of documents per query.
            candidates: query_id → the documents to rank. Defaults to None: those that the first
                stage finds.

        Raises:
            InputError: Nothing was indexed, a candidate does not exist, or a query is too long for
                a model.
        """
        if self._index is None:
            raise InputError("nothing was indexed", remedy="index documents first")
        texts = [Query(query_id, text) for query_id, text in queries.items()]
        depth = max(top, *(ranker.depth for ranker in self.rankers), 1)
        if candidates is not None:
            depth = max(1, len(self._index))
        run = rank_queries(self._index, texts, self.first_stage, depth=depth)
        if candidates is not None:
            by_id = {as_id(query_id): ids_of(ids) for query_id, ids in candidates.items()}
            for doc_id in {doc_id for ids in by_id.values() for doc_id in ids}:
                self._index.locate(doc_id)  # raises InputError
            run = _only(run, by_id)
        if self.rankers:
            run = rerank(self._index, run, texts, self.rankers, top=top)
        return {query_id: dict(ranking.head(top)) for query_id, ranking in run.rankings.items()}


def _only(run: Run, candidates: Mapping[str, Sequence[str]]) -> Run:
    """Return the run with the candidates alone; one that the first stage did not find scores 0."""
    rankings = {}
    for query_id, ranking in run.rankings.items():
        scores = dict.fromkeys(candidates.get(query_id, ()), 0.0)
        scores |= {doc_id: score for doc_id, score in ranking if doc_id in scores}
        rankings[query_id] = Ranking.from_pairs(scores)
    return Run(rankings, run.tag)
