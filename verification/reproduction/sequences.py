"""What is wrong with what a read model holds, and with the order in which it handles the messages of several sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from exactlyonce.values.envelope import message_hash
from verification.reproduction.moments import Made, Moment, ledger_in, numbered
from verification.world.companions_handler import HAS_WAITED, by_key, channel_of
from verification.world.scenario import Message, Scenario

Rank = tuple[int, str]
"""Time and source of a message."""


def wrongly_held(moment: Moment) -> Iterator[str]:
    """The properties that do not hold because ledger and documents say different things of what is held."""
    receptions = {reception.channel: reception for reception in ledger_in(moment.after).receptions}
    held = {(item.channel, item.number) for item in numbered(moment.held) if item.held is not None}
    reported = {
        (reception.channel, number)
        for reception in receptions.values()
        for first, last in reception.held
        for number in range(first, last + 1)
    }
    if held - reported or any(number < receptions[channel].next for channel, number in reported):
        yield "no_garbage"
    if reported - held:
        yield "nothing_lost"


def out_of_order(moment: Moment, scenario: Scenario) -> bool:
    """Whether a batch handles a message before an earlier one that is there or may come, or records wrongly that it is late."""
    messages = by_key(scenario.messages)
    documents = {item.message: item for item in numbered(moment.held)}
    handled = [item.message for item in numbered(moment.known) if item.held is None and item.message is not None]
    for record in moment.made({message_hash(key): key for key in messages}):
        rank = _rank(messages[record.message])
        late = any(_rank(messages[item]) > rank for item in handled)
        if documents[record.message].late is not late:
            return True
        if record.at < HAS_WAITED and _overtakes(record, moment, handled, messages):
            return True
        handled.append(record.message)
    return False


def _overtakes(record: Made, moment: Moment, handled: list[str], messages: Mapping[str, Message]) -> bool:
    """Whether some other channel has an earlier message there, or may still send one."""
    mine = messages[record.message]
    present = {item.message for item in (*numbered(moment.known), *numbered(moment.held))}
    for channel in {reception.channel for reception in ledger_in(moment.before).receptions} - {channel_of(mine)}:
        waiting = (key for key, item in messages.items() if channel_of(item) == channel and key not in handled)
        following = next(waiting, None)
        passed = max(
            (_rank(messages[key]) for key in handled if channel_of(messages[key]) == channel), default=(-1, "")
        )
        earliest = _rank(messages[following]) if following in present and following is not None else passed
        if earliest < _rank(mine):
            return True
    return False


def _rank(message: Message) -> Rank:
    return (message.time or 0, message.source)
