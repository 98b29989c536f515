"""Spans and metrics, through the API of OpenTelemetry. The application's SDK exports them.

Spans and metrics have no texts of errors, and no part of a message but its attributes: either may quote a body.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

from opentelemetry import context as contexts
from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.metrics import Meter
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from exactlyonce.effects.effect import BEHIND, UNKNOWN, Busy, Effect
from exactlyonce.effects.entity import Conflict, Publish
from exactlyonce.effects.library import Park, WriteBook, Written
from exactlyonce.telemetry.metrics import Metrics
from exactlyonce.telemetry.spans import (
    ENTITY_TYPE,
    OPERATIONS,
    AttemptSpans,
    DeliverySpan,
    Instruments,
    Operation,
    fail,
)
from exactlyonce.telemetry.tally import DUPLICATES
from exactlyonce.values.envelope import TRACEPARENT, TRACESTATE, EntityRef, Envelope, Extensions, key_of

NAME: Final = "exactlyonce"
OUTCOME: Final = "exactlyonce.outcome"
OPERATION: Final = "exactlyonce.operation"
_SPENT: Final = "exactlyonce.spent"
_W3C: Final = TraceContextTextMapPropagator()
_COSMOS: Final = "azure.cosmosdb"
_SYSTEM: Final = {"messaging.system": NAME}


class Telemetry:
    """An observer that writes spans and metrics.

    Args:
        tracer, meter: instruments of the SDK.
        now: the time of day.
    """

    def __init__(self, tracer: Tracer, meter: Meter, now: Callable[[], datetime]) -> None:
        self._tracer = tracer
        self._metrics = Metrics(meter)
        self._instruments = Instruments(tracer, self._metrics, now)

    @contextmanager
    def processing(self, entity: EntityRef, envelope: Envelope) -> Iterator[DeliverySpan]:
        """A span for a delivery: a child of its message's send context, linked to the invocation."""
        parent, links = _creation(envelope)
        attributes: dict[str, str | int] = {
            **_SYSTEM,
            "messaging.operation.name": "process",
            "messaging.operation.type": "process",
            "messaging.message.id": key_of(envelope),
            "cloudevents.event_type": envelope.type,
            "exactlyonce.entity": str(entity),
        }
        span = self._tracer.start_span(f"process {entity.type}", parent, SpanKind.CONSUMER, attributes, links)
        delivery = DeliverySpan(envelope, span)
        labels = {ENTITY_TYPE: entity.type}
        outcome: str = "cancelled"
        try:
            yield delivery
            outcome = delivery.outcome or "processed"
        except Exception as error:
            outcome = "failed"
            fail(span, error)
            self._metrics.failed(1, {**labels, "error.type": type(error).__name__})
            raise
        finally:
            span.set_attribute(OUTCOME, outcome)
            span.end()
        if delivery.outcome in DUPLICATES:
            self._metrics.duplicates(1, {**labels, "exactlyonce.found": outcome})
        elif delivery.outcome == "held":
            self._metrics.held(1, labels)

    @contextmanager
    def watching(self, entity: EntityRef, deliveries: Sequence[DeliverySpan] | None) -> Iterator[AttemptSpans]:
        """Spans for attempts on an entity."""
        watch = AttemptSpans(self._instruments, entity, deliveries)
        token = contexts.attach(watch.context)
        try:
            yield watch
        except BaseException as error:
            watch.close(error)
            if deliveries is None and isinstance(error, Exception):
                labels = {ENTITY_TYPE: entity.type, "error.type": type(error).__name__}
                self._metrics.maintenance_failed(1, labels)
            raise
        finally:
            contexts.detach(token)

    async def perform(self, effect: Effect[Any], perform: Callable[[Any], Awaitable[Any]]) -> Any:
        """Perform an effect inside a span of its own, and count its reply."""
        operation = OPERATIONS.get(type(effect))
        if operation is None:
            return await perform(effect)
        watch = AttemptSpans.present()
        parent = contexts.get_current() if watch is None else watch.context
        attributes = _attributes(operation, effect)
        links = _origins(effect) if isinstance(effect, Publish) and watch is not None and watch.is_owed else ()
        span = self._tracer.start_span(_name(operation, attributes), parent, SpanKind.CLIENT, attributes, links)
        spent: list[float] = []
        token = contexts.attach(contexts.set_value(_SPENT, spent, trace.set_span_in_context(span, parent)))
        try:
            reply = await perform(effect)
        except BaseException as error:
            fail(span, error)
            raise
        else:
            self._count(operation, reply, span)
            if isinstance(effect, Park) and isinstance(reply, Written):
                self._metrics.parked(1, {ENTITY_TYPE: effect.entity.type})
            if isinstance(effect, WriteBook) and isinstance(reply, Written):
                self._metrics.open(len(effect.book.open), {})
                self._metrics.stuck(len(effect.book.stuck), {})
            return reply
        finally:
            contexts.detach(token)
            if spent:
                self._charge(sum(spent), operation.name, attributes)
                span.set_attribute("azure.cosmosdb.operation.request_charge", sum(spent))
            span.end()

    @contextmanager
    def sending(self, destination: str, message_id: str) -> Iterator[Extensions]:
        """A span for a message sent outside of handlers; gives the attributes of its trace context."""
        attributes = {
            **_SYSTEM,
            "messaging.operation.name": "send",
            "messaging.operation.type": "send",
            "messaging.destination.name": destination,
            "messaging.message.id": message_id,
        }
        span = self._tracer.start_span(f"send {destination}", kind=SpanKind.PRODUCER, attributes=attributes)
        context = trace.set_span_in_context(span)
        carrier: dict[str, str] = {}
        _W3C.inject(carrier, context)
        token = contexts.attach(context)
        try:
            yield tuple(sorted(carrier.items()))
        except BaseException as error:
            fail(span, error)
            raise
        finally:
            contexts.detach(token)
            span.end()

    def charged(self, units: float) -> None:
        """Add to the cost of the present effect, since a query has many replies; outside of effects, count alone."""
        spent = contexts.get_value(_SPENT)
        if isinstance(spent, list):
            spent.append(units)
        else:
            self._charge(units, "other", {"db.system.name": _COSMOS})

    def called(self, call: Envelope, received: object) -> None:
        """Tries of calls are not reported."""

    def _charge(self, units: float, operation: str, attributes: dict[str, str | int]) -> None:
        self._metrics.charge(units, {**attributes, OPERATION: operation})

    def _count(self, operation: Operation, reply: object, span: Span) -> None:
        labels = {OPERATION: operation.name}
        if reply is UNKNOWN:
            span.set_status(Status(StatusCode.ERROR))
            span.set_attribute("error.type", UNKNOWN.value)
            self._metrics.unknown(1, labels)
        elif isinstance(reply, Conflict):
            span.set_attribute("exactlyonce.reply", "conflict")
            self._metrics.conflicts(1, labels)
        elif reply is BEHIND or isinstance(reply, Busy):
            refusal = "behind" if reply is BEHIND else "busy"
            span.set_attribute("exactlyonce.reply", refusal)
            self._metrics.refused(1, {**labels, "exactlyonce.reply": refusal})


