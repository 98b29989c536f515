"""The guarantee as pure predicates over records: what the tests, the model checker and the audit judge by.

Each predicate returns the violations it sees; none means that the property holds for these facts. The names are those of
the published TLA+ specification where it has the property.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from exactlyonce.records.companions import ColocatedRecord, NumberedMessage, StreamEntry
from exactlyonce.records.ledger import Entry
from exactlyonce.records.library import ProcessedRecord
from exactlyonce.records.outputs import Output, digest

Place = tuple[str, int]
"""A sequence, by the source that sends it, and a number in it."""

Told = Entry | ProcessedRecord | ColocatedRecord | StreamEntry
"""What tells of a commit all that there is to tell."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One message that changed one entity, as one document tells. What it does not tell is None, or empty.

    Attributes:
        entity, message: which.
        tx, version: of the commit.
        outputs, digest: ids of the outputs, and of their content.
        place: of the message, if it was taken in a sequence.
    """

    entity: str
    message: str
    tx: str | None
    version: int | None
    outputs: tuple[str, ...] = ()
    digest: str | None = None
    place: Place | None = None

    @classmethod
    def of(cls, entity: str, told: Told | NumberedMessage) -> Commit:
        """From an entry of the entity's ledger or stream, from a record, or from the document of a number it has released.

        That of a number says neither which commit it was nor what was sent; an entry of the same commit may say so.
        """
        if isinstance(told, NumberedMessage):
            return cls(entity, told.message or "", None, None, place=(told.source, told.order.number))
        ids = tuple(output.id for output in told.outputs)
        return cls(entity, told.message, told.tx, told.version, ids, told.digest)


@dataclass(frozen=True, slots=True)
class Facts:
    """What was observed.

    Attributes:
        commits: from ledgers, records and companions; the same commit may be told any number of times.
        published: every copy of every output that any queue ever accepted from these entities.
        acknowledged: entity and message of deliveries that are finished.
        owing: entity and message of commits whose outputs are not marked as published.
        skipped: read model and place of messages that were given up on.
        late: read model and message of those that came after they were given up on.
    """

    commits: tuple[Commit, ...] = ()
    published: tuple[Output, ...] = ()
    acknowledged: frozenset[tuple[str, str]] = frozenset()
    owing: frozenset[tuple[str, str]] = frozenset()
    skipped: frozenset[tuple[str, Place]] = frozenset()
    late: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Violation:
    """One property that does not hold, where, and how it shows."""

    property: str
    entity: str
    message: str
    detail: str


def violations(facts: Facts, *, drained: bool) -> tuple[Violation, ...]:
    """All violations.

    Args:
        facts: what was observed.
        drained: the queue is empty and nothing is under way, so that what must happen eventually has to have happened.
    """
    always = (
        at_most_one_state_change(facts.commits),
        versions_are_distinct(facts.commits),
        at_most_one_output(facts.published),
        consistent_state_and_output(facts.commits, facts.published),
        no_ghost_output(facts.commits, facts.published),
        in_sequence(facts),
    )
    in_the_end = (nothing_lost(facts), termination(facts)) if drained else ()
    return tuple(violation for found in (*always, *in_the_end) for violation in found)


def at_most_one_state_change(commits: Iterable[Commit]) -> Iterator[Violation]:
    """A message appears at most once in an entity's history."""
    transactions: dict[tuple[str, str], set[str]] = defaultdict(set)
    places: dict[tuple[str, str], set[Place]] = defaultdict(set)
    for commit in commits:
        if commit.tx is not None:
            transactions[commit.entity, commit.message].add(commit.tx)
        if commit.place is not None:
            places[commit.entity, commit.message].add(commit.place)
    for where, found in (("by {} transactions", transactions), ("at {} places", places)):
        for (entity, message), distinct in found.items():
            if len(distinct) > 1:
                told = f"committed {where.format(len(distinct))}"
                yield Violation("at_most_one_state_change", entity, message, told)


