"""An application in memory: flows, time, copies, failures, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from exactlyonce import (
    Colocated,
    ConfigurationError,
    Context,
    Destination,
    Entity,
    Outbox,
    Resequencer,
    VersionStream,
    message,
)
from exactlyonce.errors import HandlerFailed, KeyReused, UnknownDestination
from exactlyonce.testing import App
from exactlyonce.testing.in_memory import MOST_DELIVERIES
from exactlyonce.testing.runner import NOW


@message("test.app.count")
class Count(BaseModel):
    key: str = "c"
    amount: int = 1
    later: int = 0
    to: str = ""
    text: str = ""


@message("test.app.counted", event=True)
class Counted(BaseModel):
    key: str
    total: int
    text: str = ""


class Counter(BaseModel):
    total: int = 0


class Total(BaseModel):
    total: int = 0


def counting(strategy: Any = None) -> Entity[Counter]:
    entity = Entity(
        "counter",
        state=Counter,
        container="counters",
        partition_key="/key",
        strategy=Outbox() if strategy is None else strategy,
    )

    @entity.handles(Count, key=lambda count: count.key)
    def count(state: Counter, count: Count, context: Context) -> Counter:
        if count.amount < 0:
            raise ValueError("less than nothing")
        total = state.total + count.amount
        if count.to:
            context.send(count.to, Counted(key=count.key, total=total, text=count.text))
        if count.later:
            context.send("counts", Count(key=count.key, amount=10), delay=timedelta(minutes=count.later))
        context.announce(Counted(key=count.key, total=total))
        context.reply(Total(total=total))
        return Counter(total=total)

    return entity


def displaying(strategy: Any = None) -> Entity[Total]:
    entity = Entity(
        "display",
        state=Total,
        container="displays",
        partition_key="/display",
        strategy=Resequencer() if strategy is None else strategy,
    )

    @entity.handles(Counted, key=lambda counted: counted.key)
    def show(state: Total, counted: Counted, context: Context) -> Total:
        return Total(total=counted.total)

    return entity


COUNTERS, DISPLAYS = counting(), displaying()
PLACES = (
    Destination("counts", to=COUNTERS),
    Destination("displays", to=DISPLAYS, receives=(Counted,)),
    Destination("outside"),
)


@pytest.fixture
def app() -> App:
    return App(COUNTERS, DISPLAYS, destinations=PLACES)


def total(app: App, key: str = "c") -> int | None:
    state = app.state(COUNTERS, key)
    return None if state is None else state.total


def test_a_message_and_all_that_follows_from_it_are_delivered(app: App) -> None:
    app.send(COUNTERS, Count(amount=2, to="outside"))
    app.send("counts", Count())
    app.send(PLACES[0], Count())
    assert total(app) == 4
    assert app.state(DISPLAYS, "c") == Total(total=4)
    assert app.outputs("outside") == (Counted(key="c", total=2),)
    assert [output.total for output in app.outputs(PLACES[1])] == [2, 3, 4]
    assert total(app, "d") is None


def test_a_message_under_a_known_id_changes_nothing(app: App) -> None:
    for _ in range(3):
        app.send(COUNTERS, Count(), message_id="k-1")
    app.send(COUNTERS, Count(), message_id="k-1", source="another")
    assert total(app) == 2


def test_a_delayed_message_comes_when_its_time_has_come(app: App) -> None:
    app.send(COUNTERS, Count(later=15))
    app.advance(minutes=14, seconds=59)
    assert total(app) == 1
    app.advance(timedelta(seconds=1))
    assert total(app) == 11
    assert app.now == NOW + timedelta(minutes=15)
    with pytest.raises(ValueError, match="cannot be advanced"):
        app.advance(minutes=-1)


def test_months_pass_in_a_moment(app: App) -> None:
    app.send(COUNTERS, Count(), message_id="k-1")
    app.advance(days=90)
    assert app.now == NOW + timedelta(days=90)
    app.send(COUNTERS, Count(), message_id="k-2")
    assert total(app) == 2


@pytest.mark.parametrize("seed", range(5))
def test_everything_counts_once_though_it_comes_twice(app: App, seed: int) -> None:
    app.duplicate_everything(seed)
    for number in range(5):
        app.send(COUNTERS, Count(key=f"c-{number % 2}", to="outside", later=number))
    app.advance(minutes=20)
    assert [total(app, "c-0"), total(app, "c-1")] == [3 + 20, 2 + 20]
    assert len(app.outputs("outside")) == 5
    assert app.state(DISPLAYS, "c-0") == Total(total=23)


def test_the_same_calls_give_the_same_results() -> None:
    def outcome() -> Iterator[object]:
        app = App(COUNTERS, DISPLAYS, destinations=PLACES)
        app.duplicate_everything(3)
        for number in range(4):
            app.send(COUNTERS, Count(later=number))
        yield {name: tuple(found) for name, found in app.host.sent.items()}
        yield app.host.accounts.documents.writes

    assert list(outcome()) == list(outcome())


def test_a_message_that_fails_is_parked_and_its_error_raised_when_all_others_are_done(app: App) -> None:
    with pytest.raises(HandlerFailed, match=r"m-1.*ValueError") as caught:
        app.send(COUNTERS, Count(amount=-1))
    assert isinstance(caught.value.__cause__, Exception)
    assert "less than nothing" in repr(root(caught.value))
    (parked,) = app.parked()
    assert parked.message == Count(amount=-1)
    assert "HandlerFailed" in parked.reason
    assert total(app) is None
    app.send(COUNTERS, Count())
    assert total(app) == 1


def root(error: BaseException) -> BaseException:
    return error if error.__cause__ is None else root(error.__cause__)


def test_a_message_is_delivered_as_often_as_a_queue_does_it() -> None:
    tries: list[int] = []
    entity = counting()
    name = "test.app.flaky"

    @message(name)
    class Flaky(BaseModel):
        needed: int

    @entity.handles(Flaky, key=lambda _: "c")
    def flaky(state: Counter, flaky: Flaky, context: Context) -> Counter:
        tries.append(1)
        if len(tries) < flaky.needed:
            raise ConnectionError
        return Counter(total=len(tries))

    def fresh() -> App:
        tries.clear()
        return App(entity, destinations=(Destination("counts", to=entity),))

    app = fresh()
    app.send(entity, Flaky(needed=MOST_DELIVERIES))
    assert app.state(entity, "c") == Counter(total=MOST_DELIVERIES)
    app = fresh()
    with pytest.raises(HandlerFailed):
        app.send(entity, Flaky(needed=MOST_DELIVERIES + 1))
    assert len(tries) == MOST_DELIVERIES


def test_a_type_without_a_queue_gets_its_messages_directly() -> None:
    entity = Entity("sum", state=Counter, container="sums", strategy=Outbox())

    @entity.handles(Count, key=lambda count: count.key)
    def add(state: Counter, count: Count, context: Context) -> Counter:
        if count.to:
            context.send(count.to, Counted(key=count.key, total=1))
        return Counter(total=state.total + count.amount)

    app = App(entity)
    app.send(entity, Count())
    app.send(entity, Count(), message_id="m-1")
    assert app.state(entity, "c") == Counter(total=1)
    with pytest.raises(UnknownDestination, match="There is no destination 'outsid'; known are: none"):
        app.send(entity, Count(to="outsid"))
    assert app.parked() == ()


def test_a_handler_that_sends_to_an_unknown_destination_fails(app: App) -> None:
    with pytest.raises(
        UnknownDestination, match="There is no destination 'outsid'; known are: counts, displays, outside"
    ):
        app.send(COUNTERS, Count(to="outsid"))


def test_unknown_names_are_refused(app: App) -> None:
    with pytest.raises(UnknownDestination, match="known are: counts, displays, outside"):
        app.send("outsid", Count())
    with pytest.raises(UnknownDestination, match="known are: counts, displays, outside"):
        app.outputs("outsid")
    with pytest.raises(ConfigurationError, match="not among the entities"):
        app.send(Entity("other", state=Counter, container="others", strategy=Outbox()), Count())
    with pytest.raises(ConfigurationError, match="'missing', which is no destination"):
        App(COUNTERS, destinations=PLACES[:1], queues={"missing": COUNTERS})
    with pytest.raises(ConfigurationError, match="'outside' an entity type"):
        App(COUNTERS, destinations=PLACES, queues={"outside": DISPLAYS})


def test_a_queue_can_be_given_to_a_type_where_the_destination_does_not_say_so() -> None:
    shown = displaying(Outbox())
    app = App(
        COUNTERS,
        shown,
        destinations=(PLACES[0], PLACES[2], Destination("board", receives=(Counted,))),
        queues={"outside": shown},
    )
    app.send(COUNTERS, Count(amount=3, to="outside"))
    assert app.state(shown, "c") == Total(total=3)


def test_a_request_is_answered_and_a_retry_gets_the_same(app: App) -> None:
    first = app.ask(COUNTERS, Count(), key="k-1")
    assert (first.body, first.replayed) == ('{"total":1}', False)
    again = app.ask(COUNTERS, Count(), key="k-1")
    assert (again.body, again.replayed) == ('{"total":1}', True)
    assert app.ask(COUNTERS, Count()).body == '{"total":2}'
    assert app.state(DISPLAYS, "c") == Total(total=2)
    with pytest.raises(KeyReused):
        app.ask(COUNTERS, Count(amount=2), key="k-1")


def test_a_function_of_the_application_runs_and_what_it_sends_is_delivered(app: App) -> None:
    async def function() -> str:
        await app.once.send("counts", Count(), message_id="k-1")
        return "sent"

    assert app.run(function()) == "sent"
    assert total(app) == 1


async def test_an_application_in_memory_runs_inside_a_test_that_is_a_coroutine(app: App) -> None:
    app.send(COUNTERS, Count())
    assert total(app) == 1


def test_large_messages_travel_as_blobs_if_there_is_a_container() -> None:
    app = App(COUNTERS, DISPLAYS, destinations=PLACES, blobs=True)
    app.send(COUNTERS, Count(to="outside", text="x" * 100_000))
    (counted,) = app.outputs("outside")
    assert counted == Counted(key="c", total=1, text="x" * 100_000)


@pytest.mark.parametrize("strategy", [Outbox(), Colocated(), VersionStream()])
def test_an_entity_begins_with_the_state_that_it_is_given(strategy: Any) -> None:
    counters = counting(strategy)
    app = App(counters, DISPLAYS, destinations=(Destination("counts", to=counters), *PLACES[1:]))
    app.duplicate_everything()
    app.given(counters, "c", Counter(total=40))
    assert app.state(counters, "c") == Counter(total=40)
    app.send(counters, Count(amount=2), message_id="k-1")
    app.advance(hours=1)
    app.send(counters, Count(amount=2), message_id="k-1")
    assert app.state(counters, "c") == Counter(total=42)
    assert app.state(DISPLAYS, "c") == Total(total=42)
    with pytest.raises(ConfigurationError, match="Entity counter/c exists, so it cannot begin with another state"):
        app.given(counters, "c", Counter())


def test_slow_messages_are_overtaken_and_come_with_the_clock(app: App) -> None:
    app.slow("counts", timedelta(seconds=2), timedelta())
    app.send(COUNTERS, Count(amount=1, to="outside"))
    app.send(COUNTERS, Count(amount=10, to="outside"))
    assert total(app) == 10
    app.advance(seconds=1.9)
    assert total(app) == 10
    app.advance(seconds=0.1)
    assert [output.total for output in app.outputs("outside")] == [10, 11]
    app.send(COUNTERS, Count())
    assert total(app) == 12
    with pytest.raises(UnknownDestination):
        app.slow("nowhere", timedelta(seconds=1))
