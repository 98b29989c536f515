"""Each fault of an exploration bites: a strategy that does not survive it is found."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel

from exactlyonce import Context, Destination, Entity, Outbox, message
from exactlyonce.effects.attempt import Again, Before, Finished, Handled, Memory, Work
from exactlyonce.effects.effect import Begin, Effect, NoAnswer, Opened, Step
from exactlyonce.effects.entity import LoadEntity, Publish, SaveEntity
from exactlyonce.effects.library import CloseNumbers, FindPaid
from exactlyonce.records.ledger import read_entity
from exactlyonce.testing import App, InvariantBroken, Seen, Unexplored, explore
from exactlyonce.values.envelope import key_of
from exactlyonce_dev_tests.naive import Naive


@message("test.explored.add-one")
class AddOne(BaseModel):
    key: str = "a"


@message("test.explored.added-one")
class AddedOne(BaseModel):
    total: int


class Total(BaseModel):
    total: int = 0


def handled_by(work: Work) -> Step[Handled]:
    """The result of the handler on the present entity."""
    loaded = yield from LoadEntity(work.entity)
    begun = yield from Begin((key_of(work.messages[0]),))
    assert not isinstance(loaded, NoAnswer)
    body = read_entity(work.entity, loaded.document).body
    return work.handle(Before(body, begun.at, begun.given[0]), work.messages[0])


class PublishesFirst(Outbox):
    """It publishes what it would commit, and commits by the real protocol."""

    def attempt(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        handled = yield from handled_by(work)
        yield from Publish(handled.outputs)
        result = yield from Outbox.attempt(self, work, memory)
        return result


class SavesOverAll(Outbox):
    """It saves what it made of an old version over a newer one."""

    def attempt(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        handled = yield from handled_by(work)
        newest = yield from LoadEntity(work.entity)
        assert not isinstance(newest, NoAnswer)
        yield from SaveEntity(work.entity, handled.body, newest.etag)
        yield from Publish(handled.outputs)
        return Finished(memory)


class BelievesThatAllIsPaid(Outbox):
    """It takes what its outbox holds for sent."""

    def attempt(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        return driven(Outbox.attempt(self, work, memory), all_paid)


class ClosesBeforeItPublishes(Outbox):
    """Its book says that outputs were sent, before they are."""

    def attempt(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        return driven(Outbox.attempt(self, work, memory), closing_first())


def driven(step: Step[Finished | Again], answer: Callable[[Effect[Any]], Step[Any]]) -> Step[Finished | Again]:
    """An attempt whose effects are answered by a generator of one's own."""
    reply: Any = None
    while True:
        try:
            effect = step.send(reply)
        except StopIteration as finished:
            result: Finished | Again = finished.value
            return result
        reply = yield from answer(effect)


def all_paid(effect: Effect[Any]) -> Step[Any]:
    reply = yield from effect
    return frozenset(effect.transactions) if isinstance(effect, FindPaid) else reply


def closing_first() -> Callable[[Effect[Any]], Step[Any]]:
    given: tuple[str, ...] = ()

    def answer(effect: Effect[Any]) -> Step[Any]:
        nonlocal given
        if isinstance(effect, Publish):
            yield from CloseNumbers(given)
        reply = yield from effect
        given = reply.given if isinstance(reply, Opened) else given
        return reply

    return answer


class TriesForEver(Outbox):
    """It looks, and tries again."""

    def attempt(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        yield from LoadEntity(work.entity)
        return Again(memory, "it never is content")


def counting(strategy: Outbox) -> App:
    entity = Entity("counted", state=Total, container="counted", strategy=strategy)

    @entity.handles(AddOne, key=lambda add: add.key)
    def add(state: Total, add: AddOne, context: Context) -> Total:
        context.send("added", AddedOne(total=state.total + 1))
        return Total(total=state.total + 1)

    return App(entity, destinations=(Destination("adds", to=entity), Destination("added")))


def total(app: App, seen: Seen) -> int:
    state: Any = seen.state(app.once.entities[0], "a")
    return 0 if state is None else int(state.total)


def counted_once(app: App, seen: Seen) -> bool:
    return total(app, seen) <= 2


def never_ahead(app: App, seen: Seen) -> bool:
    return all(output.total <= total(app, seen) for output in seen.outputs("added"))


def all_sent(app: App, seen: Seen) -> bool:
    return sorted(output.total for output in seen.outputs("added")) == [1, 2]


BOTH = [("adds", AddOne()), ("adds", AddOne())]


def test_the_outbox_survives_all_faults() -> None:
    app = counting(Outbox())
    explore(app, BOTH, partial(never_ahead, app), in_the_end=partial(all_sent, app))


@pytest.mark.parametrize(
    ("strategy", "rule", "told"),
    [
        (Naive(), counted_once, "comes twice|comes again|lost"),
        (PublishesFirst(), never_ahead, "publishes AddedOne to added"),
    ],
)
def test_a_strategy_that_is_not_exactly_once_is_found(strategy: Outbox, rule: Any, told: str) -> None:
    app = counting(strategy)
    with pytest.raises(InvariantBroken, match=told):
        explore(app, BOTH, partial(rule, app), interruptions=0)


@pytest.mark.parametrize("strategy", [BelievesThatAllIsPaid(), ClosesBeforeItPublishes()])
def test_a_book_that_pays_what_was_not_sent_is_found(strategy: Outbox) -> None:
    app = counting(strategy)
    with pytest.raises(InvariantBroken, match=r"lost|crashes"):
        explore(app, BOTH, in_the_end=partial(all_sent, app), interruptions=0)
    explore(app, BOTH, in_the_end=partial(all_sent, app), faults=0)


@pytest.mark.parametrize("strategy", [Naive(), PublishesFirst()])
def test_without_faults_and_interruptions_nobody_notices(strategy: Outbox) -> None:
    app = counting(strategy)
    explore(app, BOTH, partial(counted_once, app), in_the_end=partial(all_sent, app), faults=0, interruptions=0)


def test_a_message_that_is_tried_for_ever_proves_nothing_about_the_end() -> None:
    app = counting(TriesForEver())
    with pytest.raises(Unexplored, match="No story comes to an end, so in_the_end was never looked at"):
        explore(app, BOTH, in_the_end=partial(all_sent, app), interruptions=0)
    explore(app, BOTH, partial(counted_once, app), interruptions=0)


def test_an_update_that_is_lost_to_an_interruption_is_found_and_without_one_nobody_notices() -> None:
    app = counting(SavesOverAll())

    def adds_up(seen: Seen) -> object:
        return total(app, seen) == 2

    explore(app, BOTH, in_the_end=adds_up, faults=0, interruptions=0)
    with pytest.raises(InvariantBroken, match="adds_up") as caught:
        explore(app, BOTH, in_the_end=adds_up)
    assert [line.split()[1] for line in caught.value.story] == ["1", "2", "1"]
