"""How does an agent search an index? By the Model Context Protocol: search, read, explain."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Protocol, TypeVar

from birchbark._version import __version__
from birchbark.errors import BirchbarkError, InputError, UnknownDocumentError, applicable, extra
from birchbark.pipeline.answers.answer import Answer, Hit
from birchbark.pipeline.answers.hit_fields import place_fields, sentence_fields
from birchbark.pipeline.answers.sort_hits import sorted_by_field
from birchbark.pipeline.searcher import Searcher
from birchbark.records import SECTION_STARTS, Document, Places
from birchbark.retrieve.filters import filter_of
from birchbark.serve.limits import MAX_ID_CHARACTERS, MAX_QUERY_CHARACTERS
from birchbark.show.plural import plural

with extra("mcp"):
    from anyio.from_thread import check_cancelled
    from anyio.to_thread import run_sync
    from mcp.server.mcpserver import Context, MCPServer
    from mcp.server.mcpserver.exceptions import ResourceError, ToolError
    from mcp.server.mcpserver.resources import ResourceSecurity
    from mcp.server.transport_security import TransportSecuritySettings
    from mcp.shared.uri_template import UriTemplate
    from mcp.types import ToolAnnotations
    from pydantic import BaseModel, Field

    from birchbark.serve.agents import AGENTS_PATH, Agents  # needs starlette, as mcp does

SENTENCES = 3  # of each document that a search finds
EXPLAINED = 10  # sentences of a document that is explained
MAX_TOKENS, CHARACTERS_PER_TOKEN = 4_000, 4  # of all sentences that a search returns
PROGRESS_SECONDS = 0.5  # between two reports of progress
CHARACTERS = 20_000  # of a document that are read at once
MAX_TOP = 50
MAX_CHARACTERS = 100_000
DOCUMENT_URI = "birchbark://documents/{doc_id}"

DocId = Annotated[
    str,
    Field(
        max_length=MAX_ID_CHARACTERS, description="The doc_id of a document that a search found."
    ),
]
Query = Annotated[
    str,
    Field(
        max_length=MAX_QUERY_CHARACTERS,
        description='A question or keywords, in plain words. If needed, with operators: "exact '
        'phrase"; -word or -"phrase" for documents without it; field:value or -field:value for '
        "documents with or without this value of a field; before:2024-05, after:2024-05-01.",
    ),
]
Literal = Annotated[
    bool, Field(description='Whether nothing in the query is an operator, as for "-Wall".')
]


T = TypeVar("T")
Work = Callable[[float | None, Callable[[], None]], T]  # see Run


class Run(Protocol):
    """Does the work of a tool, as a service does it that has other requests, too."""

    def __call__(self, work: Work[T], /) -> Awaitable[T]:
        """Return the result of `work`, called in a thread.

        It is given the seconds that it may take, None for no limit, and a function to call before
        each step, which raises an exception if nobody waits for the result.
        """
        ...


class Sentence(BaseModel):
    """A sentence of a document."""

    text: str
    start: int = Field(description="Offset in the text that read returns.")
    end: int
    page: int | None = Field(description="Of the file, from 1; null if it has no pages.")
    line: int | None = Field(description="Of a text or code file, from 1; null for others.")
    score: float | None = Field(
        description="How relevant it is to the query, 0 to 1; null if no model has read it."
    )


class FoundDocument(BaseModel):
    """A document that a search found."""

    doc_id: str
    title: str
    score: float
    probability: float | None = Field(
        description="That the document answers the query, from 0 to 1; null if it is not known."
    )
    path: str | None = Field(description="Of its file below the folder; null if it has none.")
    uri: str = Field(description="Of the resource that is its text.")
    copies: list[str] = Field(description="Ids of equal documents elsewhere.")
    sentences: list[Sentence] = Field(description="The most relevant sentences.")


class Found(BaseModel):
    """The documents that a search found."""

    documents: list[FoundDocument] = Field(description="Best first, unless sorted by a field.")
    exact: bool = Field(
        description="False if time did not suffice for all that could change the ranking."
    )
    notes: list[str] = Field(
        description="Why nothing was found, or only documents that probably do not answer the "
        "query or do not have its words; and whether documents are still being read."
    )


class DocumentText(BaseModel):
    """A part of a document's text."""

    doc_id: str
    title: str
    fields: dict[str, str] = Field(description="Other fields, such as the path of its file.")
    text: str
    start: int
    end: int
    length: int = Field(description="Characters of the whole text.")


class Explanation(BaseModel):
    """The sentences of a document that are most relevant to a query."""

    doc_id: str
    title: str
    sentences: list[Sentence] = Field(description="Best first.")
    sentence_count: int = Field(
        description="Sentences that were considered; in a long document, not all of them."
    )


