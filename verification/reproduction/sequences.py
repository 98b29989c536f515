"""What is wrong with what a read model holds, and with the order in which it handles the messages of several sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from verification.reproduction.moments import Moment, Told, ledger_in, numbered
from verification.world.companions_handler import HAS_WAITED, by_key
from verification.world.scenario import Message, Scenario

Rank = tuple[int, str]
"""Time and source of a message."""


def wrongly_held(moment: Moment) -> Iterator[str]:
    """The properties that do not hold because ledger and documents say different things of what is held."""
    receptions = {one.source: one for one in ledger_in(moment.after).receptions}
    held = {(one.source, one.order.number) for one in numbered(moment.held) if one.held is not None}
    told = {
        (one.source, number)
        for one in receptions.values()
        for first, last in one.held
        for number in range(first, last + 1)
    }
    if held - told or any(number < receptions[source].next for source, number in told):
        yield "no_garbage"
    if told - held:
        yield "nothing_lost"


def out_of_order(moment: Moment, scenario: Scenario) -> bool:
    """Whether a batch handles a message before an earlier one that is there or may come, or tells wrongly that it is late."""
    messages = by_key(scenario.messages)
    documents = {one.message: one for one in numbered(moment.held)}
    handled = [one.message for one in numbered(moment.known) if one.held is None and one.message is not None]
    for told in moment.made:
        rank = _rank(messages[told.message])
        late = any(_rank(messages[one]) > rank for one in handled)
        if documents[told.message].late is not late:
            return True
        if told.at < HAS_WAITED and _overtakes(told, moment, handled, messages):
            return True
        handled.append(told.message)
    return False


def _overtakes(told: Told, moment: Moment, handled: list[str], messages: Mapping[str, Message]) -> bool:
    """Whether some other source has an earlier message there, or may still send one."""
    mine = messages[told.message]
    present = {one.message for one in (*numbered(moment.known), *numbered(moment.held))}
    for source in {one.source for one in ledger_in(moment.before).receptions} - {mine.source}:
        waiting = (key for key, one in messages.items() if one.source == source and key not in handled)
        following = next(waiting, None)
        passed = max((_rank(messages[key]) for key in handled if messages[key].source == source), default=(-1, ""))
        earliest = _rank(messages[following]) if following in present and following is not None else passed
        if earliest < _rank(mine):
            return True
    return False


def _rank(message: Message) -> Rank:
    return (message.time or 0, message.source)
