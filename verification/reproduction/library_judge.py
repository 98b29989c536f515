"""Which properties fell in reality: by the documents that were accepted, the queues, and what was acknowledged.

The judgement knows nothing of the model's. It reads the local Cosmos DB's log of accepted writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

from exactlyonce.drivers.overdue import TOO_OLD
from exactlyonce.errors import DatabaseRestored
from exactlyonce.records.ledger import Ledger, hash_in, split
from exactlyonce.records.library import ParkedMessage, read_parked
from exactlyonce.stores.cosmos.partition import from_library
from exactlyonce.testing.guarantee import Commit, Facts, at_most_one_state_change, violations
from exactlyonce.testing.guarantee import nothing_lost as lost
from exactlyonce.values.envelope import message_hash
from verification.reproduction.families import Deeds
from verification.reproduction.placing import taken_from
from verification.reproduction.reality import ENTITIES, Reality
from verification.world.outbox_handler import content_of, hash_of_release, keepers, keys_in
from verification.world.scenario import Scenario
from verification.world.store import entity_ref, history_of, ledger_of


def parked_in(reality: Reality) -> Iterator[ParkedMessage]:
    """Every message that was ever parked."""
    for write in reality.writes:
        if write.document is not None and write.document.get("kind") == "parked":
            yield read_parked(from_library(write.document))


def fallen(reality: Reality, scenario: Scenario, deeds: Sequence[Deeds]) -> frozenset[str]:
    """The names of the properties that do not hold.

    Args:
        reality: what happened.
        scenario: says what the messages are.
        deeds: what the processes came to.
    """
    return frozenset(_Judge(reality, scenario, deeds).fallen())


@dataclass(frozen=True, slots=True)
class _Version:
    """One accepted version of an entity.

    Attributes:
        history, ledger: in its document.
        restored: whether somebody put an earlier document back with it.
    """

    history: str
    ledger: Ledger
    restored: bool

    @property
    def marks(self) -> tuple[str, ...]:
        """The hashes of its marks."""
        return tuple(map(hash_in, split(self.ledger.marks)))


class _Judge:
    """Judges one run."""

    def __init__(self, reality: Reality, scenario: Scenario, deeds: Sequence[Deeds]) -> None:
        keys = keys_in(scenario)
        self._reality = reality
        self._scenario = scenario
        self._single = {key for key, copies in zip(keys, scenario.copies, strict=True) if copies == 1}
        self._names = {message_hash(key): key.partition("/")[2] for key in keys}
        self._releases = frozenset(map(hash_of_release, keepers(scenario)))
        self._kept = keepers(scenario)
        parked = tuple(parked_in(reality))
        self._parked = {item.message for item in parked}
        self._overdue = {
            item.envelope.value["data"]["message"] for item in parked if item.entity.startswith(f'["{TOO_OLD}')
        }
        self._failed = [item for deed in deeds for item in deed.failed]
        refused = {key for key, _ in self._failed}
        self._done = frozenset(
            (entity_ref(entity).key, keys[number])
            for deed in deeds
            for entity, number in deed.acknowledged
            if keys[number] not in self._parked | refused
        )
        self._versions = tuple(tuple(self._of(entity)) for entity in range(scenario.entities))

    def fallen(self) -> Iterator[str]:
        """The names of the properties, some of them more than once."""
        commits = tuple(item for entity in range(self._scenario.entities) for item in self._commits(entity))
        # Their places are in what the model's outputs say. Those that are sent again have no other.
        published = tuple(replace(output, place=None) for output in self._reality.published)
        facts = Facts(commits, published, self._done)
        if self._scenario.budget.put_back:  # What was undone is done anew, and says another thing then.
            found = (*at_most_one_state_change(commits), *lost(facts))
        else:
            found = (*violations(facts, drained=False), *lost(facts))
        excused = {message_hash(key) for key in self._overdue | self._kept}
        yield from (
            item.property
            for item in found
            if item.property != "nothing_lost" or self._is_lost(item.message, excused, commits)
        )
        if not all(map(self._is_serial, self._versions)):
            yield "serial_execution"
        # Of several copies one may be parked, and another one processed.
        if {message_hash(key) for key in self._parked & self._single} & {commit.message for commit in commits}:
            yield "parked_is_unprocessed"
        if not self._scenario.budget.put_back and any(map(self._drops, range(self._scenario.entities))):
            yield "nothing_lost"
        yield from self._wrongly_refused()

    def _drops(self, number: int) -> bool:
        """Whether an outbox has dropped outputs that were neither published nor put aside."""
        entity, versions = entity_ref(number), self._versions[number]
        last = {entry.tx for version in versions[-1:] for entry in version.ledger.outbox}
        outputs = (
            output
            for ledger in (version.ledger for version in versions)
            for entry in ledger.outbox
            if entry.tx not in last
            for output in entry.owed_outputs(entity, ledger.to, ledger.sequences)
        )
        published = {content_of(output)[0] for output in self._reality.published}
        return not {content_of(item)[0] for item in outputs} <= self._overdue | published

    def _is_lost(self, message: str, excused: set[str], commits: tuple[Commit, ...]) -> bool:
        """Whether a message was acknowledged and never committed, or owes outputs that nobody put aside or keeps."""
        return message not in excused or all(commit.message != message for commit in commits)

    def _wrongly_refused(self) -> Iterator[str]:
        """The properties that fell with a refusal. What is too old is refused in order."""
        ages = self._scenario.ages
        for _, error in self._failed:
            restored = isinstance(error, DatabaseRestored)
            if ages is None and not (restored and self._scenario.budget.emptied):
                yield "no_failure"
            elif ages is not None and restored and not ages.behind:
                yield f"raised {type(error).__name__}"

    def _commits(self, number: int) -> Iterator[Commit]:
        """Every commit that any accepted document records, also if it was overwritten later; but none that was undone since."""
        entity, versions = entity_ref(number), self._versions[number]
        undone = not self._scenario.budget.removed  # What was committed on an entity that was deleted stays so.
        last = max((place for place, item in enumerate(versions) if item.restored and undone), default=-1)
        known: frozenset[str] = frozenset()
        for place, one in enumerate(versions):
            new = [hash for hash in one.marks if hash not in known]
            known = known.union(new) if not one.restored else frozenset(one.marks)
            stays = place > last or self._lasts(versions[last], new)
            numbers = count(one.ledger.version - len(new) + 1)
            if one.restored or not stays:
                continue
            yield from (Commit(entity.key, hash, None, version) for hash, version in zip(new, numbers, strict=False))
            entries = (Commit.of_entry(entity, entry, one.ledger) for entry in one.ledger.outbox)
            yield from (commit for commit in entries if place > last or commit.message in new)

    def _lasts(self, restored: _Version, hashes: list[str]) -> bool:
        """Whether a document that was put back knows of messages."""
        history = restored.history.split(">")
        return all(self._names.get(hash) in history for hash in hashes)

    def _is_serial(self, versions: tuple[_Version, ...]) -> bool:
        """Whether each state follows from the one before by the messages that its marks say were committed on it."""
        before = _Version("", Ledger(), restored=False)
        for version in versions:
            if not version.restored:
                new = sorted(set(version.marks) - {*before.marks, *self._releases})
                released = set(version.marks) & self._releases - {*before.marks}
                grew = version.ledger.version - before.ledger.version
                # A tombstone keeps its history, and the next message starts anew.
                base = "" if before.ledger.deleted and grew else before.history
                handled = version.history.removeprefix(base).split(">")[1:]
                made = sorted(message_hash(f"web/{id}") for id in handled)
                if not version.history.startswith(base) or made != new or grew != len(new) + len(released):
                    return False
            before = version
        return True

    def _of(self, number: int) -> Iterator[_Version]:
        """Every accepted version of an entity's document, and its deletion by somebody else."""
        id = entity_ref(number).id
        for write in self._reality.writes:
            restored = write.sequence in self._reality.restored
            if write.container == ENTITIES.container and write.id == id and (write.document is not None or restored):
                document = None if write.document is None else taken_from(write.document)
                yield _Version(history_of(document), ledger_of(document), restored)
