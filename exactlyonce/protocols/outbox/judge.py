"""What the outbox protocol concludes from what it has read: which messages are copies, which are fresh, and which cannot be.

A message with a number is known by its channel, for ever; the reply to a call, by the call that awaits it; an opened request,
by its document, until its caller closes it. Any other message is foreign: its entry knows it, and then its record, until that
is cleaned up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from exactlyonce.attempt import key_of
from exactlyonce.errors import ExactlyOnceError, ForkedChannel, InvalidMessage, RequestUnknown, TryAgainLater
from exactlyonce.protocols.steps.load import View
from exactlyonce.records.calls import Calls, ReplyTo, is_reply, reply_of
from exactlyonce.records.channels import Channel, by_id, holds_place
from exactlyonce.records.ledger import Entry
from exactlyonce.records.places import Place, is_numbered, place_of
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.identity import EntityRef
from exactlyonce.values.ranges import holds


class Arrival(NamedTuple):
    """A message of an attempt.

    Attributes:
        key: of the message.
        envelope: of one of its copies.
        place: in its channel; None if it has no number.
        reply: what it answers; None if it is no reply to a call.
        request: its id, if it is a request that was opened.
    """

    key: str
    envelope: Envelope
    place: Place | None
    reply: ReplyTo | None = None
    request: str | None = None

    @property
    def foreign(self) -> bool:
        """Whether only its entry, and then its record, knows its copies."""
        return self.place is None and self.reply is None and self.request is None


Failed = tuple[tuple[str, ExactlyOnceError], ...]
"""Key and error of each message that cannot be processed."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """The messages of an attempt; copies of one message are one.

    Attributes:
        messages: those that can be for this entity.
        failed: those that cannot.
    """

    messages: tuple[Arrival, ...]
    failed: Failed = ()

    @property
    def foreign(self) -> tuple[str, ...]:
        """Keys of the foreign messages."""
        return tuple(one.key for one in self.messages if one.foreign)

    @property
    def requests(self) -> tuple[Arrival, ...]:
        """The requests that were opened."""
        return tuple(one for one in self.messages if one.request is not None)


@dataclass(frozen=True, slots=True)
class Judged:
    """What a view shows of the messages.

    Attributes:
        copies: entries of messages that are known; some may still owe outputs.
        fresh: messages that this view does not know.
        failed: those that cannot be processed, or not in this view.
    """

    copies: tuple[Entry, ...]
    fresh: tuple[Arrival, ...]
    failed: Failed

    @property
    def done(self) -> bool:
        """Whether all messages are copies."""
        return not (self.fresh or self.failed)

    def without(self, refused: Failed) -> Judged:
        """The same where fresh messages are refused."""
        keys = {key for key, _ in refused}
        fresh = tuple(one for one in self.fresh if one.key not in keys)
        return replace(self, fresh=fresh, failed=(*self.failed, *refused))


def arrived(entity: EntityRef, envelopes: Iterable[Envelope], *, foreign: bool = True) -> Arrived:
    """Sort messages by how their copies are known.

    Args:
        entity: that they came to.
        envelopes: the messages.
        foreign: whether messages without a number are taken.
    """
    messages: dict[str, Arrival] = {}
    failed: dict[str, ExactlyOnceError] = {}
    for envelope in envelopes:
        key = key_of(envelope)
        about = f"Message {key} for entity {entity}"
        try:
            reply = reply_of(envelope, entity, about) if is_reply(envelope) else None
            request = None if envelope.opened is None else envelope.id
            numbered = reply is None and request is None and (is_numbered(envelope) or not foreign)
            place = place_of(envelope, entity, about) if numbered else None
        except InvalidMessage as error:
            failed[key] = error
        else:
            messages[key] = Arrival(key, envelope, place, reply, request)
    return Arrived(tuple(messages.values()), tuple(failed.items()))


def unknown_channels(arrived: Arrived, view: View) -> tuple[str, ...]:
    """The channels of messages that this view shows neither in its entries nor in the channels of its ledger."""
    entries = {entry.message for entry in view.ledger.entries}
    known = {channel.id for channel in view.ledger.channels}
    places = (one.place for one in arrived.messages if one.place is not None and one.key not in entries)
    return tuple(dict.fromkeys(place.channel for place in places if place.channel not in known))


def channels_in(view: View) -> dict[str, Channel]:
    """What a view knows of channels: the ledger's, and what documents say of those that were looked for."""
    return by_id((*view.ledger.channels, *(document.channel for document in view.channels)))


