"""Forgetting channels: clean-up for receivers with very many sources, most of which send once.

A channel is forgotten once it is old, if it has no gap. Sources begin fresh channels long before. From then on a message of a
channel that is not known, and began no later than the latest channel that was forgotten, is refused: it may be a copy. (After
Liskov, Shrira and Wroclawski: Efficient at-most-once messages based on synchronized clocks, 1991.) Clocks choose what is
forgotten. That nothing is applied twice rests on the ledger alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from exactlyonce.attempt import Again, Memory
from exactlyonce.effects.effect import Begin, NoAnswer, Step
from exactlyonce.effects.entity import Saved, SaveEntity
from exactlyonce.effects.library import DeleteChannels, FindChannels, WriteRecords
from exactlyonce.protocols.outbox.protocol import Outbox
from exactlyonce.protocols.steps.load import View, load
from exactlyonce.protocols.steps.save import start_over, with_ledger
from exactlyonce.records.channels import Channel, Channels, Forgotten, beginning, by_id
from exactlyonce.records.ledger import Ledger
from exactlyonce.records.library import ChannelDocument
from exactlyonce.values.identity import EntityRef


@dataclass(frozen=True, slots=True)
class Forgot:
    """Channels were judged.

    Attributes:
        channels: ids of those that were forgotten.
        memory: for whatever this process does next on the entity.
    """

    channels: tuple[str, ...]
    memory: Memory


class _Plan(NamedTuple):
    """What a clean-up does.

    Attributes:
        mark: beginning of the latest channel that is forgotten.
        forgotten: the channels that are.
        surviving: channels that began by the mark and stay.
        documents: names of those that go.
    """

    mark: int
    forgotten: tuple[str, ...]
    surviving: Channels
    documents: tuple[str, ...]


def forget_channels(entity: EntityRef, until: int, memory: Memory) -> Step[Forgot | Again]:
    """Forget the channels that are old, have no gap and are not in the ledger. At most 8 effects.

    Args:
        entity: that received through them.
        until: no channel is forgotten that began later, in milliseconds since 1970: the store's time less the age at which
            channels may be forgotten. A source whose clock is ahead would otherwise have all new channels refused.
        memory: what this process knows of the entity.

    Raises:
        StoredDataError: a document cannot be trusted; nothing was changed.
        ConfigurationError: the entity belongs to another protocol.
    """
    view = yield from load(entity, Outbox(), memory)
    if isinstance(view, Again):
        return view
    if view.document is None or not view.ledger.apart.channels:
        return Forgot((), view.memory)
    # Find the documents of all channels, at the ledger's session token. A view at that token has all that the ledger relies on.
    found = yield from FindChannels(entity, None, view.ledger.token)
    if isinstance(found, NoAnswer):
        return Again(view.memory, "the documents of the channels could not be read")
    plan = _planned(view.ledger, found.documents, until)
    if plan is None:
        return Forgot((), view.memory)
    outcome = yield from _forget(entity, view, plan)
    return outcome


def _forget(entity: EntityRef, view: View, plan: _Plan) -> Step[Forgot | Again]:
    assert view.document is not None  # noqa: S101  # Without one there is nothing to forget.
    # Begin a turn. Its id is fresh: under an id that two clean-ups share, documents of the one that lost would count.
    begun = yield from Begin(more=1)
    (turn,) = begun.given
    ledger = view.ledger
    forgotten = Forgotten(plan.mark, turn)
    token = ledger.token
    if plan.surviving:
        documents = tuple(ChannelDocument(entity.key, one, ledger.version, turn) for one in plan.surviving)
        # Write the channels that stay anew, under the turn. Before the save, after which their documents of before no longer
        # count.
        written = yield from WriteRecords(entity, documents)
        if isinstance(written, NoAnswer):
            return Again(view.memory, "whether the documents of the channels were written is not known")
        token = written.token
    ledger = replace(ledger, token=token, apart=replace(ledger.apart, forgotten=forgotten))
    # Save the mark and the turn, if the entity is unchanged. Before anything is deleted: from now on a message of an unknown
    # channel that began by the mark is refused, and every commit fails that does not know of it.
    saved = yield from SaveEntity(entity, with_ledger(view.document, ledger), view.etag)
    if not isinstance(saved, Saved):
        return start_over(view.memory, saved)
    # Delete the documents of channels that began by the mark, but for this turn's. They no longer count. What remains goes next
    # time.
    yield from DeleteChannels(entity, plan.documents)
    memory = replace(view.memory, entity_token=saved.token, library_token=token, saved=None)
    return Forgot(plan.forgotten, memory)


def _planned(ledger: Ledger, documents: Iterable[ChannelDocument], until: int) -> _Plan | None:
    """What is to be done; None if no channel can be forgotten."""
    inside = {channel.id for channel in ledger.channels}
    known = by_id(one.channel for one in documents if one.counts(ledger.apart) and one.channel.id not in inside)
    begun = {id: began for id in known if (began := beginning(id)) is not None}
    going = tuple(id for id, began in begun.items() if began <= until and _has_no_gap(known[id]))
    if not going:
        return None
    before = ledger.apart.forgotten
    mark = max(0 if before is None else before.mark, *(begun[id] for id in going))
    surviving = tuple(known[id] for id, began in begun.items() if began <= mark and id not in going)
    after = Forgotten(mark, "")
    return _Plan(mark, going, surviving, tuple(one.name for one in documents if after.includes(one.channel.id)))


def _has_no_gap(channel: Channel) -> bool:
    return len(channel.received) == 1 and channel.received[0][0] == 1
