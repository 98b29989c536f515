"""More of the zoo: what can go wrong with the resequencer if one guard is missing, and where it shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.entity import PUBLISHED, Publish, Saved
from exactlyonce.effects.library import CloseNumbers
from exactlyonce.protocols.resequencer import protocol as resequencer
from exactlyonce.protocols.resequencer import release as resequencing
from exactlyonce.protocols.resequencer.protocol import Resequencer
from exactlyonce.protocols.resequencer.release import Release
from exactlyonce.records.outbox import Place, Reception, place_of
from exactlyonce.values.envelope import EntityRef, Envelope
from tests.model.broken_companions import BrokenCompanions, scenario, upserted
from tests.model.zoo import Broken
from verification.mutants.named import Mutation
from verification.twins.alterations import asks, called, deferred, ending, first, replaced, seeing
from verification.twins.modules import around
from verification.world.companions_handler import ENTITY
from verification.world.scenario import UNLIMITED, Message, scenario_of

READ_MODEL = scenario_of("resequencer", (), Resequencer())
FIRST, SECOND, THIRD = (Message(number=number) for number in (1, 2, 3))
FIRST_TWICE, SECOND_TWICE = Message(2, number=1), Message(2, number=2)
SHAKY = Message(number=1, raises=True)

ORDERED = scenario_of("resequencer, one order", (), Resequencer(order="time", max_wait=timedelta(days=100)))
A, B = Message(source="a", number=1, time=2), Message(source="b", number=1, time=2)
LATER = Message(source="a", number=1, time=3)
COMMIT = resequencer._commit
LAST_OF_ALL = chr(0x10FFFF)


def expected(place: Callable[..., None]) -> Callable[..., None]:
    """Whatever number comes is taken for the next one."""

    def twin(self: Any, envelope: Any) -> None:
        place(self, envelope)
        at = place_of(envelope, ENTITY, "a message of the model")
        self._receptions[at.channel] = Reception(at.channel, envelope.source, at.number)

    return twin


def by_source(envelope: Envelope, receiver: EntityRef, about: str) -> Place:
    """The place of a message, as if its source had one channel only."""
    return replace(place_of(envelope, receiver, about), channel=envelope.source)


def skipping(handled_next: Callable[..., bool]) -> Callable[..., bool]:
    """A message whose handler raises is passed over."""

    def twin(self: Any, channel: str, *known: Any) -> bool:
        stopped = len(self.stopped)
        more = handled_next(self, channel, *known)
        if len(self.stopped) == stopped:
            return more
        reception = self._receptions[channel]
        self._receptions[channel] = replace(reception, next=reception.next + 1, failing=None)
        return True

    return twin


def not_kept(hold: Callable[..., None]) -> Callable[..., None]:
    """A message is noted as held, and has no document."""

    def twin(self: Any, *known: Any) -> None:
        hold(self, *known)
        self.create.pop()

    return twin


IGNORED_GAPS = around(Release._place, expected)

BROKEN_RESEQUENCERS: tuple[BrokenCompanions, ...] = (
    Broken(
        "held without a condition",
        (
            around(
                COMMIT,
                asks(
                    SaveBatch,
                    lambda save, _entity, release, _view: save if release.processed else replace(save, etag="*"),
                ),
            ),
        ),
        scenario(READ_MODEL, FIRST, SECOND),
        "serial_execution",
    ),
    Broken(
        "released without a condition",
        (
            around(
                COMMIT,
                asks(
                    SaveBatch,
                    lambda save, _entity, release, _view: replace(save, etag="*") if release.processed else save,
                ),
            ),
        ),
        scenario(READ_MODEL, FIRST, SECOND),
        "no_garbage",
    ),
    Broken(
        "messages that were released meanwhile taken for held ones",
        (Mutation("read model: messages that were released meanwhile taken for held ones"),),
        scenario(READ_MODEL, FIRST_TWICE, SECOND),
        "raised AssertionError",
    ),
    Broken(
        "a copy handled again",
        (IGNORED_GAPS, around(COMMIT, asks(SaveBatch, upserted))),
        scenario(READ_MODEL, FIRST_TWICE),
        "at_most_one_state_change",
    ),
    Broken("a gap ignored", (IGNORED_GAPS,), scenario(READ_MODEL, FIRST, SECOND), "in_sequence"),
    Broken(
        "a message whose handler raises is skipped",
        (around(Release._handled_next, skipping),),
        scenario(READ_MODEL, SHAKY, raising=1, nudges=UNLIMITED),
        "nothing_lost",
    ),
    Broken(
        "an early message noted as held, and not kept",
        (around(Release._hold, not_kept),),
        scenario(READ_MODEL, FIRST, SECOND),
        "nothing_lost",
    ),
    Broken(
        "two channels of one source taken for one",
        (around(Release._place, seeing(place_of=by_source)),),
        scenario(READ_MODEL, FIRST, Message(number=1, channel=2)),
        "no_failure: web/m1 is refused, though no other message has its number",
    ),
    Broken(
        "what is owed is not published",
        (Mutation("read model: what is owed is not published"),),
        scenario(READ_MODEL, FIRST, crashes=1),
        "nothing_lost",
    ),
    Broken(
        "published before the batch",
        (
            around(
                COMMIT,
                first(lambda _entity, release, _view: Publish(tuple(release.outputs)) if release.outputs else None),
            ),
        ),
        scenario(READ_MODEL, FIRST),
        "no_ghost_output",
    ),
    Broken(
        "numbers are closed before what they owe is published",
        (around(resequencer._received, deferred(Publish, PUBLISHED, until=CloseNumbers)),),
        replace(scenario(READ_MODEL, FIRST, crashes=1), books=True),
        "nothing_lost",
    ),
    Broken(
        "conflict taken for a message that is held already",
        (
            around(
                COMMIT,
                ending(
                    SaveBatch,
                    lambda reply, _save, _entity, release, view: (
                        None if isinstance(reply, Saved) or release.processed else view.memory
                    ),
                ),
            ),
        ),
        scenario(READ_MODEL, FIRST, SECOND),
        "nothing_lost",
    ),
    Broken(
        "silent sources not waited for",
        (
            around(
                resequencing.earliest, called(lambda heads, receptions, at, _: (heads, receptions, at, timedelta(0)))
            ),
        ),
        scenario(ORDERED, A, B, nudges=UNLIMITED),
        "in_order",
    ),
    Broken(
        "a source that passed just this time not waited for",
        (
            around(
                resequencing.earliest,
                called(
                    lambda heads, receptions, at, most: (
                        heads,
                        tuple(
                            reception if reception.channel in heads else replace(reception, source=LAST_OF_ALL)
                            for reception in receptions
                        ),
                        at,
                        most,
                    )
                ),
            ),
        ),
        scenario(ORDERED, A, B, nudges=UNLIMITED),
        "in_order",
    ),
    Broken(
        "a late message is not reported",
        (around(resequencing.is_late, replaced(lambda *_: False)),),
        scenario(ORDERED, LATER, B, nudges=UNLIMITED),
        "in_order: whether b/m1 is late is recorded wrongly",
    ),
)
