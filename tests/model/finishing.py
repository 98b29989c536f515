"""Who finishes what a crash left: found by going on from there, with each of them in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final

from exactlyonce import Outbox
from exactlyonce.attempt import Settled
from exactlyonce.errors import ExactlyOnceError
from exactlyonce.protocols.steps.park import renew, requeue
from exactlyonce.records.ledger import Ledger
from exactlyonce.values.envelope import Envelope, key_of, message_hash
from verification.specification.driving import Crash
from verification.specification.leftovers import Leftover, is_finished, left_by
from verification.specification.occasions import cleaning_blobs, cleaning_staged, replaying, settling, sweeping
from verification.specification.pasts import SOURCE, channel_of, ordered
from verification.specification.playing import Occasion, Start, finish, message, play, process
from verification.specification.stored import Stored

Finisher = Callable[[Occasion, Stored], Stored]


def redeliver(occasion: Occasion, stored: Stored) -> Stored:
    """Whatever was not acknowledged is delivered again, and processed."""
    for one in _delivered(occasion, stored):
        stored = _deliver(occasion, stored, one)
    return stored


def one_more(occasion: Occasion, stored: Stored) -> Stored:
    """Another message on the entity."""
    return _deliver(occasion, stored, _next(occasion, stored, "next"))


def swept(occasion: Occasion, stored: Stored) -> Stored:
    """The sweeper comes along. It tends read models, too; streams owe nothing that it could find."""
    return finish(sweeping(occasion.preset), stored)[1]


def sent_again(occasion: Occasion, stored: Stored) -> Stored:
    """All that the stream sent is sent again."""
    following = 1 if occasion.strategy.name == "stream" else None
    while following is not None:
        replayed, stored = play(replaying(first=following), stored)
        following = replayed.following
    return stored


def settled(occasion: Occasion, stored: Stored) -> Stored:
    """The host gives up on the deliveries, and the settler decides about them."""
    for one in _delivered(occasion, stored):
        stored = _settled(settling(occasion.preset, one), stored, one)
    return stored


def cleaned(occasion: Occasion, stored: Stored) -> Stored:
    """Clean-up comes along, when all documents of kept messages and all blobs are old."""
    if stored.blobs:
        stored = play(cleaning_blobs(occasion.preset, stored), stored)[1]
    return play(cleaning_staged(stored), stored)[1] if stored.library else stored


def repeated(occasion: Occasion, stored: Stored) -> Stored:
    """The same again, by the settler or the operator that asked for it the first time."""
    start = occasion.start
    if start.function in {requeue, renew}:
        return play(start, stored)[1]
    for one in _given_up(start):
        stored = _settled(start, stored, one)
    return stored


def _given_up(start: Start) -> Iterator[Envelope]:
    """The message that a settler decides about."""
    if start.function.__name__ in ("settle", "put_aside"):
        yield from (one for one in start.arguments if isinstance(one, Envelope))


def _settled(start: Start, stored: Stored, one: Envelope) -> Stored:
    result, stored = play(start, stored)
    done = {key_of(one)} if isinstance(result, Settled) else set()
    return replace(stored, acknowledged=stored.acknowledged | done)


def _delivered(occasion: Occasion, stored: Stored) -> list[Envelope]:
    return [one for one in occasion.delivered if key_of(one) not in stored.acknowledged]


def _next(occasion: Occasion, stored: Stored, id: str) -> Envelope:
    """A message that nobody has sent yet; for a read model the next one of its first source."""
    if occasion.strategy.name != "resequencer":
        return message(id)
    receptions = {one.channel: one.next for one in (stored.ledger or Ledger()).receptions}
    return ordered(receptions.get(channel_of(SOURCE), 1), id=id)


def _deliver(occasion: Occasion, stored: Stored, one: Envelope) -> Stored:
    """Process one message in a process that knows nothing of the entity."""
    return process(occasion.strategy, stored, one)[1]


NOTHING: Final = Start(Outbox.attempt, ())
"""In place of a start that does not matter."""
FINISHERS: Final[dict[str, Finisher]] = {
    "redelivery": redeliver,
    "next message": one_more,
    "sweeper": swept,
    "settler": settled,
    "sending again": sent_again,
    "clean-up": cleaned,
    "the same again": repeated,
}
OF_DELIVERIES: Final = (redeliver, settled)
"""They know of messages that will be delivered again, and of nothing else."""

Finishes = dict[str, dict[str, dict[str, set[bool]]]]
"""For each kind of leftover, each finisher and each preset: whether it was gone afterwards, in the cases seen."""


def who_finishes(crashes: Iterable[Crash]) -> Finishes:
    """Go on from every crash, with each finisher in turn."""
    found: Finishes = {}
    played: dict[tuple[str, Occasion, Stored], Stored] = {}
    for occasion, stored in crashes:
        left = left_by((occasion, stored))
        for name, finisher in FINISHERS.items() if left else ():
            # Where it makes no difference how the attempt that crashed was started, one stands for all.
            start = occasion.start if finisher is repeated else NOTHING
            key = (name, replace(occasion, start=start, stored=stored), stored)
            if key not in played:
                played[key] = _played(finisher, key[1], stored)
            judged = _of_deliveries(left, occasion, stored) if finisher in OF_DELIVERIES else left
            for one in judged:
                presets = found.setdefault(one.kind, {}).setdefault(name, {})
                presets.setdefault(occasion.preset, set()).add(is_finished(one, played[key]))
    return found


def _of_deliveries(left: Iterable[Leftover], occasion: Occasion, stored: Stored) -> Iterator[Leftover]:
    """What is about messages that will be delivered again, or that an arrival of any message releases."""
    delivered = [key_of(one) for one in _delivered(occasion, stored)]
    keys = {*delivered, *map(message_hash, delivered)}  # An outbox has the hashes.
    return (one for one in left if one.message in keys or (keys and one.kind == "held, could be released"))


def _played(finisher: Finisher, occasion: Occasion, stored: Stored) -> Stored:
    """What is stored afterwards; as it was, if they could not go on."""
    try:
        return finisher(occasion, stored)
    except ExactlyOnceError:
        return stored
