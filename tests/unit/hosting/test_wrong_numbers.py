"""Numbers that cannot be, from the delivery to the poison queue: the error says what is wrong, nothing is lost, and the entity
goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from azure.functions.queue import QueueMessage

from exactlyonce import DamagedDocument, Envelope, ForkedChannel, InvalidMessage
from exactlyonce.attempt import key_of
from exactlyonce.drivers.lanes import Lanes
from exactlyonce.effects.entity import Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.errors import ExactlyOnceError
from exactlyonce.hosting.claim_checks import ClaimChecks
from exactlyonce.hosting.deliveries.receiver import Receiver
from exactlyonce.records.channels import MOST_RANGES
from exactlyonce.records.places import CHANNEL, LARGEST_NUMBER, NUMBER, RECEIVER
from exactlyonce.testing.chance import ManualClock
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.lifetimes import Lifetimes
from tests.samples import accounts, deposit
from tests.unit.hosting.settlers import Place as Poison
from tests.unit.hosting.settlers import dated, maintenance, ready

ACCOUNTS = accounts()
ACCOUNT = ACCOUNTS.ref("a")


class Desk(Poison):
    """A world with a receiver, and a settler of what its queue gives up."""

    def __init__(self) -> None:
        super().__init__()
        runs = maintenance(self)
        self.receiver = Receiver(
            lanes=Lanes(runs.driver, runs.retrying, ManualClock()),
            maintenance=runs,
            claims=ClaimChecks(None),
            failures=self.failures,
            poison=self.settler,
            begin=ready,
            ready=ready,
            lifetimes=Lifetimes,
            now=self.clock.now,
        )

    async def take(self, message: Envelope) -> None:
        """Process one delivery, the last that its queue makes. Raises what processing raises."""
        body = message.to_json().text.encode()
        delivery = QueueMessage(id="q-1", body=body, dequeue_count=5)  # type: ignore[no-untyped-call]
        await self.receiver.take(delivery, ACCOUNTS, None)

    @property
    def stored(self) -> Loaded:
        """The account as it is now."""
        loaded = self.store.perform(LoadEntity(ACCOUNT))
        assert isinstance(loaded, Loaded)
        return loaded

    @property
    def history(self) -> list[int]:
        """The amounts that the account has taken."""
        document = self.stored.document
        amounts: list[int] = [] if document is None else document.value["history"]
        return amounts

    def spoil(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Change the account's ledger, as anybody with an editor could."""
        loaded = self.stored
        assert loaded.document is not None
        document = loaded.document.value
        change(document["_ledger"])
        assert isinstance(self.store.perform(SaveEntity(ACCOUNT, Json.of(document), loaded.etag)), Saved)


@pytest.fixture
def desk() -> Desk:
    return Desk()


def numbered(number: int | str, *, id: str = "", channel: str = "c1", to: str = ACCOUNT.source) -> Envelope:
    """A deposit that another entity sent, of as much as its number."""
    amount = number if isinstance(number, int) else 0
    place = {CHANNEL: channel, RECEIVER: to, NUMBER: str(number)}
    message = replace(deposit(id or f"{channel}-{number}", amount=amount), source="shop/s")
    return dated(replace(message, extensions=tuple(place.items())))


async def refused(desk: Desk, message: Envelope, error: type[ExactlyOnceError], words: str) -> None:
    """A message is never acknowledged, changes nothing, and is parked with its error's name when its queue gives it up."""
    before = desk.stored
    with pytest.raises(error, match=words) as raised:
        await desk.take(message)
    assert key_of(message) in str(raised.value)
    assert desk.stored.document == before.document
    desk.failures.note(ACCOUNTS.name, key_of(message), raised.value, 5)
    assert await desk.settle(ACCOUNTS, message) == "parked"
    assert error.__name__ in (desk.reason(ACCOUNT, key_of(message)) or "")


