"""What an outbox remembers, over months: marks and pages that go with age, copies of any age, documents that are put back."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from exactlyonce import Envelope, ExactlyOnceError, MessageFromTheFuture, Outbox, TooOldToJudge
from exactlyonce.attempt import Again, Before, Handled, Memory, Work
from exactlyonce.effects.effect import Effect
from exactlyonce.effects.entity import Saved, SaveEntity
from exactlyonce.effects.library import DeletePages, FindPages, FoundPages
from exactlyonce.errors import DatabaseRestored
from exactlyonce.handling.runner import AgeCheck
from exactlyonce.protocols.outbox import draft
from exactlyonce.protocols.outbox.protocol import TRUSTED
from exactlyonce.records.ledger import read_page
from exactlyonce.records.outbox import Output
from exactlyonce.values.envelope import STABLE_TIME, Origin, key_of, milliseconds, stable_text
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.lifetimes import Lifetimes, Retention
from tests.samples import deposit
from tests.stateful.interleaving import PEACE, Interleaving
from tests.unit.bookkeeping import Bookkeeper
from tests.unit.script import ABSENT, ENTITY

DAYS = 12
LIFETIMES = Lifetimes(Retention(timedelta(days=DAYS)), delivery_limit=timedelta(days=1))
OUTBOX = Outbox()
REFUSALS = (DatabaseRestored, MessageFromTheFuture, TooOldToJudge)
SIZES = {"none stays": (1, 0), "one stays": (3, 1)}


@pytest.fixture(autouse=True, params=SIZES)
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many marks a ledger has before the oldest leave it, and how many stay then."""
    monkeypatch.setattr(draft, "MOST_MARKS", SIZES[request.param][0])
    monkeypatch.setattr(draft, "MARKS_STAY", SIZES[request.param][1])


def noting(before: Before, envelope: Envelope) -> Handled:
    """A handler whose state tells what was done, in its order; each message sends one."""
    state: dict[str, Any] = {"id": "a", "owner": "a", "done": []} if before.body is None else before.body.value
    id = Origin(ENTITY, key_of(envelope)).output_id(0)
    stable = () if before.since is None else ((STABLE_TIME, stable_text(before.since)),)
    sent = Envelope(ENTITY.source, id, "said", Json.of(envelope.id), before.at, extensions=stable)
    state["done"].append(envelope.id)
    return Handled(Json.of(state), (Output(id, "receipts", sent.to_json(), index=0),))


