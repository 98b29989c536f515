"""However a store answers, an attempt takes no more effects than it states; and some attempt takes as many."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any

import pytest

from exactlyonce import Outbox
from exactlyonce.effects.attempt import Again, Before, Finished, Handle, Handled, Memory, Strategy, Work
from exactlyonce.effects.companions import HasCompanions, SaveBatch
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Effect, Step, Together
from exactlyonce.effects.entity import Publish, SaveEntity
from exactlyonce.effects.library import (
    OTHER,
    DeleteBlobs,
    FindPages,
    FoundRequests,
    HasPages,
    LoadRequests,
    LoadStaged,
    OpenNumbers,
    OpenRequest,
    WritePage,
    Written,
)
from exactlyonce.errors import StoredDataError
from exactlyonce.handling.runner import Runner
from exactlyonce.protocols.colocated import Colocated
from exactlyonce.protocols.outbox import draft
from exactlyonce.protocols.outbox.clean import clean_staged
from exactlyonce.protocols.outbox.judge import take_back
from exactlyonce.protocols.outbox.repair import reset_token
from exactlyonce.protocols.outbox.requests import open_request
from exactlyonce.protocols.resequencer.protocol import Resequencer
from exactlyonce.protocols.steps.clean import clean_blobs
from exactlyonce.protocols.stream.protocol import VersionStream
from exactlyonce.records.blobs import Author, Blob, ListedBlob
from exactlyonce.records.library import RequestDocument
from exactlyonce.records.outbox import Answer, Output
from exactlyonce.stores.memory.store import Fate
from exactlyonce.testing.world import SeededTrouble
from exactlyonce.values.envelope import STABLE_TIME, Envelope, milliseconds, stable_text
from exactlyonce.values.frozen_json import Json
from tests.samples import accounts, breaking, close, deposit
from tests.unit.boards import Readers, scored
from tests.unit.script import ABSENT, AT, ENTITY, ORDERED, Played, Replies, Script

STRATEGIES: tuple[Strategy, ...] = (Outbox(), Colocated(), VersionStream(snapshot_every=3), Resequencer())
FATES = {Fate.LOST_BEFORE: 0.1, Fate.LOST_AFTER: 0.1}
RUNNER = Runner(accounts(), ENTITY, ORDERED)


@pytest.fixture(autouse=True)
def few_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few marks stay in a ledger that most attempts have to do with pages."""
    monkeypatch.setattr(draft, "MOST_MARKS", 2)
    monkeypatch.setattr(draft, "MARKS_STAY", 1)


def painting(before: Before, envelope: Envelope) -> Handled:
    """Messages that send write a blob as well."""
    handled = RUNNER(before, envelope)
    blob = Blob(f"{before.tx}/report", b"text", "text/plain")
    return replace(handled, blobs=(blob,)) if handled.outputs else handled


