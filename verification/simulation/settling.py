"""What decides about messages that are given up, and what an observer writes down of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from exactlyonce import Entity, Envelope
from exactlyonce.hosting.deliveries.poison import PoisonSettler
from exactlyonce.hosting.deliveries.settlement import UNEXPLAINED_ROUNDS, Outcome
from exactlyonce.hosting.deliveries.triggers import Delivered, envelope_of, id_of
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.testing.loop import VirtualClock
from exactlyonce.values.envelope import EntityRef, key_of
from verification.simulation.wire import Surrounding

_SLACK: Final = timedelta(hours=1)  # Messages grow older while they are settled.


@dataclass(frozen=True)
class NotedSettler(PoisonSettler):
    """A settler as others see it: it lets another one decide, and records in the history.

    Attributes:
        decides: the shipped settler, or a broken twin.
        world: whose history records it.
        settled_as: the entity type with a strategy of the library's own, whatever twin runs elsewhere.
        fails: whether a message may fail for its own sake.
        parked: called with the messages that were parked.
        outcomes: of the messages that were settled in a batch, by the ids of their copies, until somebody asks.
    """

    decides: PoisonSettler = field(kw_only=True)
    world: Surrounding = field(kw_only=True)
    settled_as: Callable[[Entity[Any]], Entity[Any]] = field(kw_only=True)
    fails: Callable[[str], bool] = field(kw_only=True)
    parked: Callable[[str, Envelope], None] = field(kw_only=True)
    outcomes: dict[str, Outcome] = field(kw_only=True, default_factory=dict)

    async def settle(self, entity: Entity[Any], message: Delivered, queue: str, *args: Any, **more: Any) -> Outcome:
        envelope = envelope_of(message)
        name = str(envelope.data.value["name"])
        history = self.world.history
        ref, key, copy = entity.ref_of(envelope), key_of(envelope), history.copies.only(name)
        before = self._parked_as(ref, key)
        outcome = await self.decides.settle(self.settled_as(entity), message, queue, *args, **more)
        self.outcomes[id_of(message)] = outcome
        self.world.weather.counted[f"given up: {outcome}"] += 1
        if outcome == "parked":
            decided = self._parked_as(ref, key) != before  # Else it was put aside, of which nothing is said.
            history.park(name, copy if decided else None)
            if not decided:
                self.world.weather.counted["put aside"] += 1
            elif not self.fails(name) and envelope.unexplained < UNEXPLAINED_ROUNDS and self._may_be_sent(envelope):
                reason = f"{name} was parked, though only its environment failed"
                history.convict("heals_by_itself", ref.id, reason)
            self.parked(name, envelope)
        return outcome

    def _may_be_sent(self, envelope: Envelope) -> bool:
        now = VirtualClock(self.world.loop).now()
        limit = self.settler.lifetimes().send_limit(now)
        time = envelope.judged_by
        return time is not None and now - time < limit - _SLACK

    def _parked_as(self, entity: EntityRef, key: str) -> str | None:
        """The ETag under which a message lies among those that were not processed."""
        return parked_etag(self.world.store, entity, key)


def parked_etag(store: MemoryStore, place: EntityRef, key: str) -> str | None:
    """The ETag of the parked document of a message; None if there is none, or a note that it is parked no longer."""
    partition = store.library.get(place.key)
    version = partition and partition.newest(f"parked:{key}")
    parked = version and version.document is not None and version.document.value["kind"] == "parked"
    return version.etag if version and parked else None
