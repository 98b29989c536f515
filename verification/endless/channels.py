"""Channels in an endless stream: of the numbers received only those of live messages matter.

A protocol asks whether a number was received, and of documents which ones there are. So the numbers of retired messages are
forgotten, a live message has the number of its place, and a document is named by what it says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from exactlyonce.records.channels import Channel

from exactlyonce.records.library import ChannelDocument
from verification.world.outbox_handler import envelope_of
from verification.world.scenario import Scenario

CHANNELS: Final = "channel:"
"""What the library's log calls all documents of channels that there are."""
RETIRED: Final = 0
"""What the numbers of retired messages are called."""


def channel_of(scenario: Scenario, message: int) -> str | None:
    """The channel of a message; None if it is foreign."""
    place = scenario.places[message % len(scenario.places)] if scenario.places else None
    return None if place is None else place[0]


def renamed_channels(scenario: Scenario, order: tuple[int, ...]) -> dict[tuple[str, str], str]:
    """What channels are called when message `order[n]` goes to place n."""
    moved = (
        (channel_of(scenario, number), channel_of(scenario, place)) for place, number in enumerate(order) if number >= 0
    )
    return {("channel", before): after for before, after in moved if before is not None and after is not None}


def keeps_channels(scenario: Scenario, order: tuple[int, ...]) -> bool:
    """Whether messages of one channel stay together when message `order[n]` goes to place n."""
    moved = {(channel_of(scenario, number), channel_of(scenario, place)) for place, number in enumerate(order)}
    return len(moved) == len({channel_of(scenario, place) for place in range(len(order))})


def numbers_of(channel: Channel) -> Iterator[int]:
    """The numbers received through a channel."""
    return (number for first, last in channel.received for number in range(first, last + 1))


def with_numbers(channel: Channel, numbers: Iterable[int]) -> Channel:
    """The channel through which these numbers were received, but for those of retired messages."""
    known = Channel(channel.id, channel.source)
    for number in sorted(numbers):
        if number != RETIRED:
            known = known.with_message(number, envelope_of(number - 1).id)
    return known


def named_document(document: ChannelDocument) -> ChannelDocument:
    """A document with a version that tells what it says. Protocols take versions for parts of names only."""
    return replace(document, version=sum(2**number for number in numbers_of(document.channel)))


def distinct(documents: Iterable[ChannelDocument]) -> tuple[ChannelDocument, ...]:
    """Documents in canonical order. Of those that say the same one is enough."""
    found = {one.name: one for one in documents}
    return tuple(found[name] for name in sorted(found))


def telling(documents: Iterable[ChannelDocument]) -> tuple[ChannelDocument, ...]:
    """The documents that say something of live messages, in canonical order: nobody notices whether there are others."""
    return distinct(one for one in documents if one.channel.received)


def views_in(views: list[Any]) -> tuple[list[bool], list[int]]:
    """Of equal views only the last is kept: whoever may read an earlier one may read that one, too.

    Args:
        views: what each position of a log shows.

    Returns:
        For each view whether it is kept; for each position, the empty log first, the position that takes its place.
    """
    last = {view: position for position, view in enumerate(views)}
    kept = [last[view] == position for position, view in enumerate(views)]
    return kept, [0, *(sum(kept[:position]) + 1 for position in range(len(views)))]
