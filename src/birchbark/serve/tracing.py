"""Which spans does the service report to OpenTelemetry?

Where the package opentelemetry-api is installed, each search and re-ranking is a span. Spans are
recorded only if an SDK is configured, by `opentelemetry-instrument` or otherwise.
"""

from __future__ import annotations

from functools import cache
from types import TracebackType
from typing import Any, Self

from birchbark._version import __version__


class Span:
    """A span, as a context manager; an error that leaves the block is recorded.

    The span is a child of the one that is current when it begins, such as that of the HTTP request.
    """

    def __init__(self, name: str) -> None:
        """Begin the span `birchbark.NAME`."""
        tracer = _tracer()
        self._span = tracer.start_span(f"birchbark.{name}") if tracer else None

    def note(self, **values: bool | int | float | str) -> None:
        """Record attributes: `birchbark.NAME` = value."""
        if self._span:
            self._span.set_attributes({f"birchbark.{name}": v for name, v in values.items()})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._span:
            return
        if error:
            from opentelemetry.trace import Status, StatusCode

            self._span.record_exception(error)
            self._span.set_status(Status(StatusCode.ERROR, type(error).__name__))
        self._span.end()


@cache
def _tracer() -> Any:
    """Return the tracer, or None without the package, which is looked for only once."""
    try:
        from opentelemetry.trace import get_tracer
    except ImportError:
        return None
    return get_tracer("birchbark", __version__)
