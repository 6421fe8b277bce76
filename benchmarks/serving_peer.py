"""How is the service built that birchbark serve is compared with?

It uses FastAPI and the CrossEncoder of sentence-transformers. Candidates and sentences are
birchbark's, so that only serving and scoring differ.
"""

from __future__ import annotations

import socket
import sys

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from sentence_transformers import CrossEncoder

from birchbark import Index, defaults
from birchbark.checkpoint.locate import locate
from birchbark.combine.aggregate import Top
from birchbark.retrieve.engine import IndexEngine
from birchbark.segment.sentences import sentences

DEPTH, WEIGHT = 100, 0.4


class SearchRequest(BaseModel):
    """A search."""

    query: str


def application(directory: str) -> FastAPI:
    """Return an application with one route, run in FastAPI's thread pool."""
    engine, model = IndexEngine(Index(directory)), CrossEncoder(str(locate(defaults.MODEL)))
    app, aggregation = FastAPI(), Top()

    @app.post("/search")
    def search(request: SearchRequest) -> dict[str, object]:
        ranking = engine.rank(request.query, DEPTH)
        documents = engine.documents(ranking.doc_ids)
        segments = [list(sentences(document)) for document in documents]
        pairs = [(request.query, segment.text) for of_doc in segments for segment in of_doc]
        scores = iter(model.predict(pairs) if pairs else [])
        highest = max(ranking.scores.tolist(), default=1.0)
        scored = []
        for document, of_doc, first in zip(
            documents, segments, ranking.scores.tolist(), strict=True
        ):
            values = sorted((float(next(scores)) for _ in of_doc), reverse=True)
            evidence = sum(w * s for w, s in zip(aggregation.by_rank, values, strict=False))
            scored.append((WEIGHT * first / highest + (1 - WEIGHT) * evidence, document.doc_id))
        best = sorted(scored, reverse=True)[:10]
        hits = [{"doc_id": doc_id, "score": score} for score, doc_id in best]
        return {"hits": hits, "exact": True, "scored": len(documents)}

    return app


if __name__ == "__main__":
    service = application(sys.argv[1])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sys.stderr.write(f"http://127.0.0.1:{listener.getsockname()[1]}\n")
        sys.stderr.flush()
        uvicorn.Server(uvicorn.Config(service, log_level="warning")).run(sockets=[listener])
