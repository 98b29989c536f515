"""What is wrong with the order in which a read model handles the messages of several sources, where it brings all into one."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from exactlyonce.effects.companions import SaveBatch
from exactlyonce.records.companions import Companion, NumberedMessage
from exactlyonce.records.ledger import Ledger
from verification.world.companions_handler import HAS_WAITED, by_key, channel_of, keys_of
from verification.world.scenario import Message, Scenario
from verification.world.store import Entity

Rank = tuple[int, str]
"""Time and source of a message."""


def out_of_order(
    scenario: Scenario,
    key: str,
    write: SaveBatch,
    before: Entity,
    *,
    at: datetime,
    handled: Collection[str],
) -> str | None:
    """What is wrong with handling a message now.

    Args:
        scenario: that is explored.
        key: of the message.
        write: the batch that commits it.
        before: the partition as it was.
        at: time of the attempt.
        handled: keys of all messages that were handled before.
    """
    messages = by_key(scenario.messages)
    mine = _rank(messages[key])
    ranks = [(channel_of(messages[item]), _rank(messages[item])) for item in handled]
    written = [*write.create, *(item for item, _ in write.replace)]
    if any(rank > mine for _, rank in ranks) is not any(
        item.late for item in _numbered(written) if item.message == key
    ):
        return f"in_order: whether {key} is late is recorded wrongly"
    if at >= HAS_WAITED:
        return None
    present = {item.message for item in (*_numbered(written), *_numbered(item for item, _ in before.now.values()))}
    ledger = before.view.ledger or Ledger()
    for channel in {reception.channel for reception in ledger.receptions} - {channel_of(messages[key])}:
        following = _next_of(scenario, channel, handled)
        if following in present:
            if _rank(messages[following]) < mine:
                return f"in_order: {key} is handled before {following}, which is there"
        elif max((rank for item, rank in ranks if item == channel), default=(-1, "")) < mine:
            return f"in_order: {key} is handled, though {channel} may still send an earlier one"
    return None


def _numbered(companions: Iterable[Companion]) -> list[NumberedMessage]:
    return [companion for companion in companions if isinstance(companion, NumberedMessage)]


def _next_of(scenario: Scenario, channel: str, handled: Collection[str]) -> str:
    """Key of the next message of a channel; empty if it has no more."""
    waiting = (key for key in keys_of(scenario.messages) if key not in handled)
    messages = by_key(scenario.messages)
    return next((key for key in waiting if channel_of(messages[key]) == channel), "")


def _rank(message: Message) -> Rank:
    return (message.time or 0, message.source)
