"""The guarantee as pure predicates over records, for tests, the model checker and the audit.

Each predicate returns the violations; without any, the property holds for the facts. Properties of the published TLA+
specification keep their names. Messages are compared by hashes of their keys, since marks keep nothing else.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, product

from exactlyonce.records.companions import ColocatedRecord, NumberedMessage, StreamEntry
from exactlyonce.records.ledger import KEPT, Ledger, Mark
from exactlyonce.records.outbox import OutboxEntry, Output, digest
from exactlyonce.values.envelope import EntityRef, derived_id, message_hash

Position = tuple[str, int]
"""A channel, and a number in it."""

CommitRecord = ColocatedRecord | StreamEntry
"""A record with all attributes of a commit."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One message's change of one entity, as recorded in one document. Attributes absent from the document are None or empty.

    Attributes:
        entity: key of the entity.
        message: hash of the message's key.
        tx, version: transaction and entity version of the commit.
        outputs, digest: ids of the outputs, and hash of their content.
        place: channel and number of the message, if it was taken in a sequence.
    """

    entity: str
    message: str
    tx: str | None
    version: int | None
    outputs: tuple[str, ...] = ()
    digest: str | None = None
    place: Position | None = None

    @classmethod
    def of(cls, entity: str, record: CommitRecord | NumberedMessage) -> Commit:
        """The commit in a record, in an entry of a stream, or in the document of a released number.

        The document of a number has neither transaction nor outputs; an entry of the same commit may have them.
        """
        message = message_hash(record.message or "")
        if isinstance(record, NumberedMessage):
            return cls(entity, message, None, None, place=(record.channel, record.number))
        ids = tuple(output.id for output in record.outputs)
        return cls(entity, message, record.tx, record.version, ids, record.digest)

    @classmethod
    def of_mark(cls, entity: EntityRef, mark: Mark, version: int) -> Commit:
        """The commit in a mark. The ids of outputs derive from the mark; kept messages have marks of their own release."""
        ids = (derived_id(entity, mark.hash, index) for index, to in enumerate(mark.sent) if to != KEPT)
        return cls(entity.key, mark.hash, None, version, tuple(ids))

    @classmethod
    def of_entry(cls, entity: EntityRef, entry: OutboxEntry, ledger: Ledger) -> Commit:
        """The commit in an entry of a ledger's outbox, which has the complete outputs."""
        outputs = tuple(entry.owed_outputs(entity, ledger.to, ledger.sequences))
        ids = tuple(output.id for output in outputs)
        return cls(entity.key, entry.cause, entry.tx, None, ids, digest(outputs))


@dataclass(frozen=True, slots=True)
class Facts:
    """Observed facts.

    Attributes:
        commits: from ledgers, records and companions; a commit may appear several times.
        published: every copy of every output that a queue accepted from the entities.
        acknowledged: entity and message key of acknowledged deliveries.
        owing: entity and message hash of commits whose outputs are not known to be published.
        skipped: read model and place of skipped messages.
        late: read model and key of messages that arrived after being skipped.
        fallen: entity and version of ledgers that went back without a restore of the document.
        undone: commits before a restore of the document. They no longer count, but their outputs are out.
    """

    commits: tuple[Commit, ...] = ()
    published: tuple[Output, ...] = ()
    acknowledged: frozenset[tuple[str, str]] = frozenset()
    owing: frozenset[tuple[str, str]] = frozenset()
    skipped: frozenset[tuple[str, Position]] = frozenset()
    late: frozenset[tuple[str, str]] = frozenset()
    fallen: frozenset[tuple[str, int]] = frozenset()
    undone: tuple[Commit, ...] = ()


@dataclass(frozen=True, slots=True)
class Violation:
    """A property that does not hold, its entity and message, and the evidence.

    The predicates name a message by its hash, and `violations` by its key if the facts have the key.
    """

    property: str
    entity: str
    message: str
    detail: str


def violations(facts: Facts, *, drained: bool) -> tuple[Violation, ...]:
    """All violations.

    Args:
        facts: observed facts.
        drained: whether the queue is empty and nothing is under way, so that all that must happen eventually has happened.
    """
    always = (
        at_most_one_state_change(facts.commits),
        versions_are_distinct(facts.commits),
        versions_rise(facts),
        at_most_one_output(facts),
        consistent_state_and_output(facts),
        no_ghost_output(facts),
        in_sequence(facts),
    )
    in_the_end = (nothing_lost(facts), termination(facts)) if drained else ()
    violations = tuple(violation for broken in (*always, *in_the_end) for violation in broken)
    keys = {message_hash(key): key for _, key in facts.acknowledged | facts.late} if violations else {}
    return tuple(replace(item, message=keys.get(item.message, item.message)) for item in violations)


def at_most_one_state_change(commits: Iterable[Commit]) -> Iterator[Violation]:
    """A message appears at most once in an entity's history."""
    kinds: dict[tuple[str, str, str], set[object]] = defaultdict(set)
    for commit in commits:
        for kind, value in (
            ("by {} transactions", commit.tx),
            ("in {} versions", commit.version),
            ("at {} places", commit.place),
        ):
            if value is not None:
                kinds[kind, commit.entity, commit.message].add(value)
    for (kind, entity, message), distinct in kinds.items():
        if len(distinct) > 1:
            yield Violation("at_most_one_state_change", entity, message, f"committed {kind.format(len(distinct))}")


