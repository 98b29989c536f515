"""The log of one partition, batch by batch: what was there, and what was written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from exactlyonce.records.companions import ColocatedRecord, Companion, NumberedMessage, StreamEntry, read_companion
from exactlyonce.records.ledger import EntityView, Entry, Ledger, read_entity
from verification.reproduction.placing import taken_from
from verification.reproduction.reality import ENTITIES, Reality
from verification.world.companions_handler import ENTITY

Record = ColocatedRecord | StreamEntry | Entry
"""A record of a commit, of any protocol."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One accepted batch, or a write on its own.

    Attributes:
        before, after: the entity as it was, and as it is.
        known, held: its companions before and after, by id.
        written: companions that it wrote.
        saved: whether it saved the entity.
    """

    before: EntityView
    after: EntityView
    known: Mapping[str, Companion]
    held: Mapping[str, Companion]
    written: tuple[Companion, ...]
    saved: bool

    @property
    def made(self) -> tuple[Record, ...]:
        """The records of the messages that it commits, in their order."""
        if not self.saved:
            return ()
        old = {(entry.message, entry.tx) for entry in ledger_in(self.before).entries}
        found: list[Record] = [one for one in self.written if isinstance(one, ColocatedRecord | StreamEntry)]
        found += (one for one in ledger_in(self.after).entries if (one.message, one.tx) not in old)
        return tuple(sorted(found, key=lambda one: one.version))


def moments(reality: Reality) -> Iterator[Moment]:
    """What was accepted, in its order."""
    entity = read_entity(ENTITY, None)
    companions: dict[str, Companion] = {}
    accepted = (write for write in reality.writes if write.container == ENTITIES.container)
    for _, batch in groupby(accepted, key=lambda write: write.batch or -write.sequence):
        before, known, written, saved = entity, dict(companions), [], False
        for write in batch:
            if write.document is None:
                del companions[write.id]
            elif write.id == ENTITY.id:
                entity, saved = read_entity(ENTITY, taken_from(write.document)), True
            else:
                companions[write.id] = companion_of(write.document)
                written.append(companions[write.id])
        yield Moment(before, entity, known, dict(companions), tuple(written), saved)


def ledger_in(entity: EntityView) -> Ledger:
    """The ledger of an entity; an empty one if it has none."""
    return entity.ledger or Ledger()


def numbered(companions: Mapping[str, Companion]) -> tuple[NumberedMessage, ...]:
    """The documents of numbers among companions."""
    return tuple(one for one in companions.values() if isinstance(one, NumberedMessage))


def companion_of(document: Mapping[str, object]) -> Companion:
    """A companion as it is stored."""
    return read_companion(ENTITY, taken_from(document).value)
