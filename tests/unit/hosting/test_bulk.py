"""Operators' actions on many parked messages: which are meant, how fast they go, and what is counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

import pytest

from exactlyonce import ConfigurationError, TryAgainLater
from exactlyonce.errors import DamagedDocument
from exactlyonce.hosting.upkeep import operator as bulk
from exactlyonce.hosting.upkeep.operator import Action, Group, Operator, Outcome, Selection, grouped, on_each
from exactlyonce.stores.port import ListedMessage
from exactlyonce.testing.world import InstantClock
from tests.unit.operated import PLACE, InMemory, app

__all__ = ["app"]


def listed(number: int, type: str = "account", reason: str = "HandlerFailed (KeyError)") -> ListedMessage:
    return ListedMessage(f'["{type}","a","a"]', f"web/m-{number}", reason, f"2026-01-{number:02}T00:00:00Z")


def messages(count: int) -> list[ListedMessage]:
    return [listed(number) for number in range(1, count + 1)]


SENT = Outcome(done=True, text="sent")


async def sending(_: ListedMessage) -> Outcome:
    return SENT


async def away(_: ListedMessage) -> Outcome:
    raise TryAgainLater("The store did not answer.")


@pytest.mark.parametrize(
    ("selection", "meant"),
    [
        (Selection(), [1, 2, 3]),
        (Selection(reason="KeyError"), [1, 2]),
        (Selection(type="board"), [2]),
        (Selection(reason="KeyError", type="account"), [1]),
        (Selection(reason="KeyError", type="shop"), []),
    ],
)
def test_a_selection_means_the_messages_that_meet_all_its_conditions(selection: Selection, meant: list[int]) -> None:
    found = [listed(1), listed(2, "board"), listed(3, reason="OutputTooLarge")]
    assert [item for item in found if selection.has(item)] == [found[number - 1] for number in meant]


def test_groups_are_of_one_type_and_reason_and_the_largest_comes_first() -> None:
    found = [listed(4), listed(1, "board"), listed(2), listed(3, reason="other")]
    assert grouped(found) == [
        Group("account", "HandlerFailed (KeyError)", 2, "2026-01-02T00:00:00Z", "2026-01-04T00:00:00Z"),
        Group("board", "HandlerFailed (KeyError)", 1, "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        Group("account", "other", 1, "2026-01-03T00:00:00Z", "2026-01-03T00:00:00Z"),
    ]


async def test_messages_begin_in_order_and_no_faster_than_the_rate() -> None:
    clock, begun = InstantClock(), list[tuple[str, datetime]]()
    before = clock.now()

    async def action(message: ListedMessage) -> Outcome:
        begun.append((message.message, clock.now()))
        return SENT

    results = await on_each(messages(5), action, clock, rate=4)
    assert [message for message, _ in begun] == [f"web/m-{number}" for number in range(1, 6)]
    assert (begun[0][1], begun[-1][1] >= before.replace(second=1)) == (before, True)
    assert (results.complete, results.counts) == (True, {"sent": 5})


async def test_several_messages_are_under_way_at_a_time() -> None:
    under_way, most, clock = 0, 0, InstantClock()

    async def action(_: ListedMessage) -> Outcome:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        for _turn in range(5):
            await asyncio.sleep(0)
        under_way -= 1
        return SENT

    await on_each(messages(60), action, clock, rate=1e6)
    assert most == bulk.AT_ONCE


async def test_a_slow_stretch_is_not_made_up_for_by_a_burst() -> None:
    clock, begun = InstantClock(), list[float]()

    async def action(message: ListedMessage) -> Outcome:
        begun.append(clock.now().timestamp())
        if message.message == "web/m-1":
            clock.advance(60)
        return SENT

    await on_each(messages(4), action, clock, rate=1)
    assert begun[-1] - begun[1] >= 1


async def test_a_message_that_fails_does_not_stop_the_others_and_says_why() -> None:
    async def action(message: ListedMessage) -> Outcome:
        if message.message == "web/m-2":
            raise DamagedDocument("Parked message web/m-2 cannot be read.")
        return SENT if message.message == "web/m-1" else Outcome(done=False, text="too old")

    shown: list[int] = []
    results = await on_each(messages(3), action, InstantClock(), 1e6, lambda now: shown.append(now.left))
    assert results.counts == {"sent": 1, "DamagedDocument": 1, "too old": 1}
    assert [why for _, why in results.not_done] == ["Parked message web/m-2 cannot be read.", "too old"]
    assert (results.complete, results.left, shown) == (False, 0, [2, 1, 0])


async def test_no_other_message_is_begun_when_nothing_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "AT_ONCE", 1)
    results = await on_each(messages(bulk.MOST_UNANSWERED + 5), away, InstantClock(), 1e6)
    assert (results.left, results.counts, results.complete) == (5, {"TryAgainLater": bulk.MOST_UNANSWERED}, False)


async def test_an_answer_in_between_starts_the_count_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "AT_ONCE", 1)

    async def action(message: ListedMessage) -> Outcome:
        return SENT if message.message == "web/m-15" else await away(message)

    results = await on_each(messages(30), action, InstantClock(), 1e6)
    assert (results.left, results.counts) == (0, {"TryAgainLater": 29, "sent": 1})


@pytest.mark.parametrize("action", [lambda operator: bulk.requeuing(operator, "receipts"), bulk.discarding])
async def test_a_message_that_another_operator_has_settled_meanwhile_is_done(
    app: InMemory, action: Callable[[Operator], Action]
) -> None:
    gone = [ListedMessage(PLACE, "web/m-gone", "", "")]
    results = await on_each(gone, action(await app.operator()), InstantClock(), 1e6)
    assert (results.counts, results.complete) == ({"not parked": 1}, True)


async def test_an_unknown_destination_is_refused_before_anything_is_sent(app: InMemory) -> None:
    with pytest.raises(ConfigurationError, match=r"no destination 'nowhere'; known are: receipts\. Nothing was sent"):
        bulk.requeuing(await app.operator(), "nowhere")


async def test_a_message_whose_entity_cannot_be_read_hides_no_other_and_is_left() -> None:
    damaged = ListedMessage("{", "web/m-9", "DamagedDocument", "2026-01-09T00:00:00Z")
    assert [item.type for item in grouped([damaged, listed(1)])] == ["account", bulk.UNREADABLE]
    assert not Selection(type="account").has(damaged)
    results = await on_each([damaged, listed(1)], sending, InstantClock())
    assert results.counts == {"sent": 1, f"the entity {bulk.UNREADABLE}": 1}
    assert [item for item, _ in results.not_done] == [damaged]


async def test_after_an_error_that_nobody_expects_no_other_message_is_begun() -> None:
    begun: list[str] = []

    async def action(message: ListedMessage) -> Outcome:
        begun.append(message.message)
        if len(begun) == 8:
            raise ZeroDivisionError
        await asyncio.sleep(0)
        return SENT

    with pytest.raises(ZeroDivisionError):
        await on_each(messages(28), action, InstantClock())
    so_far = len(begun)
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(begun) == so_far < 28
