"""From what goes wrong in a step of the model to what is asked of the local Cosmos DB and of the queues, for one request.

The SDK sends a request again by itself after a lost reply. So a write whose outcome stays unknown needs trouble for every send,
and one that is reported as a conflict with itself needs it for the first alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, cast

from exactlyonce.effects.companions import FindEntries, FindNumbered, FindOwing, HasCompanions, LoadCompanions
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Effect
from exactlyonce.effects.entity import LoadEntity, Publish
from exactlyonce.effects.library import FindPages, FindPagesAbove, HasPages, LoadStaged, ReadBooks
from exactlyonce.stores.cosmos.partition import LIBRARY_CONTAINER, MAX_BATCH_OPERATIONS
from verification.explorers.trace import BEST_EFFORT, Event
from verification.reproduction.correspondence import Log, TornViewError, log_of, lsn_of
from verification.reproduction.families import Family
from verification.reproduction.holdings import books_in, pays
from verification.reproduction.reality import Fate, Reality
from verification.world.store import Store

Manner = dict[str, Any]
"""How a reply goes wrong: a part of a fault rule."""

NO_REPLY: Final[tuple[Manner, ...]] = (
    {"action": "close"},
    {"action": "reset"},
    {"action": "status", "status": 408},
    {"action": "status", "status": 500},
)
"""Every one leaves the outcome open, whether or not the write was applied."""

REFUSAL: Final[tuple[Manner, ...]] = (
    *NO_REPLY,
    {"action": "status", "status": 429, "substatus": 3200, "retry_after_ms": 1},
    {"action": "status", "status": 449, "retry_after_ms": 1},
    {"action": "status", "status": 410, "substatus": 1007, "retry_after_ms": 1},
)
"""Nothing was applied, which the last send cannot say of those before it."""

SENT_AGAIN: Final[tuple[Manner, ...]] = ({"action": "close"}, {"action": "reset"}, {"action": "status", "status": 503})
"""What makes the SDK send a write again by itself."""

_READS: Final = (
    *(LoadEntity, FindPages, FindPagesAbove, HasPages, LoadStaged),
    *(LoadCompanions, FindEntries, FindNumbered, FindOwing, HasCompanions),
)


class Trouble:
    """Makes the next request go as it went in the model."""

    def __init__(self, reality: Reality, family: Family) -> None:
        self._reality = reality
        self._family = family
        self._step = 0

    def arrange(self, event: Event, asked: Effect[Any], entity: int, before: Store) -> tuple[Effect[Any], int | None]:
        """Arm what is needed; return the request to perform, and the rule that catches it if it is to arrive later."""
        self._step += 1
        if isinstance(asked, Publish):
            self._reality.fate = Fate(arrives=event.applied, answered=event.fault is None)
            if not event.applied:  # What is too old to be sent is not parked either.
                self._reality.arm(when="before", **self._manner(NO_REPLY))
        elif isinstance(asked, _READS):
            return self._read(event, asked, entity, before), None
        elif event.fault == "unknown":
            return asked, self.lose(event)
        elif event.fault == "repeated":
            self._reality.arm(when="after", times=1, **self._manner(SENT_AGAIN))
        return asked, None

    def of_books(self, event: Event, asked: ReadBooks, known: frozenset[str]) -> None:
        """Let a replica answer that has the books which prove what the model's have.

        Args:
            event: the step, whose reply says what is paid.

        Raises:
            TornViewError: no view has them: the model reads each book in a view of its own.
        """
        self._step += 1
        wanted = frozenset(map(self._family.names.transaction, event.reply))
        transactions = tuple(map(self._family.names.transaction, event.effect.transactions))  # type: ignore[union-attr]
        for lsn in range(self._reality.lsn[LIBRARY_CONTAINER], -1, -1):
            books = books_in(self._reality.documents_at(LIBRARY_CONTAINER, lsn), asked.books)
            if known | {tx for tx in transactions if pays(books, tx)} == wanted:
                self._reality.view(LIBRARY_CONTAINER, lsn)
                return
        if known != wanted:
            raise TornViewError(f"no view has all the books that {event} read")
        self._reality.arm(when="before", **self._manner(NO_REPLY))

    def lose(self, event: Event) -> int | None:
        """No reply to any send; the first one may be applied, now or later."""
        caught = None
        if event.delayed:
            caught = self._reality.arm(when="later", times=1, **self._manner(NO_REPLY))
        elif event.applied and not isinstance(event.effect, BEST_EFFORT):  # One that is lost is as good as none.
            self._reality.arm(when="after", times=1, **self._manner(NO_REPLY))
        self._reality.arm(when="before", **self._manner(REFUSAL))
        return caught

    def _manner(self, manners: tuple[Manner, ...]) -> Manner:
        return manners[self._step % len(manners)]

    def _read(self, event: Event, asked: Any, entity: int, before: Store) -> Effect[Any]:
        log = log_of(asked, entity)
        if event.reply is UNKNOWN:
            self._reality.arm(when="before", **self._manner(NO_REPLY))  # A refusal would be reported as one.
            return cast("Effect[Any]", asked)
        if event.reply is BEHIND:
            return self._behind(asked, log)
        position = self._family.position(event, entity, before)
        lsn = None if position is None else self._family.names.lsn_before(log, position)
        if lsn is not None:
            self._reality.view(log.container, lsn)
        return cast("Effect[Any]", asked)

    def _behind(self, asked: Any, log: Log) -> Effect[Any]:
        """Ask with a token that no replica has reached.

        Where the model leaves tokens out, a process asks with one that it might have.
        """
        needed = 0 if asked.token is None else lsn_of(asked.token)
        if not needed:
            ahead: Effect[Any] = replace(asked, token=f"0:-1#{self._reality.lsn[log.container] + MAX_BATCH_OPERATIONS}")
            return ahead
        self._reality.view(log.container, needed - 1)
        return cast("Effect[Any]", asked)
