"""More of the zoo: what can go wrong with looking after read models and streams if one guard is missing, and where it shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.entity import Publish, Saved, SaveEntity
from exactlyonce.protocols.resequencer import gaps
from exactlyonce.protocols.stream import replay as replaying
from exactlyonce.protocols.stream.replay import Replayed
from exactlyonce.records.outbox import Output
from tests.model.broken_companions import ONE, STALE, BrokenCompanions, scenario, upserted
from tests.model.broken_resequencers import FIRST, SECOND, THIRD
from tests.model.broken_streams import ON_THE_NEWEST_STATE, STREAM
from tests.model.zoo import Broken
from verification.scenarios.companions import LOST, REBUILDING, SKIPPING
from verification.twins.alterations import asks, called, comes_to, unasked
from verification.twins.modules import Patch, around
from verification.world.scenario import Scenario, scenario_of

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
        scenario(IMPATIENT, FIRST, SECOND, **ON_AND_ON),
        "serial_execution",
    ),
    Broken(
        "a held message skipped with the gap before it",
        (gap(0, 1), around(gaps.skip, asks(SaveBatch, upserted))),
        scenario(IMPATIENT, SECOND, **ON_AND_ON),
        "nothing_lost",
    ),
    Broken(
        "a part of the gap skipped without documents",
        (around(gaps.skip, asks(SaveBatch, lambda save, *_: replace(save, create=save.create[1:]))),),
        scenario(IMPATIENT, FIRST, THIRD, **ON_AND_ON),
        "nothing_lost: web/m0 is acknowledged, but was never committed",
    ),
    Broken(
        "asked for the numbers after the first that is missing",
        (gap(1, 0),),
        scenario(ASKING, *LOST, nudges=1),
        "nothing_lost",
    ),
    Broken(
        "asked for all that is missing but the last",
        (gap(0, -1),),
        scenario(ASKING, *LOST, nudges=1),
        "nothing_lost",
    ),
    Broken(
        "asked for what was sent in another channel",
        (around(gaps.Request, called(lambda source, channel, *numbers: (source, f"another{channel}", *numbers))),),
        scenario(ASKING, *LOST, nudges=1),
        "nothing_lost",
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
        scenario(ASKING, *LOST, nudges=1),
        "nothing_lost",
    ),
    Broken(
        "sent again under new ids",
        (published(lambda item: replace(item, id=f"again:{item.id}")),),
        scenario(STREAM, ONE, replays=1),
        "consistent_state_and_output",
    ),
    Broken(
        "sent again with new numbers",
        (published(lambda item: replace(item, place=replace(item.place, number=item.place.number + 1))),),
        scenario(STREAM, ONE, replays=1),
        "consistent_state_and_output",
    ),
    Broken(
        "sent again without numbers",
        (published(lambda item: replace(item, place=None)),),
        scenario(STREAM, ONE, replays=1),
        "consistent_state_and_output",
    ),
    Broken(
        "sent again as handled on the newest state",
        (ON_THE_NEWEST_STATE,),
        scenario(STREAM, ONE, replays=1),
        "raised NonDeterministicHandler",
    ),
    Broken(
        "the first version not sent again",
        (
            around(
                replaying._sent,
                lambda sent: lambda work, version, *known: () if version == 1 else sent(work, version, *known),
            ),
        ),
        scenario(STREAM, ONE, crashes=1, replays=1),
        "nothing_lost: web/m0 was to be sent again",
    ),
    Broken(
        "what follows the next whole state not sent again",
        (
            around(
                replaying.replay,
                comes_to(lambda done, *_: replace(done, following=None) if isinstance(done, Replayed) else done),
            ),
        ),
        scenario(STREAM, ONE, ONE, ONE, crashes=1, replays=1),
        "nothing_lost: web/m2 was to be sent again",
    ),
    Broken(
        "an older view taken for the newest without a fence",
        (around(replaying.versions_of, unasked(SaveEntity, Saved("1", None))),),
        asked(missing=(2, 2), crashes=1, stale=STALE),
        "nothing_lost: web/m1 was to be sent again",
    ),
    Broken(
        "the newest version that is missing not sent again",
        (
            around(
                replaying.versions_of,
                comes_to(lambda ends, *_: (ends[0], ends[0]) if isinstance(ends, tuple) else ends),
            ),
        ),
        asked(missing=(1, 2), crashes=1),
        "nothing_lost: web/m1 was to be sent again",
    ),
)
