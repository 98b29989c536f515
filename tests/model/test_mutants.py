"""Every effect, condition and comparison of the strategies has a reason: without it the checker finds what goes wrong."""

from __future__ import annotations

import pytest

from tests.model.searches import assert_holds
from verification.mutants.finding import ALL_STATES, ALL_WORLDS, NO_END, QUIET, find, in_world
from verification.mutants.reviewed import Tables
from verification.mutants.source import Mutant, all_mutants
from verification.twins.twin import Twin
from verification.world.scenario import Scenario

TABLES = Tables.read()
QUICK = 300
"""Most states of a search that every test run repeats; `make model` repeats all, and those that come to no end."""
AGAIN = "Look for those that changed: python -m verification.mutants --changed --write"


@pytest.fixture(scope="module")
def mutants() -> dict[str, Mutant]:
    return {mutant.name: mutant for mutant in all_mutants()}


@pytest.mark.parametrize("world", ALL_WORLDS, ids=lambda world: world.name)
def test_what_ships_stands_wherever_mutants_fall(world: Scenario) -> None:
    assert_holds(in_world(Twin(), world), ALL_STATES[world.name])


@pytest.mark.parametrize("world", [*ALL_WORLDS, None], ids=lambda world: world.name if world else QUIET)
def test_mutants_are_found_where_they_were(world: Scenario | None, mutants: dict[str, Mutant]) -> None:
    name, worlds = (world.name, [world]) if world is not None else (QUIET, [])
    here = {mutant: verdict for mutant, verdict in TABLES.found.items() if verdict.world == name}
    quick = [item for item, verdict in here.items() if verdict.states <= QUICK and not verdict.how.startswith(NO_END)]
    assert [mutant for mutant in quick if find(mutants[mutant], worlds).world != name] == [], AGAIN
