"""All scenarios, by the kinds of worlds that docs/model-checking.md counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from verification.scenarios import (
    books,
    calls,
    companions,
    companions_ages,
    deliveries,
    endless,
    kept,
    opened,
    outbox,
    outbox_ages,
    renewals,
    requests,
    restores,
    returns,
)
from verification.world.scenario import Scenario


class Scenarios(NamedTuple):
    """Those that every test run explores, and those that `make model` explores as well."""

    small: tuple[Scenario, ...]
    large: tuple[Scenario, ...]


CATALOGUE: Final = {
    "outbox, marks and pages": Scenarios(outbox.SMALL, outbox.LARGE),
    "endless streams": Scenarios(endless.SMALL, endless.LARGE),
    "books of processes": Scenarios(books.SMALL, books.LARGE),
    "restores and lost pages": Scenarios(restores.SMALL, restores.LARGE),
    "opened requests": Scenarios(opened.SMALL, opened.LARGE),
    "requests": Scenarios((*requests.SMALL, *requests.IN_ONE_PARTITION), requests.LARGE),
    "calls and replies": Scenarios(calls.SMALL, calls.LARGE),
    "kept messages": Scenarios(kept.SMALL, kept.LARGE),
    "protocols in one partition": Scenarios(companions.SMALL, companions.LARGE),
    "deliveries between host, driver and operator": Scenarios(deliveries.SMALL, deliveries.LARGE),
    "returned messages": Scenarios(returns.SMALL, returns.LARGE),
    "worlds in which time passes": Scenarios(
        (*outbox_ages.SMALL, *companions_ages.SMALL, *renewals.SMALL),
        (*outbox_ages.LARGE, *companions_ages.LARGE, *renewals.LARGE),
    ),
}


def everything() -> Iterator[Scenario]:
    for scenarios in CATALOGUE.values():
        yield from (*scenarios.small, *scenarios.large)
