"""Lanes: which messages share a commit, which deliveries fail, and what is remembered of entities within a budget of bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from exactlyonce import ExactlyOnceError, TryAgainLater
from exactlyonce.drivers.driver import AsyncDriver, Backoff, Pause, Retrying
from exactlyonce.drivers.lanes import Lanes, Memories, Processed
from exactlyonce.drivers.publisher import Publisher
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.attempt import Again, Finished, Memory, Remembered, Work
from exactlyonce.effects.effect import Awaited, Opened, Step
from exactlyonce.effects.library import CloseNumbers, FoundBooks, OpenNumbers, ReadBooks
from exactlyonce.errors import HandlerFailed
from exactlyonce.records.ledger import EntityView, Ledger
from exactlyonce.records.outbox import number_of
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.testing.world import ManualClock
from exactlyonce.values.envelope import EntityRef, key_of
from exactlyonce.values.frozen_json import Json
from tests.samples import deposit
from tests.unit.drivers.waiting import ENTITY, turn


class PanicException(BaseException):
    """As extensions in Rust raise it."""


class OneSecond:
    """A strategy whose attempts take a second; keeps what it was asked."""

    forgets = staticmethod(lambda envelope: True)
    group_limit = 3

    def __init__(self) -> None:
        self.groups: list[list[str]] = []
        self.memories: list[Memory] = []
        self.failing: dict[str, ExactlyOnceError] = {}
        self.stopping: dict[str, ExactlyOnceError] = {}
        self.error: BaseException | None = None
        self.raising: dict[str, BaseException] = {}
        self.room = self.group_limit
        self.saved: Remembered | None = None

    def attempt(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        self.groups.append([envelope.id for envelope in work.messages])
        self.memories.append(memory)
        yield from Pause(1)
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        for envelope in work.messages:
            if envelope.id in self.raising:
                raise self.raising[envelope.id]
        keys = list(dict.fromkeys(key_of(envelope) for envelope in work.messages))
        failed = tuple((key, self.failing[key]) for key in keys if key in self.failing)
        stopped = tuple((key, self.stopping[key]) for key in keys if key in self.stopping)
        memory = Memory(saved=self.saved, library_token=" ".join(keys[: self.room]))
        if len(keys) > self.room:
            return Again(memory, "there was no room", progressed=True, processed=tuple(keys[: self.room]))
        return Finished(memory, tuple(keys), failed, stopped)


class Setting:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.strategy = OneSecond()
        runtime = Runtime(self.clock)
        self.store = MemoryStore(self.clock.now)
        self.driver = AsyncDriver(Awaited(self.store), Publisher({}), runtime)
        self.lanes = Lanes(self.driver, Retrying(Backoff(), runtime.random), self.clock, memory=3_000)

    def deliver(self, id: str, entity: EntityRef = ENTITY) -> asyncio.Task[Processed]:
        work = Work(entity, (), lambda *_: pytest.fail("the strategy handles"), Json("{}"))
        return asyncio.create_task(self.lanes.process(self.strategy, work, deposit(id)))

    async def after(self, seconds: float) -> None:
        """Let everybody run, move the clock, and let everybody run again."""
        await turn()
        self.clock.advance(seconds)
        await turn()


@pytest.fixture
async def setting() -> AsyncIterator[Setting]:
    found = Setting()
    yield found
    found.lanes.abandon()
    await turn()


async def test_messages_that_arrive_while_a_commit_is_under_way_share_the_next_one(setting: Setting) -> None:
    first = setting.deliver("m-1")
    await setting.after(0.5)
    rest = [setting.deliver(f"m-{number}") for number in (2, 3, 4, 5)]
    await setting.after(0.5)
    assert first.done()
    assert not any(task.done() for task in rest)
    await setting.after(1)
    assert [task.done() for task in rest] == [True, True, True, False]
    await setting.after(1)
    assert setting.strategy.groups == [["m-1"], ["m-2", "m-3", "m-4"], ["m-5"]]
    assert rest[3].done()


async def test_partition_values_that_python_takes_for_equal_are_different_entities(setting: Setting) -> None:
    one, other = EntityRef("flag", (1,), "x"), EntityRef("flag", (True,), "x")
    setting.deliver("m-1", one)
    setting.deliver("m-2", other)
    await turn()
    assert setting.strategy.groups == [["m-1"], ["m-2"]]


async def test_a_failing_message_fails_alone(setting: Setting) -> None:
    error = HandlerFailed("its own fault")
    setting.strategy.failing = {"web/m-2": error}
    tasks = [setting.deliver(f"m-{number}") for number in (1, 2, 3)]
    await setting.after(1)
    assert setting.strategy.groups == [["m-1", "m-2", "m-3"]]
    assert [task.exception() for task in tasks] == [None, error, None]


async def test_a_message_held_since_its_handler_raised_is_logged_without_its_body(
    setting: Setting, caplog: pytest.LogCaptureFixture
) -> None:
    plain, caused = HandlerFailed("secret"), HandlerFailed("secret")
    caused.__cause__ = KeyError("secret")
    setting.strategy.stopping = {"web/m-2": plain, "web/m-3": caused}
    tasks = [setting.deliver(f"m-{number}") for number in (1, 2, 3)]
    await setting.after(1)
    assert [task.exception() for task in tasks] == [None, None, None]
    levels_and_texts = [(record.levelname, record.getMessage()) for record in caplog.records]
    rest = "it stays held, with all that follow it in its sequence"
    assert levels_and_texts == [
        ("WARNING", f"entity account/a: the handler of message web/m-2 raised (HandlerFailed); {rest}"),
        ("WARNING", f"entity account/a: the handler of message web/m-3 raised (KeyError); {rest}"),
    ]
    assert "secret" not in caplog.text


async def test_an_error_of_the_group_fails_each_delivery_with_its_message(setting: Setting) -> None:
    setting.strategy.error = TryAgainLater("busy")
    tasks = [setting.deliver(f"m-{number}") for number in (1, 2)]
    await setting.after(1)
    for task, key in zip(tasks, ("web/m-1", "web/m-2"), strict=True):
        error = task.exception()
        assert isinstance(error, TryAgainLater)
        assert str(error) == f"Message {key}: busy"
        assert str(error.__cause__) == "busy"


@pytest.mark.parametrize("raised", [KeyError("bug"), SystemExit(3), GeneratorExit(), PanicException(), StopIteration()])
async def test_whatever_a_message_raises_in_a_group_fails_that_message_alone(
    setting: Setting, raised: BaseException
) -> None:
    setting.strategy.raising["m-2"] = raised
    tasks = [setting.deliver(f"m-{number}") for number in (1, 2, 3)]
    for _ in range(4):
        await setting.after(1)
    assert setting.strategy.groups == [["m-1", "m-2", "m-3"], ["m-1"], ["m-2"], ["m-3"]]
    assert [task.exception() for task in (tasks[0], tasks[2])] == [None, None]
    error = tasks[1].exception()
    assert isinstance(error, Exception)
    assert type(raised).__name__ in repr(error) or isinstance(error, RuntimeError)
    later = setting.deliver("m-4")
    await setting.after(1)
    assert later.exception() is None


async def test_a_cancelled_attempt_leaves_no_delivery_waiting(setting: Setting) -> None:
    setting.strategy.error = asyncio.CancelledError()
    tasks = [setting.deliver(f"m-{number}") for number in (1, 2, 3, 4)]
    await setting.after(1)
    assert all(task.cancelled() for task in tasks)
    again = setting.deliver("m-1")
    await setting.after(1)
    assert again.exception() is None


async def test_cancelling_a_caller_leaves_the_others_and_the_attempt(setting: Setting) -> None:
    tasks = [setting.deliver(f"m-{number}") for number in (1, 2)]
    await setting.after(0.5)
    tasks[0].cancel()
    await setting.after(0.5)
    assert tasks[0].cancelled()
    assert tasks[1].exception() is None
    assert setting.strategy.groups == [["m-1", "m-2"]]


async def test_copies_of_one_message_are_all_answered_and_the_first_alone_is_no_duplicate(setting: Setting) -> None:
    tasks = [setting.deliver("m-1"), setting.deliver("m-1"), setting.deliver("m-2")]
    await setting.after(1)
    assert [task.result().before for task in tasks] == [False, True, False]


async def test_messages_that_an_attempt_finished_are_acknowledged_and_left_out_of_the_next_attempt(
    setting: Setting,
) -> None:
    setting.strategy.room = 2
    setting.strategy.group_limit = 4
    tasks = [setting.deliver(id) for id in ("m-1", "m-2", "m-1", "m-3")]
    await setting.after(1)
    assert [task.done() for task in tasks] == [True, True, True, False]
    await setting.after(1)
    assert tasks[3].exception() is None
    assert setting.strategy.groups == [["m-1", "m-2", "m-1", "m-3"], ["m-3"]]


async def test_finished_messages_stay_acknowledged_when_the_rest_fails(setting: Setting) -> None:
    setting.strategy.room = 1
    tasks = [setting.deliver(id) for id in ("m-1", "m-2", "m-3")]
    await setting.after(1)
    setting.strategy.error = HandlerFailed("one of them")
    await setting.after(1)
    await setting.after(1)
    await setting.after(1)
    assert [task.exception() for task in tasks] == [None, None, None]
    assert setting.strategy.groups == [["m-1", "m-2", "m-3"], ["m-2", "m-3"], ["m-2"], ["m-3"]]
    tokens = [memory.library_token for memory in setting.strategy.memories]
    assert tokens == [None, "web/m-1", "web/m-1", "web/m-2"]


async def test_an_entity_is_remembered_from_one_message_to_the_next(setting: Setting) -> None:
    saved = setting.strategy.saved = Remembered(Json.of("x" * 1_000), "1")
    for id in ("m-1", "m-2"):
        setting.deliver(id)
        await setting.after(1)
    assert [memory.saved for memory in setting.strategy.memories] == [None, saved]


async def test_quiescing_waits_for_attempts_under_way(setting: Setting) -> None:
    delivery = setting.deliver("m-1")
    await turn()
    quiescing = asyncio.create_task(setting.lanes.quiesce())
    await turn()
    assert not quiescing.done()
    await setting.after(1)
    assert (delivery.done(), quiescing.done()) == (True, True)


async def test_quiescing_writes_the_book_and_abandoning_does_not() -> None:
    for ends in ("quiesce", "abandon"):
        setting = Setting()
        books = setting.driver.books
        opened = await books.open(OpenNumbers(ENTITY, 0, ("web/m-1",)))
        assert isinstance(opened, Opened)
        await books.close(CloseNumbers(opened.given))
        if ends == "quiesce":
            await setting.lanes.quiesce()
        setting.lanes.abandon()
        await turn()
        found = setting.store.perform(ReadBooks((number_of(opened.given[0])[0],)))
        assert isinstance(found, FoundBooks)
        assert [book.used for book in found.books] == [1 if ends == "quiesce" else 0]


def memory(bytes: int = 1_000, etag: str = "1") -> Memory:
    return Memory(saved=Remembered(Json.of("x" * (bytes - 2)), etag))


def test_a_memory_is_taken_once() -> None:
    memories = Memories(10_000)
    memories.keep("a", memory())
    assert memories.take("a") == memory()
    assert memories.take("a") == Memory()
    assert memories.size == 0


def test_the_least_recently_used_leave_first() -> None:
    memories = Memories(3 * 1_500)
    for key in "abc":
        memories.keep(key, memory())
    memories.keep("a", memories.take("a"))
    memories.keep("d", memory())
    assert [memories.take(key) for key in "abcd"] == [memory(), Memory(), memory(), memory()]


def test_a_newer_memory_takes_the_place_of_an_older_one() -> None:
    memories = Memories(10_000)
    memories.keep("a", memory())
    memories.keep("a", memory(2_000, "2"))
    assert memories.size == 2_500
    assert memories.take("a") == memory(2_000, "2")


def test_a_document_whose_parts_are_kept_counts_three_times() -> None:
    saved = Remembered(Json.of("x" * 998), "1", parts=EntityView(None, Ledger()))
    memories = Memories(3_500)
    memories.keep("a", Memory(saved=saved))
    assert memories.size == 3_500


def test_a_memory_that_is_empty_or_too_large_is_not_kept() -> None:
    memories = Memories(1_499)
    memories.keep("a", Memory(entity_token="0:-1#4"))
    memories.keep("b", memory())
    assert memories.size == 0


def test_without_a_budget_nothing_is_kept() -> None:
    memories = Memories(0)
    memories.keep("a", memory())
    assert memories.take("a") == Memory()
