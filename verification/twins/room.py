"""The outbox that ships, with ledgers so small that a few messages fill them."""

from __future__ import annotations

from functools import cache

from exactlyonce import Outbox
from exactlyonce.protocols.outbox import draft
from verification.twins.modules import Patch, constant, twin_of


def room_for(marks: int, answered: int) -> tuple[Patch, ...]:
    """What makes ledgers small.

    Args:
        marks: that a ledger keeps. With more, the next commit leaves half as many.
        answered: bytes of answers that it keeps.
    """
    return (
        constant(draft, "MOST_MARKS", marks),
        constant(draft, "MARKS_STAY", marks // 2),
        constant(draft, "MOST_ANSWERED", answered),
    )


@cache
def outbox(marks: int, answered: int) -> Outbox:
    """The outbox with such ledgers."""
    made: type[Outbox] = twin_of(f"room_for_{marks}", Outbox, *room_for(marks, answered))
    return made()
