"""Whatever the world replies, an attempt is bounded, repeatable, and never publishes before its commit."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactlyonce import Outbox
from exactlyonce.attempt import Again, Before, Finished, Handle, Handled, Memory, Strategy, Work
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
from exactlyonce.effects.entity import PUBLISHED, Conflict, Loaded, LoadEntity, Publish, Saved, SaveEntity
from exactlyonce.effects.library import (
    KEPT,
    OTHER,
    CloseNumbers,
    DeleteBlobs,
    DeletePages,
    DeleteStaged,
    FindBlobs,
    FindPages,
    FindPagesAbove,
    FindPaid,
    FoundAbove,
    FoundPages,
    FoundRequests,
    FoundStaged,
    HasPages,
    KeepAnswers,
    LoadRequests,
    LoadStaged,
    OpenNumbers,
    OpenRequest,
    Stage,
    WriteOnce,
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
from exactlyonce.records.companions import ColocatedRecord, Companion, NumberedMessage, StreamEntry, id_of
from exactlyonce.records.ledger import Page, read_entity
from exactlyonce.records.library import RequestDocument
from exactlyonce.records.outbox import Answer, Output
from exactlyonce.values.envelope import STABLE_TIME, EntityRef, Envelope, milliseconds, stable_text
from exactlyonce.values.frozen_json import Json
from tests.asking import unhandled
from tests.samples import accounts, breaking, close, deposit
from tests.unit.boards import BOARD, Readers, scored
from tests.unit.bookkeeping import Bookkeeper
from tests.unit.script import ABSENT, AT, ENTITY, ORDERED, Played, Replies, Script

COLOCATED = Colocated()
STRATEGIES: tuple[Strategy, ...] = (
    Outbox(),
    COLOCATED,
    VersionStream(snapshot_every=3),
    Resequencer(),
)
Outcome = Finished | Again | StoredDataError
RUNNER = Runner(accounts(), ENTITY, ORDERED)
READERS = Readers()


def handle(before: Before, envelope: Envelope) -> Handled:
    """Some messages write a blob as well."""
    handled = RUNNER(before, envelope)
    blob = Blob(f"{before.tx}/report", b"text", "text/plain")
    return replace(handled, blobs=(blob,)) if handled.outputs and envelope.id in ("m-2", "m-3", "m-5") else handled


def message(strategy: Strategy, number: int) -> Envelope:
    if isinstance(strategy, Resequencer):
        return scored(number % 5 + 1, "st"[number // 5], answers=number % 2)
    if number == 7 and isinstance(strategy, Outbox):
        return replace(deposit("r-7"), asked="f", opened="0:-1#0")
    special = {8: close, 9: breaking}
    if number in special:
        return special[number](f"m-{number}")
    sent = deposit(f"m-{number}", answers=number % 3, padding="x" * number * 50)
    return replace(sent, extensions=((STABLE_TIME, stable_text(milliseconds(AT) + number)),)) if number % 2 else sent


def attempt(strategy: Strategy, *messages: Envelope, handle: Handle = handle) -> Step[Finished | Again]:
    if isinstance(strategy, Resequencer):
        return strategy.attempt(READERS.work(*messages), Memory())
    return strategy.attempt(Work(ENTITY, messages, handle, ABSENT), Memory())


class Past:
    """What the store had at one time or another: documents, companions, pages, and outputs that were committed."""

    def __init__(self, strategy: Strategy) -> None:
        self.entity: EntityRef = BOARD if isinstance(strategy, Resequencer) else ENTITY
        self.documents: list[Json | None] = [None, Json.of({"id": self.entity.id, "owner": "a"})]
        self.companions: dict[str, list[Companion]] = {}
        self.pages: list[Page] = []
        self.committed: set[str] = set()
        for order in ((4, 0, 1, 6, 2, 3, 5), (8, 0, 9, 1, 2)):
            script = Readers() if self.entity is BOARD else Script()
            for number in order:
                tries: tuple[Replies, ...] = ({Publish: UNKNOWN}, {})
                for replies in tries:
                    played = script.play(attempt(strategy, message(strategy, number)), replies)
                    self.pages += (effect.page for effect in played.all(WritePage))
                    self._remember(script)

    def _remember(self, script: Script) -> None:
        self.documents.append(script.document)
        self.committed |= set(outputs_in(self.entity, script.document))
        for companion in script.companions:
            self.companions.setdefault(id_of(self.entity, companion), []).append(companion)
            self.committed |= set(outputs_of(companion))


def outputs_in(entity: EntityRef, document: Json | None) -> Iterator[str]:
    ledger = read_entity(entity, document).ledger
    if ledger is None:
        return iter(())
    return (output.id for entry in ledger.outbox for output in entry.owed_outputs(entity, ledger.to, ledger.sequences))


def outputs_of(companion: Companion) -> tuple[str, ...]:
    return () if isinstance(companion, NumberedMessage) else tuple(output.id for output in companion.outputs)


@pytest.fixture(autouse=True, scope="module")
def few_marks() -> Iterator[None]:
    """So few marks stay in a ledger that most attempts have to do with pages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(draft, "MOST_MARKS", 2)
        patch.setattr(draft, "MARKS_STAY", 1)
        PASTS.update({strategy: Past(strategy) for strategy in STRATEGIES})
        yield


