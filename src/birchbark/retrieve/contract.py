"""Does an engine keep the promises of engine.py? For the tests of any engine, ours and others'."""

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
    Document("x" * 300, {"title": "", "text": "", "source": "kept, though not searched"}),
    *(Document(f"same{n:02}", {"text": "a stone like any other"}) for n in range(40)),
    *(Document(f"pebble{n:02}", {"text": "pebble " * (n % 7 + 1) + "beach"}) for n in range(40)),
)
QUERIES = ("river", "river otter", "stone", "pebble beach stone", "an odd id")
SYNTAX = ('river AND "', "title:river)", "river^", "-river", "*", "\\", "river OR\0 [a TO", "\t")


def broken_promises(build: Build) -> list[str]:
    """What the engine that `build` makes does otherwise than engine.py says, a line each.

    build: makes an engine that searches title and text of the documents it is given, in English.
    """
    engine = build(iter(DOCUMENTS))
    return [*_documents(engine), *_rankings(engine), *_words(engine), *_refusals(engine)]


def _documents(engine: Engine) -> Iterable[str]:
    wanted = [DOCUMENTS[i] for i in (3, 0, 2, 50)]
    found = engine.documents([document.doc_id for document in wanted])
    if [(d.doc_id, dict(d.fields)) for d in found] != [(d.doc_id, dict(d.fields)) for d in wanted]:
        yield "documents() does not give back what was indexed, in the order asked"
    if list(engine.documents([])):
        yield "documents() of no ids gives documents"


def _rankings(engine: Engine) -> Iterable[str]:
    known = {document.doc_id for document in DOCUMENTS}
    for query in QUERIES:
        whole = engine.rank(query, 1000)
        if not set(whole.doc_ids) <= known:
            yield f"{query!r}: documents are ranked that were not indexed"
        if whole.scores.dtype != np.float32:
            yield f"{query!r}: scores are {whole.scores.dtype}, not float32"
        if whole != Ranking.of(whole.doc_ids, whole.scores):
            yield f"{query!r}: the tie rule is broken"
        if engine.rank(query, 1000) != whole:
            yield f"{query!r}: asked again, it is ranked otherwise"
        for depth in (1, 2, 5, 20):
            if engine.rank(query, depth) != whole.head(depth):
                yield f"{query!r}: the {depth} best are not where the whole ranking begins"


def _words(engine: Engine) -> Iterable[str]:
    river: Sequence[str] = engine.rank("river", 10).doc_ids
    if river != ("heron", "otter"):
        yield f"'river': wanted heron, which has it twice, then otter; found {', '.join(river)}"
    if engine.rank("otter river", 10).doc_ids[:1] != ("otter",):
        yield "'otter river': the document with the rare word and the other is not the first"
    if not {"otter", "heron"} <= set(engine.rank("OTTERS, herons", 10).doc_ids):
        yield "'OTTERS, herons': case or plural stands in the way"
    if len(engine.rank("stone", 1000)) != 40:
        yield "'stone': not every document with the word is ranked"


def _refusals(engine: Engine) -> Iterable[str]:
    for nothing in ("", "  ", "?!", "zeppelin", "the"):
        if len(engine.rank(nothing, 10)):
            yield f"{nothing!r} has matches"
    for query in SYNTAX:
        try:
            engine.rank(query, 10)
        except Exception as error:
            yield f"{query!r} is taken for syntax: {error!r}"
    for what, ask in (
        ("a depth of 0", lambda: engine.rank("river", 0)),
        ("an unknown id", lambda: engine.documents(["otter", "nessie"])),
    ):
        try:
            ask()
        except InputError:
            continue
        except Exception as error:
            yield f"{what} raises {error!r}, not InputError"
        else:
            yield f"{what} is not refused"
