"""How do programs written for sentence-transformers' CrossEncoder score pairs with birchbark?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, overload

import numpy as np

from birchbark.arguments import listed, shown, text_of
from birchbark.errors import InputError
from birchbark.pipeline.rank_texts import RankedText, load_once, rank
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.records import Float32s
from birchbark.score.scorer import Scorer

Frame = TypeVar("Frame")


class PairScorer:
    """Scores pairs of query and text, with the methods of sentence-transformers' CrossEncoder.

    Scores are those of `birchbark.rank`: long texts are split, not truncated, and a score is the
    same whatever other pairs are scored with it. It can be shared by threads.
    """

    def __init__(self, model: str | Path | Scorer | Ranker | None = None) -> None:
        """Choose the models.

        Args:
            model: The name or directory of a model (see `load_scorer`), a model, or a ranker.
                Defaults to None: both default models, as in `rank`.
        """
        self._model = load_once(model)

    @overload
    def predict(
        self,
        pairs: tuple[str, str],
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
    ) -> np.float32: ...

    @overload
    def predict(
        self,
        pairs: Iterable[tuple[str, str] | list[str]],
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
    ) -> Float32s: ...

    def predict(
        self,
        pairs: tuple[str, str] | Iterable[tuple[str, str] | list[str]],
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
    ) -> np.float32 | Float32s:
        """Score pairs of query and text; the pairs of a query need not be neighbours.

        Args:
            pairs: The pairs (query, text), or a single pair.
            batch_size: Accepted, so that callers need not be changed, and ignored: batches are
                formed by the number of tokens.
            show_progress_bar: Accepted and ignored: there is none.

        Returns:
            The scores (n,) in the order of the pairs, probabilities of relevance from 0 to 1 for
            most models; of a single pair, a number.

        Raises:
            InputError: An item is not a pair of strings, or a query is too long for a model.
        """
        given = listed(pairs, "pairs")
        if len(given) == 2 and all(isinstance(part, str) for part in given):
            return self.predict([given])[0]  # type: ignore[list-item, no-any-return]
        rows_of_query: dict[str, list[tuple[int, str]]] = {}
        for row, pair in enumerate(given):
            query, text = _pair_of(pair, row)
            rows_of_query.setdefault(query, []).append((row, text))
        scores = np.empty(len(given), np.float32)
        for query, rows in rows_of_query.items():
            for ranked in rank(query, [text for _, text in rows], self._model):
                scores[rows[ranked.index][0]] = ranked.score
        return scores

    def rank(
        self,
        query: str,
        documents: Iterable[str | Mapping[str, Any]],
        top_k: int | None = None,
        return_documents: bool = False,
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
        return_evidence: bool = False,
    ) -> list[dict[str, Any]]:
        """Rank documents by their relevance to `query`, best first.

        Args:
            query: The query.
            documents: Texts, or mappings with the key "text", whose other keys, such as ids, are
                part of the result; not `corpus_id` and `score`, which are replaced.
            top_k: Maximum number of documents to return. Defaults to None: all.
            return_documents: Whether a result has the document's text as `text`.
            batch_size: Accepted and ignored, see `predict`.
            show_progress_bar: Accepted and ignored: there is none.
            return_evidence: Whether a result has the part of the text with this score as
                `evidence`.

        Returns:
            Dicts with `corpus_id`, the document's position in the input, and `score`.

        Raises:
            InputError: A document has no text, `top_k` is below 1, or the query is too long.
        """
        given = listed(documents, "documents")
        texts = [_text_of(document, row) for row, document in enumerate(given)]
        results = []
        for ranked in rank(query, texts, self._model, top_k):
            document = given[ranked.index]
            results.append(_result(ranked, document, return_documents, return_evidence))
        return results

    def score_frame(
        self, frame: Frame, query: str = "query", text: str = "text", score: str = "score"
    ) -> Frame:
        """Return a frame of pandas or polars with one more column, the scores of its rows.

        Args:
            frame: A DataFrame with a pair of query and text in each row; it is not changed.
            query: The column of queries.
            text: The column of texts.
            score: The column to add or replace, float32.

        Raises:
            InputError: `frame` is no DataFrame, has no such columns, or a cell is not a string.
        """
        library, score = type(frame).__module__.partition(".")[0], text_of(score, "score")
        if library not in ("pandas", "polars") or type(frame).__name__ != "DataFrame":
            raise InputError(
                "not a frame", wanted="a DataFrame of pandas or polars", found=str(type(frame))
            )
        table: Any = frame
        missing = [name for name in (query, text) if name not in table.columns]
        if missing:
            raise InputError(
                f"the frame has no column {missing[0]!r}", found=", ".join(map(str, table.columns))
            )
        if several := [name for name in (query, text) if list(table.columns).count(name) > 1]:
            raise InputError(f"the frame has several columns {several[0]!r}", wanted="one")
        pairs = list(zip(table[query].to_list(), table[text].to_list(), strict=True))
        scores = self.predict(pairs)
        if library == "pandas":
            return table.assign(**{score: scores})  # type: ignore[no-any-return]
        return table.with_columns(**{score: scores})  # type: ignore[no-any-return]


def _pair_of(pair: object, row: int) -> tuple[str, str]:
    """Return a pair of query and text; InputError if it is none."""
    unordered = isinstance(pair, str | Mapping | set | frozenset)
    parts = list(pair) if hasattr(pair, "__iter__") and not unordered else []
    if len(parts) != 2 or not all(isinstance(part, str) for part in parts):
        raise InputError("not a pair of query and text", where=f"pair {row}", found=shown(pair))
    return str(parts[0]), str(parts[1])


def _text_of(document: str | Mapping[str, Any], row: int) -> str:
    if not isinstance(document, Mapping):
        return text_of(document, f"document {row}")
    if "text" not in document:
        raise InputError(
            "a document without text", where=f"document {row}", wanted='the key "text"'
        )
    return text_of(document["text"], f"the text of document {row}")


def _result(
    ranked: RankedText, document: str | Mapping[str, Any], with_text: bool, with_evidence: bool
) -> dict[str, Any]:
    others = {} if isinstance(document, str) else {k: x for k, x in document.items() if k != "text"}
    result = {**others, "corpus_id": ranked.index, "score": ranked.score}
    if with_text:
        result["text"] = ranked.text
    if with_evidence:
        result["evidence"] = ranked.evidence
    return result
