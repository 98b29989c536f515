"""Random ways through a scenario, repeatable: what the shipped strategies do when nothing is wrong with them."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from exactlyonce.effects.companions import DeleteCompanions, ReplaceCompanions
from exactlyonce.effects.library import Found
from exactlyonce.records.companions import id_of
from verification.explorers.choice import explorer_of
from verification.explorers.explorer import Explorer
from verification.explorers.moves import Move
from verification.explorers.reductions import State
from verification.explorers.trace import Event, replayed
from verification.world.scenario import Scenario
from verification.world.store import position_of
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
    states = [explorer.start()]
    taken: list[Move] = []
    ends = {0}
    while len(states) <= longest and not explorer.is_good_end(states[-1]):
        before = states[-1]
        moves = [one for one in explorer.moves(before) if not _is_torn(one, ends) and not _is_in_part(one, before)]
        if not moves:
            break
        chosen = random.choice(moves)
        if chosen.violation is not None:
            raise AssertionError(f"{scenario.name}, seed {seed}: {chosen.violation}")
        taken.append(chosen)
        states.append(chosen.state)
        ends |= {library.end for library in chosen.state[0].libraries}
    return tuple(map(_as_taken, replayed(explorer, states), taken))


def _as_taken(event: Event, move: Move) -> Event:
    """The step, with the view that was chosen: others may lead to the same state, torn ones included."""
    if isinstance(move.what, Answer) and isinstance(event.reply, Found) and isinstance(move.what.reply, Found):
        return replace(event, reply=move.what.reply, said=move.what.said)
    return event


def _is_torn(move: Move, ends: set[int]) -> bool:
    """Whether a read sees a part of a batch: the model has it for stores that write one by one, and the service has not."""
    found = move.what.reply if isinstance(move.what, Answer) else None
    return isinstance(found, Found) and position_of(found.token) not in ends


def _is_in_part(move: Move, before: State) -> bool:
    """Whether a note of several companions takes effect in part, though it is one batch: because the rest is lost, or, if it
    comes late, because some have changed. The model has both for stores that write one by one."""
    note = move.write if move.slot < 0 else (move.begun or before[2][move.slot]).asks
    if (
        not isinstance(note, ReplaceCompanions | DeleteCompanions)
        or len(note.companions) == 1
        or move.state[0] is before[0]
    ):
        return False
    if move.slot >= 0:
        return isinstance(move.what, Answer) and move.what.cost is not None
    companions = before[0].partition.now
    noted = ((one if isinstance(one, str) else id_of(note.entity, one), etag) for one, etag in note.companions)
    return not all(id in companions and etag in (None, ANY, companions[id][1]) for id, etag in noted)
