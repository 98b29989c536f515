"""The zoo of numbers: what can go wrong with channels if one guard is missing, and where it shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from exactlyonce.effects.effect import NoAnswer
from exactlyonce.effects.entity import SaveEntity
from exactlyonce.effects.library import DeleteChannels, FindChannels, FoundChannels, WriteRecords, Written
from exactlyonce.protocols.outbox import draft as drafting
from exactlyonce.protocols.outbox import judge, look, owed
from exactlyonce.records.library import ChannelDocument
from tests.model.careless import (
    COMMIT,
    CONFLICT_TAKEN_FOR_A_COPY,
    TOKEN_NOT_CARRIED,
    UNKNOWN_SAVE_TAKEN_FOR_DONE,
    UNKNOWN_WRITE_TAKEN_FOR_DONE,
    WRITE_APART,
)
from tests.model.zoo import Broken
from verification.scenarios.numbers import A1, A2, B1, C1, NUMBERS, ONE_CHANNEL
from verification.twins.alterations import answers, asks, called, deferred, replaced, unasked
from verification.twins.modules import around
from verification.world.scenario import Budget, Scenario

LOOK_APART = look.look_apart

SAME: Scenario = Scenario("one channel", (2, 1), NUMBERS, places=(A1, A2), budget=Budget(crashes=1, unknown=1, stale=1))
OUT_OF_ORDER: Scenario = replace(SAME, name="the wrong order", places=(A2, A1))
LEAVING: Scenario = Scenario(
    "room for one channel",
    (2, 1),
    ONE_CHANNEL,
    workers=1,
    places=(A1, B1),
    budget=Budget(crashes=1, unknown=1, stale=1),
)
BACK: Scenario = Scenario(
    "a channel comes back",
    (2, 1, 1),
    ONE_CHANNEL,
    workers=1,
    places=(A1, B1, A2),
    budget=Budget(crashes=1, unknown=1, stale=1),
)
BACK_AGAIN: Scenario = replace(
    BACK,
    name="a channel comes back twice",
    copies=(1, 1, 2, 1),
    places=(A1, B1, A2, C1),
    budget=Budget(crashes=1, stale=1),
)


def _up_to_the_highest(view: Any) -> Any:
    """A view that takes all numbers up to the highest for received."""
    channels = tuple(replace(one, received=((1, one.received[-1][1]),)) for one in view.ledger.channels)
    return replace(view, ledger=replace(view.ledger, channels=channels))


def _first_of(reply: Any) -> Any:
    return reply if isinstance(reply, NoAnswer) else FoundChannels(reply.documents[:1])


def _deleting_first(shipped: Any) -> Any:
    """The documents of channels that come back go before the commit."""

    def commit(self: Any, work: Any, view: Any, draft: Any) -> Any:
        if view.channels:
            yield from DeleteChannels(work.entity, tuple(document.name for document in view.channels))
        result = yield from shipped(self, work, view, draft)
        return result

    return commit


TWINS: tuple[Broken[Scenario], ...] = (
    Broken(
        "numbers: saved without a condition",
        (around(COMMIT, asks(SaveEntity, lambda save, *_: replace(save, etag="*"))),),
        SAME,
        "serial_execution",
    ),
    Broken(
        "numbers: only the highest is known",
        (around(judge.judged, called(lambda arrived, view: (arrived, _up_to_the_highest(view)))),),
        OUT_OF_ORDER,
        "nothing_lost",
    ),
    Broken(
        "numbers: channels that left are not looked for",
        (around(judge.unknown_channels, replaced(lambda _arrived, _view: ())),),
        LEAVING,
        "at_most_one_state_change",
    ),
    Broken(
        "numbers: looked for in any view",
        (around(LOOK_APART, asks(FindChannels, lambda find, *_: replace(find, token=None))),),
        LEAVING,
        "at_most_one_state_change",
    ),
    Broken(
        "numbers: a read that was not answered found nothing",
        (
            around(
                LOOK_APART,
                answers(FindChannels, lambda reply, *_: FoundChannels(()) if isinstance(reply, NoAnswer) else reply),
            ),
        ),
        LEAVING,
        "at_most_one_state_change",
    ),
    Broken(
        "numbers: a channel leaves without a document",
        (around(WRITE_APART, unasked(WriteRecords, Written("0:-1#0"))),),
        LEAVING,
        "at_most_one_state_change",
    ),
    Broken(
        "numbers: documents are written after the commit",
        (around(COMMIT, deferred(WriteRecords, Written("0:-1#0"), SaveEntity)),),
        LEAVING,
        "at_most_one_state_change",
    ),
    Broken(
        "numbers: an unanswered write is taken for done",
        (UNKNOWN_WRITE_TAKEN_FOR_DONE,),
        LEAVING,
        "at_most_one_state_change",
    ),
    Broken(
        "numbers: the token is not carried",
        (TOKEN_NOT_CARRIED,),
        LEAVING,
        "at_most_one_state_change",
    ),
    Broken(
        "numbers: what is owed is not published before a channel leaves",
        (
            around(
                owed.publish_owed,
                lambda shipped: (
                    lambda entity, entries, view: shipped(
                        entity, () if entries is view.ledger.entries else entries, view
                    )
                ),
            ),
        ),
        BACK_AGAIN,
        "nothing_lost",
    ),
    Broken(
        "numbers: one document for each channel, written over",
        (
            around(
                drafting.records_of,
                lambda shipped: (
                    lambda *known: tuple(
                        replace(one, version=0) if isinstance(one, ChannelDocument) else one for one in shipped(*known)
                    )
                ),
            ),
        ),
        BACK_AGAIN,
        "at_most_one_state_change",
    ),
    Broken(
        "numbers: the first document found is believed",
        (around(LOOK_APART, answers(FindChannels, lambda reply, *_: _first_of(reply))),),
        BACK_AGAIN,
        "at_most_one_state_change",
    ),
    Broken(
        "numbers: documents are deleted before the commit",
        (around(COMMIT, _deleting_first),),
        BACK,
        "at_most_one_state_change",
    ),
    Broken(
        "numbers: entries that owe are dropped",
        (
            around(
                drafting.next_ledger,
                lambda shipped: (
                    lambda limits, view, draft, token: replace(
                        shipped(limits, view, draft, token), entries=draft.entries
                    )
                ),
            ),
        ),
        SAME,
        "nothing_lost",
    ),
    Broken(
        "numbers: what a copy owes is not published",
        (around(judge.judged, lambda shipped: lambda *known: replace(shipped(*known), copies=())),),
        SAME,
        "nothing_lost",
    ),
    Broken(
        "numbers: an unanswered save is taken for done",
        (UNKNOWN_SAVE_TAKEN_FOR_DONE,),
        SAME,
        "no_ghost_output",
    ),
    Broken(
        "numbers: a conflict is taken for a copy",
        (CONFLICT_TAKEN_FOR_A_COPY,),
        SAME,
        "nothing_lost",
    ),
)
