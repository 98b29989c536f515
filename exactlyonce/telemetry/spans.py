"""A span for each attempt, and the outcome of the attempts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, Status, StatusCode, Tracer

from exactlyonce.effects.attempt import Again, Finished, Memory
from exactlyonce.effects.companions import (
    DeleteCompanions,
    FindEntries,
    FindNumbered,
    FindOwing,
    HasCompanions,
    LoadCompanions,
    ReplaceCompanions,
    SaveBatch,
)
from exactlyonce.effects.effect import Effect, Step
from exactlyonce.effects.entity import PUBLISHED, LoadEntity, Publish, SaveEntity
from exactlyonce.effects.library import (
    CloseRequest,
    DeleteBlobs,
    DeletePages,
    DeleteRequests,
    DeleteStaged,
    FindBlobs,
    FindPages,
    FindPagesAbove,
    HasPages,
    KeepAnswers,
    LoadParked,
    LoadRequests,
    LoadStaged,
    NoteSearch,
    OpenRequest,
    Park,
    ReadBooks,
    Stage,
    Unpark,
    WriteBook,
    WriteOnce,
    WritePage,
)
from exactlyonce.telemetry.metrics import Metrics
from exactlyonce.telemetry.tally import Outcome, Tally
from exactlyonce.values.envelope import EntityRef, Envelope, key_of

# Names of effects in spans and metrics, and the operations of Cosmos DB that perform them.


Named = Callable[[Any], str]


def _always(name: str, *effects: type[Effect[Any]]) -> dict[type[Effect[Any]], Named]:
    """The same operation for every effect of these classes."""
    return dict.fromkeys(effects, lambda _: name)


def _by_number(text: str, several: str, of: Callable[[Any], Sized]) -> Named:
    """An operation for a single document, and a different operation for several."""
    return lambda effect: text if len(of(effect)) == 1 else several


_DATABASE: Final[Mapping[type[Effect[Any]], Named]] = {
    **_always("read_item", LoadEntity, LoadParked),
    **_always("query_items", FindPages, FindPagesAbove, FindBlobs, HasPages),
    **_always("query_items", FindEntries, FindNumbered, FindOwing, HasCompanions),
    **_always("create_item", WritePage, OpenRequest),
    **_always("upsert_item", WriteBook, Park),
    **_always("replace_item", NoteSearch, Unpark, KeepAnswers),
    **_always("delete_item", CloseRequest),
    **_always("execute_batch", SaveBatch),
    SaveEntity: lambda effect: "create_item" if effect.etag is None else "replace_item",
    ReadBooks: _by_number("read_item", "query_items", lambda effect: effect.books),
    LoadStaged: _by_number("read_item", "query_items", lambda effect: effect.transactions),
    LoadRequests: _by_number("read_item", "query_items", lambda effect: effect.requests),
    LoadCompanions: _by_number("read_item", "query_items", lambda effect: effect.ids),
    Stage: _by_number("create_item", "execute_batch", lambda effect: effect.documents),
    ReplaceCompanions: _by_number("replace_item", "execute_batch", lambda effect: effect.companions),
    DeletePages: _by_number("delete_item", "execute_batch", lambda effect: effect.pages),
    DeleteStaged: _by_number("delete_item", "execute_batch", lambda effect: effect.transactions),
    DeleteRequests: _by_number("delete_item", "execute_batch", lambda effect: effect.requests),
    DeleteCompanions: _by_number("delete_item", "execute_batch", lambda effect: effect.companions),
}
_OTHERS: Final[tuple[type[Effect[Any]], ...]] = (Publish, WriteOnce, DeleteBlobs)


@dataclass(frozen=True)
class Operation:
    """The names of a kind of effect.

    Attributes:
        name: name of the effect, such as `load_entity`.
        database: gives the Cosmos DB operation for an effect, by the conventions; None if the effect is no request to the
            store.
    """

    name: str
    database: Named | None


OPERATIONS: Final[Mapping[type[Effect[Any]], Operation]] = {
    kind: Operation(re.sub(r"(?<!^)([A-Z])", r"_\1", kind.__name__).lower(), _DATABASE.get(kind))
    for kind in (*_DATABASE, *_OTHERS)
}
"""All effects that reach an account. Further effects ask for time or chance, or combine effects."""


Result = TypeVar("Result")
ENTITY_TYPE: Final = "exactlyonce.entity.type"
REASON: Final = "exactlyonce.reason"
OCCASION: Final = "exactlyonce.occasion"
_SHARED: Final = {"sweep_records": "sweep", "companions_know": "knows"}
"""Methods of strategies, by the shared generators that the methods return."""
_WATCH: Final = "exactlyonce.watch"


@dataclass
class DeliverySpan:
    """The span of a delivery, and its outcome: None until then, and after a failure."""

    envelope: Envelope
    span: Span
    outcome: Outcome | None = None


@dataclass(frozen=True)
class Instruments:
    """Instruments of telemetry: for spans, and for numbers; and the time of day."""

    tracer: Tracer
    metrics: Metrics
    now: Callable[[], datetime]


class AttemptSpans:
    """Spans of attempts on an entity, made in sequence.

    The parent of an attempt is its delivery, if it has a single delivery. Several deliveries that share an attempt are linked
    to it. An attempt of maintenance has the current span as its parent, such as a timer's invocation.

    Args:
        instruments: the instruments of telemetry.
        entity: the attempts' entity.
        deliveries: the deliveries behind the attempts; None for maintenance.

    Attributes:
        context: context of the present attempt, for the spans of effects.
    """

    def __init__(self, instruments: Instruments, entity: EntityRef, deliveries: Sequence[DeliverySpan] | None) -> None:
        self._tracer, self._metrics, self._now = instruments.tracer, instruments.metrics, instruments.now
        self._entity = entity
        self._deliveries = deliveries or ()
        self._keys = [key_of(delivery.envelope) for delivery in self._deliveries]
        self._tally = Tally(dict.fromkeys(self._keys))
        self._labels: dict[str, str | int] = {ENTITY_TYPE: entity.type}
        self._links: list[Link] = []
        self._parent = contexts.get_current() if deliveries is None else Context()
        if len(self._deliveries) == 1:
            self._parent = trace.set_span_in_context(self._deliveries[0].span, Context())
        else:
            self._links = [Link(delivery.span.get_span_context()) for delivery in self._deliveries]
        self._span: Span | None = None
        self._step = ""
        self._number = 0
        self.context = contexts.set_value(_WATCH, self, self._parent)

    @staticmethod
    def present() -> AttemptSpans | None:
        """The spans of the present task's attempts; None without attempts."""
        watch = contexts.get_value(_WATCH)
        return watch if isinstance(watch, AttemptSpans) else None

    @property
    def is_owed(self) -> bool:
        """Whether the outputs published now were committed by an earlier attempt."""
        return self._tally.saved is None

    def attempts(self, attempt: Callable[[Memory], Step[Result | Again]]) -> Callable[[Memory], Step[Result | Again]]:
        """The same attempts, each in a span."""
        return lambda memory: self._watched(attempt(memory))

    def close(self, error: BaseException | None = None) -> None:
        """End the last attempt's span, with the error that ended the run, if any."""
        if self._span is not None:
            if error is not None:
                fail(self._span, error)
            self._span.end()
            self._span = None

    def _watched(self, step: Step[Result]) -> Step[Result]:
        name = getattr(step, "__name__", "attempt")  # As the strategy calls it: attempt, settle, sweep …
        self._begin(_SHARED.get(name, name))
        reply: Any = None
        while True:
            try:
                effect = step.send(reply)
            except StopIteration as finished:
                result: Result = finished.value
                self._end(result)
                return result
            reply = yield effect
            self._tally.note(effect, reply)
            if isinstance(effect, Publish):
                self._published(effect, reply)

    def _begin(self, step: str) -> None:
        self._step = step
        self._number += 1
        self._tally.begin()
        attributes: dict[str, str | int] = {"exactlyonce.attempt": self._number}
        if len(self._deliveries) != 1:  # The span of a single delivery names the entity.
            attributes["exactlyonce.entity"] = str(self._entity)
        if len(self._deliveries) > 1:
            attributes["messaging.batch.message_count"] = len(self._deliveries)
        name = f"{step} {self._entity.type}"
        self._span = self._tracer.start_span(name, self._parent, attributes=attributes, links=self._links)
        self.context = contexts.set_value(_WATCH, self, trace.set_span_in_context(self._span, self._parent))

    def _end(self, result: object) -> None:
        if self._step == "tend" and self._number == 1:
            for since in self._tally.gaps:
                self._metrics.gap_age(_seconds(since, self._now()), self._labels)
        before = len(self._tally.processed)
        self._tally.end(result)
        if isinstance(result, Finished):
            self._conclude(self._tally.outcomes(result))
            if differing := result.differing(delivery.envelope for delivery in self._deliveries):
                self._metrics.differing(len(differing), self._labels)
        elif isinstance(result, Again):
            self._metrics.unfinished(1, {**self._labels, REASON: result.reason})
            if self._span is not None:
                self._span.set_attribute(REASON, result.reason)
        if committed := list(self._tally.processed)[before:]:
            self._committed(committed)
        self.close()

    def _committed(self, messages: list[str]) -> None:
        self._metrics.processed(len(messages), self._labels)
        self._metrics.commit(len(messages), self._labels)
        for key, delivery in dict(zip(self._keys, self._deliveries, strict=True)).items():
            time = delivery.envelope.time
            if key in messages and time is not None:
                self._metrics.lag(_seconds(time, self._now()), self._labels)

    def _conclude(self, outcomes: dict[str, Outcome]) -> None:
        """Give each delivery its outcome. Of copies in a group the last counts as the message, as for strategies."""
        seen: set[str] = set()
        for key, delivery in zip(reversed(self._keys), reversed(self._deliveries), strict=True):
            outcome = outcomes[key]
            delivery.outcome = "group" if key in seen and outcome in ("processed", "held") else outcome
            seen.add(key)

    def _published(self, effect: Publish, reply: object) -> None:
        labels = {**self._labels, OCCASION: self._step if self.is_owed else "commit"}
        if self.is_owed and self._step != "replay":
            self._metrics.owed(len(effect.outputs), labels)
        if reply is PUBLISHED:
            for destination, number in Counter(output.destination for output in effect.outputs).items():
                self._metrics.published(number, {**labels, "messaging.destination.name": destination})


def fail(span: Span, error: BaseException) -> None:
    """Mark a span as failed, with the class of the error only: its text may quote a body."""
    span.set_status(Status(StatusCode.ERROR))
    span.set_attribute("error.type", type(error).__name__)


def _seconds(since: datetime, now: datetime) -> float:
    """Seconds since a time; 0 if the time is in the future, as clocks of two machines may disagree."""
    return max(0.0, (now - since).total_seconds())
