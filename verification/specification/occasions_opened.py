"""How generators are started for requests that callers opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Final

from exactlyonce.attempt import Memory
from exactlyonce.protocols.outbox.requests import clean_requests, close_request, find_request, open_request
from exactlyonce.records.library import RequestDocument
from exactlyonce.values.envelope import Envelope
from verification.specification.occasions import sweeping
from verification.specification.pasts import FIRST, NEW, SECOND, THIRD
from verification.specification.playing import Occasion, Start, attempt, changes, finish, message, play, process
from verification.specification.settings import OUTBOX, STRATEGIES
from verification.specification.stored import ENTITY, TOKEN, Stored

OPENED: Final = replace(message("t0-0"), asked="t0-0", opened=f"{TOKEN}1")
"""Opened as the first of all, so it has the first id that is given out."""
QUIETLY_OPENED: Final = replace(message("t0-0", "quiet"), asked="t0-0", opened=f"{TOKEN}1")


def opened_attempts() -> Iterator[Occasion]:
    """Carry out requests that were opened, alone and with another message, after a crash, and once they were closed."""
    strategy = STRATEGIES[OUTBOX]
    for group in ((OPENED,), (QUIETLY_OPENED,), (OPENED, NEW)):
        first = group[0]
        asked = attempt(strategy, Memory(), *group)
        opened = play(opening(first), Stored())[1]
        later = process(strategy, opened, FIRST, SECOND, THIRD)[1]
        for stored in (opened, later, *changes(asked, opened)):
            for now in (stored, play(closing(first), stored)[1]):
                yield Occasion(OUTBOX, asked, now, group)
                yield Occasion(OUTBOX, attempt(strategy, Memory(), NEW), now, (NEW,))


def sweeps_of_requests() -> Iterator[Occasion]:
    """Sweep an entity that has carried out a request, after a crash."""
    opened = play(opening(OPENED), Stored())[1]
    for stored in changes(attempt(STRATEGIES[OUTBOX], Memory(), OPENED), opened):
        yield Occasion(OUTBOX, sweeping(OUTBOX), stored)


def openings() -> Iterator[Occasion]:
    """Open a request."""
    yield Occasion(OUTBOX, opening(OPENED), Stored())


def looks_at_requests() -> Iterator[Occasion]:
    """Look at a request."""
    start = Start(find_request, (ENTITY, OPENED.id, None, Memory()))
    return (Occasion(OUTBOX, start, stored) for stored in _requests())


def closings() -> Iterator[Occasion]:
    """Close a request."""
    return (Occasion(OUTBOX, closing(OPENED), stored) for stored in _requests())


def cleanings_of_requests() -> Iterator[Occasion]:
    """Delete requests that were left open."""
    for stored in _requests():
        found = stored.library_documents(RequestDocument)
        read = tuple((one.request, stored.library_etag(f"request:{one.request}")) for one in found)
        yield Occasion(OUTBOX, Start(clean_requests, (ENTITY, read, Memory())), stored)


def _requests() -> Iterator[Stored]:
    """What is stored before a request was opened, of one that is open, and of one that was carried out."""
    opened = play(opening(OPENED), Stored())[1]
    yield from (Stored(), opened, finish(attempt(STRATEGIES[OUTBOX], Memory(), OPENED), opened)[1])


def opening(one: Envelope) -> Start:
    """The opening of a request."""
    return Start(open_request, (ENTITY, _named_as(one), Memory()))


def closing(one: Envelope) -> Start:
    """The closing of a request."""
    return Start(close_request, (ENTITY, one.id, Memory()))


@cache
def _named_as(one: Envelope) -> Callable[[str, datetime], Envelope]:
    """Makes the envelope of a request. Without trouble, the first id that is given out is this one's."""

    def envelope(id: str, at: datetime) -> Envelope:
        return replace(one, id=id, time=at, asked=None, opened=None)

    return envelope
