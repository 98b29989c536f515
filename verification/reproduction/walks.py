"""Random ways through a scenario, repeatable: what the shipped strategies do when nothing is wrong with them."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from exactlyonce.effects.companions import DeleteCompanions, ReplaceCompanions
from exactlyonce.effects.effect import UNKNOWN
from exactlyonce.effects.library import DeletePages, FoundPages
from exactlyonce.records.companions import id_of
from verification.explorers.choice import explorer_of
from verification.explorers.explorer import Explorer
from verification.explorers.moves import Move, State
from verification.explorers.trace import Event, events_of
from verification.world.scenario import TICK, Scenario
from verification.world.store import StoredPage
from verification.world.writes import ANY, Answer

LONGEST: Final = 80
"""Most steps of a walk."""


def exact_explorer(scenario: Scenario) -> Explorer:
    """The explorer of a scenario; one that leaves nothing out of what is about to be saved in vain."""
    return Explorer(scenario, merge=False) if scenario.companions else explorer_of(scenario)


def walk(scenario: Scenario, seed: int, longest: int = LONGEST) -> tuple[Event, ...]:
    """A way from the start to a good end, if it comes to one within its length.

    Raises:
        AssertionError: a property falls on the way.
    """
    random = Random(seed)
    explorer = exact_explorer(scenario)
    start = state = explorer.start()
    taken: list[Move] = []
    while len(taken) < longest and not explorer.is_good_end(state):
        moves = [move for move in explorer.moves(state) if not _is_out_of_reach(move, state)]
        if not moves:
            break
        chosen = random.choice(moves)
        if chosen.violation is not None:
            raise AssertionError(f"{scenario.name}, seed {seed}: {chosen.violation}")
        taken.append(chosen)
        state = chosen.state
    return events_of(explorer, start, taken)


def _is_out_of_reach(move: Move, before: State) -> bool:
    """Whether the model allows a step for other stores, which the service does not take."""
    return _meets_expired(move, before) or _is_in_part(move, before) or _is_parked_unheard(move, before)


def _is_parked_unheard(move: Move, before: State) -> bool:
    """Whether what is too old is parked, the rest is sent, and the sender learns of neither: these are several requests."""
    return isinstance(move.what, Answer) and move.what.reply is UNKNOWN and move.state[0].overdue != before[0].overdue


def _meets_expired(move: Move, before: State) -> bool:
    """Whether a step shows or deletes a page whose time is over: in the model it may still be there."""
    seconds = before[0].now * int(TICK.total_seconds())
    writes = (item for library in before[0].libraries for _, item in library.writes if isinstance(item, StoredPage))
    over = {write for write in writes if write.expires is not None and write.expires <= seconds}
    asked, reply = _asked(move, before), move.what.reply if isinstance(move.what, Answer) else None
    shown = {item.page for item in over} & set(reply.pages if isinstance(reply, FoundPages) else ())
    deleted = {item.etag for item in over} & {
        etag for _, etag in (asked.pages if isinstance(asked, DeletePages) else ())
    }
    return bool(shown or deleted)


def _asked(move: Move, before: State) -> Any:
    if move.slot < 0:
        return move.write
    return (move.begun or before[2][move.slot]).asks


def _is_in_part(move: Move, before: State) -> bool:
    """Whether a note of several companions takes effect in part, though it is one batch: because the rest is lost, or, if it
    comes late, because some have changed. The model has both for stores that write one by one."""
    note = _asked(move, before)
    if (
        not isinstance(note, ReplaceCompanions | DeleteCompanions)
        or len(note.companions) == 1
        or move.state[0] is before[0]
    ):
        return False
    if move.slot >= 0:
        return isinstance(move.what, Answer) and move.what.cost is not None
    companions = before[0].partition.now
    noted = ((item if isinstance(item, str) else id_of(note.entity, item), etag) for item, etag in note.companions)
    return not all(id in companions and etag in (None, ANY, companions[id][1]) for id, etag in noted)