def configured(now: Callable[[], datetime]) -> Telemetry | None:
    """Telemetry for this process's SDK; None without an SDK."""
    providers = trace.get_tracer_provider(), metrics.get_meter_provider()
    # The API's own providers do nothing; configuring an SDK replaces them.
    if all(
        type(provider).__module__.startswith(("opentelemetry.trace", "opentelemetry.metrics")) for provider in providers
    ):
        return None
    return Telemetry(providers[0].get_tracer(NAME), providers[1].get_meter(NAME), now)


def _creation(envelope: Envelope) -> tuple[Context | None, list[Link]]:
    """A message's send context as the parent, with a link to the current span. Without a send context, the current span is
    the parent."""
    current = trace.get_current_span().get_span_context()
    creation = _context_of(envelope.trace)
    if creation is None:
        return None, []
    parent = trace.set_span_in_context(trace.NonRecordingSpan(creation), Context())
    return parent, [Link(current)] if current.is_valid and current.span_id != creation.span_id else []


def _context_of(extensions: Extensions) -> SpanContext | None:
    carrier = {name: str(value) for name, value in extensions}
    if not carrier:
        return None
    context = trace.get_current_span(_W3C.extract(carrier, Context())).get_span_context()
    return context if context.is_valid else None


def _origins(effect: Publish) -> list[Link]:
    """Links to the traces of messages whose outputs are published late."""
    envelopes = (output.envelope.value for output in effect.outputs)
    traces = (
        tuple((name, envelope[name]) for name in (TRACEPARENT, TRACESTATE) if name in envelope)
        for envelope in envelopes
    )
    return [Link(context) for fromkey in dict.fromkeys(traces) if (context := _context_of(fromkey)) is not None]


def _name(operation: Operation, attributes: dict[str, str | int]) -> str:
    """The name of a span; by the conventions, spans of messaging contain the destination."""
    destination = attributes.get("messaging.destination.name")
    return operation.name if destination is None else f"{operation.name} {destination}"


def _attributes(operation: Operation, effect: Effect[Any]) -> dict[str, str | int]:
    attributes: dict[str, str | int] = {}
    if operation.database is not None:
        attributes |= {"db.system.name": _COSMOS, "db.operation.name": operation.database(effect)}
    if isinstance(effect, Publish):
        attributes |= {**_SYSTEM, "messaging.operation.name": "publish", "messaging.operation.type": "send"}
        if len({output.destination for output in effect.outputs}) == 1:
            attributes["messaging.destination.name"] = effect.outputs[0].destination
        if len(effect.outputs) == 1:
            attributes["messaging.message.id"] = effect.outputs[0].id
        else:
            attributes["messaging.batch.message_count"] = len(effect.outputs)
    return attributes
