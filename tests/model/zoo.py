"""What is in the zoo."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from verification.twins.modules import Patch
from verification.twins.twin import within
from verification.world.scenario import Scenario

World = TypeVar("World", bound=Scenario)


@dataclass(frozen=True, slots=True)
class Broken(Generic[World]):
    """What differs from what ships, a scenario in which it shows, and the property that falls there.

    Attributes:
        name: of the twin.
        patches: of what ships.
        scenario: in which it shows.
        falls: the property; "" where nothing wrong is done, but the work is never finished.
        steps: of the shortest story.
        chores, ages: of the model, and of the scenario's clock, that differ, by their names.
        more: other attributes of the scenario that differ.
    """

    name: str
    patches: tuple[Patch, ...]
    scenario: World
    falls: str = ""
    steps: int = 0
    chores: Mapping[str, Any] = field(default_factory=dict)
    ages: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)

    def scenario_with_twin(self) -> World:
        """The scenario with the twin in place of what ships."""
        twin = within(self.scenario, self.patches)
        chores = replace(twin.chores, **self.chores)
        ages = twin.ages and replace(twin.ages, **self.ages)
        return replace(twin, name=f"{self.scenario.name}, {self.name}", chores=chores, ages=ages, **self.more)
