"""What is in the zoo."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from verification.mutants.named import Part, twin_of_parts
from verification.world.scenario import Scenario

World = TypeVar("World", bound=Scenario)


@dataclass(frozen=True, slots=True)
class Broken(Generic[World]):
    """What differs from what ships, a scenario in which it shows, and the property that falls there; "" if none does."""

    name: str
    parts: tuple[Part, ...]
    scenario: World
    falls: str = ""

    def scenario_with_twin(self) -> World:
        """The scenario with the twin in place of what ships."""
        twin = twin_of_parts(self.parts).within(self.scenario)
        return replace(twin, name=f"{self.scenario.name}, {self.name}")
