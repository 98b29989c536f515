"""An entity as it was loaded together with companions: what the protocols that keep their records beside it begin with."""

from __future__ import annotations

from dataclasses import dataclass, replace

from exactlyonce.attempt import Again, Memory
from exactlyonce.effects.companions import FoundCompanions, LoadCompanions
from exactlyonce.effects.effect import NoAnswer, Step, Together
from exactlyonce.effects.entity import LoadEntity
from exactlyonce.protocols.outbox.protocol import never_had_a_ledger
from exactlyonce.protocols.steps.ownership import require_own
from exactlyonce.records.companions import Companion
from exactlyonce.records.ledger import Ledger, Protocol, read_entity
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef


@dataclass(frozen=True, slots=True)
class Sight:
    """What one look showed.

    Attributes:
        document, etag: of the entity, as loaded; None if it was absent.
        body: the user's properties; None if absent or deleted.
        ledger: an empty one if absent or adopted.
        companions: those asked for that exist, each with its ETag, in a view of its own.
        memory: what this process knows, the token of the load included.
    """

    document: Json | None
    etag: str | None
    body: Json | None
    ledger: Ledger
    companions: tuple[tuple[Companion, str], ...]
    memory: Memory


def look_beside(entity: EntityRef, ids: tuple[str, ...], protocol: Protocol, memory: Memory) -> Step[Sight | Again]:
    """Load the entity and companions, side by side. At most 4 effects.

    The views may differ in age, and either may be stale: whoever goes on has to commit by a batch that creates a companion for
    each message and saves the entity as it was loaded. That fails if either view missed the message.

    Raises:
        StoredDataError: a document cannot be trusted.
        ConfigurationError: the entity belongs to another protocol.
    """
    # Load the entity, and look for the messages' companions. Either view may be old: the batch collides with what they
    # missed.
    loaded, found = yield from Together(
        LoadEntity(entity, memory.entity_token), LoadCompanions(entity, ids, memory.entity_token)
    )
    if isinstance(loaded, NoAnswer) or not isinstance(found, FoundCompanions):
        return Again(memory, "a read was not answered")
    memory = replace(memory, entity_token=loaded.token)
    stored = read_entity(entity, loaded.document)
    require_own(entity, stored.ledger, protocol)
    if stored.ledger is None:
        adoptable = yield from never_had_a_ledger(entity, loaded, protocol)
        if not adoptable:
            return Again(memory, "whether the entity ever had a ledger is not certain")
    ledger = replace(stored.ledger or Ledger(), type=entity.type, protocol=protocol)
    return Sight(loaded.document, loaded.etag, stored.body, ledger, found.companions, memory)