def versions_are_distinct(commits: Iterable[Commit]) -> Iterator[Violation]:
    """Each version of an entity comes from one message: no concurrent change was lost."""
    by_version: dict[tuple[str, int], set[str]] = defaultdict(set)
    for commit in commits:
        if commit.version is not None:
            by_version[commit.entity, commit.version].add(commit.message)
    for (entity, version), messages in by_version.items():
        if len(messages) > 1:
            detail = f"version {version} has {len(messages)} messages"
            yield Violation("versions_are_distinct", entity, min(messages), detail)


def versions_rise(facts: Facts) -> Iterator[Violation]:
    """A ledger never goes back to an earlier version, except by a restore of the document."""
    for entity, version in facts.fallen:
        yield Violation("versions_rise", entity, "", f"its ledger went back to version {version}")


def at_most_one_output(facts: Facts) -> Iterator[Violation]:
    """All copies published under one id have the same destination and content.

    A message with an undone commit may be handled again on another state: each of its commits has a content.
    """
    undone = {id for commit in facts.undone for id in commit.outputs}
    commits = {(id, item.tx) for item in (*facts.commits, *facts.undone) if item.tx is not None for id in item.outputs}
    times = Counter(id for id, _ in commits)
    for id, copies in _by_id(facts.published).items():
        if len(copies) > (times[id] if id in undone else 1):
            yield Violation("at_most_one_output", "", "", f"output {id} was published with {len(copies)} contents")


def consistent_state_and_output(facts: Facts) -> Iterator[Violation]:
    """Published outputs are those of the attempt whose state was committed."""
    by_id = _by_id(facts.published)
    for commit in {*facts.commits, *facts.undone}:
        if commit.digest is not None and commit.outputs and all(id in by_id for id in commit.outputs):
            sent = product(*(by_id[id] for id in commit.outputs))
            if all(digest(outputs) != commit.digest for outputs in sent):
                detail = "other outputs than the committed ones"
                yield Violation("consistent_state_and_output", commit.entity, commit.message, detail)


def no_ghost_output(facts: Facts) -> Iterator[Violation]:
    """No output of an uncommitted attempt is published."""
    committed = {id for commit in (*facts.commits, *facts.undone) for id in commit.outputs}
    for id in {output.id for output in facts.published} - committed:
        yield Violation("no_ghost_output", "", "", f"output {id} belongs to no commit")


def in_sequence(facts: Facts) -> Iterator[Violation]:
    """A read model takes the messages of each channel in the order of their numbers, and records each skipped message."""
    taken: dict[tuple[str, str], dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for commit in facts.commits:
        if commit.place is not None:
            channel, number = commit.place
            taken[commit.entity, channel][number].add(commit.message)
    for (entity, channel), numbers in taken.items():
        given_up = {place[1] for where, place in facts.skipped if (where, place[0]) == (entity, channel)}
        for number in range(1, max(numbers) + 1):
            messages = numbers.get(number, set())
            if len(messages) + (number in given_up) != 1:
                skipped = ", and it was skipped" if number in given_up else ""
                detail = f"number {number} of {channel} was taken from {len(messages)} messages{skipped}"
                yield Violation("in_sequence", entity, min(messages, default=""), detail)
    yield from _out_of_order(facts.commits)
    committed = {(commit.entity, commit.message) for commit in facts.commits}
    for entity, message in _hashed(facts.late) & committed:
        yield Violation("in_sequence", entity, message, "taken, and noted as too late")


def _out_of_order(commits: Iterable[Commit]) -> Iterator[Violation]:
    """Numbers that fall while versions rise, where both are known."""
    placed = {
        (commit.entity, commit.place[0], commit.version, commit.place[1], commit.message)
        for commit in commits
        if commit.place is not None and commit.version is not None
    }
    for before, (entity, channel, version, number, message) in pairwise(sorted(placed)):
        if before[:2] == (entity, channel) and number < before[3]:
            detail = f"number {number} of {channel} was taken by version {version}, after number {before[3]}"
            yield Violation("in_sequence", entity, message, detail)


def nothing_lost(facts: Facts) -> Iterator[Violation]:
    """Every acknowledged message changed its entity, or is recorded as too late, and all its outputs were published."""
    published = {output.id for output in facts.published}
    sent: dict[tuple[str, str], set[str]] = defaultdict(set)
    for commit in facts.commits:
        sent[commit.entity, commit.message].update(commit.outputs)
    for entity, message in _hashed(facts.acknowledged - facts.late):
        outputs = sent.get((entity, message))
        if outputs is None:
            yield Violation("nothing_lost", entity, message, "acknowledged, but never committed")
        elif missing := outputs - published:
            yield Violation("nothing_lost", entity, message, f"{len(missing)} of its outputs were never published")


def termination(facts: Facts) -> Iterator[Violation]:
    """No commit stays unpublished."""
    for entity, message in facts.owing:
        yield Violation("termination", entity, message, "its outputs are still owed")


def _by_id(published: Iterable[Output]) -> dict[str, set[Output]]:
    """The contents that were published under each id."""
    contents: dict[str, set[Output]] = defaultdict(set)
    for output in published:
        contents[output.id].add(output)
    return contents


def _hashed(messages: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Entities and hashes of messages, from entities and keys."""
    return {(entity, message_hash(key)) for entity, key in messages}
