"""The zoo of kept messages: what could release one twice, after it was cancelled, or never."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from exactlyonce import Outbox
from exactlyonce.attempt import Again, Before
from exactlyonce.effects.effect import Step
from exactlyonce.effects.entity import Publish, SaveEntity
from exactlyonce.effects.library import DeleteStaged, LoadStaged, Stage, Written
from exactlyonce.protocols.outbox import clean as retention
from exactlyonce.protocols.outbox import draft as drafting
from exactlyonce.protocols.outbox import due
from exactlyonce.protocols.steps.load import load
from tests.model.careless import COMMIT, UNKNOWN_SAVE_TAKEN_FOR_DONE
from tests.model.zoo import Broken
from verification.scenarios.kept import SMALL
from verification.twins.alterations import asks, called, first, followed, unasked
from verification.twins.modules import around, constant
from verification.world.scenario import Scenario

WORLDS = {scenario.name.removeprefix("kept: "): scenario for scenario in SMALL}
LOST, GHOST = "nothing_lost", "no_ghost_output"


def _cancelling_nothing(draft: Any, entity: Any, arrival: Any, handled: Any, commit: Any) -> tuple[Any, ...]:
    return (draft, entity, arrival, replace(handled, cancelled=frozenset()), commit)


def _keeping_nothing(draft: Any, entity: Any, arrival: Any, handled: Any, commit: Any) -> tuple[Any, ...]:
    return (draft, entity, arrival, replace(handled, kept=()), commit)


def _only_its_own(work: Any, view: Any, draft: Any, *rest: Any) -> tuple[Any, ...]:
    """The ledger of a commit names what it keeps, and nothing of before."""
    own = tuple(item for item in draft.kept if item not in view.ledger.kept)
    return (work, view, draft._replace(kept=own), *rest)


def _told_nothing(*known: Any, **named: Any) -> Before:
    return replace(Before(*known, **named), kept=frozenset())


def _published(found: Any, *_: Any) -> Publish | None:
    outputs = tuple(output for document in getattr(found, "documents", ()) for output in document.outputs)
    return Publish(outputs) if outputs else None


def _deleted_first(_self: Any, work: Any, view: Any, *_: Any) -> DeleteStaged | None:
    kept = tuple(item.tx for item in view.ledger.kept)
    return DeleteStaged(work.entity, kept) if kept else None


def _load_without_kept(*arguments: Any) -> Step[Any]:
    view = yield from load(*arguments)
    return view if isinstance(view, Again) else replace(view, ledger=replace(view.ledger, kept=()))


TWINS: tuple[Broken[Scenario], ...] = (
    Broken(
        "kept: saved without a condition",
        (around(COMMIT, asks(SaveEntity, lambda save, *_: replace(save, etag="*"))),),
        WORLDS["cancelled, stale reads"],
        "serial_execution",
    ),
    Broken(
        "kept: what was released, or cancelled, is still kept",
        (around(drafting._added, called(_cancelling_nothing)),),
        WORLDS["released, repeated saves"],
        LOST,
    ),
    Broken(
        "kept: the commit does not name what it keeps",
        (around(drafting._added, called(_keeping_nothing)),),
        WORLDS["released, repeated saves"],
        LOST,
    ),
    Broken(
        "kept: the next commit forgets what is kept",
        (around(drafting.next_ledger, called(_only_its_own)),),
        WORLDS["the entity is deleted before it is due"],
        LOST,
    ),
    Broken(
        "kept: a handler is not told what was kept before it",
        (constant(drafting, "Before", _told_nothing),),
        WORLDS["cancelled in the commit that keeps"],
        "serial_execution",
    ),
    Broken(
        "kept: sent before the commit that releases it",
        (around(due.release, followed(LoadStaged, _published)),),
        WORLDS["cancelled, lost replies"],
        GHOST,
    ),
    Broken(
        "kept: a lost save is taken for done",
        (UNKNOWN_SAVE_TAKEN_FOR_DONE,),
        WORLDS["released, lost replies"],
        LOST,
    ),
)

NEVER_RELEASED: tuple[Broken[Scenario], ...] = (
    Broken(
        "kept: committed without being staged",
        (around(Outbox._commit, unasked(Stage, Written("0:-1#0"))),),
        WORLDS["released, repeated saves"],
    ),
    Broken(
        "kept: deleted before the commit that releases it",
        (around(COMMIT, first(_deleted_first)),),
        WORLDS["released, lost replies"],
    ),
    Broken(
        "kept: clean-up takes it for garbage",
        (constant(retention, "load", _load_without_kept),),
        WORLDS["cleaned up meanwhile"],
    ),
)
"""Nothing falls, for nothing wrong is sent; but a message stays kept for ever."""