class History(Interleaving):
    """One random history of an entity.

    Args:
        seed: of chance.
        goes_back: whether the document is put back to earlier versions.

    Attributes:
        acknowledged: messages that are done for their queue.
        refused: messages that pages might know which were not found.
        kept: age in days from which clean-up deletes.
    """

    kept = float(DAYS)

    def __init__(self, seed: int, *, goes_back: bool = False) -> None:
        super().__init__(Random(seed), ())
        self.goes_back = goes_back
        self.sent: dict[str, Envelope] = {}
        self.acknowledged: set[str] = set()
        self.refused: set[str] = set()
        self.memories: list[Memory] = [Memory()]
        self.pages: dict[int, tuple[float, str]] = {}
        self.listed: list[tuple[tuple[str, str], ...]] = []

    def play(self, steps: int = 800) -> list[str]:
        """Everything at once, then every message once more; what is wrong with it."""
        begin = [self.send, self.deliver, self.deliver, self.deliver, self.sweep]
        if not self.goes_back:  # What was taken back is noticed by the page that is in the way, while that is there.
            begin += [self.list_pages, self.clean]
        for _ in range(steps):
            if len(self.jobs) < 3:
                self.random.choice(begin)()
            self.advance()
            if self.random.random() < 0.05:
                self.now += timedelta(hours=self.random.choice([1, 1, 1, 1, 30, 24 * DAYS / 2]))
            if self.goes_back and self.random.random() < 0.005:
                self.put_back()
        self.calm()
        for key in self.sent:
            self.deliver(key)
            self.run_out()
        return self.wrong()

    def wrong(self) -> list[str]:
        done = self.done
        twice = sorted({item for item in done if done.count(item) > 1})
        lost = sorted(self.acknowledged - set(done))
        missed = () if self.goes_back else sorted(self.refused)
        return [
            *(f"{item} was done twice" for item in twice),
            *(f"{item} was acknowledged, and lost" for item in lost),
            *(f"{item} was refused for want of pages that are there" for item in missed),
        ]

    @property
    def done(self) -> list[str]:
        newest = self.store._entity(ENTITY).newest(ENTITY.id)
        body = {} if newest is None or newest.document is None else newest.document.value
        done: list[str] = body.get("done", [])
        return done

    def send(self) -> None:
        """A message that came about now, long ago, or ahead of the store's time; timed or not."""
        number = len(self.sent) + 1
        time = self.now + timedelta(hours=self.random.choice([0, 0, 0, 23, -24 * DAYS / 3, -24 * DAYS * 2 / 3]))
        stable = ((STABLE_TIME, stable_text(milliseconds(time))),) if self.random.random() < 0.6 else ()
        self.sent[f"m-{number}"] = replace(deposit(f"m-{number}"), time=time, extensions=stable)

    def deliver(self, *keys: str) -> None:
        """A group of messages, in a process that may remember a document of long ago."""
        if not self.sent:
            return
        waiting = [*self.sent][-8:] if self.random.random() < 0.7 else [*self.sent]
        group = keys or tuple(self.random.choices(waiting, k=self.random.choice([1, 1, 2])))
        memory = self.random.choice([Memory(), self.memories[-1], self.random.choice(self.memories)])
        if memory.saved is not None:
            memory = replace(memory, saved=replace(memory.saved, right=TRUSTED))

        def ended(result: Any) -> None:
            if result is None or isinstance(result, Again):
                if keys:
                    self.deliver(*keys)
                return
            self.memories.append(result.memory)
            failed: dict[str, ExactlyOnceError] = dict(result.failed)
            assert all(isinstance(error, REFUSALS) for error in failed.values())
            self.refused |= {key for key, error in failed.items() if isinstance(error, DatabaseRestored)}
            self.acknowledged |= {item for item in group if f"web/{item}" not in failed}

        self.begin(OUTBOX.attempt(self.work(*(self.sent[key] for key in group)), memory), ended)

    def work(self, *messages: Envelope) -> Work:
        return Work(
            ENTITY,
            messages,
            AgeCheck(noting, ENTITY, LIFETIMES, OUTBOX.forgets),
            ABSENT,
            retention=LIFETIMES.retention.current,
            refusal=LIFETIMES.refusal,
            page_lifetime=LIFETIMES.retention.current + timedelta(days=1),
        )

    def sweep(self) -> None:
        self.begin(OUTBOX.sweep(self.work(), Memory()))

    def list_pages(self) -> None:
        """A job lists what is old enough, and deletes some of it at any later time."""
        old = milliseconds(self.now - timedelta(days=self.kept))
        library = self.store._library(ENTITY)
        there = [item for item in library.view(len(library.log)).values() if item.id.startswith("page:")]
        pages = [(read_page(item.document.value), item.etag) for item in there if item.document is not None]
        self.listed.append(tuple((str(page.number), etag) for page, etag in pages if page.until < old))

    def clean(self) -> None:
        if self.listed:
            candidates = self.listed.pop(self.random.randrange(len(self.listed)))
            self.begin(OUTBOX.clean(ENTITY, candidates[:: self.random.choice([1, 2])], Memory()))

    def put_back(self) -> None:
        """Somebody stops all processes, and writes an earlier version of the document over what is there.

        What was done since is to be done again.
        """
        for book in list(self.books):
            self.crash(book)
        self.memories = [Memory()]
        log = [item for item in self.store._entity(ENTITY).log if item.id == ENTITY.id and item.document is not None]
        if log:
            old = self.random.choice(log[-self.random.choice([9, 40]) :]).document
            assert old is not None
            trouble, self.store._trouble = self.store._trouble, PEACE
            etag = log[-1].etag
            for _ in range(4):  # As often as replicas are behind: an older view would show what never happened.
                saved = self.store.perform(SaveEntity(ENTITY, old, etag))
                assert isinstance(saved, Saved)
                etag = saved.etag
            self.store._trouble = trouble
            self.acknowledged &= set(old.value.get("done", []))

    def perform(self, effect: Effect[Any], book: Bookkeeper) -> Any:
        if isinstance(effect, DeletePages) and self.store._trouble is not PEACE:  # It may end early.
            effect = replace(effect, pages=effect.pages[: self.random.randint(0, len(effect.pages))])
        return super().perform(effect, book)

    def arrive(self, output: Output) -> None:
        """What is sent is of no account here."""


@pytest.mark.parametrize("seed", range(40))
def test_a_message_of_any_age_is_done_once_or_refused(seed: int) -> None:
    assert History(seed).play() == []


@pytest.mark.parametrize("seed", range(40))
def test_after_a_document_was_put_back_what_was_undone_is_done_again(seed: int) -> None:
    assert History(seed, goes_back=True).play() == []


class Hurried(History):
    """Its clean-up deletes pages at half of their age."""

    kept = DAYS / 2


class Careless(History):
    """Takes pages from any view."""

    def perform(self, effect: Effect[Any], book: Bookkeeper) -> Any:
        return super().perform(replace(effect, token=None) if isinstance(effect, FindPages) else effect, book)


class Believing(History):
    """Takes pages of later versions than the ledger's for evidence."""

    def perform(self, effect: Effect[Any], book: Bookkeeper) -> Any:
        reply = super().perform(effect, book)
        if isinstance(effect, FindPages) and isinstance(reply, FoundPages):
            return FoundPages(tuple(replace(page, number=min(page.number, effect.newest)) for page in reply.pages))
        return reply


@pytest.mark.parametrize("history", [Hurried, Careless])
def test_a_memory_that_is_not_there_in_time_is_convicted(history: type[History]) -> None:
    assert any(history(seed).play() for seed in range(100))


def test_pages_of_another_history_that_count_are_convicted() -> None:
    assert any(Believing(seed, goes_back=True).play() for seed in range(100))
