"""What a batch tells, to whoever runs a board: which numbers it gave up, and which messages came too late."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from exactlyonce.effects.companions import SaveBatch
from exactlyonce.records.companions import NumberedMessage
from verification.simulation.history import History

_STOPPED: Final = '"failing":"'


def note_numbers(effect: SaveBatch, history: History) -> Iterator[str]:
    """Note in the history what a batch that was accepted tells; what it shows is returned, as it is counted."""
    for one in effect.create:
        if isinstance(one, NumberedMessage):
            if one.held is not None:
                yield "message held"
            elif one.message is None:
                history.gave_up(_spot(effect, one))
                yield "number given up"
            elif one.late:
                yield history.came_late(_spot(effect, one))
    for one, _ in effect.replace:
        if isinstance(one, NumberedMessage):
            if one.late or _spot(effect, one) in history.skipped:
                yield history.came_late(_spot(effect, one))
            else:
                yield "held message handled"
    if _STOPPED in effect.document.text:
        yield "handler stops a sequence"


def _spot(effect: SaveBatch, one: NumberedMessage) -> tuple[str, str, int]:
    return effect.entity.id, one.source, one.order.number