def is_behind(arrival: Arrival, view: View) -> bool:
    """Whether a view is older than the call that a message answers. That it does not await the reply then shows nothing."""
    return arrival.reply is not None and view.ledger.version < arrival.reply.version


def shows_nothing(arrived: Arrived, view: View) -> bool:
    """Whether a view is older than the calls of all messages."""
    return not arrived.failed and all(is_behind(one, view) for one in arrived.messages)


def judged(arrived: Arrived, view: View) -> Judged:
    """Tell copies from fresh messages.

    What was received once is received for ever, so even an old view is right about copies. It may take a copy for fresh; then
    the commit fails on its condition.
    """
    channels = channels_in(view)
    keys = {one.key for one in arrived.messages}
    copies = tuple(entry for entry in view.ledger.entries if entry.message in keys)
    known = {entry.message for entry in copies} | view.done
    fresh: list[Arrival] = []
    failed = list(arrived.failed)
    for one in arrived.messages:
        if one.key in known:
            continue
        if (refusal := _refusal(one, view, channels)) is not None:
            failed.append((one.key, refusal))
        elif _is_fresh(one, view, channels):
            fresh.append(one)
    return Judged(copies, tuple(fresh), tuple(failed))


def _refusal(one: Arrival, view: View, channels: Mapping[str, Channel]) -> ExactlyOnceError | None:
    """Why a message that is not known cannot be processed, or not in this view."""
    if is_behind(one, view):
        return _too_early(one.key, view)
    if one.request is not None and all(document.request != one.request for document in view.requests):
        return request_unknown(one.request)
    received = one.place is not None and holds_place(channels, one.place)
    if one.place is not None and received and channels[one.place.channel].is_fork(one.place.number, one.envelope.id):
        return forked(one.envelope, one.place)
    return None


def _is_fresh(one: Arrival, view: View, channels: Mapping[str, Channel]) -> bool:
    """Whether a message that has neither entry nor record is none that was received, nor a reply that came."""
    if one.reply is not None:
        return one.reply.call in view.ledger.calls
    return one.place is None or not holds_place(channels, one.place)


def _too_early(key: str, view: View) -> TryAgainLater:
    return TryAgainLater(
        f"Message {key} is the reply to a call that is newer than what was read, version {view.ledger.version} of its entity. "
        "Give it back to its queue. If that does not help, the entity was restored from a backup: the reply gets parked."
    )


def request_unknown(request: str) -> RequestUnknown:
    """The error of a request that has no document."""
    return RequestUnknown(
        f"There is no request {request}: it was closed, or left open for so long that it was deleted. It changed nothing now. "
        "If it was not carried out before, open another one."
    )


def forked(envelope: Envelope, place: Place) -> ForkedChannel:
    """The error of a message whose number another one has."""
    return ForkedChannel(
        f"Message {key_of(envelope)} has the number {place.number} in channel {place.channel}, which another message has. It "
        f"was not handled. Was {envelope.source} restored from a backup, so that it gives out numbers a second time? Then "
        "renumber it, and send what was refused as new messages."
    )


def received(channel: Channel | None, envelope: Envelope, place: Place) -> Channel:
    """A message's channel once the message is received.

    Args:
        channel: before; None if this is its first message.
        envelope: of the message.
        place: of the message.

    Raises:
        ForkedChannel: another message has its number, as one of the same commit may.
        InvalidMessage: its number cannot be.
    """
    before = channel or Channel(place.channel, envelope.source)
    about = f"Message {key_of(envelope)} with the number {place.number} in channel {place.channel}"
    if before.source != envelope.source:
        raise InvalidMessage(
            f"{about} comes from {envelope.source}; the channel is of {before.source}. Correct the sender."
        )
    if holds(before.received, place.number):
        raise forked(envelope, place)
    if (refusal := before.refusal(place.number)) is not None:
        raise InvalidMessage(f"{about} is refused: {refusal}. Correct the sender, or send it as a new message.")
    return before.with_message(place.number, envelope.id)


def answered(calls: Calls, arrival: Arrival) -> Calls:
    """The calls whose replies are awaited once this reply is handled.

    Raises:
        InvalidMessage: its call has another reply, which shares the commit.
    """
    if arrival.reply is None:
        return calls
    if arrival.reply.call not in calls:
        raise InvalidMessage(
            f"Message {arrival.key} is another reply to call {arrival.reply.call}, which has one. Correct the sender."
        )
    return tuple(one for one in calls if one != arrival.reply.call)
