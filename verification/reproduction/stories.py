"""Traces as small files: the lines of the story, from which the steps are found again.

A story survives changes of the explorer that an index into its moves would not; if its lines lead nowhere any more, that is
an error.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from verification.explorers.explorer import Explorer
from verification.explorers.moves import Move
from verification.explorers.reductions import State
from verification.explorers.trace import Event, replayed


@dataclass(frozen=True, slots=True)
class Story:
    """What is kept of a trace.

    Attributes:
        of: name of the twin or the scenario that it is of.
        violation: the property that falls with the last step; None if none does.
        lines: one for each step.
    """

    of: str
    violation: str | None
    lines: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> Story:
        """From a file."""
        kept = json.loads(path.read_text())
        return cls(kept["of"], kept["violation"], tuple(kept["lines"]))

    def write(self, path: Path) -> None:
        """To a file."""
        kept = {"of": self.of, "violation": self.violation, "lines": self.lines}
        path.write_text(json.dumps(kept, indent=2) + "\n")


def retraced(explorer: Explorer, story: Story) -> tuple[Event, ...]:
    """The steps of a story.

    Raises:
        LookupError: no way through the explorer's scenario has this story.
    """
    states = _way(explorer, [explorer.start()], story.lines, story.violation)
    if states is None:
        raise LookupError(f"No way through {explorer.scenario.name!r} has the story of {story.of!r}.")
    return replayed(explorer, states, story.violation)


def _way(explorer: Explorer, states: list[State], lines: Sequence[str], violation: str | None) -> list[State] | None:
    """The states on a way with this story; None if there is none."""
    if len(states) > len(lines):
        return states
    wanted = violation if len(states) == len(lines) else None
    line = lines[len(states) - 1]
    for move in explorer.moves(states[-1]):
        if move.violation == wanted and line.endswith(_said(move)):
            following = [*states, move.state]
            if str(replayed(explorer, following, wanted)[-1]) == line:
                found = _way(explorer, following, lines, violation)
                if found is not None:
                    return found
    return None


def _said(move: Move) -> str:
    return move.what if isinstance(move.what, str) else move.what.said
