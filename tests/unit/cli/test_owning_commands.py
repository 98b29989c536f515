"""Commands on the whole application: their output, changes and refusals."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from exactlyonce import ConfigurationError
from exactlyonce.hosting.accounts.ownership import Declared, Ownership
from exactlyonce.records.application import OwnedType, application_of
from exactlyonce.stores.port import MemoryApplicationStore
from exactlyonce.testing.world import ManualClock
from exactlyonce.values.lifetimes import Retention
from tests.samples import accounts
from tests.unit.operated import InMemory, Run, placed, run

__all__ = ["run"]

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
ORDERS = OwnedType("order", "orders", ("/tenant", "/id"))


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> InMemory:
    return placed(InMemory(accounts()), monkeypatch)


def started(app: InMemory, *more: OwnedType) -> None:
    """The application has started, and had more types once."""
    first = application_of("bank", more, Retention())
    asyncio.run(app.owns._store.claim(first))
    asyncio.run(app.owns.ready())


def test_the_application_is_shown(app: InMemory, run: Run) -> None:
    never = run("application")
    assert (never.code, "never started" in never.out) == (1, True)
    started(app, ORDERS)
    ran = run("application")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "application bank",
        "retention   30 days, 0:00:00",
        "",
        "entity types",
        "TYPE     CONTAINER  PARTITION KEY",
        "account  accounts   /owner",
        "order    orders     /tenant, /id",
    ]


def test_a_change_of_the_retention_explains_its_effects_and_has_to_be_confirmed(app: InMemory, run: Run) -> None:
    assert run("retention", "P20D").code == 1
    started(app)
    asked = run("retention", "P20D")
    assert asked.code == 2
    assert "kept for    the old retention for 1 day, 0:00:00 more" in asked.out
    assert run("retention", "P30D").out == "it is 30 days, 0:00:00 already\n"
    assert run("retention", "P20D", "--yes").code == 0
    assert "it was 30 days" in run("application").out

    under_way = run("retention", "P40D", "--yes")
    assert (under_way.code, "A change is under way" in under_way.out) == (1, True)
    app.clock.advance(DAY.total_seconds())
    longer = run("retention", "P40D", "--yes")
    assert (longer.code, "the new retention after 21 days" in longer.out) == (0, True)


def test_a_retention_shorter_than_the_delivery_limit_is_refused(app: InMemory, run: Run) -> None:
    started(app)
    ran = run("retention", "P15D", "--yes")
    assert (ran.code, "too short for a delivery limit" in ran.err) == (2, True)
    for none in ("a month", "P1M", "0"):
        with pytest.raises(SystemExit):
            run("retention", none)


def test_a_running_process_reads_a_change_within_an_hour(app: InMemory, run: Run) -> None:
    started(app)
    run("retention", "P20D", "--yes")
    asyncio.run(app.owns.ready())
    assert app.owns.lifetimes().retention.current == 30 * DAY
    app.clock.advance(HOUR.total_seconds())
    asyncio.run(app.owns.ready())
    now = app.clock.now()
    assert (app.owns.lifetimes().retention.judged(now), app.owns.lifetimes().retention.kept(now)) == (
        20 * DAY,
        30 * DAY,
    )


def test_a_type_that_is_gone_for_good_is_forgotten(app: InMemory, run: Run) -> None:
    assert run("application", "--forget", "order").code == 1
    started(app, ORDERS)
    assert run("application", "--forget", "order").code == 2
    assert run("application", "--forget", "order", "--yes").out == "forgotten\n"
    assert "orders" not in run("application").out
    unknown = run("application", "--forget", "order", "--yes")
    assert (unknown.code, "there are: 'account'" in unknown.err) == (2, True)
    own = run("application", "--forget", "account", "--yes")
    assert (own.code, "would add it again" in own.err) == (2, True)


def test_a_setting_may_have_the_old_retention_only_during_the_change() -> None:
    clock = ManualClock()
    store = MemoryApplicationStore(clock.now)
    declared = Declared("exactlyonce", "bank", (), 30 * DAY, 7 * DAY)
    asyncio.run(Ownership(store, declared, clock).ready())
    found = asyncio.run(store.load())
    assert found is not None
    assert asyncio.run(Ownership(store, declared, clock).change_retention(20 * DAY, found))
    asyncio.run(Ownership(store, declared, clock).ready())
    clock.advance(DAY.total_seconds())
    with pytest.raises(ConfigurationError, match="EXACTLYONCE__retention is 30 days"):
        asyncio.run(Ownership(store, declared, clock).ready())
    asyncio.run(Ownership(store, replace(declared, retention=20 * DAY), clock).ready())


def test_a_concurrent_change_is_reported_and_nothing_done() -> None:
    clock = ManualClock()
    ownership = Ownership(MemoryApplicationStore(clock.now), Declared("exactlyonce", "bank", (), None, 7 * DAY), clock)
    asyncio.run(ownership.ready())
    found = asyncio.run(ownership.stored())
    assert found is not None
    assert asyncio.run(ownership.change_retention(20 * DAY, found))
    assert not asyncio.run(ownership.change_retention(20 * DAY, found))


def test_a_document_that_was_deleted_comes_back_as_it_was() -> None:
    clock = ManualClock()
    store = MemoryApplicationStore(clock.now)
    ownership = Ownership(store, Declared("exactlyonce", "bank", (ORDERS,), 20 * DAY, DAY), clock)
    asyncio.run(ownership.ready())
    store._stored = None
    clock.advance(HOUR.total_seconds())
    asyncio.run(ownership.ready())
    found = asyncio.run(ownership.stored())
    assert found is not None
    assert (found.application.types, found.application.retention) == ((ORDERS,), Retention(20 * DAY))
