"""Whatever the world replies, one attempt is bounded, frozen, repeatable, and never publishes before its commit."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exactlyonce import ConfigurationError, Outbox
from exactlyonce.attempt import Again, Finished, Memory
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Begin, Begun, Effect, Together
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.effects.library import (
    DeleteStaged,
    FindProcessed,
    Found,
    FoundStaged,
    HasRecords,
    LoadStaged,
    Stage,
    WriteProcessed,
    Written,
)
from exactlyonce.effects.publish import PUBLISHED, Publish
from exactlyonce.errors import LedgerRemoved
from exactlyonce.records.library import StagedOutputs
from exactlyonce.values.frozen_json import Json
from tests.samples import breaking, deposit
from tests.unit.playing import AT, ENTITY, Script, attempt

MOST_EFFECTS = 13
"""As the docstring of `Outbox.attempt` states; two requests side by side count as two."""
PRESETS = (Outbox(), Outbox(window=2, inline_limit=400), Outbox.transaction_id(), Outbox.embedded())


STAGED: dict[str, StagedOutputs] = {}


def documents() -> list[Json | None]:
    """Absent, foreign, and after one to four messages, some of them marked, some staged."""
    found: list[Json | None] = [None, Json.of({"id": "a", "owner": "a", "total": 3})]
    for strategy in PRESETS:
        script = Script()
        for number in range(4):
            played = script.play(attempt(strategy, deposit(f"m-{number}", padding="x" * (number % 2) * 400)))
            found.append(script.document)
            STAGED.update((one.tx, one) for effect in played.all(Stage) for one in effect.documents)
        script.play(strategy.mark(ENTITY, played.finished.memory))
        found.append(script.document)
    return found


DOCUMENTS = documents()


def reply_to(effect: Effect[Any], draw: random.Random) -> Any:  # noqa: C901, PLR0911
    """Any reply this effect may get."""
    token = draw.choice([None, "0:-1#0", "0:-1#1", "0:-1#50", "1:-1#9"])
    match effect:
        case Together(first=first, second=second):
            return reply_to(first, draw), reply_to(second, draw)
        case Begin(messages=messages, more=more):
            return Begun(AT, tuple(f"tx-{draw.getrandbits(64):x}" for _ in range(len(messages) + more)))
        case LoadEntity():
            document = draw.choice(DOCUMENTS)
            loaded = Loaded(document, "etag" if document else None, 1_000 if document else 0, token)
            return draw.choices([loaded, BEHIND, UNKNOWN], [8, 1, 1])[0]
        case SaveEntity():
            return draw.choices([Saved("etag", token), Conflict(token), UNKNOWN], [8, 1, 1])[0]
        case FindProcessed(messages=messages):
            found = Found(frozenset(message for message in messages if draw.random() < 0.3), token)
            return draw.choices([found, BEHIND, UNKNOWN], [8, 1, 1])[0]
        case HasRecords():
            return draw.choice([True, False, False, UNKNOWN])
        case WriteProcessed():
            return draw.choices([Written("0:-1#60"), UNKNOWN], [8, 1])[0]
        case Stage():
            return draw.choices([Written("0:-1#61"), Conflict(token), UNKNOWN], [8, 1, 1])[0]
        case LoadStaged(transactions=transactions):
            found_staged = FoundStaged(tuple(STAGED[tx] for tx in transactions if tx in STAGED and draw.random() < 0.5))
            return draw.choices([found_staged, BEHIND, UNKNOWN], [8, 1, 1])[0]
        case Publish():
            return draw.choices([PUBLISHED, UNKNOWN], [8, 1])[0]
        case DeleteStaged():
            return None
    raise AssertionError(effect)


def requests(effect: Effect[Any]) -> int:
    return 2 if isinstance(effect, Together) else 1


def run(strategy: Outbox, numbers: list[int], seed: int) -> tuple[list[Effect[Any]], Finished | Again | LedgerRemoved]:
    draw = random.Random(seed)
    memory = Memory(published=frozenset({"tx-1"})) if seed % 2 else Memory()
    group = [breaking(f"m-{one}") if one == 9 else deposit(f"m-{one}", padding="x" * one * 100) for one in numbers]
    step, reply = attempt(strategy, *group, memory=memory), None
    effects: list[Effect[Any]] = []
    while True:
        try:
            effect = step.send(reply)
        except StopIteration as finished:
            return effects, finished.value
        except LedgerRemoved as error:
            return effects, error
        effects.append(effect)
        reply = reply_to(effect, draw)


GROUPS = st.lists(st.integers(0, 9), min_size=1, max_size=6)


@given(st.sampled_from(PRESETS), GROUPS, st.integers(0, 2**32))
@settings(max_examples=300, deadline=None)
def test_an_attempt_never_exceeds_its_stated_maximum(strategy: Outbox, group: list[int], seed: int) -> None:
    effects, _ = run(strategy, group[: strategy.group_limit], seed)
    assert sum(requests(effect) for effect in effects) <= MOST_EFFECTS


@given(st.sampled_from(PRESETS), GROUPS, st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_the_same_replies_lead_to_the_same_effects(strategy: Outbox, group: list[int], seed: int) -> None:
    effects, outcome = run(strategy, group, seed)
    repeated, outcome_repeated = run(strategy, group, seed)
    assert effects == repeated
    assert type(outcome) is type(outcome_repeated)


@given(st.sampled_from(PRESETS), GROUPS, st.integers(0, 2**32))
@settings(max_examples=300, deadline=None)
def test_new_outputs_are_only_published_after_the_save_that_commits_them(
    strategy: Outbox, group: list[int], seed: int
) -> None:
    effects, _ = run(strategy, group, seed)
    stored = {output for document in DOCUMENTS for output in owed(document)}
    stored |= {output.id for document in STAGED.values() for output in document.outputs}
    committed: set[str] = set()
    for effect in effects:
        if isinstance(effect, SaveEntity):
            committed |= owed(effect.document, all_of_them=True)
        if isinstance(effect, Publish):
            assert {output.id for output in effect.outputs} <= stored | committed


def owed(document: Json | None, *, all_of_them: bool = False) -> set[str]:
    """Ids of the outputs a document names, or of those that it owes inline."""
    ledger = document.value.get("_ledger") if document else None
    entries = ledger["entries"] if ledger else []
    if all_of_them:
        return {output["id"] for entry in entries for output in entry["outputs"]}
    return {output["id"] for entry in entries if isinstance(entry["owed"], list) for output in entry["owed"]}


def test_the_stated_maximum_is_reached() -> None:
    """A duplicate and a new message; everything is staged, nothing is marked, the window is full, and a find is stale."""
    strategy, script = Outbox(window=2, inline_limit=0), Script()
    staged: dict[str, StagedOutputs] = {}
    for number in (1, 2, 3, 4):
        played = script.play(attempt(strategy, deposit(f"m-{number}")))
        staged |= {document.tx: document for document in played.only(Stage).documents}
    replies = {
        FindProcessed: [Found(frozenset(), None)],
        LoadStaged: [FoundStaged((staged["tx-3"],)), FoundStaged((staged["tx-4"],))],
    }
    played = script.play(attempt(strategy, deposit("m-3"), deposit("m-5")), replies)
    assert sum(requests(effect) for effect in played.effects) == MOST_EFFECTS
    assert played.finished.processed == ("web/m-5",)


@pytest.mark.parametrize("settings_", [{"window": 0}, {"window": -1}, {"inline_limit": -1}])
def test_settings_that_cannot_work_are_refused(settings_: dict[str, int]) -> None:
    with pytest.raises(ConfigurationError):
        Outbox(**settings_)


def test_a_group_is_never_larger_than_the_window() -> None:
    assert Outbox().group_limit == 16
    assert Outbox.transaction_id().group_limit == 1
    assert Outbox.embedded().group_limit == 100
