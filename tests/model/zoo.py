"""What is in the zoo."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from verification.mutants.named import Part, twin_of_parts
from verification.world.scenario import Scenario

World = TypeVar("World", bound=Scenario)


@dataclass(frozen=True, slots=True)
class Broken(Generic[World]):
    """What differs from what ships, a scenario in which it shows, and the property that falls there; "" if none does.

    Attributes:
        name: of the twin.
        parts: that differ of what ships.
        scenario: in which it shows.
        falls: the property.
        steps: of the shortest story; None if nobody counts them.
        chores: of the model that differ, by their names.
        ages: of the scenario's clock that differ, by their names.
    """

    name: str
    parts: tuple[Part, ...]
    scenario: World
    falls: str = ""
    steps: int | None = None
    chores: tuple[tuple[str, Any], ...] = ()
    ages: tuple[tuple[str, Any], ...] = ()

    def scenario_with_twin(self) -> World:
        """The scenario with the twin in place of what ships."""
        twin = twin_of_parts(self.parts).within(self.scenario)
        chores = replace(twin.chores, **dict(self.chores))
        ages = twin.ages and replace(twin.ages, **dict(self.ages))
        return replace(twin, name=f"{self.scenario.name}, {self.name}", chores=chores, ages=ages)
