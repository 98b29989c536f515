"""`exactlyonce.testing.assert_deterministic`: it accepts results that derive from its arguments, and names other inputs."""

from __future__ import annotations

import sys
import uuid
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from itertools import count
from time import time as the_time
from typing import Any

import pytest
from pydantic import BaseModel, Field

from exactlyonce import Context, message
from exactlyonce.testing import NonDeterministic, assert_deterministic, run
from handlers.leader_board import Score, count_hit, count_miss
from handlers.messages import FireAt, Hit, Missed
from handlers.shooting_range import Range, fire_at
from tests.samples import Account, Deposit, accounts

HERE = "tests/unit/testing/test_determinism.py"
NUMBERS = count()


@message("determinism.dated")
class Dated(BaseModel):
    at: datetime = Field(default_factory=datetime.now)


@message("determinism.listed")
class Listed(BaseModel):
    names: list[Any] = []


@message("determinism.nested")
@dataclass(frozen=True)
class Nested:
    places: frozenset[tuple[str, int]] = frozenset()


@message("determinism.tagged")
class Tagged(BaseModel):
    tags: frozenset[str] = frozenset()
    seats: set[int | float | uuid.UUID] = set()
    days: set[date] = set()
    deeper: list[dict[str, Nested]] = []


def test_the_sample_handlers_are_deterministic() -> None:
    for attempts in (0, 4):
        assert_deterministic(fire_at, Range(target=4, attempts=attempts), FireAt(game_id="g", position=4))
    hit = Hit(id="1", game_id="g", round=0, attempt=0)
    assert assert_deterministic(count_hit, Score(), hit).state.hits == 1
    assert_deterministic(count_miss, Score(), Missed(**hit.model_dump()))
    for registration in {id(item): item for item in accounts()._registrations.values()}.values():
        if registration.model is Deposit:
            assert_deterministic(registration.handler, Account(), Deposit("a", answers=2))


def test_the_result_is_that_of_run_in_the_same_circumstances() -> None:
    def telling(state: Account, given: Deposit, context: Context) -> Account:
        context.announce(Deposit(context.new_id(), context.random.randrange(1000)))
        return Account(state.total + 1, note=str(context.now))

    given: dict[str, Any] = {"message_id": "m-7", "source": "web", "now": datetime(2027, 1, 1, tzinfo=timezone.utc)}
    assert assert_deterministic(telling, Account(), Deposit("a"), **given) == run(
        telling, Account(), Deposit("a"), **given
    )


def test_the_error_names_differences_calls_their_places_and_advice() -> None:
    line = sys._getframe().f_lineno + 3

    def leaking(state: Account, given: Deposit, context: Context) -> Account:
        context.send("anywhere", Deposit(str(uuid.uuid4())))
        return Account(note=str(the_time()))

    with pytest.raises(NonDeterministic) as caught:
        assert_deterministic(leaking, Account(), Deposit("a"))
    assert [str(leak) for leak in caught.value.leaks] == [
        f"uuid.uuid4() in {HERE} line {line}",
        f"time.time() in {HERE} line {line + 1}",
    ]
    state, sent = caught.value.differences
    assert state.startswith("state.note: '1")
    assert sent.startswith("message 1 (account.deposit).data.account: '")
    text = str(caught.value)
    for part in (*map(str, caught.value.leaks), state, sent, "leaking", "context.now", "context.new_id()"):
        assert part in text
    assert "context.random" in text
    assert "hashlib" not in text


def test_a_leak_in_c_code_is_found_by_its_result() -> None:
    def dating(state: Account, given: Deposit, context: Context) -> Account:
        context.send("anywhere", Dated())
        return state

    with pytest.raises(NonDeterministic, match="default_factory") as caught:
        assert_deterministic(dating, Account(), Deposit("a"))
    assert caught.value.leaks == ()
    assert caught.value.differences[0].startswith("message 1 (determinism.dated).data.at: '")


SETS = [
    Tagged(tags=frozenset("ab")),
    Tagged(days={date(2026, 1, 1), date(2026, 1, 2)}),
    Tagged(deeper=[{}, {"a": Nested(frozenset({("a", 1), ("b", 2)}))}]),
    Nested(frozenset({("a", 1), ("b", 2)})),
]


@pytest.mark.parametrize("sent", SETS)
def test_a_set_may_be_sent_since_it_is_written_in_one_order(sent: Any) -> None:
    def sending(state: Tagged, given: Deposit, context: Context) -> Tagged:
        context.announce(sent)
        return state

    assert_deterministic(sending, Tagged(tags=frozenset("ab")), Deposit("a"))


