"""The judge: each property convicts what breaks it, names it, and acquits everything else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone

import pytest

from exactlyonce.frozen_json import Json
from exactlyonce.identity import EntityRef
from exactlyonce.invariants import Commit, Facts, violations
from exactlyonce.records import Entry, Output, OutputRef, digest, processed_record

ONE, TWO = Output("o-1", "board", Json.of({"n": 1})), Output("o-2", "board", Json.of({"n": 2}), 5)
FIRST = Commit("e", "web/m-1", "tx-1", 1, ("o-1", "o-2"), digest((ONE, TWO)))
SECOND = Commit("e", "web/m-2", "tx-2", 2, (), digest(()))
GOOD = Facts((FIRST, SECOND), (ONE, TWO), frozenset({("e", "web/m-1"), ("e", "web/m-2")}))


def found(facts: Facts, *, drained: bool = True) -> set[tuple[str, str]]:
    return {(violation.property, violation.message) for violation in violations(facts, drained=drained)}


def test_a_good_history_is_acquitted() -> None:
    assert violations(GOOD, drained=True) == ()
    assert violations(Facts(), drained=True) == ()


def test_telling_and_publishing_the_same_any_number_of_times_is_no_crime() -> None:
    repeated = replace(GOOD, commits=GOOD.commits * 3, published=(TWO, ONE, TWO, ONE, ONE))
    assert violations(repeated, drained=True) == ()


def test_the_same_message_and_version_on_two_entities_is_no_crime() -> None:
    twin = replace(FIRST, entity="f", tx="tx-9", outputs=(), digest=digest(()))
    assert violations(replace(GOOD, commits=(*GOOD.commits, twin)), drained=True) == ()


BREAKS: dict[str, tuple[Callable[[Facts], Facts], set[tuple[str, str]]]] = {
    "committed twice": (
        lambda facts: replace(facts, commits=(*facts.commits, replace(SECOND, tx="tx-3", version=3))),
        {("at_most_one_state_change", "web/m-2")},
    ),
    "one version for two messages": (
        lambda facts: replace(facts, commits=(*facts.commits, replace(SECOND, message="web/m-3", tx="tx-3"))),
        {("versions_are_distinct", "web/m-2")},
    ),
    "two contents under one id": (
        lambda facts: replace(facts, published=(Output("o-1", "board", Json.of({"n": 7})), ONE, TWO)),
        {("at_most_one_output", "")},
    ),
    "two destinations under one id": (
        lambda facts: replace(facts, published=(replace(ONE, destination="archive"), ONE, TWO)),
        {("at_most_one_output", "")},
    ),
    "other outputs than committed": (
        lambda facts: replace(facts, published=(Output("o-1", "board", Json.of({"n": 7})), TWO)),
        {("consistent_state_and_output", "web/m-1")},
    ),
    "published without a commit": (
        lambda facts: replace(facts, published=(*facts.published, replace(ONE, id="o-9"))),
        {("no_ghost_output", "")},
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_what_must_never_happen_is_convicted_drained_or_not(name: str) -> None:
    break_, crime = BREAKS[name]
    assert found(break_(GOOD), drained=False) == crime
    assert found(break_(GOOD), drained=True) == crime


IN_THE_END: dict[str, tuple[Facts, set[tuple[str, str]]]] = {
    "acknowledged, never committed": (replace(GOOD, commits=(FIRST,)), {("nothing_lost", "web/m-2")}),
    "committed, never published": (replace(GOOD, published=()), {("nothing_lost", "web/m-1")}),
    "published in part": (replace(GOOD, published=(TWO,)), {("nothing_lost", "web/m-1")}),
    "still owing": (replace(GOOD, owing=frozenset({("e", "web/m-1")})), {("termination", "web/m-1")}),
}


@pytest.mark.parametrize("name", IN_THE_END)
def test_what_must_happen_eventually_is_convicted_once_the_queue_is_drained(name: str) -> None:
    facts, crime = IN_THE_END[name]
    assert found(facts, drained=False) == set()
    assert found(facts, drained=True) == crime


def test_entry_and_record_tell_the_same_commit() -> None:
    at = datetime(2026, 1, 1, tzinfo=timezone.utc)
    entry = Entry("web/m-1", "tx-1", 1, at, (OutputRef("o-1", "board"), OutputRef("o-2", "board")), FIRST.digest)
    ref = EntityRef("e", ("e",), "e")
    assert Commit.of("e", entry) == Commit.of("e", processed_record(ref, entry)) == FIRST


def test_a_violation_says_where_and_how_it_shows() -> None:
    (violation,) = violations(replace(GOOD, published=(TWO,)), drained=True)
    assert (violation.entity, violation.detail) == ("e", "1 of its outputs were never published")
