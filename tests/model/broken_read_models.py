"""More of the zoo: what can go wrong with read models, and with clean-up; and variants that are as good as what ships."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from exactlyonce.effects.attempt import Again, Finished
from exactlyonce.effects.companions import DeleteCompanions, LoadCompanions, SaveBatch
from exactlyonce.effects.effect import NoAnswer, Step
from exactlyonce.effects.entity import PUBLISHED, Publish, Saved, SaveEntity
from exactlyonce.effects.library import CloseNumbers
from exactlyonce.protocols.resequencer import gaps
from exactlyonce.protocols.resequencer import protocol as resequencer
from exactlyonce.protocols.resequencer import release as resequencing
from exactlyonce.protocols.resequencer.protocol import Resequencer
from exactlyonce.protocols.resequencer.release import Release
from exactlyonce.protocols.steps import clean as cleaning
from exactlyonce.protocols.stream import replay as replaying
from exactlyonce.protocols.stream.replay import Replayed
from exactlyonce.records.outbox import Output, Place, Reception, place_of
from exactlyonce.values.envelope import EntityRef, Envelope
from tests.model.broken_companions import (
    BROKEN_COLOCATED,
    BROKEN_STREAMS,
    COLOCATED,
    GAPS_NOT_NOTICED,
    ONE,
    ONE_BY_ONE,
    STALE,
    STREAM,
    TWO,
    UPSERT,
    BrokenCompanions,
    scenario,
    upserted,
)
from tests.model.zoo import Broken
from verification.scenarios.companions import LOST, REBUILDING, SKIPPING
from verification.twins import mistakes
from verification.twins.alterations import asks, called, comes_to, deferred, ending, replaced, seeing, unasked
from verification.twins.mistakes import COMMIT_RELEASE
from verification.twins.modules import Patch, around
from verification.world.companions import ENTITY
from verification.world.scenario import UNLIMITED, Message, Scenario, scenario_of

READ_MODEL = scenario_of("resequencer", (), Resequencer())
FIRST, SECOND, THIRD = (Message(number=number) for number in (1, 2, 3))
FIRST_TWICE, SECOND_TWICE = Message(2, number=1), Message(2, number=2)
SHAKY = Message(number=1, raises=True)

ORDERED = scenario_of("resequencer, one order", (), Resequencer(order="time", max_wait=timedelta(days=100)))
A, B = Message(source="a", number=1, time=2), Message(source="b", number=1, time=2)
LATER = Message(source="a", number=1, time=3)
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


def not_kept(hold: Callable[..., None]) -> Callable[..., None]:
    """A message is noted as held, and has no document."""

    def twin(self: Any, *known: Any) -> None:
        hold(self, *known)
        self.create.pop()

    return twin


IGNORED_GAPS = around(Release._place, expected)

BROKEN_RESEQUENCERS: tuple[BrokenCompanions, ...] = (
    Broken(
        "held without a condition", (mistakes.held_without_condition("*"),), scenario(READ_MODEL, FIRST, SECOND),
        "serial_execution", 4,
    ),
    Broken(
        "released without a condition",
        (
            around(
                COMMIT_RELEASE,
                asks(
                    SaveBatch,
                    lambda save, _entity, release, _view: replace(save, etag="*") if release.processed else save,
                ),
            ),
        ),
        scenario(READ_MODEL, FIRST, SECOND), "no_garbage", 4,
    ),
    Broken(
        "messages that were released meanwhile taken for held ones",
        (around(Release.is_behind, replaced(lambda *_: False)),), scenario(READ_MODEL, FIRST_TWICE, SECOND),
        "raised AssertionError", 7,
    ),
    Broken(
        "a copy handled again", (IGNORED_GAPS, around(COMMIT_RELEASE, asks(SaveBatch, upserted))),
        scenario(READ_MODEL, FIRST_TWICE), "at_most_one_state_change", 5,
    ),
    Broken("a gap ignored", (IGNORED_GAPS,), scenario(READ_MODEL, FIRST, SECOND), "in_sequence", 2),
    Broken(
        "a message whose handler raises is skipped", (mistakes.SKIPPED_WHERE_HANDLERS_RAISE,),
        scenario(READ_MODEL, SHAKY, raising=1, nudges=UNLIMITED), "nothing_lost", 1,
    ),
    Broken(
        "an early message noted as held, and not kept", (around(Release._hold, not_kept),),
        scenario(READ_MODEL, FIRST, SECOND), "nothing_lost", 1,
    ),
    Broken(
        "two channels of one source taken for one", (around(Release._place, seeing(place_of=by_source)),),
        scenario(READ_MODEL, FIRST, Message(number=1, channel=2)),
        "no_failure: web/m1 is refused, though no other message has its number", 5,
    ),
    Broken(
        "what is owed is not published", (around(resequencer._pay, unasked(Publish, PUBLISHED)),),
        scenario(READ_MODEL, FIRST, crashes=1), "nothing_lost", 5,
    ),
    Broken(
        "published before the batch", (mistakes.PUBLISHED_FIRST_RELEASE,), scenario(READ_MODEL, FIRST),
        "no_ghost_output", 2,
    ),
    Broken(
        "numbers are closed before what they owe is published",
        (around(resequencer._received, deferred(Publish, PUBLISHED, until=CloseNumbers)),),
        replace(scenario(READ_MODEL, FIRST, crashes=1), books=True), "nothing_lost", 9,
    ),
    Broken(
        "conflict taken for a message that is held already",
        (
            around(
                COMMIT_RELEASE,
                ending(
                    SaveBatch,
                    lambda reply, _save, _entity, release, view: (
                        None if isinstance(reply, Saved) or release.processed else view.memory
                    ),
                ),
            ),
        ),
        scenario(READ_MODEL, FIRST, SECOND), "nothing_lost", 4,
    ),
    Broken(
        "silent sources not waited for",
        (
            around(
                resequencing.earliest, called(lambda heads, receptions, at, _: (heads, receptions, at, timedelta(0)))
            ),
        ),
        scenario(ORDERED, A, B, nudges=UNLIMITED), "in_order", 5,
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
        scenario(ORDERED, A, B, nudges=UNLIMITED), "in_order", 5,
    ),
    Broken(
        "a late message is not reported", (around(resequencing.is_late, replaced(lambda *_: False)),),
        scenario(ORDERED, LATER, B, nudges=UNLIMITED), "in_order: whether b/m1 is late is recorded wrongly", 5,
    ),
)  # fmt: skip


# More of the zoo: what can go wrong with looking after read models and streams if one guard is missing, and where it shows.


IMPATIENT = scenario_of("read model that skips", (), SKIPPING)
ASKING = scenario_of("read model that asks", (), REBUILDING)
ON_AND_ON = {"nudges": STALE}


def published(change: Callable[[Any], Output]) -> Patch:
    """Each output that is published again is changed so."""
    return around(
        replaying.replay, asks(Publish, lambda item, *_: replace(item, outputs=tuple(map(change, item.outputs))))
    )


def gap(first: int, last: int) -> Patch:
    """The gap is taken to be so much longer, or shorter, at its ends."""
    return around(
        gaps.missing_before,
        lambda missing: (
            lambda reception: tuple(
                number + more for number, more in zip(missing(reception), (first, last), strict=True)
            )
        ),
    )


def asked(*, missing: tuple[int, int], **budget: int) -> Scenario:
    """A stream of two messages that is asked for what is missing."""
    return replace(scenario(STREAM, ONE, ONE, replays=1, **budget), missing=missing)


BROKEN_REPLAYS: tuple[BrokenCompanions, ...] = (
    Broken(
        "a number skipped that has arrived meanwhile",
        (around(gaps.skip, asks(SaveBatch, lambda save, *_: replace(upserted(save), etag="*"))),),
        scenario(IMPATIENT, FIRST, SECOND, **ON_AND_ON), "serial_execution", 7,
    ),
    Broken(
        "a held message skipped with the gap before it", (gap(0, 1), around(gaps.skip, asks(SaveBatch, upserted))),
        scenario(IMPATIENT, SECOND, **ON_AND_ON), "nothing_lost", 4,
    ),
    Broken(
        "a part of the gap skipped without documents",
        (around(gaps.skip, asks(SaveBatch, lambda save, *_: replace(save, create=save.create[1:]))),),
        scenario(IMPATIENT, FIRST, THIRD, **ON_AND_ON), "nothing_lost: web/m0 is acknowledged, but was never committed",
        8,
    ),
    Broken(
        "asked for the numbers after the first that is missing", (gap(1, 0),), scenario(ASKING, *LOST, nudges=1),
        "nothing_lost", 7,
    ),
    Broken(
        "asked for all that is missing but the last", (gap(0, -1),), scenario(ASKING, *LOST, nudges=1), "nothing_lost",
        8,
    ),
    Broken(
        "asked for what was sent in another channel",
        (around(gaps.Request, called(lambda source, channel, *numbers: (source, f"another{channel}", *numbers))),),
        scenario(ASKING, *LOST, nudges=1), "nothing_lost", 5,
    ),
    Broken(
        "asked at the destination that the messages come through",
        (
            around(
                gaps._request,
                lambda request: (
                    lambda entity, rebuild, reception: replace(request(entity, rebuild, reception), destination="board")
                ),
            ),
        ),
        scenario(ASKING, *LOST, nudges=1), "nothing_lost", 5,
    ),
    Broken(
        "sent again under new ids", (published(lambda item: replace(item, id=f"again:{item.id}")),),
        scenario(STREAM, ONE, replays=1), "consistent_state_and_output", 6,
    ),
    Broken(
        "sent again with new numbers",
        (published(lambda item: replace(item, place=replace(item.place, number=item.place.number + 1))),),
        scenario(STREAM, ONE, replays=1), "consistent_state_and_output", 6,
    ),
    Broken(
        "sent again without numbers", (published(lambda item: replace(item, place=None)),),
        scenario(STREAM, ONE, replays=1), "consistent_state_and_output", 6,
    ),
    Broken(
        "sent again as handled on the newest state", (mistakes.ON_THE_NEWEST_STATE,), scenario(STREAM, ONE, replays=1),
        "raised NonDeterministicHandler", 5,
    ),
    Broken(
        "the first version not sent again",
        (
            around(
                replaying._sent,
                lambda sent: lambda work, version, *known: () if version == 1 else sent(work, version, *known),
            ),
        ),
        scenario(STREAM, ONE, crashes=1, replays=1), "nothing_lost: web/m0 was to be sent again", 5,
    ),
    Broken(
        "what follows the next whole state not sent again",
        (
            around(
                replaying.replay,
                comes_to(lambda done, *_: replace(done, following=None) if isinstance(done, Replayed) else done),
            ),
        ),
        scenario(STREAM, ONE, ONE, ONE, crashes=1, replays=1), "nothing_lost: web/m2 was to be sent again", 14,
    ),
    Broken(
        "an older view taken for the newest without a fence",
        (around(replaying.versions_of, unasked(SaveEntity, Saved("1", None))),),
        asked(missing=(2, 2), crashes=1, stale=STALE), "nothing_lost: web/m1 was to be sent again", 9,
    ),
    Broken(
        "the newest version that is missing not sent again",
        (
            around(
                replaying.versions_of,
                comes_to(lambda ends, *_: (ends[0], ends[0]) if isinstance(ends, tuple) else ends),
            ),
        ),
        asked(missing=(1, 2), crashes=1), "nothing_lost: web/m1 was to be sent again", 12,
    ),
)  # fmt: skip


# More of the zoo: what can go wrong with the clean-up of companions if one guard is missing, and where it shows.


def judged(kind: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Patch:
    """Whether companions of a kind may go is judged by other facts."""

    def wrapper(may_go: Callable[..., bool]) -> Callable[..., bool]:
        return lambda of, **facts: may_go(of, **(change(facts) if of == kind else facts))

    return around(cleaning.may_go, wrapper)


def last_entry(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Patch:
    """Which entry is the last that may go is judged by other facts."""
    return around(cleaning.last_entry, lambda shipped: lambda newest, **facts: shipped(newest, **change(facts)))


def as_listed(entity: Any, candidates: Any, _ledger: Any, memory: Any) -> Step[Any]:
    found = yield from LoadCompanions(entity, tuple(id for id, _ in candidates))
    if isinstance(found, NoAnswer):
        return Again(memory, "the candidates for clean-up could not be read")
    yield from DeleteCompanions(entity, candidates)
    return Finished(memory)


HELD_TOO = judged("numbered", lambda facts: {**facts, "unfinished": False})
ALL_NUMBERS = judged("numbered", lambda facts: {**facts, "last": facts["place"]})
WHATEVER_THE_ETAG = around(
    cleaning.clean_companions,
    asks(DeleteCompanions, lambda item, *_: replace(item, companions=tuple((id, "*") for id, _ in item.companions))),
)

EVENT_SOURCED = replace(scenario(STREAM, ONE, TWO, forgotten=1), sourced=True)

BROKEN_CLEANERS: tuple[BrokenCompanions, ...] = (
    Broken(
        "clean-up that deletes a record that owes",
        (judged("processed", lambda facts: {**facts, "unfinished": False}),),
        scenario(COLOCATED, ONE, crashes=1, forgotten=1), "at_most_one_state_change", 10,
    ),
    Broken(
        "clean-up that takes the list at its word", (around(cleaning.clean_companions, replaced(as_listed)),),
        scenario(COLOCATED, ONE, crashes=1, forgotten=1), "at_most_one_state_change", 10,
    ),
    Broken(
        "clean-up that cuts an interval of events in the middle",
        (last_entry(lambda facts: {**facts, "event_sourced": False}),), EVENT_SOURCED, "raised DamagedDocument", 14,
    ),
    Broken(
        "clean-up that takes a stream it does not see for one of ways back",
        (last_entry(lambda facts: {**facts, "snapshot_every": facts["snapshot_every"] or 1}),),
        replace(scenario(STREAM, ONE, TWO, forgotten=1, stale=STALE), sourced=True), "raised DamagedDocument", 14,
    ),
    Broken(
        "clean-up that deletes held messages", (HELD_TOO, ALL_NUMBERS),
        scenario(READ_MODEL, FIRST, SECOND, forgotten=1), "nothing_lost: number 2 of web1 is said to be held", 9,
    ),
)  # fmt: skip

"""Variant and reason."""


# Variants of the protocols of one partition that are as good as what ships, each with the reason.


IN_A_STREAM = scenario(STREAM, TWO, ONE, crashes=1, unknown=1, stale=STALE)
IN_A_READ_MODEL = scenario(READ_MODEL, FIRST_TWICE, SECOND, crashes=1, unknown=1, stale=STALE)

HARMLESS: Final[tuple[tuple[BrokenCompanions, str], ...]] = (
    (
        Broken(
            "clean-up that deletes whatever the ETag", (WHATEVER_THE_ETAG,),
            scenario(COLOCATED, TWO, crashes=1, unknown=1, forgotten=1),
        ),
        "What is finished with the ETag of the list stays so. The condition is for what comes after the retention.",
    ),
    (
        Broken(
            "clean-up that leaves what is held to the numbers", (HELD_TOO,),
            scenario(READ_MODEL, FIRST_TWICE, SECOND, crashes=1, forgotten=1),
        ),
        "What is held is not below the next number.",
    ),
    (
        Broken(
            "clean-up that leaves the numbers to what is held", (ALL_NUMBERS,),
            scenario(READ_MODEL, FIRST_TWICE, SECOND, crashes=1, forgotten=1),
        ),
        "What is not held is below the next number.",
    ),
    (
        Broken("an entry created by an upsert, read in a view as new as the state", (UPSERT, ONE_BY_ONE), IN_A_STREAM),
        "Who sees the state together with its entries misses none; its condition does the rest. What ships needs the conflict.",
    ),
    (
        Broken("gaps in a range not noticed", (GAPS_NOT_NOTICED,), IN_A_STREAM),
        "In a view as new as the state no entry is missing. It is for clean-up and for backups that the range is counted.",
    ),
    (
        Broken(
            "documents of numbers written over whatever is there", (around(COMMIT_RELEASE, asks(SaveBatch, upserted)),),
            IN_A_READ_MODEL,
        ),
        "Every batch has the read model's ETag for a condition, and no document of a number changes without it.",
    ),
)  # fmt: skip
"""Variant and reason."""

ZOO: Final[tuple[BrokenCompanions, ...]] = (
    *(*BROKEN_COLOCATED, *BROKEN_STREAMS, *BROKEN_RESEQUENCERS),
    *(*BROKEN_REPLAYS, *BROKEN_CLEANERS),
)
"""Of the protocols of one partition."""
