"""Every effect, condition and comparison of the strategies has a reason: without it the checker finds what goes wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.model.searches import assert_holds
from verification.mutants import finding
from verification.mutants.finding import NO_END, find, in_world, reached
from verification.mutants.reviewed import Tables
from verification.mutants.source import Mutant, all_mutants
from verification.mutants.worlds import ALL_WORLDS
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
    assert_holds(in_world(Twin(), world))


@pytest.mark.parametrize("world", ALL_WORLDS, ids=lambda world: world.name)
def test_mutants_are_found_where_they_were(world: Scenario, mutants: dict[str, Mutant]) -> None:
    here = {mutant: verdict for mutant, verdict in TABLES.found.items() if verdict.world == world.name}
    quick = [item for item, verdict in here.items() if verdict.states <= QUICK and not verdict.how.startswith(NO_END)]
    assert [mutant for mutant in quick if not find(mutants[mutant], [world]).world] == [], AGAIN


def test_worlds_are_traced_again_only_after_a_source_has_changed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = tmp_path / "exactlyonce/some.py"
    source.parent.mkdir()
    source.touch()
    smallest = min(ALL_WORLDS, key=lambda world: world.states)
    monkeypatch.setattr(finding, "_ROOT", tmp_path)
    monkeypatch.setattr(finding, "ALL_WORLDS", (smallest,))
    traced = reached.__wrapped__()
    assert traced.keys() == {smallest.name}
    assert traced[smallest.name]
    monkeypatch.setattr(finding, "_traced", None)
    assert reached.__wrapped__() == traced
    source.write_text("changed = True")
    with pytest.raises(TypeError):
        reached.__wrapped__()