def in_threads(seconds: float | None = None) -> Run:
    """Return a function that does each work at once. seconds: that it may take."""

    def run(work: Work[T]) -> Awaitable[T]:
        def begin() -> T:
            check_cancelled()
            return work(seconds, check_cancelled)

        return run_sync(begin)

    return run


def make_server(
    searcher: Searcher,
    name: str,
    run: Run = in_threads(),
    run_quick: Run | None = None,
    reading: Callable[[], int | None] = lambda: None,
) -> MCPServer:
    """Return a server with the tools search, read and explain, and documents as resources.

    searcher: what is searched. name: of the collection, for the agent. run: how a search or an
    explanation is done; one that takes longer than the time it gives is an error, a search is not
    exact then. run_quick: how a document is read; None for `run`. reading: returns how many
    documents of changed files have been read so far, None when all are.
    """
    index = searcher.index
    keywords = ", ".join(index.keywords)
    filters = f" Documents can be filtered by these fields: {keywords}." if keywords else ""
    server = MCPServer(
        "birchbark",
        version=__version__,
        log_level="WARNING",
        instructions=f"Searches {name}. Search for what you need to know, then read the best "
        "documents, or only the sentences that were found. Cite a document by its doc_id, and its "
        f"page or line.{filters}",
    )
    read_only = ToolAnnotations(read_only_hint=True, open_world_hint=False)

    @server.tool(title="Search documents", annotations=read_only)
    async def search(
        query: Query,
        context: Context,
        top: Annotated[int, Field(ge=1, le=MAX_TOP, description="Number of documents.")] = 5,
        filters: Annotated[
            dict[str, str | list[str]] | None,
            Field(
                description="Field → filter that documents must meet: a value; docs/* for a "
                "beginning; pdf|html for any of several; 2024-03..2024-05 for a range; !code for "
                "all but code. A list stands for any of its values."
            ),
        ] = None,
        sort: Annotated[
            str | None,
            Field(
                min_length=1,
                description="Field by which the documents that were found are ordered; -FIELD for "
                "descending order. By default, the best come first.",
            ),
        ] = None,
        literal: Literal = False,
        max_tokens: Annotated[
            int,
            Field(
                ge=1,
                description="Tokens of all sentences together, at most, as four characters each. "
                "The first sentence of each document comes before the second of any.",
            ),
        ] = MAX_TOKENS,
    ) -> Found:
        """Find the documents that answer a query, with their most relevant sentences."""
        joined = {
            name: value if isinstance(value, str) else "|".join(map(filter_of, value))
            for name, value in (filters or {}).items()
        }

        tell = _progress(context)

        def find(seconds: float | None, on_step: Callable[[], None]) -> Found:
            parsed, started = searcher.parse(query, literal=literal), time.monotonic()

            def step(answer: Callable[[], Answer]) -> None:
                on_step()
                tell(answer)

            answer = searcher.search(parsed, top, seconds, filters=joined, on_progress=step)
            left = None if seconds is None else max(0.0, started + seconds - time.monotonic())
            notes = searcher.notes(parsed, answer, joined, left, on_batch=on_step)
            if (count := reading()) is not None:
                notes.append(f"new and changed files are being read: {plural(count, 'document')}")
            ordered = sorted_by_field(answer, sort, searcher.index.keywords) if sort else answer
            documents = list(map(_found, ordered.hits))
            if left_out := _shorten(documents, max_tokens * CHARACTERS_PER_TOKEN):
                notes.append(f"{plural(left_out, 'sentence')} left out, because of max_tokens")
            return Found(documents=documents, exact=answer.stats.exact, notes=notes)

        return await _told(run(find))

    @server.tool(title="Read a document", annotations=read_only)
    async def read(
        doc_id: DocId,
        start: Annotated[int, Field(ge=0, description="First character to read.")] = 0,
        characters: Annotated[
            int, Field(ge=1, le=MAX_CHARACTERS, description="Number of characters to read.")
        ] = CHARACTERS,
    ) -> DocumentText:
        """Read the text of a document, or a part of it."""

        def take(seconds: float | None, on_step: Callable[[], None]) -> DocumentText:
            return _part(_document(searcher, doc_id), start, characters)

        return await _told((run_quick or run)(take))

    @server.resource(
        DOCUMENT_URI,
        title="A document",
        description="The text of a document that a search found.",
        mime_type="text/plain",
        security=ResourceSecurity(exempt_params={"doc_id"}),  # it is looked up, and is no path
    )
    async def document(doc_id: str) -> str:
        def take(seconds: float | None, on_step: Callable[[], None]) -> str:
            return _whole(_document(searcher, doc_id))

        return await _told((run_quick or run)(take), ResourceError)

    if searcher.rankers:

        @server.tool(title="Find what a document says about a query", annotations=read_only)
        async def explain(doc_id: DocId, query: Query, literal: Literal = False) -> Explanation:
            """Find the sentences of a document that are most relevant to a query."""

            def find(seconds: float | None, on_step: Callable[[], None]) -> Explanation:
                _document(searcher, doc_id)
                parsed = searcher.parse(query, literal=literal)
                found = searcher.evidence(doc_id, parsed, seconds, on_batch=on_step)
                return Explanation(
                    doc_id=doc_id,
                    title=found.hit.document.title,
                    sentences=_sentences(found.hit, EXPLAINED),
                    sentence_count=found.stats.segments,
                )

            return await _told(run(find))

    return server


