"""The guarantee as pure predicates over records: what the tests, the model checker and the audit judge by.

Each predicate returns the violations it sees; none means that the property holds for these facts. The names are those of
the published TLA+ specification where it has the property.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from exactlyonce.records import Entry, Output, ProcessedRecord, digest


@dataclass(frozen=True, slots=True)
class Commit:
    """One message that changed one entity, as its entry or its record tells."""

    entity: str
    message: str
    tx: str
    version: int
    outputs: tuple[str, ...]
    digest: str

    @classmethod
    def of(cls, entity: str, told: Entry | ProcessedRecord) -> Commit:
        """From an entry of the entity's ledger, or from a processed record."""
        return cls(
            entity, told.message, told.tx, told.version, tuple(output.id for output in told.outputs), told.digest
        )


@dataclass(frozen=True, slots=True)
class Facts:
    """What was observed.

    Attributes:
        commits: from ledgers and records; the same commit may be told any number of times.
        published: every copy of every output that any queue ever accepted from these entities.
        acknowledged: entity and message of deliveries that are finished.
        owing: entity and message of commits whose outputs are not marked as published.
    """

    commits: tuple[Commit, ...] = ()
    published: tuple[Output, ...] = ()
    acknowledged: frozenset[tuple[str, str]] = frozenset()
    owing: frozenset[tuple[str, str]] = frozenset()


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
    )
    in_the_end = (nothing_lost(facts), termination(facts)) if drained else ()
    return tuple(violation for found in (*always, *in_the_end) for violation in found)


def at_most_one_state_change(commits: Iterable[Commit]) -> Iterator[Violation]:
    """A message appears at most once in an entity's history."""
    transactions: dict[tuple[str, str], set[str]] = defaultdict(set)
    for commit in commits:
        transactions[commit.entity, commit.message].add(commit.tx)
    for (entity, message), found in transactions.items():
        if len(found) > 1:
            yield Violation("at_most_one_state_change", entity, message, f"committed by {len(found)} transactions")


def versions_are_distinct(commits: Iterable[Commit]) -> Iterator[Violation]:
    """Each version of an entity comes from one message: no change was overwritten by another that did not know of it."""
    by_version: dict[tuple[str, int], set[str]] = defaultdict(set)
    for commit in commits:
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


def nothing_lost(facts: Facts) -> Iterator[Violation]:
    """Every acknowledged message changed its entity, and all its outputs were published at least once."""
    published = {output.id for output in facts.published}
    commits = {(commit.entity, commit.message): commit for commit in facts.commits}
    for entity, message in facts.acknowledged:
        commit = commits.get((entity, message))
        if commit is None:
            yield Violation("nothing_lost", entity, message, "acknowledged, but never committed")
        elif missing := set(commit.outputs) - published:
            yield Violation("nothing_lost", entity, message, f"{len(missing)} of its outputs were never published")


def termination(facts: Facts) -> Iterator[Violation]:
    """No commit stays half done."""
    for entity, message in facts.owing:
        yield Violation("termination", entity, message, "its outputs are still owed")