def message(strategy: Strategy, number: int) -> Envelope:
    if isinstance(strategy, Resequencer):
        return scored(number % 15 + 1, "st"[number // 15], answers=number % 2)
    if number % 10 > 7:
        return (close, breaking)[number % 2](f"m-{number}")
    sent = deposit(f"m-{number}", answers=number % 3, padding="x" * number * 50)
    return replace(sent, extensions=((STABLE_TIME, stable_text(milliseconds(AT) + number)),)) if number % 2 else sent


def history(strategy: Strategy, seed: int) -> Iterator[tuple[Callable[..., Any], list[Effect[Any]], Any]]:
    """Attempts and sweeps on a store that loses replies and shows old views: each with what it asked, and its outcome."""
    random = Random(seed)
    script = Readers() if isinstance(strategy, Resequencer) else Script()
    if seed % 2:
        script.put(Json.of({"id": script.entity.id, "owner": "a"}))  # To be adopted.
    script.store._trouble = SeededTrouble(random, FATES, stale=0.3, lag=3)
    for _ in range(40):
        sweeps = not isinstance(strategy, Outbox) and random.random() < 0.2
        size = 0 if sweeps else random.randint(1, min(6, strategy.group_limit))
        group = tuple(message(strategy, random.randrange(30)) for _ in range(size))
        work = script.work(*group) if isinstance(script, Readers) else Work(ENTITY, group, painting, ABSENT)
        step: Callable[..., Step[Any]] = strategy.sweep if sweeps else strategy.attempt
        if random.random() < 0.1:
            script.restart()
        result = None
        with suppress(StoredDataError):
            result = script.play(step(work, Memory()), {Publish: [UNKNOWN]} if random.random() < 0.3 else {}).result
        yield step, script.asked, result


def requests(effects: list[Effect[Any]]) -> int:
    return sum(2 if isinstance(effect, Together) else 1 for effect in effects)


def stated(step: Callable[..., Any]) -> int:
    """The maximum that a docstring promises."""
    found = re.search(r"At most (\d+) effects", step.__doc__ or "")
    assert found
    return int(found[1])


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_an_attempt_and_a_sweep_never_exceed_what_they_state(strategy: Strategy) -> None:
    outcomes, met = set[type](), set[type]()
    for step, asked, outcome in (item for seed in range(12) for item in history(strategy, seed)):
        assert requests(asked) <= stated(step)
        outcomes.add(type(outcome))
        met |= {type(effect) for effect in asked}
    assert {Finished, Again} <= outcomes
    outbox = {SaveEntity, HasPages, OpenNumbers, FindPages, WritePage}
    assert {Publish, *(outbox if isinstance(strategy, Outbox) else {SaveBatch, HasCompanions})} <= met


def attempt(*messages: Envelope, handle: Handle = painting) -> Step[Finished | Again]:
    return Outbox().attempt(Work(ENTITY, messages, handle, ABSENT), Memory())


def timed(number: int) -> Envelope:
    """A message that came about so many milliseconds after the start."""
    stable = ((STABLE_TIME, stable_text(milliseconds(AT) + number)),)
    return replace(deposit(f"t-{number}"), extensions=stable)


def request(script: Script, id: str) -> Envelope:
    """A request that was opened, as it is carried out."""
    document = RequestDocument(ENTITY.key, id, AT, deposit(id).to_json(), None)
    written = script.store.perform(OpenRequest(ENTITY, document))
    assert isinstance(written, Written)
    return replace(deposit(id), asked="f", opened=written.token)


def doing_everything(before: Before, envelope: Envelope) -> Handled:
    """Each message sends one, keeps another one, writes a blob and is answered."""
    kept = (AT, Output(f"kept-{envelope.id}", "receipts", deposit(envelope.id).to_json()))
    blob = Blob(f"{before.tx}/report", b"text", "text/plain")
    return replace(RUNNER(before, envelope), kept=(kept,), blobs=(blob,), answer=Answer(asked="f"))


def grown() -> Script:
    """An entity whose oldest marks have left, and whose next commit makes some more leave."""
    script = Script()
    for numbers in (range(3), range(3, 6)):
        script.play(attempt(*map(timed, numbers)))
    assert script.ledger.cut
    return script


def longest_attempt() -> Played:
    """A copy owes outputs and an answer; two messages are new, one of which may have a mark in a page."""
    script = grown()
    copy = request(script, "r-1")
    script.play(attempt(copy, handle=doing_everything), {Publish: UNKNOWN})
    script.play(attempt(*map(timed, range(10, 14)), handle=doing_everything))
    script.restart()
    messages = (copy, request(script, "r-2"), replace(timed(1), id="another"))
    early: Replies = {LoadRequests: [FoundRequests((), "0:-1#0")]}
    return script.play(attempt(*messages, handle=doing_everything), early)


def longest_proof(step: Callable[..., Step[Any]]) -> Played:
    script = grown()
    return script.play(step(Outbox(), ENTITY, replace(request(script, "r-1"), asked="f"), Memory()))


def longest_reset() -> Played:
    script = Script()
    script.play(attempt(deposit("m-1"), handle=doing_everything))
    return script.play(reset_token(ENTITY, Memory()), {LoadStaged: [BEHIND]})


def longest_taking_back() -> Played:
    script = grown()
    before = script.document
    assert before is not None
    script.play(attempt(*map(timed, range(10, 14))))
    script.put(before)
    return script.play(attempt(timed(20)), {WritePage: OTHER})


def on_an_adopted_document(step: Step[Any]) -> Played:
    return Script(Json.of({"id": "a", "owner": "a"})).play(step, {DeleteBlobs: None})


LOST = ListedBlob("lost", Author(ENTITY, "web/m-1", "tx-lost", AT), timedelta(hours=2))
LONGEST: dict[Callable[..., Any], Callable[[], Played]] = {
    Outbox.attempt: longest_attempt,
    Outbox.knows: partial(longest_proof, Outbox.knows),
    Outbox.proof: partial(longest_proof, Outbox.proof),
    reset_token: longest_reset,
    clean_staged: lambda: on_an_adopted_document(clean_staged(ENTITY, ("tx-9",), ABSENT, Memory())),
    clean_blobs: lambda: on_an_adopted_document(clean_blobs(ENTITY, (LOST,), ABSENT, Memory(), Outbox())),
    open_request: lambda: Script().play(open_request(ENTITY, lambda request, _: deposit(request), Memory())),
}


@pytest.mark.parametrize("step", LONGEST, ids=lambda step: step.__qualname__)
def test_each_bound_that_a_step_of_the_outbox_states_is_reached(step: Callable[..., Any]) -> None:
    assert requests([*LONGEST[step]().effects]) == stated(step)


def test_to_take_back_pages_takes_as_many_effects_as_it_states() -> None:
    kinds = longest_taking_back().kinds
    assert len(kinds[kinds.index(WritePage) + 1 :]) == stated(take_back)
