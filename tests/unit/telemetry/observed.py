"""An OpenTelemetry SDK in memory, and the spans and metrics that the library reported to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from exactlyonce.drivers.runtime import Clock
from exactlyonce.telemetry.opentelemetry import Telemetry


class Observed:
    """Telemetry for a world or an application, and everything that came of it."""

    def __init__(self, clock: Clock) -> None:
        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        tracers, meters = TracerProvider(shutdown_on_exit=False), MeterProvider([self._reader], shutdown_on_exit=False)
        tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = tracers.get_tracer("tests")
        self.telemetry = Telemetry(self.tracer, meters.get_meter("tests"), clock.now)

    @property
    def spans(self) -> list[ReadableSpan]:
        """All that have ended, in the order in which they did."""
        return list(self._exporter.get_finished_spans())

    def named(self, name: str) -> list[ReadableSpan]:
        """Those of a name."""
        return [span for span in self.spans if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        """The only one of a name."""
        (span,) = self.named(name)
        return span

    def parent(self, span: ReadableSpan) -> str | None:
        """Name of a span's parent; None if it has none."""
        return None if span.parent is None else names_of(self.spans, [span.parent.span_id])[0]

    def links(self, span: ReadableSpan) -> list[str]:
        """Names of the spans that a span is linked to."""
        return names_of(self.spans, [link.context.span_id for link in span.links])

    @property
    def points(self) -> list[tuple[str, Mapping[str, Any], Any]]:
        """Name, labels and data of everything measured."""
        data = self._reader.get_metrics_data()
        return [
            (metric.name, point.attributes or {}, point)
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            for point in metric.data.data_points
        ]

    def total(self, name: str, **labels: str) -> float:
        """Sum of a counter, or of what a histogram recorded, over all points with these labels; `.` is written `_` in them."""
        found = [point for item, given, point in self.points if item == name and _fits(given, labels)]
        return sum(point.sum if isinstance(point, HistogramDataPoint) else point.value for point in found)

    def by(self, name: str, label: str) -> Counter[str]:
        """A counter by a label."""
        found: Counter[str] = Counter()
        for one, given, point in self.points:
            if one == name:
                found[str(given[label])] += point.value
        return found

    def count(self, name: str) -> int:
        """How often a histogram recorded something."""
        return sum(point.count for item, _, point in self.points if item == name)


def names_of(spans: Iterable[ReadableSpan], ids: Iterable[int]) -> list[str]:
    """Names of spans by their ids; "?" for one that nobody wrote."""
    names = {span.context.span_id: span.name for span in spans if span.context is not None}
    return [names.get(id, "?") for id in ids]


def _fits(given: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    named = {name.replace(".", "_"): value for name, value in given.items()}
    return all(named.get(name) == value for name, value in wanted.items())