NO_NUMBER = "a sequence that is no number from 1 to 2"
CANNOT_BE = {
    "zero": (numbered(0), NO_NUMBER),
    "negative": (numbered(-3), NO_NUMBER),
    "a fraction": (numbered("1.5"), NO_NUMBER),
    "beyond 2^53": (numbered(LARGEST_NUMBER + 1), NO_NUMBER),
    "far beyond": (numbered("9" * 400, id="far"), NO_NUMBER),
    "very far ahead": (numbered(LARGEST_NUMBER), "is the highest number received: this one is more than"),
    "for another entity": (numbered(3, to="account/b"), "is numbered for 'account/b'"),
    "without a receiver": (replace(numbered(3), extensions=((CHANNEL, "c1"), (NUMBER, "3"))), "has no partitionkey"),
    "a channel that is none": (numbered(3, channel="c/1", id="m"), "a channel that is not made of"),
    "a channel of another source": (replace(numbered(3), source="shop/t"), "the channel is of shop/s"),
}


@pytest.mark.parametrize("case", CANNOT_BE)
async def test_a_number_that_cannot_be_is_refused_and_the_channel_goes_on(case: str, desk: Desk) -> None:
    message, words = CANNOT_BE[case]
    await desk.take(numbered(1))
    await refused(desk, message, InvalidMessage, words)
    await desk.take(numbered(2))
    assert desk.history == [1, 2]


async def test_another_message_under_a_number_that_was_received_is_refused_and_the_channel_goes_on(desk: Desk) -> None:
    await desk.take(numbered(1))
    await refused(
        desk, numbered(1, id="another"), ForkedChannel, "has the number 1 in channel c1, which another message"
    )
    await desk.take(numbered(1))
    await desk.take(numbered(2))
    assert desk.history == [1, 2]


def overlap(ledger: dict[str, Any]) -> None:
    ledger["channels"][0]["received"] = [[1, 4], [3, 6]]


def turned_round(ledger: dict[str, Any]) -> None:
    ledger["channels"][0]["received"] = [[4, 1]]


def from_zero(ledger: dict[str, Any]) -> None:
    ledger["channels"][0]["received"] = [[0, 4]]


@pytest.mark.parametrize("spoil", [overlap, turned_round, from_zero])
async def test_a_ledger_whose_ranges_contradict_one_another_is_left_alone(
    spoil: Callable[[dict[str, Any]], None], desk: Desk
) -> None:
    await desk.take(numbered(1))
    desk.spoil(spoil)
    before = desk.stored.document
    for number in (1, 2):
        with pytest.raises(DamagedDocument, match="account/a"):
            await desk.take(numbered(number))
    assert desk.stored.document == before
    assert await desk.settle(ACCOUNTS, numbered(2)) in ("parked", "returned")


def sparse() -> Iterator[int]:
    """Numbers of a channel of which every other message is lost."""
    return iter(range(1, 100_000, 2))


async def test_a_channel_with_ever_more_gaps_is_refused_and_the_entity_goes_on(desk: Desk) -> None:
    numbers = sparse()
    for _ in range(MOST_RANGES):
        await desk.take(numbered(next(numbers)))
    for number in (next(numbers), 99_999):
        await refused(desk, numbered(number), InvalidMessage, f"its channel has {MOST_RANGES} gaps already")
    for late in (2, 4):
        await desk.take(numbered(late))
    await desk.take(numbered(1, channel="c2"))
    assert desk.history[-3:] == [2, 4, 1]
    await desk.take(numbered(2 * MOST_RANGES + 1))
    assert desk.history[-1] == 2 * MOST_RANGES + 1, "two gaps have closed, so there is room for another"


async def test_a_hundred_thousand_sparse_numbers_leave_a_ledger_of_bounded_size(desk: Desk) -> None:
    """All after the first 256 are refused at no cost to the document, however many come."""
    numbers = sparse()
    for _ in range(MOST_RANGES):
        await desk.take(numbered(next(numbers)))
    document = desk.stored.document
    for number in list(numbers)[::5_000]:
        with pytest.raises(InvalidMessage):
            await desk.take(numbered(number))
    assert desk.stored.document == document
    assert document is not None
    assert document.size < 8_000
