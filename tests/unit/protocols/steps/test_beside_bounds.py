"""Whatever the world replies, attempts with records beside the entity are bounded, repeatable, and publish after the commit."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exactlyonce.attempt import Again, Before, Finished, Handled, Memory, Strategy, Work
from exactlyonce.effects.blobs import KEPT, WriteOnce
from exactlyonce.effects.companions import (
    FindEntries,
    FindOwing,
    FoundCompanions,
    HasCompanions,
    LoadCompanions,
    ReplaceCompanions,
    SaveBatch,
)
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Begin, Begun, Effect, Step, Together
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.effects.publish import PUBLISHED, Publish
from exactlyonce.errors import StoredDataError
from exactlyonce.handling.runner import Runner
from exactlyonce.protocols.colocated import Colocated
from exactlyonce.protocols.resequencer.protocol import Resequencer
from exactlyonce.protocols.stream.protocol import VersionStream
from exactlyonce.records.blobs import Blob
from exactlyonce.records.companions import ColocatedRecord, Companion, NumberedMessage, StreamEntry, id_of
from exactlyonce.records.ledger import read_entity
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef
from tests.asking import unhandled
from tests.samples import accounts, breaking, close, deposit
from tests.unit.boards import BOARD, Readers, scored
from tests.unit.playing import AT, ENTITY
from tests.unit.playing_beside import ABSENT, ORDERED, Beside

STRATEGIES: tuple[Strategy, ...] = (Colocated(), VersionStream(snapshot_every=3), Resequencer())
Outcome = Finished | Again | StoredDataError
RUNNER = Runner(accounts(), ENTITY, ORDERED)
READERS = Readers()


def handle(before: Before, envelope: Envelope) -> Handled:
    """Some messages write a blob as well."""
    handled = RUNNER(before, envelope)
    blob = Blob(f"{before.tx}/report", b"text", "text/plain")
    return replace(handled, blobs=(blob,)) if handled.outputs and envelope.id in ("m-2", "m-3") else handled


def message(strategy: Strategy, number: int) -> Envelope:
    if isinstance(strategy, Resequencer):
        return scored(number % 5 + 1, "st"[number // 5], answers=number % 2)
    special = {8: close, 9: breaking}
    return special[number](f"m-{number}") if number in special else deposit(f"m-{number}", answers=number % 3)


def attempt(strategy: Strategy, *messages: Envelope) -> Step[Finished | Again]:
    if isinstance(strategy, Resequencer):
        return strategy.attempt(READERS.work(*messages), Memory())
    return strategy.attempt(Work(ENTITY, messages, handle, ABSENT), Memory())


class Past:
    """What the store had at one time or another: documents, companions, and outputs that were committed."""

    def __init__(self, strategy: Strategy) -> None:
        self.entity: EntityRef = BOARD if isinstance(strategy, Resequencer) else ENTITY
        self.documents: list[Json | None] = [None, Json.of({"id": self.entity.id, "owner": "a"})]
        self.companions: dict[str, list[Companion]] = {}
        self.committed: set[str] = set()
        for order in ((4, 0, 1, 6, 2, 3, 5), (8, 0, 9, 1, 2)):
            script = Readers() if self.entity is BOARD else Beside()
            for number in order:
                script.play(attempt(strategy, message(strategy, number)), {Publish: UNKNOWN})
                self._remember(script)
                script.play(attempt(strategy, message(strategy, number)))
                self._remember(script)

    def _remember(self, script: Beside) -> None:
        self.documents.append(script.document)
        self.committed |= set(outputs_in(self.entity, script.document))
        for companion in script.companions:
            self.companions.setdefault(id_of(self.entity, companion), []).append(companion)
            self.committed |= set(outputs_of(companion))


def outputs_in(entity: EntityRef, document: Json | None) -> Iterator[str]:
    ledger = read_entity(entity, document).ledger
    return (output.id for entry in (ledger.entries if ledger else ()) for output in entry.outputs)


def outputs_of(companion: Companion) -> tuple[str, ...]:
    return () if isinstance(companion, NumberedMessage) else tuple(output.id for output in companion.outputs)


PASTS = {strategy: Past(strategy) for strategy in STRATEGIES}


def reply_to(effect: Effect[Any], past: Past, draw: random.Random) -> Any:  # noqa: C901, PLR0911
    """Any reply this effect may get."""
    token = draw.choice([None, "0:-1#1", "0:-1#50"])

    def mostly(reply: Any, *others: Any) -> Any:
        return draw.choices([reply, *others], [8, *(1 for _ in others)])[0]

    match effect:
        case Together(first=first, second=second):
            return reply_to(first, past, draw), reply_to(second, past, draw)
        case Begin(messages=messages, more=more):
            return Begun(AT, tuple(f"tx-{draw.getrandbits(64):x}" for _ in range(len(messages) + more)))
        case LoadEntity():
            document = draw.choice(past.documents)
            return mostly(Loaded(document, "etag" if document else None, 1_000, token), BEHIND, UNKNOWN)
        case LoadCompanions(ids=ids):
            there = [draw.choice(past.companions[id]) for id in ids if id in past.companions]
            return mostly(
                FoundCompanions(tuple((one, "etag") for one in there if draw.random() < 0.8)), BEHIND, UNKNOWN
            )
        case FindEntries(ranges=ranges):
            every = (one for many in past.companions.values() for one in many if isinstance(one, StreamEntry))
            by_version = {one.version: one for one in every if any(one.version in range(a, b + 1) for a, b in ranges)}
            there = [by_version[version] for version in sorted(by_version)]
            return mostly(FoundCompanions(tuple((one, "etag") for one in there)), BEHIND, UNKNOWN)
        case FindOwing():
            records = (one for many in past.companions.values() for one in many if isinstance(one, ColocatedRecord))
            return mostly(FoundCompanions(tuple((one, "etag") for one in records)), BEHIND, UNKNOWN)
        case HasCompanions():
            return draw.choice([True, False, False, UNKNOWN])
        case SaveBatch() | SaveEntity():
            return mostly(Saved("etag", token), Conflict(token), UNKNOWN)
        case WriteOnce():
            return mostly(KEPT, UNKNOWN)
        case Publish():
            return mostly(PUBLISHED, UNKNOWN)
        case ReplaceCompanions():
            return None
    raise AssertionError(effect)


def run(make: Callable[[], Step[Any]], past: Past, seed: int) -> tuple[list[Effect[Any]], Outcome]:
    draw, step, reply = random.Random(seed), make(), None
    effects: list[Effect[Any]] = []
    while True:
        try:
            effect = step.send(reply)
        except StopIteration as finished:
            return effects, finished.value
        except StoredDataError as error:
            return effects, error
        effects.append(effect)
        reply = reply_to(effect, past, draw)


def requests(effects: list[Effect[Any]]) -> int:
    return sum(2 if isinstance(effect, Together) else 1 for effect in effects)


def stated(step: Callable[..., Any]) -> int:
    """The maximum that a docstring promises."""
    found = re.search(r"At most (\d+) effects", step.__doc__ or "")
    assert found
    return int(found[1])


GROUPS = st.lists(st.integers(0, 9), min_size=1, max_size=6)
ANY = (st.sampled_from(STRATEGIES), GROUPS, st.integers(0, 2**32))


@given(*ANY)
@settings(max_examples=200, deadline=None)
def test_an_attempt_never_exceeds_its_stated_maximum(strategy: Strategy, group: list[int], seed: int) -> None:
    messages = [message(strategy, number) for number in group]
    effects, _ = run(lambda: attempt(strategy, *messages), PASTS[strategy], seed)
    assert requests(effects) <= stated(type(strategy).attempt)


@given(*ANY)
@settings(max_examples=100, deadline=None)
def test_the_same_replies_lead_to_the_same_effects(strategy: Strategy, group: list[int], seed: int) -> None:
    messages = [message(strategy, number) for number in group]
    one, other = (run(lambda: attempt(strategy, *messages), PASTS[strategy], seed) for _ in range(2))
    assert one[0] == other[0]
    assert type(one[1]) is type(other[1])


@given(*ANY)
@settings(max_examples=300, deadline=None)
def test_new_outputs_are_only_published_after_the_batch_that_commits_them(
    strategy: Strategy, group: list[int], seed: int
) -> None:
    past = PASTS[strategy]
    messages = [message(strategy, number) for number in group]
    effects, _ = run(lambda: attempt(strategy, *messages), past, seed)
    committed: set[str] = set()
    for effect in effects:
        if isinstance(effect, SaveBatch):
            committed |= set(outputs_in(past.entity, effect.document))
            committed |= {id for one in effect.create for id in outputs_of(one)}
        if isinstance(effect, Publish):
            assert {output.id for output in effect.outputs} <= past.committed | committed
    assert len([effect for effect in effects if isinstance(effect, SaveBatch)]) <= 1


@given(*ANY)
@settings(max_examples=200, deadline=None)
def test_a_message_is_either_committed_or_failed_or_neither_and_blobs_come_before_the_commit(
    strategy: Strategy, group: list[int], seed: int
) -> None:
    messages = [message(strategy, number) for number in group]
    effects, outcome = run(lambda: attempt(strategy, *messages), PASTS[strategy], seed)
    kinds = [type(effect) for effect in effects]
    if WriteOnce in kinds and SaveBatch in kinds:
        assert kinds.index(WriteOnce) < kinds.index(SaveBatch)
    if isinstance(outcome, Finished):
        told = [*outcome.processed, *(key for key, _ in (*outcome.failed, *outcome.stopped))]
        assert len(told) == len(set(told))


@given(st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_a_sweep_never_exceeds_its_stated_maximum(seed: int) -> None:
    effects, _ = run(lambda: Colocated().sweep(unhandled(ENTITY), Memory()), PASTS[STRATEGIES[0]], seed)
    assert requests(effects) <= stated(Colocated.sweep)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_these_properties_are_about_something(strategy: Strategy) -> None:
    """Every kind of outcome, and every kind of effect, is met."""
    groups = [(message(strategy, seed % 10), message(strategy, seed // 10 % 10)) for seed in range(500)]
    runs = [run(partial(attempt, strategy, *group), PASTS[strategy], seed) for seed, group in enumerate(groups)]
    outcomes = {type(outcome) for _, outcome in runs}
    assert {Finished, Again} <= outcomes
    met = {type(effect) for effects, _ in runs for effect in effects}
    assert {SaveBatch, Publish, Begin, HasCompanions} <= met
    assert max(requests(effects) for effects, _ in runs) >= 6
