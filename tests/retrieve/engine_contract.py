"""Does an engine fulfil the contract in engine.py? For tests of any engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from birchbark.errors import InputError
from birchbark.records import Document, Ranking
from birchbark.retrieve.engine import Engine

Build = Callable[[Iterable[Document]], Engine]
DOCUMENTS = (
    Document("otter", {"title": "The otter", "text": "An otter swims in the river all night."}),
    Document("heron", {"title": "The heron", "text": "A heron stands in the river. River fish!"}),
    Document("a b\t'é日本'", {"text": "Odd ids are ids: nothing is lost\n\tor changed.\0 "}),
    Document("x" * 300, {"title": "", "text": "", "source": "stored, not searched"}),
    *(Document(f"same{n:02}", {"text": "a stone like any other"}) for n in range(40)),
    *(Document(f"pebble{n:02}", {"text": "pebble " * (n % 7 + 1) + "beach"}) for n in range(40)),
)
QUERIES = ("river", "river otter", "stone", "pebble beach stone", "an odd id")
SYNTAX = ('river AND "', "title:river)", "river^", "-river", "*", "\\", "river OR\0 [a TO", "\t")


def contract_violations(build: Build) -> list[str]:
    """Return how the engine made by `build` violates the contract, a line for each violation.

    build: makes an engine that searches title and text of the documents it is given, in English.
    """
    engine = build(iter(DOCUMENTS))
    return [*_documents(engine), *_rankings(engine), *_matches(engine), *_edge_cases(engine)]


def _documents(engine: Engine) -> Iterable[str]:
    wanted = [DOCUMENTS[i] for i in (3, 0, 2, 50)]
    returned = engine.documents([document.doc_id for document in wanted])
    if [(d.doc_id, dict(d.fields)) for d in returned] != [
        (d.doc_id, dict(d.fields)) for d in wanted
    ]:
        yield "documents() does not return what was indexed, in the requested order"
    if list(engine.documents([])):
        yield "documents() of no ids returns documents"


def _rankings(engine: Engine) -> Iterable[str]:
    known = {document.doc_id for document in DOCUMENTS}
    for query in QUERIES:
        full = engine.rank(query, 1000)
        if not set(full.doc_ids) <= known:
            yield f"{query!r}: the ranking has documents that were not indexed"
        if full.scores.dtype != np.float32:
            yield f"{query!r}: scores are {full.scores.dtype}, not float32"
        if full != Ranking.of(full.doc_ids, full.scores):
            yield f"{query!r}: the tie rule is violated"
        if engine.rank(query, 1000) != full:
            yield f"{query!r}: ranking the same query again gives another ranking"
        for depth in (1, 2, 5, 20):
            if engine.rank(query, depth) != full.head(depth):
                yield f"{query!r}: the {depth} best are not a prefix of the full ranking"


def _matches(engine: Engine) -> Iterable[str]:
    river: Sequence[str] = engine.rank("river", 10).doc_ids
    if river != ("heron", "otter"):
        yield f"'river': expected heron, with two occurrences, then otter; found {', '.join(river)}"
    if engine.rank("otter river", 10).doc_ids[:1] != ("otter",):
        yield "'otter river': the document with both words, one of them rare, is not the first"
    if not {"otter", "heron"} <= set(engine.rank("OTTERS, herons", 10).doc_ids):
        yield "'OTTERS, herons': case or plural prevents a match"
    if len(engine.rank("stone", 1000)) != 40:
        yield "'stone': not every document with the word is ranked"


def _edge_cases(engine: Engine) -> Iterable[str]:
    for query in ("", "  ", "?!", "zeppelin", "the"):
        if len(engine.rank(query, 10)):
            yield f"{query!r} has matches"
    for query in SYNTAX:
        try:
            engine.rank(query, 10)
        except Exception as error:
            yield f"{query!r} is parsed as syntax: {error!r}"
    for case, call in (
        ("a depth of 0", lambda: engine.rank("river", 0)),
        ("an unknown id", lambda: engine.documents(["otter", "nessie"])),
    ):
        try:
            call()
        except InputError:
            continue
        except Exception as error:
            yield f"{case} raises {error!r}, not InputError"
        else:
            yield f"{case} is not refused"
