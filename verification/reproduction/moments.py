"""The log of one partition, batch by batch: what was there, and what was written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from exactlyonce.records.companions import ColocatedRecord, Companion, NumberedMessage, StreamEntry, read_companion
from exactlyonce.records.ledger import EntityView, Ledger, read_entity
from exactlyonce.records.outbox import Output, digest
from exactlyonce.testing.guarantee import Commit
from verification.reproduction.placing import taken_from
from verification.reproduction.reality import ENTITIES, Reality
from verification.world.companions_handler import ENTITY


@dataclass(frozen=True, slots=True)
class Made:
    """What a batch says of one message that it commits.

    Attributes:
        message: its key.
        tx, version, at: of the commit.
        commit: as records have it.
        outputs: that it owes; None where a record has their digest only.
    """

    message: str
    tx: str
    version: int
    at: datetime
    commit: Commit
    outputs: tuple[Output, ...] | None = None

    def owes(self, outputs: tuple[Output, ...]) -> bool:
        """Whether these are its outputs."""
        if self.outputs is None:
            return self.commit.digest == digest(outputs)
        return [*map(_in_short, self.outputs)] == [*map(_in_short, outputs)]


def _in_short(output: Output) -> tuple[str, str]:
    """What an outbox keeps of an output: the place of the model's is in what they say."""
    return output.id, output.envelope.text


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

    def made(self, keys: Mapping[str, str]) -> tuple[Made, ...]:
        """What it says of the messages that it commits, in their order.

        Args:
            keys: of all messages, by their hashes.
        """
        if not self.saved:
            return ()
        records = (item for item in self.written if isinstance(item, ColocatedRecord | StreamEntry))
        found = [
            Made(record.message, record.tx, record.version, record.at, Commit.of(ENTITY.key, record))
            for record in records
        ]
        old, new = ledger_in(self.before), ledger_in(self.after)
        known = {entry.tx for entry in old.outbox}
        fresh = (entry for entry in new.outbox if entry.tx not in known)
        for version, entry in enumerate(fresh, old.version + 1):
            outputs = tuple(entry.owed_outputs(ENTITY, new.to, new.sequences))
            commit = Commit(ENTITY.key, entry.cause, entry.tx, version, tuple(output.id for output in outputs))
            found.append(Made(keys[entry.cause], entry.tx, version, entry.at, commit, outputs))
        return tuple(sorted(found, key=lambda item: item.version))


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
    return tuple(companion for companion in companions.values() if isinstance(companion, NumberedMessage))


def companion_of(document: Mapping[str, object]) -> Companion:
    """A companion as it is stored."""
    return read_companion(ENTITY, taken_from(document).value)
