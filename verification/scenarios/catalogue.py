"""All scenarios, by the tables of docs/model-checking.md that show them."""

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
    "table": Scenarios(outbox.SMALL, outbox.LARGE),
    "endless": Scenarios(endless.SMALL, endless.LARGE),
    "books": Scenarios(books.SMALL, books.LARGE),
    "restores": Scenarios(restores.SMALL, restores.LARGE),
    "opened": Scenarios(opened.SMALL, opened.LARGE),
    "requests": Scenarios((*requests.SMALL, *requests.IN_ONE_PARTITION), requests.LARGE),
    "calls": Scenarios(calls.SMALL, calls.LARGE),
    "kept": Scenarios(kept.SMALL, kept.LARGE),
    "companions": Scenarios(companions.SMALL, companions.LARGE),
    "deliveries": Scenarios(deliveries.SMALL, deliveries.LARGE),
    "returning": Scenarios(returns.SMALL, returns.LARGE),
    "ages": Scenarios(
        (*outbox_ages.SMALL, *companions_ages.SMALL, *renewals.SMALL),
        (*outbox_ages.LARGE, *companions_ages.LARGE, *renewals.LARGE),
    ),
}


def everything() -> Iterator[Scenario]:
    """Every scenario."""
    for scenarios in CATALOGUE.values():
        yield from (*scenarios.small, *scenarios.large)