def agents_of(server: MCPServer) -> Agents:
    """Return what a service needs to offer `server` over Streamable HTTP, without sessions."""
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # by the service
    app = server.streamable_http_app(
        streamable_http_path=AGENTS_PATH, stateless_http=True, transport_security=unchecked
    )
    return Agents(app, server.session_manager.run)


def _document(searcher: Searcher, doc_id: str) -> Document:
    """Return a document; InputError, in words for an agent, if there is none."""
    try:
        return searcher.documents([doc_id])[0]
    except UnknownDocumentError:
        remedy = "use a doc_id that a search found"
        raise InputError(f"no document {doc_id!r}", remedy=remedy) from None


def _part(document: Document, start: int, characters: int) -> DocumentText:
    """Return so many characters of a document; InputError if it has fewer than `start`."""
    contents = document.contents
    if start and start >= len(contents):
        raise InputError(
            "start is behind the end of the document",
            wanted=f"below {len(contents)}",
            found=str(start),
        )
    text = contents[start : start + characters]
    others = ("title", SECTION_STARTS, *document.read_fields)
    return DocumentText(
        doc_id=document.doc_id,
        title=document.title,
        fields={name: value for name, value in document.fields.items() if name not in others},
        text=text,
        start=start,
        end=start + len(text),
        length=len(contents),
    )


def _whole(document: Document) -> str:
    """Return the text of a document; InputError if it is too long to be read at once."""
    if len(document.contents) > MAX_CHARACTERS:
        raise InputError(
            "the document is too long for a resource",
            wanted=f"at most {MAX_CHARACTERS:,} characters",
            found=f"{len(document.contents):,}",
            remedy="the tool read reads parts of it",
        )
    return document.contents


def _progress(context: Context) -> Callable[[Callable[[], Answer]], None]:
    """Return a function that tells an agent, from a thread, how much of a search is done.

    The agent hears of it at intervals, if it has asked to.
    """
    loop, last = asyncio.get_running_loop(), time.monotonic()

    def tell(answer: Callable[[], Answer]) -> None:
        nonlocal last
        if time.monotonic() - last < PROGRESS_SECONDS:
            return
        last, pairs = time.monotonic(), answer().stats.pairs
        told = context.report_progress(pairs, message=f"{plural(pairs, 'passage')} read")
        asyncio.run_coroutine_threadsafe(told, loop)

    return tell


async def _told(work: Awaitable[T], kind: type[Exception] = ToolError) -> T:
    """Tell the agent about errors, but not where files are; others are withheld by the server.

    kind: the error by which it is told.
    """
    try:
        return await work
    except BirchbarkError as error:
        error.where, error.remedy = "", applicable(error.remedy, known=())
        raise kind(str(error)) from error


def _found(hit: Hit) -> FoundDocument:
    document, sentences = hit.document, _sentences(hit, SENTENCES)
    if not sentences and hit.snippet:
        segment = hit.snippet.segment
        place = place_fields(Places(document), segment.start)
        sentences = [
            Sentence(text=segment.text, start=segment.start, end=segment.end, score=None, **place)
        ]
    return FoundDocument(
        doc_id=document.doc_id,
        title=document.title,
        score=hit.score,
        probability=hit.probability,
        path=document.fields.get("path"),
        uri=str(UriTemplate.parse(DOCUMENT_URI).expand({"doc_id": document.doc_id})),
        copies=list(hit.copies),
        sentences=sentences,
    )


def _shorten(documents: Sequence[FoundDocument], characters: int) -> int:
    """Leave out sentences that are too long together; return how many were left out."""
    left_out = 0
    places = sorted(
        (n, d) for d, found in enumerate(documents) for n in range(len(found.sentences))
    )
    kept: list[list[Sentence]] = [[] for _ in documents]
    for number, position in places:
        sentence = documents[position].sentences[number]
        if len(sentence.text) <= characters:
            characters -= len(sentence.text)
            kept[position].append(sentence)
        else:
            left_out += 1
    for document, sentences in zip(documents, kept, strict=True):
        document.sentences = sentences
    return left_out


def _sentences(hit: Hit, count: int) -> list[Sentence]:
    """Return the first sentences that a model has read of a hit's document."""
    places = Places(hit.document)
    return [
        Sentence(**(sentence_fields(evidence) | place_fields(places, evidence.begin)))
        for evidence in hit.segments[:count]
    ]
