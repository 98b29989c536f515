"""Which properties fell in reality: by the documents that were accepted, the queues, and what was acknowledged.

The judgement knows nothing of the model's. It reads the local Cosmos DB's log of accepted writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from exactlyonce.records.ledger import Ledger, read_entity
from exactlyonce.records.library import read_processed
from exactlyonce.stores.cosmos.layout import from_library
from exactlyonce.testing.guarantee import Commit, Facts, violations
from exactlyonce.testing.guarantee import nothing_lost as lost
from exactlyonce.values.identity import EntityRef
from verification.reproduction.placing import taken_from
from verification.reproduction.reality import ENTITIES, Reality
from verification.world.outbox_handler import grown, key_of_number
from verification.world.scenario import Scenario
from verification.world.store import entity_ref


def fallen(reality: Reality, scenario: Scenario, acknowledged: Iterable[tuple[int, int]]) -> frozenset[str]:
    """The names of the properties that do not hold.

    Args:
        reality: what happened.
        scenario: says how many entities there are.
        acknowledged: number of the entity and of the message, of every delivery that was acknowledged.
    """
    parked = {
        write.document["message"] for write in reality.writes if write.id.startswith("parked:") and write.document
    }
    commits = tuple(chain.from_iterable(_commits(reality, number) for number in range(scenario.entities)))
    done = ((entity_ref(entity).key, key_of_number(message)) for entity, message in acknowledged)
    facts = Facts(commits, reality.published, frozenset(one for one in done if one[1] not in parked))
    found = {violation.property for violation in (*violations(facts, drained=False), *lost(facts))}
    if not all(_is_serial(reality, number) for number in range(scenario.entities)):
        found.add("serial_execution")
    # What is refused because its channel was forgotten may be a copy: nobody knows, and an operator is told so.
    if not scenario.budget.forgettings and parked & {commit.message for commit in commits}:
        found.add("parked_is_unprocessed")
    return frozenset(found)


def _commits(reality: Reality, number: int) -> Iterator[Commit]:
    """Every commit that any accepted document records, also if it was overwritten later."""
    entity = entity_ref(number)
    for _, ledger in _versions(reality, entity):
        yield from (Commit.of(entity.key, entry) for entry in ledger.entries)
    for write in reality.writes:
        document = write.document
        if document is not None and document.get("kind") == "processed" and document["pk"] == entity.key:
            yield Commit.of(entity.key, read_processed(from_library(document)))


def _is_serial(reality: Reality, number: int) -> bool:
    """Whether each state follows from the one before by the messages that its ledger says were committed on it."""
    before, history, version = "", "", 0
    for found, ledger in _versions(reality, entity_ref(number)):
        new = [entry.message for entry in ledger.entries if entry.version > version]
        expected = history if new else before  # A tombstone keeps its history, and the next message starts anew.
        for message in new:
            expected = grown(expected, message)
        if found != expected:
            return False
        before, history, version = found, "" if ledger.deleted else found, ledger.version
    return True


def _versions(reality: Reality, entity: EntityRef) -> Iterator[tuple[str, Ledger]]:
    """History and ledger of every accepted version of an entity's document."""
    for write in reality.writes:
        if write.container == ENTITIES.container and write.id == entity.id and write.document is not None:
            document = taken_from(write.document)
            yield document.value.get("history", ""), read_entity(entity, document).ledger or Ledger()
