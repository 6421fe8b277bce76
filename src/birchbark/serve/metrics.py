"""What is counted for those who watch the service? In Prometheus' words."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from birchbark.serve.shapes import SearchAnswer

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Counts of one service, apart from any other in this process."""

    def __init__(self, scored: Callable[[], int]) -> None:
        """scored: how many segments were read so far."""
        self._registry = own = CollectorRegistry()
        self.requests = Counter(
            "birchbark_requests", "Requests answered.", ["route", "status"], registry=own
        )
        self.seconds = Histogram(
            "birchbark_request_seconds",
            "From the first byte asked to the last one answered.",
            ["route"],
            buckets=SECONDS,
            registry=own,
        )
        self.inside = Gauge("birchbark_inside", "Requests being answered.", registry=own)
        self._searches = Counter(
            "birchbark_searches",
            "Searches, by whether their hits are exact.",
            ["exact"],
            registry=own,
        )
        self._pairs = Counter(
            "birchbark_pairs", "Segments read for queries, or remembered.", registry=own
        )
        own.register(_Scored(scored))

    def searched(self, answer: SearchAnswer) -> None:
        """A search was answered."""
        self._searches.labels(str(answer.exact).lower()).inc()
        self._pairs.inc(answer.pairs)

    def written(self) -> bytes:
        """All of it, as text."""
        return generate_latest(self._registry)


class _Scored(Collector):
    """Counted elsewhere, asked when it is told."""

    def __init__(self, scored: Callable[[], int]) -> None:
        self._scored = scored

    def collect(self) -> Iterator[CounterMetricFamily]:
        """See prometheus_client."""
        told = "Segments that the models read; what was remembered is not counted."
        yield CounterMetricFamily("birchbark_pairs_scored", told, value=self._scored())