@pytest.mark.parametrize(
    "state", [Tagged(tags=frozenset("abc")), Tagged(deeper=[{"a": Nested(frozenset({("a", 1), ("b", 2)}))}])]
)
def test_a_handler_that_follows_the_order_of_a_set_is_found(state: Tagged) -> None:
    def listing(state: Tagged, given: Deposit, context: Context) -> Tagged:
        places = [place for nested in state.deeper for item in nested.values() for place, _ in item.places]
        context.announce(Listed(names=[*state.tags, *places]))
        return state

    def sorting(state: Tagged, given: Deposit, context: Context) -> Tagged:
        context.announce(Listed(names=sorted(state.tags)))
        return state

    with pytest.raises(NonDeterministic, match=r"order of a set \(sort it\)"):
        assert_deterministic(listing, state, Deposit("a"))
    assert_deterministic(sorting, state, Deposit("a"))


def test_a_change_outside_of_the_state_is_found_by_its_result() -> None:
    def counting(state: Account, given: Deposit, context: Context) -> Account:
        return Account(next(NUMBERS))

    with pytest.raises(NonDeterministic, match="outside of state and message") as caught:
        assert_deterministic(counting, Account(), Deposit("a"))
    first, then = [part for part in caught.value.differences[0].split() if part.strip(",").isdigit()]
    assert int(then) == int(first.strip(",")) + 1


def test_every_kind_of_difference_is_named() -> None:
    turns = count()

    def differing(state: Account, given: Deposit, context: Context) -> Account:
        turn = next(turns) % 2
        context.send("there" if turn else "here", Deposit("a"), delay=timedelta(seconds=turn))
        context.write_once("note", f"{turn}")
        for _ in range(turn):
            context.announce(Deposit("b"))
        if turn:
            context.delete()
        return Account(history=[1, turn])

    with pytest.raises(NonDeterministic) as caught:
        assert_deterministic(differing, Account(), Deposit("a"))
    assert caught.value.differences == (
        "the entity is deleted one time, and not the other",
        "state.history.1: 0 at first, then 1",
        "1 messages sent at first, then 2",
        "message 1 (account.deposit).destination: 'here' at first, then 'there'",
        "message 1 (account.deposit).delay: 0.0 at first, then 1.0",
        "blob 1",
    )


def test_numbers_that_python_takes_for_equal_and_the_order_of_properties_differ_too() -> None:
    turns = count()

    class Anything(BaseModel):
        data: dict[str, Any] = {}

    def differing(state: Anything, given: Deposit, context: Context) -> Anything:
        return Anything(data=[{"a": 1, "b": 2}, {"b": 2, "a": 1.0}][next(turns) % 2])

    with pytest.raises(NonDeterministic) as caught:
        assert_deterministic(differing, Anything(), Deposit("a"))
    assert caught.value.differences == (
        "state.data: the order of its properties",
        "state.data.a: 1 at first, then 1.0",
    )


def test_a_handler_of_events_is_judged_by_its_events() -> None:
    turns = count()

    def eventful(state: Account, given: Deposit, context: Context) -> list[Deposit]:
        return [Deposit("a", 1), Deposit("a", next(turns))]

    with pytest.raises(NonDeterministic) as caught:
        assert_deterministic(eventful, Account(), Deposit("a"))
    assert caught.value.differences == ("state.1.1.amount: 0 at first, then 1",)
    turns = count(7, 0)
    assert_deterministic(eventful, Account(), Deposit("a"))


def test_each_run_gets_copies_of_state_and_message() -> None:
    def mutating(state: Account, given: Deposit, context: Context) -> Account:
        state.history.append(given.amount)
        given.amount += 1
        return state

    state = Account()
    assert assert_deterministic(mutating, state, Deposit("a", 3)).state.history == [3]
    assert state.history == []


def test_an_exception_is_raised_and_one_of_the_second_run_only_is_a_difference() -> None:
    def failing(state: Account, given: Deposit, context: Context) -> Account:
        raise KeyError("mine")

    turns = count()

    def fickle(state: Account, given: Deposit, context: Context) -> Account:
        return {0: state}[next(turns)]

    with pytest.raises(KeyError, match="mine"):
        assert_deterministic(failing, Account(), Deposit("a"))
    with pytest.raises(NonDeterministic, match="it raised KeyError the second time") as caught:
        assert_deterministic(fickle, Account(), Deposit("a"))
    assert isinstance(caught.value.__cause__, KeyError)
