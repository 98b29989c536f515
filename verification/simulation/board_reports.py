"""What a batch reports to a board's operator: the numbers it gave up, and the messages that came too late."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from exactlyonce.effects.companions import SaveBatch
from exactlyonce.records.companions import NumberedMessage
from verification.simulation.history import History

_STOPPED: Final = '"failing":"'


def note_numbers(effect: SaveBatch, history: History) -> Iterator[str]:
    """Note in the history what an accepted batch reports; yields the names under which it is counted."""
    for item in effect.create:
        if isinstance(item, NumberedMessage):
            if item.held is not None:
                yield "message held"
            elif item.message is None:
                history.gave_up(_spot(effect, item))
                yield "number given up"
            elif item.late:
                yield history.came_late(_spot(effect, item))
    for one, _ in effect.replace:
        if isinstance(one, NumberedMessage):
            if one.late or _spot(effect, one) in history.skipped:
                yield history.came_late(_spot(effect, one))
            else:
                yield "held message handled"
    if _STOPPED in effect.document.text:
        yield "handler stops a channel"


def _spot(effect: SaveBatch, message: NumberedMessage) -> tuple[str, str, int]:
    return effect.entity.id, message.source, message.number
