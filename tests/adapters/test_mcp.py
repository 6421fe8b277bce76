"""Can an agent search, read and explain by the Model Context Protocol?"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from threading import Event
from time import sleep
from typing import Any

import anyio
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from served import running

from birchbark.index.build_index import Schema, build_index
from birchbark.pipeline.searcher import Searcher
from birchbark.records import SECTION_STARTS, Document
from conftest import DOCUMENTS, write_bert
from fuzzing import broken_tree, fuzz

mcp = pytest.importorskip("mcp")

QUERY = "birch river"
TEXT = "A canoe floats. " * 2000
LONG = Document("long", {"title": "Canoes", "text": TEXT, "kind": "boat", SECTION_STARTS: "0"})


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bert(tmp_path_factory.mktemp("bert") / "bert", labels=1)


@pytest.fixture
def searcher(bert: Path, tmp_path: Path) -> Searcher:
    build_index([*DOCUMENTS, LONG], tmp_path / "index", Schema(keywords=("kind",)))
    return Searcher(tmp_path / "index", bert)


def with_client(server: Any, use: Callable[[Any], Awaitable[Any]]) -> Any:
    """Return the result of `use`, called with a client of the server."""

    async def run() -> Any:
        async with mcp.Client(server) as client:
            return await use(client)

    return asyncio.run(run())


def call(server: Any, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return what a tool returns; RuntimeError with its message if it fails."""
    result = with_client(server, lambda client: client.call_tool(tool, arguments))
    if result.is_error:
        raise RuntimeError(result.content[0].text)
    return result.structured_content  # type: ignore[no-any-return]


def test_search(searcher: Searcher) -> None:
    """The documents of `Searcher.search`, with offsets that fit what `read` returns."""
    from birchbark.adapters.mcp import make_server

    server = make_server(searcher, "notes")
    found = call(server, "search", query=QUERY, top=3)
    hits = searcher.search(QUERY, 3).hits
    assert found["exact"]
    assert [d["doc_id"] for d in found["documents"]] == [hit.document.doc_id for hit in hits]
    assert [d["score"] for d in found["documents"]] == [hit.score for hit in hits]
    for document in found["documents"]:
        text = call(server, "read", doc_id=document["doc_id"])["text"]
        assert document["sentences"]
        for sentence in document["sentences"]:
            assert text[sentence["start"] : sentence["end"]] == sentence["text"]
    counts = iter([5, None])
    unread = make_server(searcher, "notes", reading=lambda: next(counts))
    told = ["new and changed files are being read: 5 documents"]
    assert [call(unread, "search", query=QUERY)["notes"] for _ in range(2)] == [told, []]
    by_id = call(server, "search", query=QUERY, top=3, sort="-title")["documents"]
    titles = [hit.document.fields.get("title", "") for hit in hits]
    assert sorted(titles, reverse=True) == [document["title"] for document in by_id]
    boats = call(server, "search", query="canoe", filters={"kind": "boat"})
    assert [d["doc_id"] for d in boats["documents"]] == ["long"]
    assert boats["notes"] == []
    boats = call(server, "search", query="canoe", filters={"kind": ["boat", "a|b"]})
    assert [d["doc_id"] for d in boats["documents"]] == ["long"]
    nothing = call(server, "search", query="canoe", filters={"kind": "bo"})
    assert nothing["documents"] == []
    assert nothing["notes"] == [
        "no document has kind=bo; there are: boat; for all that begin with it: kind=bo*"
    ]


