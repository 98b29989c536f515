"""The context: a handler's only source of time, ids and chance, and its only way to send."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

import pytest
from pydantic import BaseModel

from exactlyonce import Api, Context, Destination, Entity, Envelope, Outbox, Reply, message
from exactlyonce.attempt import Before
from exactlyonce.errors import ContextClosed, HandlerFailed, OutputTooLarge, UnknownDestination
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.records.outbox import MAX_OUTPUT_BYTES, MOST_CARRIED, Output
from exactlyonce.testing import run
from exactlyonce.values.envelope import EntityRef, Origin
from exactlyonce.values.frozen_json import Json

AT = datetime(2026, 1, 1, tzinfo=timezone.utc)
ORIGIN = Origin(EntityRef("range", ("game-7",), "game-7"), "web/m-1")


@message("context.hit")
@dataclass
class Hit:
    position: int = 0
    padding: str = ""


@message("context.miss")
@dataclass
class Miss:
    position: int = 0


@message("context.unwanted", event=True)
@dataclass
class Unwanted:
    position: int = 0


DESTINATIONS = (Destination("board", (Hit, Miss)), Destination("archive", (Hit,)), Destination("other"))


def context(limit: int = 1_000, blobs: str | None = None) -> Context:
    limits = {destination.name: limit for destination in DESTINATIONS}
    return Context(ORIGIN, Before(None, AT, "5f"), Routes.to(DESTINATIONS, limits, blobs=blobs))


def test_a_message_sent_becomes_an_envelope_with_a_derived_id() -> None:
    given = context()
    given.send("board", Hit(5), delay=timedelta(seconds=90))
    envelope = Envelope("range/game-7", ORIGIN.output_id(0), "context.hit", Json.of({"position": 5, "padding": ""}), AT)
    assert given.outputs == (Output(ORIGIN.output_id(0), "board", envelope.to_json(), 90.0),)


def test_outputs_keep_their_order_and_number() -> None:
    given = context()
    given.send("board", Hit(1))
    given.send("other", Miss(2))
    given.send("board", Hit(3))
    assert [output.id for output in given.outputs] == [ORIGIN.output_id(index) for index in range(3)]
    assert [output.destination for output in given.outputs] == ["board", "other", "board"]


def test_the_same_calls_give_the_same_ids_and_chance() -> None:
    def play(given: Context) -> tuple[object, ...]:
        given.send("board", Hit(given.random.randrange(100)))
        return (given.now, given.new_id(), given.new_id(), given.random.random(), given.outputs)

    assert play(context()) == play(context())


def test_ids_do_not_depend_on_what_was_sent_or_drawn_before() -> None:
    one, other = context(), context()
    other.send("board", Hit())
    other.random.random()
    assert [one.new_id(), one.new_id()] == [other.new_id(), other.new_id()]
    assert one.new_id() != one.new_id()


def test_an_event_goes_to_every_destination_that_receives_its_type() -> None:
    given = context()
    given.announce(Hit(1))
    given.announce(Miss(2))
    given.announce(Unwanted(3))
    assert [(output.destination, output.envelope.value["type"]) for output in given.outputs] == [
        ("board", "context.hit"),
        ("archive", "context.hit"),
        ("board", "context.miss"),
    ]
    assert len({output.id for output in given.outputs}) == 3


def test_an_unknown_destination_says_which_are_known() -> None:
    given = context()
    with pytest.raises(UnknownDestination, match="'nowhere'; known are: archive, board, other"):
        given.send("nowhere", Hit())
    assert given.outputs == ()


def test_a_message_at_its_queues_limit_is_sent_and_one_byte_more_is_not() -> None:
    probe = context()
    probe.send("board", Hit())
    size = probe.outputs[0].envelope.size
    context(size).send("board", Hit())
    given = context(size - 1)
    with pytest.raises(OutputTooLarge, match=f"{size} bytes.*{size - 1}.*blob"):
        given.send("board", Hit())
    assert given.outputs == ()


@pytest.mark.parametrize(("size", "apart"), [(MOST_CARRIED, False), (MOST_CARRIED + 1, True)])
@pytest.mark.parametrize("blobs", [None, "https://a.example/blobs"])
def test_a_large_message_travels_by_reference_where_there_is_a_container(
    size: int, apart: bool, blobs: str | None
) -> None:
    probe = context()
    probe.send("board", Hit())
    given = context(limit=10 * MOST_CARRIED, blobs=blobs)
    given.send("board", Hit(padding="x" * (size - probe.outputs[0].envelope.size)))
    (output,) = given.outputs
    assert (len(given.blobs), "dataref" in output.envelope.value) == ((1, True) if apart and blobs else (0, False))
    assert (output.envelope.size < 500) is bool(given.blobs)


def test_all_messages_together_have_to_fit_one_document() -> None:
    given = context(limit=MAX_OUTPUT_BYTES)
    given.send("board", Hit(padding="x" * (MAX_OUTPUT_BYTES // 2)))
    with pytest.raises(OutputTooLarge, match="together"):
        given.send("board", Hit(padding="x" * (MAX_OUTPUT_BYTES // 2)))
    given.send("board", Hit())
    assert len(given.outputs) == 2


@pytest.mark.parametrize("delay", [None, timedelta(0), timedelta(days=7) - timedelta(seconds=1)])
@pytest.mark.parametrize("wrong", [timedelta(microseconds=-1), timedelta(days=7), timedelta(days=400)])
def test_a_delay_is_neither_negative_nor_longer_than_a_message_lives(delay: timedelta | None, wrong: timedelta) -> None:
    given = context()
    with pytest.raises(ValueError, match="7 days"):
        given.send("board", Hit(), delay=wrong)
    given.send("board", Hit(), delay=delay)
    assert [output.delay for output in given.outputs] == [(delay or timedelta(0)).total_seconds()]


USES: dict[str, Callable[[Context], object]] = {
    "send": lambda context: context.send("board", Hit()),
    "announce": lambda context: context.announce(Hit()),
    "announce nobody": lambda context: context.announce(Unwanted()),
    "reply": lambda context: context.reply(),
    "cancel": lambda context: context.cancel("id"),
    "write_once": lambda context: context.write_once("a", b""),
    "delete": lambda context: context.delete(),
    "new_id": lambda context: context.new_id(),
    "random": lambda context: context.random.random(),
    "call": lambda context: context.call(Api("a", "https://a", timedelta(days=1)), "GET", "/", then=Reply),
}


class Keeping(BaseModel):
    hits: int = 0


def keeping(kept: list[Context]) -> Entity[Keeping]:
    entity = Entity("keeping", state=Keeping, container="keeping", strategy=Outbox())

    @entity.handles(Hit, key=lambda hit: "k")
    def hit(state: Keeping, hit: Hit, context: Context) -> Keeping:
        kept.append(context)
        if hit.padding:
            raise KeyError
        return Keeping(hits=state.hits + 1)

    return entity


def hit_by(entity: Entity[Keeping], **data: object) -> None:
    ref = EntityRef("keeping", ("k",), "k")
    before = Before(None, AT, "t-1", ())
    Runner(entity, ref, Routes.to(DESTINATIONS, {}))(before, Envelope("web", "m-1", "context.hit", Json.of(data), AT))


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("use", USES)
def test_a_context_that_outlives_its_handler_refuses_every_use(use: str, *, fails: bool) -> None:
    kept: list[Context] = []
    with pytest.raises(HandlerFailed) if fails else nullcontext():
        hit_by(keeping(kept), padding="x" * fails)
    with ThreadPoolExecutor(1) as threads:  # As a thread that goes on after its handler.
        error = threads.submit(USES[use], kept[0]).exception()
    assert isinstance(error, ContextClosed)
    name = use.split(maxsplit=1)[0]
    assert str(error).startswith(f"context.{name} was used after the handler of message web/m-1")
    assert (kept[0].outputs, kept[0].blobs, kept[0].deleted, kept[0].answer) == ((), (), False, None)
    assert kept[0].now == AT


def test_a_handler_that_uses_the_context_of_another_message_fails() -> None:
    kept: list[Context] = []
    entity = Entity("reusing", state=Keeping, container="reusing", strategy=Outbox())

    @entity.handles(Hit, key=lambda hit: "k")
    def hit(state: Keeping, hit: Hit, context: Context) -> Keeping:
        kept.append(context)
        kept[0].new_id()
        return state

    hit_by(entity)
    with pytest.raises(ContextClosed, match="Message web/m-1 on entity"):
        hit_by(entity)


@pytest.mark.parametrize("fails", [False, True])
def test_the_context_of_a_test_is_closed_with_its_handler(fails: bool) -> None:
    kept: list[Context] = []

    def handler(state: Keeping, hit: Hit, context: Context) -> Keeping:
        kept.append(context)
        if fails:
            raise SystemExit
        return state

    with pytest.raises(SystemExit) if fails else nullcontext():
        run(handler, Keeping(), Hit())
    with pytest.raises(ContextClosed):
        kept[0].send("board", Hit())
