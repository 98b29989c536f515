"""More of the zoo: twins that show only where several things come together, and variants as good as what is shipped."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from exactlyonce import Outbox
from exactlyonce.attempt import Again, key_of
from exactlyonce.effects.effect import Begin, Step
from exactlyonce.effects.entity import Conflict, SaveEntity
from exactlyonce.effects.library import FoundStaged, LoadStaged, WriteRecords
from exactlyonce.protocols.outbox import draft as drafting
from exactlyonce.protocols.outbox.judge import Arrival
from exactlyonce.records.library import processed_record
from tests.model.broken_strategies import PUBLISH_OWED, STAGED, TWO, staging
from tests.model.careless import COMMIT
from tests.model.zoo import Broken
from verification.mutants.named import Mutation
from verification.twins.alterations import asks, called, ending, first, instead
from verification.twins.modules import around
from verification.world.scenario import Budget, Scenario

STALE = replace(TWO, name="a stale load and a fresh record", budget=Budget(crashes=1, stale=1))
CLEANED = Scenario(
    "staged outputs during clean-up", (1,), Outbox.transaction_id(), budget=Budget(crashes=1, cleanings=1)
)
COPIES = Scenario("two copies in a group", (2,), Outbox(window=2), workers=1, group=2)
AT_ONCE = Scenario("two at once, staged", (1, 1), Outbox.transaction_id(), budget=Budget(crashes=1))


def records_first(_self: Any, work: Any, view: Any, draft: Any) -> WriteRecords | None:
    if not draft.flush:
        return None
    return WriteRecords(work.entity, tuple(processed_record(work.entity, entry) for entry in view.ledger.entries))


def copies(fresh: tuple[Arrival, ...], work: Any) -> tuple[Arrival, ...]:
    """The fresh messages, and all copies of each."""
    keys = {one.key for one in fresh}
    return tuple(Arrival(key_of(one), one, None) for one in work.messages if key_of(one) in keys)


def all_copies(begin: Begin, _self: Any, work: Any, _memory: Any) -> Begin:
    return Begin(tuple(key_of(one) for one in work.messages if key_of(one) in begin.messages))


def saved_over(save: SaveEntity, *_: Any) -> Step[Any]:
    saved = yield from save
    if isinstance(saved, Conflict):
        saved = yield from replace(save, etag="*")
    return saved


SUBTLE: tuple[Broken[Scenario], ...] = (
    Broken("record written before publish", (around(COMMIT, first(records_first)),), STALE, "nothing_lost"),
    Broken(
        "two copies of a message in one commit",
        (
            around(Outbox.attempt, asks(Begin, all_copies)),
            around(
                drafting.draft_commit,
                called(lambda limits, work, view, fresh, begun: (limits, work, view, copies(fresh, work), begun)),
            ),
        ),
        COPIES,
        "at_most_one_state_change",
    ),
    Broken(
        "token of a staging conflict dropped",
        (staging(lambda staged, token: token if isinstance(staged, Conflict) else getattr(staged, "token", staged)),),
        replace(STAGED, budget=Budget(crashes=1, repeated=1)),
        "nothing_lost",
    ),
    Broken(
        "a transaction id kept over retries",
        (
            around(
                drafting._entry,
                called(
                    lambda limits, handled, arrival, commit: (limits, handled, arrival, commit._replace(tx=arrival.key))
                ),
            ),
        ),
        CLEANED,
        "nothing_lost",
    ),
    Broken("acknowledged before publish", (Mutation("outbox: acknowledged before publish"),), TWO, "nothing_lost"),
    Broken(
        "conflict answered by saving over it",
        (around(COMMIT, instead(SaveEntity, saved_over)),),
        TWO,
        "serial_execution",
    ),
)


def gone(reply: Any, load: LoadStaged, _entity: Any, _entries: Any, view: Any) -> Again | None:
    missing = isinstance(reply, FoundStaged) and len(reply.documents) < len(load.transactions)
    return Again(view.memory, "staged outputs are gone") if missing else None


HARMLESS: tuple[Broken[Scenario], ...] = (
    Broken(
        "missing staged outputs lead back to load",
        (around(PUBLISH_OWED, ending(LoadStaged, gone)),),
        AT_ONCE,
    ),
)
"""Deletion follows the commit that drops the entry: an attempt that misses a document has an old view, and reloads."""
