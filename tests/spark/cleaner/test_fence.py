"""What one task does to staged documents, in this process: which go, which stay, and that a fence is sent before."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from exactlyonce import Envelope
from exactlyonce.drivers.driver import Backoff
from exactlyonce.effects.attempt import Memory, Work
from exactlyonce.effects.entity import Conflict, SaveEntity
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from spark_jobs.cleaner.fence import Fence, Place
from tests.spark.cleaner.conftest import Shops
from tests.spark.cleaner.shop import RECEIPTS, TYPES, App, everywhere, job, paid, ref, within
from tests.spark.source.conftest import Tally

AT_ONCE = Backoff(base=0.0, cap=0.0, tries=3)


@dataclass
class Task:
    """A task of its own in this process."""

    shops: Shops
    tally: Tally = field(default_factory=Tally)

    def __call__(self, *staged: tuple[str, str], writes: bool = True, rate: float | None = None) -> dict[str, str]:
        """What becomes of staged documents: type of the shop and transaction of each."""
        place = Place.of(job(self.shops.database), self.shops.account, rate=rate, writes=writes)
        rows = [{"entity": ref(type).key, "tx": tx} for type, tx in sorted(staged)]
        return {id.removeprefix("staged:"): outcome for _, id, outcome in Fence(place, self.tally, AT_ONCE)(rows)}


@pytest.fixture
def task(empty: Shops) -> Task:
    return Task(empty)


def staged(shops: Shops) -> set[str]:
    return {document["tx"] for document in shops.documents().values() if document.get("kind") == "staged"}


def test_documents_that_no_kept_message_names_go_behind_a_fence_and_a_dry_run_comes_to_the_same_decision(
    task: Task,
) -> None:
    task.shops.process(everywhere([1], types=["keeper"]))
    (named,) = staged(task.shops)
    task.shops.stage("keeper", "lost")
    task.shops.stage("outbox", "lost-too")
    begun = task.shops.cosmos.last_request()
    listed = (("keeper", named), ("keeper", "lost"), ("outbox", "lost-too"))
    dry = task(*listed, writes=False)
    assert task.shops.writes_after(begun) == []
    assert task(*listed) == dry == {named: "named by its entity", "lost": "unknown", "lost-too": "unknown"}
    assert staged(task.shops) == {named}
    # An entity that does not exist is fenced by a tombstone, which the next message takes over.
    assert sorted(task.shops.writes_after(begun)) == ["create", "delete", "delete", "replace"]
    assert len(task.shops.process(everywhere([1], types=["outbox"]))) == 1


def test_an_attempt_that_could_still_commit_fails_on_the_fence(task: Task) -> None:
    shops = task.shops
    shops.process(everywhere([1], types=["keeper"]))
    message = paid("keeper", 2, "s")[1]

    async def attempt(app: App) -> None:
        save = await until_its_commit(app, message)
        (staged_now,) = {
            document["tx"] for document in shops.documents().values() if document.get("message") == "web/m-2"
        }
        assert await asyncio.to_thread(task, ("keeper", staged_now)) == {staged_now: "unknown"}
        assert staged_now not in staged(shops)
        assert isinstance(await app.store.perform(save), Conflict)

    within(shops.cosmos, shops.database, attempt)
    shops.process([("keeper", message)])
    assert [item["seen"] for name, item in shops.everything() if name == "keepers"] == [[1, 2]]


async def until_its_commit(app: App, message: Envelope) -> SaveEntity:
    """Perform what an attempt asks for, up to its commit."""
    entity = TYPES["keeper"]
    runner = Runner(entity, ref("keeper"), Routes.to((RECEIPTS,), {"receipts": 1_000_000}))
    work = Work(ref("keeper"), (message,), runner, runner.absent)
    attempt, reply = entity.strategy.attempt(work, Memory()), None
    while True:
        effect = attempt.send(reply)
        if isinstance(effect, SaveEntity):
            return effect
        reply = await app.driver.run(iter_of(effect))


def iter_of(effect: Any) -> Any:
    return (yield from effect)


def test_an_entity_that_cannot_be_read_keeps_what_is_staged(task: Task) -> None:
    task.shops.process(everywhere([1], types=["keeper", "outbox"]))
    task.shops.stage("keeper", "lost")
    (document,) = (item for name, item in task.shops.everything() if name == "keepers")
    document["_ledger"]["schema"] = 99
    task.shops.put("keepers", document)
    task.shops.stage("outbox", "other")
    assert task(("keeper", "lost"), ("outbox", "other")) == {"lost": "unreadable", "other": "unknown"}
    assert "lost" in staged(task.shops)


def test_a_fence_that_is_not_answered_is_none(task: Task) -> None:
    task.shops.process(everywhere([1], types=["outbox"]))
    task.shops.stage("outbox", "lost")
    task.shops.fault(operations=("replace",), when="after", action="status", status=408)
    assert task(("outbox", "lost")) == {"lost": "not decided"}
    task.shops.cosmos.clear_faults()
    assert staged(task.shops) == {"lost"}


def test_a_store_that_is_too_busy_is_asked_again(task: Task) -> None:
    task.shops.process(everywhere([1], types=["outbox"]))
    task.shops.stage("outbox", "lost")
    for operation in ("read", "replace", "delete"):
        task.shops.fault(operations=(operation,), when="before", action="status", status=429, retry_after_ms=1, times=1)
    assert task(("outbox", "lost")) == {"lost": "unknown"}
    assert staged(task.shops) == set()


def test_the_cost_of_fences_is_counted_and_kept_to_a_rate(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    task.shops.process(everywhere([1], types=["outbox"]))
    task.shops.stage("outbox", "lost")
    begun = task.shops.cosmos.last_request()
    place = Place.of(job(task.shops.database), task.shops.account, rate=100.0, writes=True)
    monkeypatch.setattr("spark_jobs.source.pace.Allowance.spend", lambda _, units: waited.append(units))
    list(Fence(place, task.tally, AT_ONCE)([{"entity": ref("outbox").key, "tx": "lost"}]))
    requests = [
        request.charge for request in task.shops.cosmos.requests(begun) if request.database == task.shops.database
    ]
    charged = sum(requests) + 3  # The log has requests for documents only, and not for the account and two containers.
    assert task.tally.units == pytest.approx(charged)
    assert sum(waited) == pytest.approx(charged)