def versions_are_distinct(commits: Iterable[Commit]) -> Iterator[Violation]:
    """Each version of an entity comes from one message: no change was overwritten by another that did not know of it."""
    by_version: dict[tuple[str, int], set[str]] = defaultdict(set)
    for commit in commits:
        if commit.version is not None:
            by_version[commit.entity, commit.version].add(commit.message)
    for (entity, version), messages in by_version.items():
        if len(messages) > 1:
            yield Violation(
                "versions_are_distinct", entity, min(messages), f"version {version} has {len(messages)} messages"
            )


def at_most_one_output(published: Iterable[Output]) -> Iterator[Violation]:
    """All copies published under one id have the same destination and content."""
    contents: dict[str, set[Output]] = defaultdict(set)
    for output in published:
        contents[output.id].add(output)
    for id, copies in contents.items():
        if len(copies) > 1:
            yield Violation("at_most_one_output", "", "", f"output {id} was published with {len(copies)} contents")


def consistent_state_and_output(commits: Iterable[Commit], published: Iterable[Output]) -> Iterator[Violation]:
    """What is published comes from the attempt whose state was committed."""
    by_id = {output.id: output for output in published}
    for commit in set(commits):
        if commit.outputs and all(id in by_id for id in commit.outputs):
            outputs = tuple(by_id[id] for id in commit.outputs)
            if digest(outputs) != commit.digest:
                yield Violation(
                    "consistent_state_and_output",
                    commit.entity,
                    commit.message,
                    "other outputs than the committed ones",
                )


def no_ghost_output(commits: Iterable[Commit], published: Iterable[Output]) -> Iterator[Violation]:
    """Nothing is published for an attempt that was not committed."""
    committed = {id for commit in commits for id in commit.outputs}
    for id in {output.id for output in published} - committed:
        yield Violation("no_ghost_output", "", "", f"output {id} belongs to no commit")


def in_sequence(facts: Facts) -> Iterator[Violation]:
    """A read model takes the messages of each source in the order of their numbers, and passes none over without telling."""
    taken: dict[tuple[str, str], dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for commit in facts.commits:
        if commit.place is not None:
            source, number = commit.place
            taken[commit.entity, source][number].add(commit.message)
    for (entity, source), numbers in taken.items():
        given_up = {place[1] for where, place in facts.skipped if (where, place[0]) == (entity, source)}
        for number in range(1, max(numbers) + 1):
            messages = numbers.get(number, set())
            if len(messages) + (number in given_up) != 1:
                told = ", and it was skipped" if number in given_up else ""
                detail = f"number {number} of {source} was taken from {len(messages)} messages{told}"
                yield Violation("in_sequence", entity, min(messages, default=""), detail)
    yield from _out_of_order(facts.commits)
    committed = {(commit.entity, commit.message) for commit in facts.commits}
    for entity, message in facts.late & committed:
        yield Violation("in_sequence", entity, message, "taken, and noted as too late")


def _out_of_order(commits: Iterable[Commit]) -> Iterator[Violation]:
    """Numbers that fall while the versions rise, as far as both are told."""
    placed = {
        (one.entity, one.place[0], one.version, one.place[1], one.message)
        for one in commits
        if one.place is not None and one.version is not None
    }
    for before, (entity, source, version, number, message) in pairwise(sorted(placed)):
        if before[:2] == (entity, source) and number < before[3]:
            detail = f"number {number} of {source} was taken by version {version}, after number {before[3]}"
            yield Violation("in_sequence", entity, message, detail)


def nothing_lost(facts: Facts) -> Iterator[Violation]:
    """Every acknowledged message changed its entity, unless it is told that it came too late, and all its outputs went out."""
    published = {output.id for output in facts.published}
    sent: dict[tuple[str, str], set[str]] = defaultdict(set)
    for commit in facts.commits:
        sent[commit.entity, commit.message].update(commit.outputs)
    for entity, message in facts.acknowledged - facts.late:
        outputs = sent.get((entity, message))
        if outputs is None:
            yield Violation("nothing_lost", entity, message, "acknowledged, but never committed")
        elif missing := outputs - published:
            yield Violation("nothing_lost", entity, message, f"{len(missing)} of its outputs were never published")


def termination(facts: Facts) -> Iterator[Violation]:
    """No commit stays half done."""
    for entity, message in facts.owing:
        yield Violation("termination", entity, message, "its outputs are still owed")