PASTS: dict[Strategy, Past] = {}


def reply_to(effect: Effect[Any], past: Past, draw: random.Random) -> Any:  # noqa: C901, PLR0911, PLR0912
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
            loaded = tuple((item, "etag") for item in there if draw.random() < 0.8)
            return mostly(FoundCompanions(loaded), BEHIND, UNKNOWN)
        case FindEntries(ranges=ranges):
            every = (item for many in past.companions.values() for item in many if isinstance(item, StreamEntry))
            by_version = {e.version: e for e in every if any(e.version in range(a, b + 1) for a, b in ranges)}
            there = [by_version[version] for version in sorted(by_version)]
            return mostly(FoundCompanions(tuple((item, "etag") for item in there)), BEHIND, UNKNOWN)
        case FindOwing():
            records = (item for many in past.companions.values() for item in many if isinstance(item, ColocatedRecord))
            return mostly(FoundCompanions(tuple((record, "etag") for record in records)), BEHIND, UNKNOWN)
        case OpenNumbers():
            return mostly(Bookkeeper(f"{draw.getrandbits(80):020x}").give(effect, AT), UNKNOWN)
        case FindPaid(transactions=transactions):
            return frozenset(tx for tx in transactions if draw.random() < 0.3)
        case FindPages():
            return mostly(FoundPages(tuple(page for page in past.pages if draw.random() < 0.5)), BEHIND, UNKNOWN)
        case FindBlobs():
            return mostly(frozenset(), UNKNOWN)
        case FindPagesAbove():
            return mostly(FoundAbove(tuple((page, "etag") for page in past.pages)), BEHIND, UNKNOWN)
        case WritePage():
            return mostly(Written("0:-1#60"), UNKNOWN, OTHER)
        case LoadRequests(requests=requests):
            documents = (RequestDocument(past.entity.key, item, AT, Json("{}"), None) for item in requests)
            return mostly(FoundRequests(tuple(item for item in documents if draw.random() < 0.8), token), UNKNOWN)
        case KeepAnswers():
            return mostly(Written("0:-1#62"), UNKNOWN)
        case HasCompanions() | HasPages():
            return draw.choice([True, False, False, UNKNOWN])
        case SaveBatch() | SaveEntity():
            return mostly(Saved("etag", token), Conflict(token), UNKNOWN)
        case LoadStaged():
            return mostly(FoundStaged(()), BEHIND, UNKNOWN)
        case Stage():
            return mostly(Written("0:-1#61"), Conflict(token), UNKNOWN)
        case WriteOnce():
            return mostly(KEPT, UNKNOWN)
        case Publish():
            return mostly(PUBLISHED, UNKNOWN)
        case ReplaceCompanions() | DeleteStaged() | DeletePages() | DeleteBlobs() | CloseNumbers():
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
def test_an_attempt_never_exceeds_its_stated_maximum(strategy: Strategy, group: list[int], seed: int) -> None:
    messages = [message(strategy, number) for number in group[: strategy.group_limit]]
    effects, _ = run(lambda: attempt(strategy, *messages), PASTS[strategy], seed)
    assert requests(effects) <= stated(type(strategy).attempt)


@given(*ANY)
def test_the_same_replies_lead_to_the_same_effects(strategy: Strategy, group: list[int], seed: int) -> None:
    messages = [message(strategy, number) for number in group[: strategy.group_limit]]
    one, other = (run(lambda: attempt(strategy, *messages), PASTS[strategy], seed) for _ in range(2))
    assert one[0] == other[0]
    assert type(one[1]) is type(other[1])


@given(*ANY)
def test_new_outputs_are_only_published_after_the_batch_that_commits_them(
    strategy: Strategy, group: list[int], seed: int
) -> None:
    past = PASTS[strategy]
    messages = [message(strategy, number) for number in group[: strategy.group_limit]]
    effects, _ = run(lambda: attempt(strategy, *messages), past, seed)
    committed: set[str] = set()
    for effect in effects:
        if isinstance(effect, (SaveBatch, SaveEntity)):
            committed |= set(outputs_in(past.entity, effect.document))
        if isinstance(effect, SaveBatch):
            committed |= {id for item in effect.create for id in outputs_of(item)}
        if isinstance(effect, Publish):
            assert {output.id for output in effect.outputs} <= past.committed | committed
    assert len([effect for effect in effects if isinstance(effect, (SaveBatch, SaveEntity))]) <= 1