def test_sentences_within_a_number_of_tokens(searcher: Searcher) -> None:
    """What is left out is told."""
    from birchbark.adapters.mcp import make_server

    server = make_server(searcher, "notes")
    everything = call(server, "search", query=QUERY, top=3)["documents"]
    texts = [s["text"] for document in everything for s in document["sentences"]]
    assert len(texts) > 2
    tokens = -(-len(texts[0]) // 4)
    shorter = call(server, "search", query=QUERY, top=3, max_tokens=tokens)
    kept = [[s["text"] for s in document["sentences"]] for document in shorter["documents"]]
    assert kept == [texts[:1], [], []]
    assert shorter["notes"] == [f"{len(texts) - 1} sentences left out, because of max_tokens"]


def test_the_first_sentence_of_each_document_comes_first() -> None:
    """Then the second of each; a long one is left out before a short one that follows."""
    from birchbark.adapters.mcp import FoundDocument, Sentence, _shorten

    place = {"start": 0, "end": 0, "page": None, "line": None, "score": None}
    found = [
        FoundDocument(
            doc_id=name,
            title="",
            score=1.0,
            probability=None,
            path=None,
            uri="",
            copies=[],
            sentences=[Sentence(text=text, **place) for text in texts],
        )
        for name, texts in (("a", ["aaaa", "AAAA", "x"]), ("b", ["bbbb", "BB"]))
    ]
    assert _shorten(found, 11) == 1
    assert [[s.text for s in document.sentences] for document in found] == [
        ["aaaa", "x"],
        ["bbbb", "BB"],
    ]


def test_read(searcher: Searcher) -> None:
    """A long document is read in parts, and other fields come with it."""
    from birchbark.adapters.mcp import make_server

    server = make_server(searcher, "notes")
    parts, start = [], 0
    while not parts or start < parts[-1]["length"]:
        parts.append(call(server, "read", doc_id="long", start=start))
        start = parts[-1]["end"]
    assert "".join(part["text"] for part in parts) == LONG.contents
    assert len(parts) > 1
    assert parts[0]["fields"] == {"kind": "boat"}


def test_explain(searcher: Searcher) -> None:
    """The sentences of one document, best first."""
    from birchbark.adapters.mcp import make_server

    found = call(make_server(searcher, "notes"), "explain", doc_id="canoe", query=QUERY)
    segments = searcher.evidence("canoe", QUERY).hit.segments
    assert [(s["text"], s["score"]) for s in found["sentences"]] == [
        (evidence.segment.text, evidence.score) for evidence in segments
    ]
    assert found["sentence_count"] == len(segments)


def test_a_cancelled_search_ends(searcher: Searcher, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends before the next batch, and not when everything is read."""
    from birchbark.adapters.mcp import make_server

    began, ended = Event(), Event()

    def endless(*_: Any, on_progress: Callable[[Any], object], **__: Any) -> Any:
        began.set()
        try:
            while True:
                on_progress(None)
                sleep(0.01)
        finally:
            ended.set()

    async def cancel(client: Any) -> bool:
        with anyio.CancelScope() as scope:

            async def cancel_when_begun() -> None:
                while not began.is_set():
                    await asyncio.sleep(0.01)
                scope.cancel()

            task = asyncio.create_task(cancel_when_begun())
            await client.call_tool("search", {"query": QUERY})
        await task
        return await asyncio.to_thread(ended.wait, 20)

    monkeypatch.setattr(searcher, "search", endless)
    assert with_client(make_server(searcher, "notes"), cancel)


def test_an_agent_hears_how_much_was_read(
    searcher: Searcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers that only grow, and no more often than at intervals."""
    from birchbark.adapters import mcp as adapter

    told: list[tuple[float, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message))

    async def search(client: Any) -> Any:
        return await client.call_tool("search", {"query": QUERY}, progress_callback=hear)

    with_client(adapter.make_server(searcher, "notes"), search)
    assert told == []  # the search was over before
    monkeypatch.setattr(adapter, "PROGRESS_SECONDS", 0.0)
    with_client(adapter.make_server(searcher, "notes"), search)
    assert told
    assert [n for n, _ in told] == sorted(n for n, _ in told)
    assert told[-1][1] in (f"{told[-1][0]:.0f} passages read", "1 passage read")


def test_first_stage_alone(searcher: Searcher) -> None:
    """Without a model, documents have a snippet without score, and nothing can be explained."""
    from birchbark.adapters.mcp import make_server

    server = make_server(Searcher(searcher.directory, ()), "notes")
    (first, *_) = call(server, "search", query="bees")["documents"]
    assert first["sentences"][0]["score"] is None
    tools = with_client(server, lambda client: client.list_tools()).tools
    assert [tool.name for tool in tools] == ["search", "read"]


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("read", {"doc_id": "none"}, "no document 'none'"),
        ("explain", {"doc_id": "none", "query": "bees"}, "no document 'none'"),
        ("read", {"doc_id": "bees", "start": 10**6}, "start is behind the end"),
        ("search", {"query": "bees " * 401}, "at most 2000 characters"),
        ("search", {"query": "bees", "top": 0}, "greater than or equal to 1"),
        ("search", {"query": "bees", "filters": {"color": "red"}}, "no field 'color'"),
    ],
)
def test_errors_are_told(
    searcher: Searcher, tool: str, arguments: dict[str, Any], message: str
) -> None:
    """The agent reads what is wrong and what to do."""
    from birchbark.adapters.mcp import make_server

    with pytest.raises(RuntimeError, match=message):
        call(make_server(searcher, "notes"), tool, **arguments)


ARGUMENTS: dict[str, dict[str, Any]] = {
    "search": {
        "query": '"birch bark" river -stone kind:boat',
        "top": 3,
        "filters": {"kind": ["boat", "a|b"]},
        "sort": "-title",
        "literal": False,
    },
    "read": {"doc_id": "long", "start": 5, "characters": 100},
    "explain": {"doc_id": "canoe", "query": QUERY, "literal": True},
}


@pytest.mark.parametrize("tool", ARGUMENTS)
@fuzz(6)
@given(data=st.data())
def test_broken_arguments(tool: str, data: st.DataObject, searcher: Searcher) -> None:
    """They are answered, or an error says what is wrong, and not only that something is."""
    from birchbark.adapters.mcp import make_server

    arguments = data.draw(
        broken_tree([ARGUMENTS[tool]]).filter(lambda tree: isinstance(tree, dict))
    )
    result = with_client(
        make_server(searcher, "notes"), lambda client: client.call_tool(tool, arguments)
    )
    assert not result.is_error or result.content[0].text != f"Error executing tool {tool}"


