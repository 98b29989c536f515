"""The settler: a message is returned for its environment's sake, or parked for its own, and never both."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from exactlyonce import Colocated, ConfigurationError, Envelope, Outbox, Resequencer, TryAgainLater, VersionStream
from exactlyonce.effects.attempt import Strategy
from exactlyonce.errors import NewerSchema
from exactlyonce.hosting.deliveries.settlement import FIRST_DELAY, LONGEST_DELAY, UNEXPLAINED_ROUNDS, aside_place
from exactlyonce.stores.memory.store import Fate, NoTrouble
from exactlyonce.values.lifetimes import Lifetimes
from tests.samples import accounts, breaking, deposit
from tests.unit.boards import BOARDS, scored
from tests.unit.bus import delivered
from tests.unit.fated import Fated
from tests.unit.hosting.settlers import Place, dated, settler

STRATEGIES: dict[str, Strategy] = {"outbox": Outbox(), "colocated": Colocated(), "stream": VersionStream()}
every_strategy = pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)


@pytest.fixture
def place() -> Place:
    return Place()


@every_strategy
@pytest.mark.parametrize(
    "error", [TryAgainLater("the store did not answer"), ConfigurationError("no container"), NewerSchema("newer")]
)
async def test_a_message_that_failed_for_the_environments_sake_is_returned_unchanged(
    place: Place, strategy: Strategy, error: Any
) -> None:
    kind, message = accounts(strategy), dated(deposit("m-1"))
    place.failures.note(kind.name, "web/m-1", error, 5)
    assert await place.settle(kind, message) == "returned"
    assert place.returned == [message.once_more()]
    assert place.parked(kind.ref("a"), "web/m-1") is None


async def test_each_return_is_delayed_longer_by_a_random_delay(place: Place) -> None:
    kind, message = accounts(), dated(deposit("m-1"))
    place.failures.note(kind.name, "web/m-1", TryAgainLater(), 5)
    for _ in range(8):
        await place.settle(kind, message)
        message = place.returned[-1]
    longest = [min(FIRST_DELAY * 2**times, LONGEST_DELAY) for times in range(8)]
    delays = [output.delay for output in place.queue]
    assert all(most / 2 <= delay <= most for delay, most in zip(delays, longest, strict=True))
    assert len(set(delays)) == len(delays)
    assert (message.requeued, message.unexplained) == (8, 0)


@every_strategy
async def test_a_processed_message_is_finished_and_not_returned(place: Place, strategy: Strategy) -> None:
    kind, message = accounts(strategy), dated(deposit("m-1"))
    await place.crashed_after_commit(kind, message)
    place.failures.note(kind.name, "web/m-1", TryAgainLater(), 5)
    for _ in range(2):  # The host copies a message to its poison queue twice, if it dies in between.
        assert await place.settle(kind, message) == "processed"
    assert (place.queue, place.parked(kind.ref("a"), "web/m-1")) == ([], None)
    assert len({output.id for output in place.published}) == 1


async def test_a_process_that_never_reached_the_store_returns_a_message_whatever_its_age(place: Place) -> None:
    """Its host delivers it a few times and then drops it; one too old is refused where it arrives."""
    place.wrong, place.started = TryAgainLater("the store did not answer"), False
    messages = [dated(deposit("m-1")), dated(deposit("m-2"), timedelta(days=100))]
    for times, message in enumerate(messages, 1):
        assert await place.settle(accounts(), message, times=times) == "returned"
    assert place.returned == [message.once_more() for message in messages]


async def test_a_message_without_a_time_is_returned_undecided_and_put_aside_once_the_store_answers(
    place: Place,
) -> None:
    kind, message = accounts(), replace(deposit("m-1"), time=None)
    trouble, place.store._trouble = place.store._trouble, Fated(Fate.LOST_BEFORE)
    assert await place.settle(kind, message) == "returned"
    assert place.returned == [message.once_more()]
    place.store._trouble = trouble
    assert await place.settle(kind, place.returned[0]) == "parked"
    assert place.reason(aside_place(kind), "web/m-1") is not None
    assert len(place.queue) == 1


async def test_a_lasting_error_of_settings_does_not_return_a_message_without_a_time(place: Place) -> None:
    place.wrong = ConfigurationError("The container belongs to another application.")
    await place.settle(accounts(), replace(deposit("m-1"), time=None))
    assert place.queue == []


async def test_in_another_applications_container_a_message_is_returned_and_nothing_written(place: Place) -> None:
    kind, message = accounts(), dated(deposit("m-1"))
    place.saw_fail(kind, "web/m-1")
    place.wrong = ConfigurationError("The container belongs to another application.")
    assert await place.settle(kind, message) == "returned"
    assert place.returned == [message.once_more()]
    assert (place.store.entities, place.store.library) == ({}, {})


async def test_without_the_store_a_poison_message_is_returned_even_if_it_may_be_parked(place: Place) -> None:
    kind, message = accounts(), dated(deposit("m-1"))
    place.saw_fail(kind, "web/m-1")
    assert await place.settle(kind, message) == "parked"
    trouble, place.store._trouble = place.store._trouble, Fated(Fate.LOST_BEFORE)
    assert await place.settle(kind, message, times=2) == "returned"
    place.store._trouble = trouble
    assert place.returned == [message.once_more()]


async def test_without_the_store_a_dead_letter_that_may_be_parked_is_not_returned(place: Place) -> None:
    place.store._trouble = Fated(Fate.LOST_BEFORE)
    with pytest.raises(TryAgainLater):
        await place.settler.settle(accounts(), delivered(dated(deposit("m-1"))), "accounts")
    assert place.queue == []


async def test_while_neither_store_nor_queue_answers_a_message_stays(place: Place) -> None:
    place.open = False
    with pytest.raises(TryAgainLater):
        await place.settle(accounts(), dated(deposit("m-1")))


async def test_several_returned_copies_are_processed_once(place: Place) -> None:
    kind, message = accounts(), dated(deposit("m-1"))
    place.failures.note(kind.name, "web/m-1", TryAgainLater(), 5)
    for times in (1, 2):  # The settler died before it had acknowledged the first.
        assert await place.settle(kind, message, times=times) == "returned"
    process = place.process()
    for copy in place.returned:
        await process.deliver(kind, copy)
    assert await place.settle(kind, message, times=3) == "processed"
    assert len({commit.version for commit in place.facts().commits} - {None}) == 1


async def test_a_lasting_configuration_error_puts_the_message_aside(place: Place) -> None:
    await place.process().deliver(accounts(), dated(deposit("m-1")))
    moved = accounts(VersionStream())
    assert await place.settle(moved, dated(deposit("m-2"))) == "returned"
    old = dated(deposit("m-2"), Lifetimes().send_limit(place.clock.now()) + timedelta(seconds=1))
    assert await place.settle(moved, old) == "parked"
    assert place.reason(aside_place(moved), "web/m-2") == "ConfigurationError, of entity account/a"


async def test_a_message_whose_data_cannot_be_fetched_is_returned_unless_it_is_too_old(place: Place) -> None:
    unread = settler(place).settler.return_unread
    limit = Lifetimes().send_limit(place.clock.now())
    assert await unread(accounts(), dated(deposit("m-1"), limit), "accounts") == "returned"
    assert await unread(accounts(), dated(deposit("m-2"), limit + timedelta(seconds=1)), "accounts") is None
    assert await unread(accounts(), deposit("m-3", padding="x" * 50_000), "accounts") is None


async def test_an_unknown_queue_is_refused(place: Place) -> None:
    with pytest.raises(ConfigurationError, match="no destination 'shots' to return messages to; known are: accounts"):
        await place.settle(accounts(), deposit("m-1"), queue="shots")


async def test_an_unknown_cause_counts_as_the_environment_for_some_rounds(place: Place) -> None:
    kind, message = accounts(), dated(breaking("m-1"))
    for number in range(1, UNEXPLAINED_ROUNDS + 1):
        assert await place.settle(kind, message) == "returned"
        message = place.returned[-1]
        assert (message.requeued, message.unexplained) == (number, number)
    assert await place.settle(kind, message) == "parked"
    assert place.reason(kind.ref("a"), "web/m-1") == "its queue gave it up; this process did not see why"


@pytest.mark.parametrize(("seconds", "outcome"), [(-1, "returned"), (1, "parked")])
async def test_a_message_that_could_be_too_old_on_arrival_is_parked(place: Place, seconds: int, outcome: str) -> None:
    kind, limit = accounts(), Lifetimes().send_limit(place.clock.now())
    assert await place.settle(kind, dated(deposit("m-1"), limit + timedelta(seconds=seconds))) == outcome
    assert (place.parked(kind.ref("a"), "web/m-1") is not None) is (outcome == "parked")


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (dated(deposit("m-1"), timedelta(days=29)), "TooOldToJudge"),
        (dated(deposit("m-1"), timedelta(days=-2)), "MessageFromTheFuture"),
        (replace(deposit("m-1"), time=None), "UndatedMessage"),
    ],
)
async def test_a_message_whose_age_cannot_be_judged_is_put_aside(place: Place, message: Envelope, reason: str) -> None:
    kind = accounts()
    assert await place.settle(kind, message) == "parked"
    assert place.reason(aside_place(kind), "web/m-1") == f"its queue gave it up; this process did not see why; {reason}"


async def test_a_known_message_of_any_age_is_finished(place: Place) -> None:
    kind = accounts()
    await place.crashed_after_commit(kind, deposit("m-1"))
    assert await place.settle(kind, dated(deposit("m-1"), timedelta(days=29))) == "processed"


async def test_a_read_model_never_refuses_a_number_for_its_age(place: Place) -> None:
    boards = BOARDS.using(Resequencer())
    place.saw_fail(boards, "s/m-3")
    assert await place.settle(boards, replace(scored(3), time=None)) == "parked"
    assert place.parked(boards.ref("b"), "s/m-3") is not None


async def test_a_parked_message_is_not_returned(place: Place) -> None:
    kind, message = accounts(), dated(deposit("m-1"))
    place.saw_fail(kind, "web/m-1")
    assert await place.settle(kind, message) == "parked"
    place.failures._seen.clear()
    assert await place.settle(kind, message, times=2) == "parked"
    assert place.queue == []


async def test_a_view_older_than_the_parking_proves_nothing(place: Place) -> None:
    kind, message = accounts(), dated(deposit("m-1"))
    place.saw_fail(kind, "web/m-1")
    await place.settle(kind, message)
    place.failures._seen.clear()
    place.store._trouble = Stale()
    with pytest.raises(TryAgainLater):
        await place.settler.settle(kind, delivered(message), "accounts")
    assert place.queue == []


async def test_a_message_that_was_settled_before_is_put_aside_instead_of_parked(place: Place) -> None:
    kind, message = accounts(), dated(breaking("m-1")).once_more(UNEXPLAINED_ROUNDS)
    place.saw_fail(kind, "web/m-1")
    assert await place.settle(kind, message, times=2) == "parked"
    assert place.parked(kind.ref("a"), "web/m-1") is None
    parked = place.parked(aside_place(kind), "web/m-1")
    assert parked is not None
    assert parked.reason.endswith("; it was settled before, and may have been returned to its queue")


async def test_a_message_whose_parking_was_not_answered_is_not_returned(place: Place) -> None:
    kind, message = accounts(), dated(deposit("m-1"))
    place.saw_fail(kind, "web/m-1")
    place.store._trouble = Fated(Fate.LOST_AFTER, "park")
    assert await place.settler.settle(kind, delivered(message), "accounts", settlement="first") == "parked"
    assert place.parked(kind.ref("a"), "web/m-1") is not None
    assert place.queue == []


class Stale(NoTrouble):
    """All reads are answered by replicas that have seen nothing yet."""

    def replica(self, newest: int) -> int:
        del newest
        return 0
