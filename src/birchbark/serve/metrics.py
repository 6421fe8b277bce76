"""Which metrics does the service export to Prometheus?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from birchbark.serve.schemas import SearchResponse

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30)  # seconds
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The metrics of one service; each service in a process has its own."""

    def __init__(self, pairs_scored: Callable[[], int]) -> None:
        """pairs_scored: returns how many segments the models have scored so far."""
        self._registry = registry = CollectorRegistry()
        self.requests = Counter(
            "birchbark_requests", "Requests answered.", ["route", "status"], registry=registry
        )
        self.seconds = Histogram(
            "birchbark_request_seconds",
            "Seconds from the start of a request to the end of its answer.",
            ["route"],
            buckets=BUCKETS,
            registry=registry,
        )
        self.active = Gauge(
            "birchbark_requests_active", "Requests being answered.", registry=registry
        )
        self._searches = Counter(
            "birchbark_searches",
            "Searches, by whether their hits are exact.",
            ["exact"],
            registry=registry,
        )
        self._pairs = Counter(
            "birchbark_pairs",
            "Query-segment pairs in searches, scored or cached.",
            registry=registry,
        )
        registry.register(_PairsScored(pairs_scored))

    def watch_missing_vectors(self, documents: Callable[[], int]) -> None:
        """Export how many documents lack vectors that are computed in the background."""
        name = "birchbark_documents_without_vectors"
        description = "Documents whose vectors are still to be computed while the service is idle."
        Gauge(name, description, registry=self._registry).set_function(documents)

    def watch_background(self, failures: Mapping[str, Callable[[], int]]) -> None:
        """Export how often work in the background has failed. failures: by the name of the work."""
        name = "birchbark_background_failures"
        description = "Failures in succession of work in the background; 0 while it succeeds."
        gauge = Gauge(name, description, ["work"], registry=self._registry)
        for work, count in failures.items():
            gauge.labels(work).set_function(count)

    def count_search(self, answer: SearchResponse) -> None:
        """Count an answered search."""
        self._searches.labels(str(answer.exact).lower()).inc()
        self._pairs.inc(answer.pairs)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry)


class _PairsScored(Collector):
    """Reads the number of scored pairs from the models whenever metrics are collected."""

    def __init__(self, pairs_scored: Callable[[], int]) -> None:
        self._pairs_scored = pairs_scored

    def collect(self) -> Iterator[CounterMetricFamily]:
        """See prometheus_client."""
        description = "Query-segment pairs scored by models; cached scores do not count."
        value = self._pairs_scored()
        yield CounterMetricFamily("birchbark_pairs_scored", description, value=value)
