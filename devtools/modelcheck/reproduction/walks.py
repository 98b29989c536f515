"""Random ways through a scenario, repeatable: what the shipped strategies do when nothing is wrong with them."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from devtools.modelcheck.explorer import Explorer, Move
from devtools.modelcheck.scenarios import Scenario
from devtools.modelcheck.store import position_of
from devtools.modelcheck.trace import Event, replayed
from devtools.modelcheck.writes import Answer
from exactlyonce.effects import Found

LONGEST: Final = 80
"""Most steps of a walk."""


def walk(scenario: Scenario, seed: int, longest: int = LONGEST) -> tuple[Event, ...]:
    """A way from the start to a good end, if it comes to one within its length.

    Raises:
        AssertionError: a property falls on the way.
    """
    random = Random(seed)
    explorer = Explorer(scenario)
    states = [explorer.start()]
    taken: list[Move] = []
    ends = {0}
    while len(states) <= longest and not explorer.is_good_end(states[-1]):
        moves = [move for move in explorer.moves(states[-1]) if not _is_torn(move, ends)]
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
