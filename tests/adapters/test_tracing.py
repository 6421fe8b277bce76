"""Are searches reported to OpenTelemetry's real SDK, with what they did and why they failed?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from served import Client, client, index_directory  # noqa: F401  (fixtures)

from birchbark.serve.limits import Limits
from birchbark.serve.tracing import Span

trace = pytest.importorskip("opentelemetry.trace", reason="OpenTelemetry's SDK is not installed")
sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="it is not installed")
export = pytest.importorskip("opentelemetry.sdk.trace.export", reason="it is not installed")
memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")


@pytest.fixture(scope="module")
def exporter() -> Any:
    """Collects the spans of this process, whose provider can be set once."""
    provider, found = sdk.TracerProvider(), memory.InMemorySpanExporter()
    provider.add_span_processor(export.SimpleSpanProcessor(found))
    trace.set_tracer_provider(provider)
    return found


@pytest.fixture
def spans(exporter: Any) -> Iterator[Callable[[], list[Any]]]:
    """Returns the finished spans of this project; FastAPI adds some of its own."""
    exporter.clear()
    yield lambda: [s for s in exporter.get_finished_spans() if s.name.startswith("birchbark.")]
    exporter.clear()


def test_searches_are_spans(spans: Any, client: Client) -> None:  # noqa: F811
    """Their attributes say how long they waited, what was read, and whether all of it."""
    answer = client().get("/search", params={"q": "birch canoe"}).json()
    (span,) = spans()
    assert span.name == "birchbark.search"
    assert span.attributes["birchbark.pairs"] == answer["pairs"] > 0
    assert span.attributes["birchbark.hits"] == len(answer["hits"])
    assert span.attributes["birchbark.exact"] is True
    assert (
        0 <= span.attributes["birchbark.wait_seconds"] < span.attributes["birchbark.budget_seconds"]
    )
    assert span.status.is_ok


def test_re_rankings_are_spans(spans: Any, client: Client) -> None:  # noqa: F811
    """Each re-ranking is a span, and so is one that fails, with its error."""
    service = client(limits=Limits(budget=1e-9, max_time=1e-9), raises=False)
    body = {"model": "", "query": "bees", "documents": ["bees dance", "a canoe"]}
    assert service.post("/v2/rerank", json=body).status_code >= 400
    assert client().post("/v2/rerank", json=body).status_code == 200
    failed, done = spans()
    assert failed.name == done.name == "birchbark.rerank"
    assert done.attributes["birchbark.texts"] == 2
    assert not failed.status.is_ok
    assert failed.events[0].name == "exception"


def test_a_span_is_a_child_of_the_current_one(spans: Any) -> None:
    """That of the HTTP request, where the web framework is instrumented."""
    with trace.get_tracer("test").start_as_current_span("request") as parent, Span("search"):
        pass
    (child,) = spans()
    assert child.parent.span_id == parent.get_span_context().span_id