def test_command(tmp_path: Path, bert: Path) -> None:
    """An agent starts the command with a folder; a file that is added is found."""
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "bees.md").write_text("# Bees\n\nBees dance by the river.\n")
    arguments = ["-m", "birchbark", "mcp", str(notes), "--model", str(bert)]
    server = mcp.StdioServerParameters(command=sys.executable, args=arguments)

    async def use(client: Any) -> list[str]:
        assert "notes. Search" in client.instructions
        (notes / "canoes.md").write_text("# Canoes\n\nA canoe of birch bark.\n")
        for _ in range(60):
            result = await client.call_tool("search", {"query": "canoe"})
            found = [one["doc_id"] for one in result.structured_content["documents"]]
            if "canoes.md" in found:
                return found
            await asyncio.sleep(0.5)
        return []

    assert "canoes.md" in with_client(server, use)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('"birch bark"', ["canoe"]),
        ("“steam drives” iron", ["engine"]),
        ("river -birch", ["bridge"]),
        ('birch -"birch bark"', ["forest"]),
        ("canoe kind:boat", ["long"]),
        ("canoe -kind:boat", ["canoe"]),
        ("river -kind:boat -stone -bark", ["forest"]),
        ("http://river", None),
        ("river - birch", None),
    ],
)
def test_operators(searcher: Searcher, query: str, expected: list[str] | None) -> None:
    """An agent's queries have the operators that those of Python have."""
    from birchbark.adapters.mcp import make_server

    server = make_server(searcher, "notes")
    found = [d["doc_id"] for d in call(server, "search", query=query)["documents"]]
    assert found == [hit.document.doc_id for hit in searcher.search(query, 5).hits]
    assert expected is None or found == expected


def test_literal_queries(searcher: Searcher) -> None:
    """Nothing in a literal query is an operator, and a query that finds nothing says so."""
    from birchbark.adapters.mcp import make_server

    server = make_server(searcher, "notes")
    literal = call(server, "search", query="river -birch", literal=True)["documents"]
    assert {d["doc_id"] for d in literal} == {"canoe", "bridge", "forest"}
    nothing = call(server, "search", query='"bark birch"')
    assert nothing["notes"] == ['no document matches with "bark birch"']
    with pytest.raises(RuntimeError, match="nothing to search for"):
        call(server, "search", query="-birch")
    read = [call(server, "explain", doc_id="canoe", query=text) for text in ('"bark"', "bark")]
    assert read[0] == read[1]


def test_agents_search_over_http(searcher: Searcher, bert: Path) -> None:
    """A service lets them in, with the same tools and answers; strangers need the key."""
    directory = searcher.directory
    (directory.parent / "key").write_text("secret\n")
    with running(directory, "--model", bert, cwd=directory.parent) as (port, _):
        address = f"http://127.0.0.1:{port}/mcp"
        found = call(address, "search", query=QUERY, top=3)
        assert found == call(make_server_of(searcher), "search", query=QUERY, top=3)
        doc_id = found["documents"][0]["doc_id"]
        assert call(address, "read", doc_id=doc_id)["doc_id"] == doc_id
        assert call(address, "explain", doc_id=doc_id, query=QUERY)["sentences"]
        with pytest.raises(RuntimeError, match="no document 'none'"):
            call(address, "read", doc_id="none")
        deep = b"[" * 100_001 + b"]" * 100_001
        assert post(address, deep)[0] == 422
        with pytest.raises(RuntimeError) as told:
            call(address, "search", query="bees", filters={"color": "red"})
        assert str(directory) not in str(told.value)
        assert httpx.get(address).status_code == 405  # a stream that nothing would be sent to
    with running(directory, "--model", bert, "--key-file", "key", cwd=directory.parent) as (
        port,
        _,
    ):
        assert post(f"http://127.0.0.1:{port}/mcp", b"{}")[0] == 401


def make_server_of(searcher: Searcher) -> Any:
    from birchbark.adapters.mcp import make_server

    return make_server(searcher, "notes")


def post(address: str, body: bytes) -> tuple[int, bytes]:
    """Return status and body of the answer to a request of an agent."""
    head = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    answer = httpx.post(address, content=body, headers=head, timeout=20)
    return answer.status_code, answer.content


def test_documents_are_resources(searcher: Searcher) -> None:
    """Each hit has the address of its text, whatever its id; long ones are read in parts."""
    odd = "a b/../ä?#%41.txt"
    searcher.add([Document(odd, {"text": "A willow by the lake."})])
    server = make_server_of(searcher)
    (found,) = call(server, "search", query="willow lake", top=1)["documents"]
    assert found["doc_id"] == odd

    def read(uri: str) -> str:
        async def text_or_error(client: Any) -> str:
            try:
                return str((await client.read_resource(uri)).contents[0].text)
            except mcp.MCPError as error:
                return str(error)

        return str(with_client(server, text_or_error))

    assert read(found["uri"]) == "A willow by the lake."
    searcher.add([Document("long", {"text": "A willow. " * 10_001})])
    assert "too long for a resource" in read("birchbark://documents/long")
    assert "no document 'none'" in read("birchbark://documents/none")
