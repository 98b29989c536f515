"""Spans: one trace from the request to the read model, with all deliveries of its messages."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from exactlyonce import Colocated, Envelope, ExactlyOnceError, Outbox, VersionStream
from exactlyonce.effects.attempt import Strategy
from exactlyonce.stores.memory.store import Fate
from exactlyonce.telemetry.spans import AttemptSpans
from exactlyonce.testing.world import ManualClock, World
from exactlyonce.values.frozen_json import Json
from handlers.leader_board import boards, leader_board
from handlers.shooting_range import ranges, shooting_range
from tests.asking import sweep
from tests.samples import SENT, accounts, breaking, deposit, ledger_queue
from tests.unit.fated import Fated
from tests.unit.telemetry.observed import Observed

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Range:
    """The sample as two functions of one application, and their callers."""

    def __init__(self) -> None:
        self.world = World([shooting_range, leader_board], clock=ManualClock())
        self.observed = Observed(self.world.clock)
        self.first = self.world.process(observer=self.observed.telemetry)
        self.second = self.world.process(observer=self.observed.telemetry)

    @contextmanager
    def invoking(self, name: str) -> Iterator[None]:
        with self.observed.tracer.start_as_current_span(name):
            yield

    def request(self, id: str = "k-1") -> Envelope:
        """A request over HTTP that fires a shot, as `once.send` does."""
        with self.invoking("POST"), self.observed.telemetry.sending("shooting-range", f"http/{id}") as extensions:
            data = Json.of({"game_id": "g-1", "position": 0})
            return Envelope("http", id, "shooting-range.fire-at", data, self.world.clock.now(), extensions=extensions)

    async def shoot(self, shot: Envelope) -> None:
        with self.invoking("invoke range"):
            await self.first.deliver(ranges, shot)

    async def show(self) -> None:
        """Deliver everything that was published, as its queue holds it."""
        for output in self.world.published:
            with self.invoking("invoke board"):
                await self.second.deliver(boards, Envelope.read(output.envelope.text))

    async def close(self) -> None:
        await self.first.close()
        await self.second.close()


@pytest.fixture
async def played() -> Range:
    """One shot, from the request to the leader board."""
    range_ = Range()
    await range_.shoot(range_.request())
    await range_.show()
    await range_.close()
    return range_


async def test_a_single_trace_leads_from_the_request_to_the_leader_board(played: Range) -> None:
    observed = played.observed
    sent, shot, board = (observed.one(name) for name in ("send shooting-range", "process range", "process board"))
    assert {span.context.trace_id for span in (sent, shot, board)} == {observed.one("POST").context.trace_id}
    assert [observed.parent(span) for span in (sent, shot, board)] == [
        "POST",
        "send shooting-range",
        "send shooting-range",  # The outcome inherits the context in which the shot came about.
    ]
    assert [span.kind for span in (sent, shot, board)] == [SpanKind.PRODUCER, SpanKind.CONSUMER, SpanKind.CONSUMER]


async def test_the_span_of_a_delivery_is_linked_to_the_invocation(played: Range) -> None:
    observed = played.observed
    assert observed.links(observed.one("process range")) == ["invoke range"]
    assert observed.links(observed.one("process board")) == ["invoke board"]


async def test_every_request_of_an_attempt_has_a_span_under_it(played: Range) -> None:
    observed = played.observed
    asked = {
        name: [span.name for span in observed.spans if observed.parent(span) == name]
        for name in ("process range", "attempt range", "process board", "attempt board")
    }
    assert asked == {
        "process range": ["attempt range"],
        "attempt range": ["load_entity", "has_pages", "write_book", "save_entity", "publish leader-board"],
        "process board": ["attempt board"],
        "attempt board": ["load_entity", "write_book", "save_batch"],
    }
    assert all(span.kind is SpanKind.CLIENT for span in observed.spans if span.name in asked["attempt range"])


async def test_spans_have_the_attributes_of_the_conventions(played: Range) -> None:
    observed = played.observed
    assert [dict(span.attributes or {}) for span in observed.named("save_entity")] == [
        {"db.system.name": "azure.cosmosdb", "db.operation.name": "create_item"}
    ]
    published = dict(observed.one("publish leader-board").attributes or {})
    assert published.pop("messaging.message.id") == played.world.published[0].id
    assert published == {
        "messaging.system": "exactlyonce",
        "messaging.operation.name": "publish",
        "messaging.operation.type": "send",
        "messaging.destination.name": "leader-board",
    }
    processed = dict(observed.one("process range").attributes or {})
    assert processed == {
        "messaging.system": "exactlyonce",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.message.id": "http/k-1",
        "cloudevents.event_type": "shooting-range.fire-at",
        "exactlyonce.entity": "range/g-1",
        "exactlyonce.outcome": "processed",
    }


async def test_a_message_without_a_trace_is_in_that_of_its_invocation() -> None:
    range_ = Range()
    data = Json.of({"game_id": "g-1", "position": 0})
    await range_.shoot(Envelope("http", "k-1", "shooting-range.fire-at", data, SENT))
    await range_.close()
    observed = range_.observed
    assert observed.parent(observed.one("process range")) == "invoke range"
    assert observed.one("process range").links == ()
    assert "traceparent" not in range_.world.published[0].envelope.text


async def test_an_invalid_trace_is_ignored() -> None:
    range_ = Range()
    nonsense: tuple[str | int, ...] = ("nonsense", "00-" + "0" * 32 + "-" + "0" * 16 + "-00", 7)
    for number, extension in enumerate(nonsense):
        shot = Envelope(
            "http",
            f"k-{number}",
            "shooting-range.fire-at",
            Json.of({"game_id": "g-1", "position": 0}),
            SENT,
            extensions=(("traceparent", extension),),
        )
        await range_.shoot(shot)
    await range_.close()
    observed = range_.observed
    assert [observed.parent(span) for span in observed.named("process range")] == ["invoke range"] * 3


async def test_messages_that_share_a_commit_are_linked_to_it_and_keep_their_own_traces() -> None:
    range_ = Range()
    shots = [range_.request(f"k-{number}") for number in range(3)]
    await asyncio.gather(*(range_.shoot(shot) for shot in shots))
    await range_.close()
    observed = range_.observed
    (attempt,) = observed.named("attempt range")
    processed = observed.named("process range")
    assert attempt.parent is None
    assert observed.links(attempt) == ["process range"] * 3
    assert (attempt.attributes or {})["messaging.batch.message_count"] == 3
    assert len({span.context.trace_id for span in (*processed, attempt)}) == 4
    assert observed.parent(observed.one("save_entity")) == "attempt range"
    assert [observed.parent(span) for span in processed] == ["send shooting-range"] * 3


async def test_of_several_copies_in_a_group_the_one_whose_trace_the_outputs_inherit_is_the_message() -> None:
    range_ = Range()
    copies = [range_.request("k-1") for _ in range(3)]
    await asyncio.gather(*(range_.shoot(copy) for copy in copies))
    await range_.close()
    processed = range_.observed.named("process range")
    outcomes = {
        format(span.context.trace_id, "032x"): (span.attributes or {})["exactlyonce.outcome"] for span in processed
    }
    assert sorted(map(str, outcomes.values())) == ["group", "group", "processed"]
    (output,) = {output.envelope.text: output for output in range_.world.published}.values()
    assert outcomes[output.envelope.value["traceparent"].split("-")[1]] == "processed"


def test_no_span_stays_current_after_its_attempts() -> None:
    telemetry = Observed(ManualClock()).telemetry
    with telemetry.watching(ranges.ref("g-1"), ()) as watch:
        assert AttemptSpans.present() is watch
    assert AttemptSpans.present() is None
    with telemetry.sending("queue", "web/m-1"):
        assert trace.get_current_span().get_span_context().is_valid
    assert not trace.get_current_span().get_span_context().is_valid


@pytest.mark.parametrize("strategy", [Outbox(), Colocated(), VersionStream()], ids=lambda strategy: strategy.name)
async def test_the_span_of_a_step_has_the_name_of_the_strategys_method(strategy: Strategy) -> None:
    world, type = World([ledger_queue]), accounts(strategy)
    ref = type.ref_of(deposit("m-1"))
    observed = Observed(world.clock)
    process = world.process(observer=observed.telemetry)
    await process.deliver(type, deposit("m-1"))
    await process.run(ref, lambda memory: sweep(ref, memory, strategy.name))
    await process.run(ref, lambda memory: strategy.knows(ref, deposit("m-1"), memory))
    await process.close()
    assert [len(observed.named(f"{name} account")) for name in ("attempt", "sweep", "knows")] == [1, 1, 1]


async def test_every_attempt_has_a_span_that_says_why_it_did_not_finish() -> None:
    world = World([ledger_queue], trouble=Fated(Fate.LOST_AFTER, "save_entity", times=1))
    observed = Observed(world.clock)
    process = world.process(observer=observed.telemetry)
    await process.deliver(accounts(Outbox()), deposit("m-1"))
    await process.close()
    first, second = observed.named("attempt account")
    assert [(item.attributes or {}).get("exactlyonce.attempt") for item in (first, second)] == [1, 2]
    reasons = [(item.attributes or {}).get("exactlyonce.reason") for item in (first, second)]
    assert reasons == ["whether the entity was saved is not known", None]
    lost = observed.named("save_entity")[0]
    assert lost.status.status_code is StatusCode.ERROR
    assert (lost.attributes or {})["error.type"] == "unknown"
    assert observed.one("publish receipts").context.trace_id == first.context.trace_id


async def test_a_late_publish_is_linked_to_the_traces_of_its_messages() -> None:
    answers = iter([(False, False)])
    world = World([ledger_queue], outcome=lambda _: next(answers, (True, True)))
    observed = Observed(world.clock)
    process = world.process(observer=observed.telemetry)
    message = deposit("m-1").with_trace((("traceparent", TRACE),))
    await process.deliver(accounts(Outbox()), message)
    first, second = observed.named("publish receipts")
    assert first.links == ()
    assert [format(link.context.span_id, "016x") for link in second.links] == ["b7ad6b7169203331"]


async def test_the_span_of_a_failed_delivery_has_only_the_class_of_its_error() -> None:
    world = World([ledger_queue])
    observed = Observed(world.clock)
    process = world.process(observer=observed.telemetry)
    with pytest.raises(ExactlyOnceError):
        await process.deliver(accounts(Outbox()), breaking("m-1"))
    span = observed.one("process account")
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description is None
    assert span.events == ()
    assert {"error.type": "HandlerFailed", "exactlyonce.outcome": "failed"}.items() <= dict(
        span.attributes or {}
    ).items()


async def test_a_process_that_crashes_ends_its_spans_and_leaves_nothing_current() -> None:
    world = World([ledger_queue], trouble=Fated(Fate.BUSY, "save_entity"), clock=ManualClock())
    observed = Observed(world.clock)
    process = world.process(observer=observed.telemetry)
    delivery = asyncio.ensure_future(process.deliver(accounts(Outbox()), deposit("m-1")))
    for _ in range(20):
        await asyncio.sleep(0)
    await process.crash()
    await asyncio.gather(delivery, return_exceptions=True)
    for _ in range(20):
        await asyncio.sleep(0)
    assert (observed.one("process account").attributes or {})["exactlyonce.outcome"] == "cancelled"
    assert (observed.one("attempt account").attributes or {})["error.type"] == "CancelledError"
    assert not trace.get_current_span().get_span_context().is_valid