@given(*ANY)
def test_a_message_is_either_committed_or_failed_or_neither_and_blobs_come_before_the_commit(
    strategy: Strategy, group: list[int], seed: int
) -> None:
    messages = [message(strategy, number) for number in group[: strategy.group_limit]]
    effects, outcome = run(lambda: attempt(strategy, *messages), PASTS[strategy], seed)
    kinds = [type(effect) for effect in effects]
    for commit in {SaveBatch, SaveEntity} & set(kinds):
        assert WriteOnce not in kinds[kinds.index(commit) :]
    if isinstance(outcome, Finished):
        listed = [*outcome.processed, *(key for key, _ in (*outcome.failed, *outcome.stopped))]
        assert len(listed) == len(set(listed))


@given(st.integers(0, 2**32))
def test_a_sweep_never_exceeds_its_stated_maximum(seed: int) -> None:
    effects, _ = run(lambda: COLOCATED.sweep(unhandled(ENTITY), Memory()), PASTS[COLOCATED], seed)
    assert requests(effects) <= stated(Colocated.sweep)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_these_properties_are_about_something(strategy: Strategy) -> None:
    """Every kind of outcome, and every kind of effect, is met."""
    limit = min(2, strategy.group_limit)
    groups = [(message(strategy, seed % 10), message(strategy, seed // 10 % 10))[:limit] for seed in range(500)]
    runs = [run(partial(attempt, strategy, *group), PASTS[strategy], seed) for seed, group in enumerate(groups)]
    outcomes = {type(outcome) for _, outcome in runs}
    assert {Finished, Again} <= outcomes
    met = {type(effect) for effects, _ in runs for effect in effects}
    asked = {SaveEntity, HasPages, OpenNumbers} if isinstance(strategy, Outbox) else {SaveBatch, HasCompanions}
    pages = {FindPages, WritePage, FindPagesAbove, DeletePages, LoadRequests, KeepAnswers}
    assert {*asked, *(pages if isinstance(strategy, Outbox) else ()), Publish} <= met
    assert max(requests(effects) for effects, _ in runs) >= 6


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
        script.play(attempt(Outbox(), *map(timed, numbers)))
    assert script.ledger.cut
    return script


def longest_attempt() -> Played:
    """A copy owes outputs and an answer; two messages are new, one of which may have a mark in a page."""
    script = grown()
    copy = request(script, "r-1")
    script.play(attempt(Outbox(), copy, handle=doing_everything), {Publish: UNKNOWN})
    script.play(attempt(Outbox(), *map(timed, range(10, 14)), handle=doing_everything))
    script.restart()
    messages = (copy, request(script, "r-2"), replace(timed(1), id="another"))
    early: Replies = {LoadRequests: [FoundRequests((), "0:-1#0")]}
    return script.play(attempt(Outbox(), *messages, handle=doing_everything), early)


def longest_proof(step: Callable[..., Step[Any]]) -> Played:
    script = grown()
    return script.play(step(Outbox(), ENTITY, replace(request(script, "r-1"), asked="f"), Memory()))


def longest_reset() -> Played:
    script = Script()
    script.play(attempt(Outbox(), deposit("m-1"), handle=doing_everything))
    return script.play(reset_token(ENTITY, Memory()), {LoadStaged: [BEHIND]})


def longest_taking_back() -> Played:
    script = grown()
    before = script.document
    assert before is not None
    script.play(attempt(Outbox(), *map(timed, range(10, 14))))
    script.put(before)
    return script.play(attempt(Outbox(), timed(20)), {WritePage: OTHER})


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
def test_what_a_step_of_the_outbox_states_is_reached(step: Callable[..., Any]) -> None:
    assert requests([*LONGEST[step]().effects]) == stated(step)


def test_to_take_back_pages_takes_as_many_effects_as_it_states() -> None:
    kinds = longest_taking_back().kinds
    assert len(kinds[kinds.index(WritePage) + 1 :]) == stated(take_back)


@given(st.integers(0, 2**32), st.integers(0, 9))
def test_other_steps_of_the_outbox_never_exceed_what_they_state(seed: int, number: int) -> None:
    outbox, envelope = Outbox(), message(Outbox(), number)
    steps: dict[Callable[..., Any], Callable[[], Step[Any]]] = {
        Outbox.proof: lambda: outbox.proof(ENTITY, envelope, Memory()),
        reset_token: lambda: reset_token(ENTITY, Memory()),
        clean_staged: lambda: clean_staged(ENTITY, ("tx-9",), ABSENT, Memory()),
        clean_blobs: lambda: clean_blobs(ENTITY, (LOST,), ABSENT, Memory(), outbox),
    }
    for step, make in steps.items():
        effects, _ = run(make, PASTS[outbox], seed)
        assert requests(effects) <= stated(step)
