"""Answers to requests, and digests of messages, of protocols whose records are companions: in the record, or the entry."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from exactlyonce import Colocated, Envelope, VersionStream
from exactlyonce.effects.attempt import Memory, Strategy, Work
from exactlyonce.effects.companions import (
    DeleteCompanions,
    FindEntries,
    FoundCompanions,
    LoadCompanions,
    ReplaceCompanions,
    SaveBatch,
)
from exactlyonce.effects.effect import UNKNOWN
from exactlyonce.effects.entity import Publish
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.protocols.steps.clean import clean_companions
from exactlyonce.records.companions import ColocatedRecord, StreamEntry, entry_id, record_id
from exactlyonce.records.ledger import Ledger
from exactlyonce.records.outbox import Answer
from tests.answering import added_queue, counters, request
from tests.unit.script import Played, Replies, Script
from tests.unit.script import attempt as attempt_on_sample

COUNTERS = counters()
ENTITY = COUNTERS.ref("c")
HANDLE = Runner(COUNTERS, ENTITY, Routes.to((added_queue,), {"added": 1024 * 1024}))
LOCATION = (("Location", "/counters/c"),)
STREAM = VersionStream()


@pytest.fixture(params=[Colocated(), STREAM], ids=["colocated", "stream"])
def strategy(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def script() -> Script:
    return Script(entity=ENTITY)


def attempt(script: Script, strategy: Strategy, *messages: Envelope, replies: Replies | None = None) -> Played:
    return script.play(attempt_on_sample(strategy, *messages, handle=HANDLE, entity=ENTITY), replies)


def swept(script: Script, strategy: Strategy) -> Played:
    return script.play(strategy.sweep(Work(ENTITY, (), HANDLE, HANDLE.absent), Memory()))


def answer(total: int, asked: str = "f") -> Answer:
    return Answer(200, LOCATION, f'{{"total":{total}}}', asked)


def kept(script: Script, strategy: Strategy, key: str = "http/k-1") -> ColocatedRecord | StreamEntry:
    """The record or entry of a message."""
    id = entry_id(ENTITY, key) if strategy == STREAM else record_id(ENTITY, key)
    found = script.play(iter(LoadCompanions(ENTITY, (id,), None))).result
    assert isinstance(found, FoundCompanions)
    ((one, _),) = found.companions
    assert isinstance(one, ColocatedRecord | StreamEntry)
    return one


def test_the_answer_of_a_request_is_committed_and_what_it_owes_is_dropped(script: Script, strategy: Strategy) -> None:
    played = attempt(script, strategy, request("k-1"))
    assert played.finished.answers == (("http/k-1", answer(1)),)
    (committed,) = played.only(SaveBatch).create
    assert isinstance(committed, ColocatedRecord | StreamEntry)
    assert committed.owed == played.only(Publish).outputs
    assert committed.owing_since == committed.at
    assert kept(script, strategy) == replace(committed, owed=None, owing_since=None)


def test_a_request_that_sends_nothing_owes_nothing(script: Script, strategy: Strategy) -> None:
    silent = replace(HANDLE, routes=Routes.to((), {}))
    played = script.play(attempt_on_sample(strategy, request("k-1"), handle=silent, entity=ENTITY))
    assert played.finished.answers == (("http/k-1", answer(1)),)
    assert not played.all(ReplaceCompanions)
    assert kept(script, strategy).owing_since is None


def test_a_retry_gets_the_committed_answer_and_is_not_handled_again(script: Script, strategy: Strategy) -> None:
    for key in ("k-1", "k-2"):
        attempt(script, strategy, request(key))
    played = attempt(script, strategy, request("k-1"))
    assert played.finished.answers == (("http/k-1", answer(1)),)
    assert {SaveBatch, FindEntries, Publish}.isdisjoint(played.kinds)


def test_another_body_under_a_known_key_gets_the_answer_of_the_first(script: Script, strategy: Strategy) -> None:
    attempt(script, strategy, request("k-1", "f"))
    played = attempt(script, strategy, request("k-1", "g", amount=7))
    assert played.finished.answers == (("http/k-1", answer(1, "f")),)
    assert not played.finished.failed


def test_a_sweep_publishes_what_a_request_owes(script: Script, strategy: Strategy) -> None:
    assert strategy.unfinished == ("companions",)
    attempt(script, strategy, request("k-1"), replies={Publish: UNKNOWN})
    assert len(swept(script, strategy).only(Publish).outputs) == 1
    assert kept(script, strategy).owed is None
    assert not swept(script, strategy).all(Publish)


def test_a_failing_request_leaves_the_answers_of_the_others(script: Script, strategy: Strategy) -> None:
    attempt(script, strategy, request("k-1"))
    played = attempt(script, strategy, request("k-1"), request("k-2", failing=True))
    assert [key for key, _ in played.finished.failed] == ["http/k-2"]
    assert played.finished.answers == (("http/k-1", answer(1)),)


def test_an_entry_that_owes_is_not_cleaned_up(script: Script, strategy: Strategy) -> None:
    attempt(script, strategy, request("k-1"), replies={Publish: UNKNOWN})
    id = entry_id(ENTITY, "http/k-1") if strategy == STREAM else record_id(ENTITY, "http/k-1")
    for owes in (True, False):
        found = script.play(iter(LoadCompanions(ENTITY, (id,), None))).result
        candidates = ((id, found.companions[0][1]),)
        played = script.play(clean_companions(ENTITY, candidates, Ledger(1, snapshot_every=1), Memory()))
        assert bool(played.all(DeleteCompanions)) is not owes
        swept(script, strategy)


QUEUED, COPY = (replace(request("m-1", amount=amount), asked=None) for amount in (1, 2))


@pytest.mark.parametrize(
    "others", [(), (request("k-1"),), (request("k-1", failing=True),)], ids=["", "more", "failure"]
)
def test_a_copy_with_another_content_is_told_from_its_message(
    script: Script, strategy: Strategy, others: tuple[Envelope, ...]
) -> None:
    attempt(script, strategy, QUEUED)
    finished = attempt(script, strategy, COPY, *others).finished
    assert finished.contents == (("http/m-1", QUEUED.content),)
    assert finished.differing((COPY, *others)) == (COPY,)


def test_a_request_has_no_digest_of_its_content(script: Script, strategy: Strategy) -> None:
    for _ in range(2):
        assert attempt(script, strategy, request("k-1")).finished.contents == ()
