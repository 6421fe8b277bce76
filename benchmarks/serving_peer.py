"""What would one write without birchbark serve? FastAPI around sentence-transformers' CrossEncoder.

Candidates and sentences are birchbark's, so that only the serving and the scoring differ.
"""

from __future__ import annotations

import socket
import sys

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from sentence_transformers import CrossEncoder

from birchbark import Index, IndexEngine, Top
from birchbark.checkpoint.named import DEFAULT_MODEL, locate
from birchbark.segment.sentences import sentences

DEPTH, WEIGHT = 100, 0.4


class Asked(BaseModel):
    """A search."""

    query: str


def application(place: str) -> FastAPI:
    """One address, as FastAPI's own documentation would have it: threads do the work."""
    engine, model = IndexEngine(Index(place)), CrossEncoder(str(locate(DEFAULT_MODEL)))
    app, how = FastAPI(), Top()

    @app.post("/search")
    def search(request: Asked) -> dict[str, object]:
        ranking = engine.rank(request.query, DEPTH)
        documents = engine.documents(ranking.doc_ids)
        cut = [sentences(document) for document in documents]
        pairs = [(request.query, one.text) for some in cut for one in some]
        scores = iter(model.predict(pairs) if pairs else [])
        highest = max(ranking.scores.tolist(), default=1.0)
        found = []
        for document, some, first in zip(documents, cut, ranking.scores.tolist(), strict=True):
            own = sorted((float(next(scores)) for _ in some), reverse=True)
            evidence = sum(w * s for w, s in zip(how.by_rank, own, strict=False))
            found.append((WEIGHT * first / highest + (1 - WEIGHT) * evidence, document.doc_id))
        best = sorted(found, reverse=True)[:10]
        hits = [{"doc_id": doc_id, "score": score} for score, doc_id in best]
        return {"hits": hits, "exact": True, "settled": len(documents)}

    return app


if __name__ == "__main__":
    served = application(sys.argv[1])
    with socket.create_server(("127.0.0.1", 0)) as listening:
        sys.stderr.write(f"http://127.0.0.1:{listening.getsockname()[1]}\n")
        sys.stderr.flush()
        uvicorn.Server(uvicorn.Config(served, log_level="warning")).run(sockets=[listening])
