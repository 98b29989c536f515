"""The guarantee: each property finds its own violations, names them, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone

import pytest

from exactlyonce.records.companions import ColocatedRecord, NumberedMessage, StreamEntry
from exactlyonce.records.ledger import KEPT, Ledger, Mark
from exactlyonce.records.outbox import OutboxEntry, Output, OutputRef, Place, digest, pending
from exactlyonce.testing.guarantee import Commit, Facts, violations
from exactlyonce.values.envelope import EntityRef, derived_id, message_hash
from exactlyonce.values.frozen_json import Json

AT = datetime(2026, 1, 1, tzinfo=timezone.utc)
ONE, TWO = Output("o-1", "board", Json.of({"n": 1})), Output("o-2", "board", Json.of({"n": 2}), 5)
FIRST = Commit("e", message_hash("web/m-1"), "tx-1", 1, ("o-1", "o-2"), digest((ONE, TWO)))
SECOND = Commit("e", message_hash("web/m-2"), "tx-2", 2, (), digest(()))
GOOD = Facts((FIRST, SECOND), (ONE, TWO), frozenset({("e", "web/m-1"), ("e", "web/m-2")}))


def found(facts: Facts, *, drained: bool = True) -> set[tuple[str, str]]:
    """The broken properties, and the keys of the messages: all that are named are acknowledged."""
    return {(violation.property, violation.message) for violation in violations(facts, drained=drained)}


def test_a_good_history_is_acquitted() -> None:
    assert violations(GOOD, drained=True) == ()
    assert violations(Facts(), drained=True) == ()


def test_repeated_records_and_copies_are_no_violation() -> None:
    repeated = replace(GOOD, commits=GOOD.commits * 3, published=(TWO, ONE, TWO, ONE, ONE))
    assert violations(repeated, drained=True) == ()


def test_the_same_message_and_version_on_two_entities_are_no_violation() -> None:
    twin = replace(FIRST, entity="f", tx="tx-9", outputs=(), digest=digest(()))
    assert violations(replace(GOOD, commits=(*GOOD.commits, twin)), drained=True) == ()


Crime = tuple[str, str]
BREAKS: dict[str, tuple[Facts, Crime]] = {
    "committed in two versions, by transactions that are not known": (
        replace(GOOD, commits=(*GOOD.commits, replace(SECOND, tx=None, version=3))),
        ("at_most_one_state_change", "web/m-2"),
    ),
    "committed twice": (
        replace(GOOD, commits=(*GOOD.commits, replace(SECOND, tx="tx-3", version=3))),
        ("at_most_one_state_change", "web/m-2"),
    ),
    "one version for two messages": (
        replace(GOOD, commits=(*GOOD.commits, replace(SECOND, message="~", tx="tx-3"))),
        ("versions_are_distinct", "web/m-2"),
    ),
    "a ledger that goes back": (replace(GOOD, fallen=frozenset({("e", 1)})), ("versions_rise", "")),
    "two contents under one id": (
        replace(GOOD, published=(Output("o-1", "board", Json.of({"n": 7})), ONE, TWO)),
        ("at_most_one_output", ""),
    ),
    "two destinations under one id": (
        replace(GOOD, published=(replace(ONE, destination="archive"), ONE, TWO)),
        ("at_most_one_output", ""),
    ),
    "other outputs than committed": (
        replace(GOOD, published=(Output("o-1", "board", Json.of({"n": 7})), TWO)),
        ("consistent_state_and_output", "web/m-1"),
    ),
    "published without a commit": (
        replace(GOOD, published=(*GOOD.published, replace(ONE, id="o-9"))),
        ("no_ghost_output", ""),
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_break_is_convicted_drained_or_not(name: str) -> None:
    facts, crime = BREAKS[name]
    assert found(facts, drained=False) == found(facts, drained=True) == {crime}


IN_THE_END: dict[str, tuple[Facts, Crime]] = {
    "acknowledged, never committed": (replace(GOOD, commits=(FIRST,)), ("nothing_lost", "web/m-2")),
    "committed, never published": (replace(GOOD, published=()), ("nothing_lost", "web/m-1")),
    "published in part": (replace(GOOD, published=(TWO,)), ("nothing_lost", "web/m-1")),
    "still owing": (replace(GOOD, owing=frozenset({("e", FIRST.message)})), ("termination", "web/m-1")),
}


@pytest.mark.parametrize("name", IN_THE_END)
def test_an_omission_is_convicted_once_the_queue_is_drained(name: str) -> None:
    facts, crime = IN_THE_END[name]
    assert found(facts, drained=False) == set()
    assert found(facts, drained=True) == {crime}


READ = Facts(
    tuple(
        Commit("r", message_hash(f"s/{number}"), f"tx-{number}", number, place=("s", number)) for number in (1, 2, 4)
    ),
    acknowledged=frozenset({("r", "s/1"), ("r", "s/2"), ("r", "s/3"), ("r", "s/4")}),
    skipped=frozenset({("r", ("s", 3))}),
    late=frozenset({("r", "s/3")}),
)
"""A read model that has taken three messages and skipped one, which came late."""
TAKEN = READ.commits[1]


def test_a_read_model_that_records_skipped_and_late_messages_is_acquitted() -> None:
    assert violations(READ, drained=True) == ()
    other_source = tuple(replace(commit, message="t", version=9, place=("t", 1)) for commit in READ.commits[:1])
    assert violations(replace(READ, commits=(*READ.commits, *other_source)), drained=True) == ()


def test_a_document_without_transaction_and_version_confirms_one_with_them() -> None:
    again = tuple(replace(commit, tx=None, version=None) for commit in READ.commits)
    assert violations(replace(READ, commits=(*READ.commits, *again)), drained=True) == ()


OUT_OF_SEQUENCE: dict[str, tuple[Facts, Crime]] = {
    "passed over untold": (replace(READ, skipped=frozenset()), ("in_sequence", "")),
    "one number for two messages": (
        replace(READ, commits=(*READ.commits, replace(TAKEN, message="~", tx="tx-9", version=None))),
        ("in_sequence", "s/2"),
    ),
    "one message at two numbers": (
        replace(READ, commits=(*READ.commits, replace(TAKEN, version=5, place=("s", 5)))),
        ("at_most_one_state_change", "s/2"),
    ),
    "taken though skipped": (replace(READ, skipped=READ.skipped | {("r", ("s", 2))}), ("in_sequence", "s/2")),
    "taken though late": (replace(READ, late=READ.late | {("r", "s/2")}), ("in_sequence", "s/2")),
    "a later number first": (
        replace(READ, commits=(READ.commits[0], READ.commits[2], replace(TAKEN, version=6))),
        ("in_sequence", "s/2"),
    ),
}


@pytest.mark.parametrize("name", OUT_OF_SEQUENCE)
def test_a_read_model_that_is_not_the_fold_of_its_sources_is_convicted(name: str) -> None:
    facts, crime = OUT_OF_SEQUENCE[name]
    assert found(facts, drained=False) == {crime}


def test_an_output_that_only_one_of_several_documents_names_has_to_be_published() -> None:
    silent = replace(FIRST, tx=None, version=None, outputs=(), digest=None)
    facts = replace(GOOD, commits=(*GOOD.commits, silent), published=(TWO,))
    assert found(facts, drained=True) == {("nothing_lost", "web/m-1")}


def test_records_and_entries_of_streams_give_the_same_commit() -> None:
    refs = (OutputRef("o-1", "board"), OutputRef("o-2", "board"))
    colocated = ColocatedRecord("e", "web/m-1", "tx-1", 1, AT, refs, FIRST.digest or "", None, None)
    streamed = StreamEntry("e", "web/m-1", "tx-1", 1, AT, Json("{}"), Json("{}"), True, refs, FIRST.digest or "")
    for record in (colocated, streamed):
        assert Commit.of("e", record) == FIRST


def test_a_mark_and_its_entry_name_the_same_outputs() -> None:
    ref, cause = EntityRef("e", ("e",), "e"), message_hash("web/m-1")
    mark = Commit.of_mark(ref, Mark(1, cause, "f", True, "abcd", f"-{KEPT}0"), 7)
    ids = (derived_id(ref, cause, 0), derived_id(ref, cause, 2))
    assert mark == Commit(ref.key, cause, None, 7, ids)
    outputs = tuple(replace(item, id=id) for item, id in zip((ONE, TWO), ids, strict=True))
    bare = OutboxEntry(cause, "tx-1", AT, 1)
    owed = tuple(
        pending(item, index, ref, bare, to=0, sequences=()) for item, index in zip(outputs, (0, 2), strict=True)
    )
    entry = replace(bare, outputs=owed)
    assert Commit.of_entry(ref, entry, Ledger(to=("board",))) == Commit(
        ref.key, cause, "tx-1", None, ids, digest(outputs)
    )


def test_the_document_of_a_number_gives_its_place_only() -> None:
    released = NumberedMessage("r", Place("c", "r", 2), "s", "s/2", AT, None)
    assert Commit.of("r", released) == Commit("r", message_hash("s/2"), None, None, place=("c", 2))


def test_a_violation_has_its_entity_and_the_evidence() -> None:
    (violation,) = violations(replace(GOOD, published=(TWO,)), drained=True)
    assert (violation.entity, violation.detail) == ("e", "1 of its outputs were never published")


def test_a_message_that_nobody_acknowledged_is_named_by_its_hash() -> None:
    twice = replace(GOOD, commits=(*GOOD.commits, replace(SECOND, tx="tx-3")), acknowledged=frozenset())
    assert found(twice, drained=False) == {("at_most_one_state_change", SECOND.message)}
